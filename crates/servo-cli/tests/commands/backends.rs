//! Every command says the same in the same words, whether a server runs or not, and sees what the one before has done.

use serde_json::Value;

use crate::shown::shown;
use crate::support::{Dev, Project};

const SHOP: &str = r#"
import servo

days = servo.DailyPartitions(start="2013-01-01", end="2013-01-31")

servo.external("source.feed")

@servo.asset(namespace="raw", partitions=days, deps=["source.feed"], group="ingest")
def orders(ctx) -> list:
    print("orders of", ctx.partition)
    return [1, 2, 3]

@servo.asset(namespace="raw", partitions=servo.DynamicPartitions("customers"))
def profiles() -> list:
    return [1]

@servo.asset(namespace="shop", partitions=days, checks=[servo.row_count(min=5, severity="warning")])
def clean(orders: list) -> list:
    return orders

@servo.asset(namespace="shop", quarantine=True, checks=[servo.row_count(min=3, severity="critical")])
def blocked() -> list:
    return [1]

@servo.asset(namespace="shop", automation=servo.cron_tick("0 0 1 1 *"))
def report(blocked: list) -> int:
    return 1
servo.notify("oncall", when="run_failed", to=servo.Command(["true"]))

servo.schedule(name="yearly", cron="0 0 1 1 *", selection="shop.clean")

@servo.push_sensor(selection="shop.clean", enabled=False)
def told(ctx, message):
    return servo.SkipReason("not today")

@servo.asset(namespace="shop", retry=servo.Retry(max_attempts=1))
def broken() -> int:
    raise ValueError("it is broken")
"#;

