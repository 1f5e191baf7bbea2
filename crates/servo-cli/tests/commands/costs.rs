//! `servo cost`, and costs where runs and backfills are shown: with prices by which a byte costs a millionth of a
//! dollar and nothing else costs anything.

use serde_json::{Value, json};

use crate::support::Project;

const CODE: &str = r#"
import servo

days = servo.DailyPartitions(start="2013-01-01", end="2013-01-31")

@servo.asset(namespace="raw", partitions=days)
def orders(ctx) -> list:
    return [1, 2, 3]

@servo.asset(namespace="shop", retry=servo.Retry(max_attempts=1))
def broken() -> int:
    raise ValueError("it is broken")
"#;

/// A table without the times in it, and with one blank between its words.
fn told(text: &str) -> Vec<String> {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let is_time = |word: &str| word.len() == 24 && word.ends_with('Z');
    let mask = |word: String| if is_time(&word) { "TIME".to_owned() } else { word };
    text.lines().map(|line| words(line).into_iter().map(mask).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn what_attempts_cost_is_shown_by_asset_by_day_by_run_and_for_a_backfill() {
    let project = Project::new(CODE);
    let nothing = project.good(&["cost"]);
    assert!(nothing.starts_with("no attempt ended from "), "{nothing}");
    for wrong in ["-3", "0.02", "many"] {
        let refused = project.bad(&["config", "set", &format!("nano_usd_per_storage_gb={wrong}")]);
        assert!(refused.contains("a whole number of billionths of a US dollar"), "{refused}");
    }
    let refused = project.bad(&["config", "set", "nano_usd_per_storage_gb=1000000000001"]);
    assert!(refused.contains("it is from 0 to 1000000000000"), "{refused}");
    project.good(&[
        "config",
        "set",
        "nano_usd_per_cpu_second=0",
        "nano_usd_per_memory_gb_second=0",
        "nano_usd_per_storage_gb=1000000000000",
    ]);
    project.good(&["materialize", "raw.orders", "--partitions", "2013-01-01..2013-01-02"]);
    project.bad(&["materialize", "shop.broken"]);

    let costs = project.json(&["cost", "--json"]);
    let [orders, broken] = costs["items"].as_array().unwrap().as_slice() else { panic!("{costs}") };
    let of = |item: &Value, name: &str| item[name].as_u64().unwrap();
    let bytes = of(orders, "output_bytes_written");
    assert!(bytes > 0 && of(orders, "input_bytes_read") == 0, "{orders}");
    assert_eq!((of(orders, "attempts"), of(orders, "total_cost_micro_usd")), (2, bytes));
    assert_eq!((of(broken, "attempts"), of(broken, "total_cost_micro_usd")), (1, 0), "failed, for nothing");
    assert_eq!(
        (&costs["total"]["attempts"], &costs["total"]["total_cost_micro_usd"]),
        (&json!(3), &json!(bytes))
    );
    let row =
        project.json(&["sql", "select sum(total_cost_micro_usd)::bigint as n from task_costs", "--json"]);
    assert_eq!(row[0]["n"], bytes);

    let money = format!("$0.{bytes:06}").trim_end_matches('0').to_owned();
    let table = told(&project.good(&["cost", "raw.orders"]));
    assert_eq!(table[0], "asset attempts cpu compute storage network total");
    assert!(table[1].starts_with("raw.orders 2 "), "{table:?}");
    assert!(table[1].ends_with(&format!("$0.00 {money} $0.00 {money}")), "{table:?}");
    assert_eq!(table[3], format!("{money} all together, by attempts that ended from TIME to TIME"));
    assert_eq!(told(&project.good(&["cost", "--by", "day"])).len(), 4);
    let page = told(&project.good(&["cost", "--by", "run", "--limit", "1"]));
    assert!(page[1].starts_with("run_") && page[4].starts_with("more: the same with --cursor "), "{page:?}");
    let run = page[1].split(' ').next().unwrap();
    let shown = project.good(&["run", "show", run]);
    assert!(shown.contains(&format!("cost {money}\n")), "{shown}");
    let preview = project.good(&["backfill", "preview", "raw.orders", "--missing"]);
    let rest = bytes / 2 * 29;
    assert!(preview.contains("of work, and costs about $0.00"), "{rest}: {preview}");
    let preview = project.json(&["backfill", "preview", "raw.orders", "--missing", "--json"]);
    assert_eq!(preview["estimated_cost_micro_usd"], rest);
}