/// Commands in an order in which each finds what it is about. `{run}` is the newest run, `{review}` what waits for
/// review.
const COMMANDS: &[&[&str]] = &[
    &["asset", "list"],
    &["asset", "list", "+shop.clean and not source.*"],
    &["asset", "show", "shop.clean"],
    &["asset", "show", "shop.claen"],
    &["asset", "graph"],
    &["asset", "graph", "--dot"],
    &["plan", "+shop.clean", "--partitions", "2013-01-01..2013-01-02"],
    &["plan", "shop.clean and", "--latest"],
    &["plan", "shop.*"],
    &["asset", "rename", "raw.orders", "raw.sales"],
    &["asset", "rename", "raw.ordrs", "raw.sales"],
    &["partition", "add", "customers", "acme", "globex"],
    &["partition", "add", "customers", "acme"],
    &["partition", "add", "custmers", "acme"],
    &["partition", "list", "raw.profiles"],
    &["partition", "remove", "customers", "acme"],
    &["partition", "list", "raw.orders", "--limit", "3"],
    &["partition", "list", "shop.blocked"],
    &["partition", "stale", "raw.*", "--limit", "3"],
    &["partition", "stale", "raw.*", "--reason", "old"],
    &["why", "shop.clean", "--partition", "2013-01-02"],
    &["why", "shop.claen"],
    &["deploy"],
    &["deploy", "--dry-run"],
    &["deployment", "list"],
    &["deployment", "show"],
    &["deployment", "diff", "0", "1"],
    &["deployment", "rollback", "1", "--dry-run"],
    &["deployment", "rollback", "1"],
    &["deployment", "rollback", "77"],
    &["materialize", "+shop.clean", "--partitions", "2013-01-01..2013-01-02"],
    &["materialize", "shop.nothing"],
    &["plan", "shop.clean", "--partitions", "2013-01-01..2013-01-02", "--stale"],
    &["why", "shop.clean", "--partition", "2013-01-01"],
    &["check", "run", "shop.clean", "--partition", "2013-01-02"],
    &["check", "run", "raw.orders"],
    &["check", "run", "shop.blocked"],
    &["admin", "retention", "preview"],
    &["admin", "retention", "apply"],
    &["partition", "wipe", "raw.orders", "--partition", "2013-01-02", "--dry-run"],
    &["partition", "wipe", "raw.nothing", "--all", "--yes"],
    &["partition", "wipe", "raw.orders", "--partitions", "2013-01-09..2013-01-01", "--yes"],
    &["partition", "undo", "raw.orders"],
    &["run", "list"],
    &["run", "list", "-a", "shop.clean", "--source", "manual"],
    &["run", "list", "--sort", "oldest", "--since", "soon"],
    &["automation", "list"],
    &["automation", "explain", "shop.report"],
    &["automation", "explain", "shop.clean"],
    &["automation", "pause", "shop.report", "--reason", "later"],
    &["automation", "resume", "shop.report"],
    &["automation", "history", "shop.report"],
    &["run", "conflicts"],
    &["run", "show", "{run}"],
    &["cost", "--by", "day"],
    &["cost", "raw.orders", "--by", "asset"],
    &["cost", "raw.ordrs"],
    &["cost", "--since", "2011-01-01T00:00:00Z"],
    &["run", "show", "latest", "--state", "failed"],
    // No id begins like this.
    &["run", "show", "0"],
    &["asset", "lineage", "shop.clean", "--partition", "2013-01-02"],
    &["asset", "lineage", "raw.orders", "--partition", "2013-01-02", "--down"],
    &["asset", "lineage", "raw.profiles"],
    &["run", "watch", "{run}"],
    &["run", "logs", "{run}"],
    &["run", "logs", "{run}", "raw.orders", "--partition", "2013-01-01", "--follow"],
    &["run", "why", "{run}"],
    &["run", "cancel", "{run}"],
    &["config", "set", "execution_timeout=30m", "pool.warehouse=2"],
    &["config", "set", "execution_timeout=30m"],
    &["config", "set", "heartbeat_timeout=1ms"],
    &["config", "set", "heartbeat_timeot=60s"],
    &["config", "show", "execution_timeout"],
    &["config", "show", "nothing"],
    &["config", "unset", "execution_timeout", "pool.warehouse"],
    &["admin", "pause", "--queue", "gpu", "--reason", "no workers"],
    &["admin", "resume", "--queue", "gpu"],
    &["admin", "resume"],
    &["run", "retry", "{run}", "--from-failure"],
    &["run", "retry", "{run}"],
    &["run", "show", "run_aaaaaaaaaaaaaaaaaaaaaaaaaa"],
    &["run", "list", "--state", "FAILED"],
    &["partition", "list", "raw.orders", "--limit", "2"],
    &["plan", "shop.clean", "--partition", "2013-01-01"],
    &["schedule", "list"],
    &["schedule", "show", "yearly"],
    &["schedule", "preview", "yearly", "--count", "2"],
    &["schedule", "pause", "yearly"],
    &["schedule", "pause", "yearly", "--expected-state-version", "1"],
    &["schedule", "resume", "yearly"],
    &["schedule", "create", "mine", "--cron", "0 0 1 1 *", "--select", "raw.*"],
    &["schedule", "update", "mine", "--priority", "2"],
    &["schedule", "update", "mine", "--priority", "3", "--expected-state-version", "1"],
    &["schedule", "delete", "mine"],
    &["schedule", "delete", "yearly"],
    &["schedule", "ticks", "yearly"],
    &["schedule", "show", "nothing"],
    &["sensor", "list"],
    &["sensor", "show", "told"],
    &["sensor", "push", "told", "--id", "m1", "--data", "{\"a\": 1}"],
    &["sensor", "push", "told", "--id", "m1", "--data", "{\"a\": 1}"],
    &["sensor", "pause", "told"],
    &["sensor", "pause", "told", "--expected-state-version", "7"],
    &["sensor", "reset-cursor", "told", "--to", "2013-01-15"],
    &["sensor", "evals", "told"],
    &["sensor", "show", "nothing"],
    &["sensor", "create", "mine", "--push", "--select", "raw.*"],
    &["sensor", "create", "mine", "--push", "--select", "raw.*"],
    &["sensor", "update", "mine", "--select", "raw.orders", "--signature", "github", "--secret-env", "X"],
    &["sensor", "update", "mine", "--select", "raw.orders"],
    &["sensor", "delete", "mine"],
    &["notification", "list"],
    &["notification", "show", "oncall"],
    &["notification", "pause", "oncall"],
    &["notification", "pause", "oncall", "--expected-state-version", "7"],
    &["notification", "resume", "oncall"],
    &["notification", "update", "missing.json"],
    &["notification", "delete", "oncall"],
    &["notification", "history", "oncall"],
    &["notification", "show", "nothing"],
    &["materialize", "shop.broken"],
    &["run", "list", "--state", "failed", "--limit", "1"],
    &["materialize", "shop.blocked"],
    &["quarantine", "list"],
    &["quarantine", "approve", "{review}"],
    &["quarantine", "approve", "{review}"],
    &["asset", "show", "shop.blocked"],
    &["quarantine", "list"],
    &["audit", "--action", "quarantine"],
    &["admin", "audit", "--refused", "--limit", "1"],
    &["audit", "--since", "yesterday"],
];

#[test]
fn every_command_says_the_same_with_and_without_a_server() {
    let (alone, served) = (Project::new(SHOP), Project::new(SHOP));
    // Deployed on both sides: ids of assets are given then.
    alone.good(&["deploy"]);
    let _dev = Dev::start(&served);
    let mut review = [String::new(), String::new()];
    for command in COMMANDS {
        if command.contains(&"approve") && review[0].is_empty() {
            review = [&alone, &served].map(|project| {
                let waiting = project.json(&["quarantine", "list", "--json"]);
                waiting["items"][0]["materialization_id"].as_str().unwrap().to_owned()
            });
        }
        for json in [false, true] {
            // What changes something is asked for once; the other form of it then finds it done.
            let said = [(&alone, &review[0]), (&served, &review[1])].map(|(project, review)| {
                let run = newest(project);
                let named = command.iter().map(|word| match *word {
                    "{run}" => run.as_str(),
                    "{review}" => review.as_str(),
                    word => word,
                });
                let arguments: Vec<&str> = named.chain(json.then_some("--json")).collect();
                shown(&project.servo(&arguments))
            });
            assert_eq!(said[0], said[1], "alone and with a server: servo {command:?} {json}");
        }
    }
}

fn newest(project: &Project) -> String {
    let runs = project.json(&["run", "list", "--json", "--limit", "1"]);
    runs["items"][0]["run_id"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn what_a_command_has_done_is_seen_by_the_next() {
    let code = |value: u32| {
        format!(
            "import servo\n@servo.asset(namespace=\"t\")\ndef rows() -> list:\n    return [{{\"n\": {value}}}]\n"
        )
    };
    let project = Project::new(&code(0));
    let sees = |value: u32| {
        project.good(&["materialize", "t.rows"]);
        let run = newest(&project);
        let shown = project.json(&["run", "show", &run, "--json"]);
        assert_eq!(shown["run"]["state"], "SUCCEEDED");
        let asset = project.json(&["asset", "show", "t.rows", "--json"]);
        assert_eq!(asset["latest"]["run_id"], run.as_str());
        let runs =
            project.json(&["sql", "select run_id from runs order by created_at desc limit 1", "--json"]);
        assert_eq!(runs[0]["run_id"], run.as_str());
        let count = project.json(&["sql", "select count(*) as n from materializations", "--json"]);
        assert_eq!(count[0]["n"], value);
    };
    sees(1);
    sees(2);
    let _dev = Dev::start(&project);
    (3..8).for_each(sees);
}

#[test]
fn errors_are_problem_documents_for_programs() {
    let project = Project::new(SHOP);
    let problem = |arguments: &[&str]| -> Value {
        let output = project.servo(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(output.stdout.is_empty());
        serde_json::from_slice(&output.stderr).unwrap()
    };
    assert_eq!(problem(&["run", "show", "run_aaaaaaaaaaaaaaaaaaaaaaaaaa", "--json"])["code"], "unknown_run");
    assert_eq!(problem(&["asset", "show", "no.such", "--json"])["code"], "unknown_asset");
    assert_eq!(problem(&["plan", "shop.*", "--json"])["code"], "unplannable");
    assert_eq!(problem(&["partition", "add", "nothing", "x", "--json"])["code"], "unknown_partitions");
    let unplannable = problem(&["plan", "(", "--json"]);
    assert_eq!(unplannable["violations"][0]["field"], "selection");
    project.save("def (");
    assert_eq!(problem(&["asset", "list", "--json"])["code"], "invalid_project");
    let unreachable =
        project.command(&["run", "list", "--json"]).env("SERVO_URL", "http://127.0.0.1:1").output().unwrap();
    assert_eq!(unreachable.status.code(), Some(4));
    let problem: Value = serde_json::from_slice(&unreachable.stderr).unwrap();
    assert_eq!(problem["code"], "unavailable");
}
