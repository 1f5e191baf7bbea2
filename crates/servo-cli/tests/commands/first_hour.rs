//! The first hour of a new user: what was done is seen, what was saved runs, and waiting is told of.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::{Dev, PATIENCE, Project, until};

const COUNT: &str = r#"
@servo.asset(namespace="t")
def count() -> list[dict]:
    return [{"n": 0}]
"#;

#[test]
fn a_query_sees_what_the_command_before_it_has_made() {
    let project = Project::new(COUNT);
    let _dev = Dev::start(&project);
    for n in 1..=5 {
        project.save(&COUNT.replace("\"n\": 0", &format!("\"n\": {n}")));
        project.good(&["materialize", "t.count"]);
        let seen = project.json(&["sql", "select n from t.count", "--json"]);
        assert_eq!(seen, json!([{ "n": n }]));
        let runs =
            project.json(&["sql", "select count(*) as n from runs where state = 'SUCCEEDED'", "--json"]);
        assert_eq!(runs, json!([{ "n": n }]));
    }
}

#[test]
fn a_request_after_a_save_runs_what_was_saved() {
    let project = Project::new(
        "import helper\n@servo.asset(namespace=\"t\")\ndef value() -> list:\n    return [{\"n\": helper.N}]\n",
    );
    fs::write(project.path("helper.py"), "N = 0\n").unwrap();
    let _dev = Dev::start(&project);
    for n in 1..=5 {
        fs::write(project.path("helper.py"), format!("N = {n}\n")).unwrap();
        project.good(&["materialize", "t.value"]);
        assert_eq!(project.json(&["sql", "select n from t.value", "--json"]), json!([{ "n": n }]));
    }
    project.save("@servo.asset(namespace=\"t\")\ndef other() -> int:\n    return 1\n");
    project.good(&["materialize", "t.other"]);
    project.save("@servo.asset(namespace=\"t\")\ndef third() -> int:\n    return 1\n");
    let listed = project.good(&["asset", "list"]);
    assert!(listed.contains("t.third") && !listed.contains("t.other"), "{listed}");
}

#[test]
fn what_is_asked_of_automation_after_a_save_is_about_what_was_saved() {
    let asset = |name: &str| {
        format!(
            "@servo.asset(namespace=\"t\", partitions=servo.StaticPartitions([\"x\"]))\ndef {name}() -> int:\n    \
             return 1\n"
        )
    };
    let sensor = "\n@servo.sensor(selection=\"t.seen\")\ndef look(ctx):\n    return []\n";
    let rule = r#"{"name": "told", "when": ["run_failed"], "selection": "t.told",
        "to": [{"type": "webhook", "url": "https://example.org/hook"}]}"#;
    let project = Project::new(&asset("first"));
    fs::write(project.path("told.json"), rule).unwrap();
    let _dev = Dev::start(&project);
    let saved: [(&str, &str, &[&str]); 7] = [
        ("previewed", "", &["backfill", "preview", "t.previewed", "-p", "x"]),
        ("created", "", &["backfill", "create", "t.created", "-p", "x", "--wait"]),
        ("seen", sensor, &["sensor", "evaluate", "look", "--dry-run"]),
        ("clocked", "", &["schedule", "create", "clock", "--cron", "0 6 * * *", "--select", "t.clocked"]),
        ("pushed", "", &["sensor", "create", "push", "--push", "--select", "t.pushed"]),
        ("told", "", &["notification", "create", "told.json"]),
        ("last", "", &["materialize", "t.last", "-p", "x"]),
    ];
    let mut code = asset("first");
    for (name, more, command) in saved {
        code.push_str(&format!("\n{}{more}", asset(name)));
        project.save(&code);
        project.good(command);
    }
    project.save("import nothing_like_that\n");
    for command in [
        &["backfill", "create", "t.last", "-p", "x"][..],
        &["schedule", "create", "late", "--cron", "0 6 * * *", "--select", "t.last"],
    ] {
        let told = project.bad(command);
        assert!(told.contains("the code that was saved cannot be loaded"), "{command:?}: {told}");
    }
    // A schedule that exists can be paused whatever was saved.
    project.good(&["schedule", "pause", "clock"]);
}

#[test]
fn an_interpreter_that_dies_while_it_imports_is_started_again() {
    let elsewhere = tempfile::tempdir().unwrap();
    let tried = elsewhere.path().join("tried");
    let project = Project::new(&format!(
        "import os, pathlib\ntried = pathlib.Path({:?})\nif not tried.exists():\n    tried.touch()\n    \
         os._exit(9)\n{COUNT}",
        tried.display().to_string()
    ));
    let dev = Dev::begin(&project, &["--port", "0"]);
    dev.wait_for("reloaded: definitions have changed");
    assert!(dev.log().contains("✗"), "it has died before:\n{}", dev.log());
    project.good(&["materialize", "t.count"]);
}

#[test]
fn a_broken_save_is_told_to_whoever_asks() {
    let project = Project::new(COUNT);
    let _dev = Dev::start(&project);
    project.good(&["materialize", "t.count"]);
    project.save("import nothing_like_that\n");
    for arguments in [&["materialize", "t.count"][..], &["plan", "t.count"], &["run", "retry", "latest"]] {
        let told = project.bad(arguments);
        for expected in
            ["the code that was saved cannot be loaded", "No module named 'nothing_like_that'", "work.py:2"]
        {
            assert!(told.contains(expected), "{arguments:?}: {expected:?} is not in\n{told}");
        }
    }
    let output = project.servo(&["materialize", "t.count", "--json"]);
    let problem: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!((output.status.code(), problem["code"].as_str()), (Some(1), Some("invalid_project")));
    let listed = project.servo(&["asset", "list"]);
    let warning = String::from_utf8_lossy(&listed.stderr);
    assert!(listed.status.success() && warning.contains("this is about the code before it"), "{warning}");
    assert_eq!(project.json(&["run", "list", "--json"])["items"].as_array().unwrap().len(), 1);
    project.save(COUNT);
    project.good(&["materialize", "t.count"]);
}

const CRASHES: &str = r#"
import os, pathlib

@servo.asset(namespace="t")
def fragile() -> int:
    tries = pathlib.Path("tries")
    count = int(tries.read_text()) + 1 if tries.exists() else 1
    tries.write_text(str(count))
    if count < 3:
        os._exit(9)
    return count
"#;

#[test]
fn a_crash_is_tried_again_soon_and_told_of_when_it_happens() {
    let project = Project::new(CRASHES);
    let begun = Instant::now();
    let output = project.servo(&["materialize", "t.fragile"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    // Two waits, of at most 2 and 8 seconds; they were a minute and two.
    assert!(begun.elapsed() < PATIENCE, "{told}");
    for expected in
        ["t.fragile attempt 1 failed: WORKER_CRASH", "; attempt 2 in ", "t.fragile attempt 2 failed"]
    {
        assert!(told.contains(expected), "{expected:?} is not in\n{told}");
    }
}

#[test]
fn an_error_with_which_a_run_ends_is_told_once_and_in_words() {
    let broken =
        "@servo.asset(namespace=\"t\")\ndef broken() -> int:\n    raise ValueError(\"it is broken\")\n";
    let project = Project::new(broken);
    let output = project.servo(&["materialize", "t.broken"]);
    let (summary, lines) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(summary.contains("USER_CODE_EXCEPTION ValueError: it is broken"), "{summary}");
    assert!(!lines.contains("it is broken"), "{lines}");
    let shown = project.good(&["run", "show", "latest"]);
    for words in ["FAILED (tasks failed)", "execution failed"] {
        assert!(shown.contains(words), "{words:?} is not in\n{shown}");
    }
}

#[test]
fn an_error_is_told_of_when_it_happens_if_the_run_goes_on() {
    let code = r#"
import pathlib, time

@servo.asset(namespace="t")
def broken() -> int:
    raise ValueError("it is broken")

@servo.asset(namespace="t")
def patient() -> int:
    while not pathlib.Path("open").exists():
        time.sleep(0.02)
    return 1
"#;
    let project = Project::new(code);
    let mut command = project.command(&["materialize", "t.*", "--slots", "2"]);
    let mut running = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(running.stderr.take().unwrap()).lines();
    let said = lines.next().unwrap().unwrap();
    assert!(said.starts_with("✗ t.broken") && said.ends_with("ValueError: it is broken"), "{said}");
    fs::write(project.path("open"), "").unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(1));
}

#[test]
fn nothing_is_tried_again_without_retries() {
    let project = Project::new(CRASHES);
    let told = project.bad(&["materialize", "t.fragile", "--no-retry"]);
    assert!(told.contains("WORKER_CRASH"), "{told}");
    assert_eq!(fs::read_to_string(project.path("tries")).unwrap(), "1");
}

#[test]
fn waiting_for_a_retry_ends_when_somebody_says_so() {
    let slow = r#"
import pathlib

@servo.asset(namespace="t", retry=servo.Retry(max_attempts=2, delay="1h"))
def patient() -> int:
    if not pathlib.Path("mended").exists():
        raise ValueError("it is not mended")
    return 1
"#;
    let project = Project::new(slow);
    let _dev = Dev::start(&project);
    let mut waiting = project
        .command(&["materialize", "t.patient"])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(waiting.stderr.take().unwrap()).lines();
    let said = lines.next().unwrap().unwrap();
    assert!(
        said.contains("attempt 1 failed: USER_CODE_EXCEPTION ValueError: it is not mended; attempt 2 in"),
        "{said}"
    );
    fs::write(project.path("mended"), "").unwrap();
    let told = project.good(&["run", "retry", "latest", "--now"]);
    assert!(told.contains("tried again now"), "{told}");
    assert!(waiting.wait().unwrap().success());
    let told = project.bad(&["run", "retry", "latest", "--now"]);
    assert!(told.contains("has already ended"), "{told}");
}

#[test]
fn what_a_command_was_asked_for_goes_before_what_a_killed_one_has_left() {
    let code = r#"
import pathlib, time

@servo.asset(namespace="t", partitions=servo.StaticPartitions([f"p{n}" for n in range(8)]))
def slow(ctx) -> int:
    pathlib.Path(f"began-{ctx.partition}-{ctx.run_id}-{ctx.attempt}").touch()
    while not pathlib.Path("open").exists():
        time.sleep(0.02)
    return 1

@servo.asset(namespace="t")
def quick() -> int:
    return 1
"#;
    let project = Project::new(code);
    let mut killed = project
        .command(&["materialize", "t.slow", "--partitions", "..", "--slots", "2"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let began = || {
        fs::read_dir(project.root.path())
            .unwrap()
            .flatten()
            .filter(|it| it.file_name().to_string_lossy().starts_with("began-"))
            .count()
    };
    until("two tasks are at work", || (began() == 2).then_some(()));
    killed.kill().unwrap();
    killed.wait().unwrap();
    // A request that is refused is told why, and nothing else.
    let refused = project.servo(&["materialize", "t.slow", "-p", "p99"]);
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(told.starts_with("error: partition p99 fits none of the selected assets"), "{told}");
    // The slow ones cannot end, so that this one would never begin behind them.
    let output = project.servo(&["materialize", "t.quick", "--slots", "2"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("of before goes on as well, when slots are free"), "{told}");
    assert!(told.contains("of before is not finished; go on with it: servo run watch"), "{told}");
    fs::write(project.path("open"), "").unwrap();
    let runs = project.json(&["run", "list", "--state", "running", "--json"]);
    let left = runs["items"][0]["run_id"].as_str().unwrap().to_owned();
    project.good(&["run", "watch", &left]);
    let ended = project.json(&["run", "show", &left, "--json"]);
    assert_eq!(
        (ended["run"]["state"].as_str(), ended["run"]["tasks_succeeded"].as_u64()),
        (Some("SUCCEEDED"), Some(8))
    );
}

#[test]
fn servers_and_commands_start_with_the_same_settings() {
    let project = Project::new(COUNT);
    let changes = || {
        let ledger = project.home().join("ledger/orchestration");
        let files = fs::read_dir(ledger).unwrap().flatten();
        let count = |file: fs::DirEntry| {
            fs::read_to_string(file.path()).unwrap().matches("\"SettingsChanged\"").count()
        };
        files.map(count).sum::<usize>()
    };
    project.good(&["materialize", "t.count", "--slots", "2"]);
    let first = changes();
    for _ in 0..2 {
        drop(Dev::start(&project));
        project.good(&["materialize", "t.count", "--slots", "2"]);
    }
    assert_eq!(changes(), first);
}

#[test]
fn a_function_adds_partitions_together_with_what_it_makes() {
    let code = r#"
import os
customers = servo.DynamicPartitions("customers")

@servo.asset(namespace="t")
def directory(ctx) -> list:
    ctx.add_partitions(customers, ["acme", "globex"])
    ctx.add_partitions("customers", ["acme"])
    if os.path.exists("broken"):
        raise ValueError("after all")
    return ["acme", "globex"]

@servo.asset(namespace="t", retry=servo.Retry(max_attempts=1))
def wrong(ctx) -> int:
    ctx.add_partitions("custmers", ["acme"])
    return 1

@servo.asset(namespace="t", partitions=customers)
def profile(ctx) -> str:
    return str(ctx.partition)
"#;
    let project = Project::new(code);
    let keys = || {
        let listed = project.json(&["partition", "list", "t.profile", "--json"]);
        let keys =
            listed["items"].as_array().unwrap().iter().map(|it| it["partition"].as_str().unwrap().to_owned());
        let mut keys: Vec<String> = keys.collect();
        keys.sort();
        keys
    };
    fs::write(project.path("broken"), "").unwrap();
    project.bad(&["materialize", "t.directory"]);
    assert!(keys().is_empty(), "an attempt that fails adds nothing");
    fs::remove_file(project.path("broken")).unwrap();
    project.good(&["materialize", "t.directory"]);
    assert_eq!(keys(), ["acme", "globex"]);
    project.good(&["materialize", "t.profile", "--missing"]);
    let told = project.bad(&["materialize", "t.wrong"]);
    assert!(told.contains("no asset has dynamic partitions of that name; there are: customers"), "{told}");
    assert!(project.committed("t/wrong").is_empty());

    let _dev = Dev::start(&project);
    project.good(&["materialize", "t.directory"]);
    project.good(&["partition", "add", "customers", "initech"]);
    assert_eq!(keys(), ["acme", "globex", "initech"]);
    project.good(&["partition", "remove", "customers", "initech"]);
    assert_eq!(keys(), ["acme", "globex"]);
}

#[test]
fn a_project_is_imported_again_only_if_something_has_changed() {
    let code = r#"
import os, pathlib, helper
print("imported", file=open(os.environ["IMPORTS"], "a"))

@servo.asset(namespace="t", description=helper.TEXT + os.environ.get("SUFFIX", ""))
def value() -> int:
    return 1

for name in pathlib.Path("names.txt").read_text().split():
    servo.external(f"source.{name}")
"#;
    let project = Project::new(code);
    fs::write(project.path("helper.py"), "TEXT = 'one'\n").unwrap();
    fs::write(project.path("names.txt"), "feed").unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let (cache, counted) = (elsewhere.path().join("cache"), elsewhere.path().join("imports"));
    let show = |variables: &[(&str, &str)]| {
        let mut command = project.command(&["asset", "list", "--json"]);
        command.env("XDG_CACHE_HOME", &cache).env("IMPORTS", &counted);
        let output = command.envs(variables.iter().copied()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
        let items = listed["items"].as_array().unwrap().clone();
        let made = items.iter().find(|it| it["external"] != true).unwrap();
        (made["description"].as_str().unwrap().to_owned(), items.len())
    };
    let imports = || fs::read_to_string(&counted).unwrap().lines().count();
    // Only what was written a moment before it was read is certain to be seen again.
    let settle = || std::thread::sleep(std::time::Duration::from_millis(50));
    settle();
    assert_eq!((show(&[]), imports()), (("one".to_owned(), 2), 1));
    assert_eq!((show(&[]), imports()), (("one".to_owned(), 2), 1), "nothing has changed");
    fs::write(project.path("helper.py"), "TEXT = 'two'\n").unwrap();
    settle();
    assert_eq!((show(&[]), imports()), (("two".to_owned(), 2), 2), "a module that it imports");
    assert_eq!((show(&[]), imports()), (("two".to_owned(), 2), 2));
    assert_eq!(
        (show(&[("SUFFIX", "!")]), imports()),
        (("two!".to_owned(), 2), 3),
        "a variable that it reads"
    );
    assert_eq!((show(&[("SUFFIX", "!")]), imports()), (("two!".to_owned(), 2), 3));
    assert_eq!(
        (show(&[("OTHER", "x"), ("SUFFIX", "!")]), imports()).1,
        3,
        "a variable that it does not read"
    );
    fs::write(project.path("names.txt"), "feed orders").unwrap();
    settle();
    assert_eq!((show(&[("SUFFIX", "!")]), imports()), (("two!".to_owned(), 3), 4), "a file that it reads");
    assert_eq!((show(&[("SUFFIX", "!"), ("SERVO_NO_CACHE", "1")]), imports()).1, 5, "without the cache");
}

#[test]
fn what_is_known_of_data_is_shown() {
    let code = r##"
import pyarrow as pa
days = servo.StaticPartitions(["mon", "tue"])

@servo.asset(namespace="t", partitions=days)
def frame(ctx) -> pa.Table:
    ctx.metadata(
        note=servo.md("**all** of it"),
        source=servo.url("https://example.org/feed", "the feed"),
        sums=servo.table([{"what": "total", "n": 6}]),
        picture=servo.plot("<svg xmlns='http://www.w3.org/2000/svg'/>"),
        limits={"low": 1},
    )
    return pa.table({"n": [1, None, 3], "name": ["a", "b", str(ctx.partition)]})
"##;
    let project = Project::new(code);
    let never = project.good(&["asset", "show", "t.frame"]);
    assert!(!never.contains("first rows"), "{never}");
    let told = project.bad(&["asset", "show", "t.frame", "-p", "mon"]);
    assert!(told.contains("t.frame mon was never materialized"), "{told}");
    project.good(&["materialize", "t.frame", "-p", "mon", "-p", "tue"]);
    let shown = project.good(&["asset", "show", "t.frame", "-p", "mon"]);
    for expected in [
        "data mon",
        "rows             3",
        "n     int64   1 null",
        "name  string",
        "**all** of it",
        "source: the feed https://example.org/feed",
        "sums, 1 in all",
        "total",
        "_plot-picture.svg",
        "limits: {\"low\":1}",
        "first rows, 3 in all",
    ] {
        assert!(shown.contains(expected), "{expected:?} is not in\n{shown}");
    }
    assert!(project.good(&["asset", "show", "t.frame"]).contains("data tue"), "the last of its partitions");
    let _dev = Dev::start(&project);
    let made = project.json(&["asset", "show", "t.frame", "-p", "mon", "--json"])["materialization"].clone();
    assert_eq!(made["metadata"]["limits"], json!({ "low": 1 }));
    assert_eq!(made["metadata"]["note"], json!({ "$servo": "md", "text": "**all** of it" }));
    assert_eq!((&made["nulls"]["n"], &made["preview"][2]["name"]), (&json!(1), &json!("mon")));
}

#[test]
fn programs_are_told_the_same_things_under_the_same_names() {
    let code = r#"
@servo.asset(namespace="raw")
def rows(ctx) -> list:
    ctx.metadata(limits={"low": 1})
    return [1]

@servo.asset(namespace="t", checks=[servo.row_count(min=1)])
def clean(rows: list) -> list:
    return rows
"#;
    let project = Project::new(code);
    let plan = project.json(&["plan", "t.clean", "--json"]);
    assert_eq!(plan["warnings"], json!(["t.clean reads raw.rows, which was never materialized"]));
    let plan = project.json(&["plan", "+t.clean", "--json"]);
    let stages: Vec<_> = plan["tasks"].as_array().unwrap().iter().map(|task| task["stage"].clone()).collect();
    assert_eq!(stages, [json!(1), json!(2)], "as people count them");
    project.good(&["materialize", "+t.clean"]);
    let run = project.newest_run()["run_id"].as_str().unwrap().to_owned();
    let shown = project.json(&["run", "show", &run, "--json"]);
    assert_eq!(shown["tasks"][0]["asset_key"], "raw/rows");
    for (arguments, code) in [
        (&["asset", "shwo", "--json"][..], 2),
        (&["asset", "show", "t.nothing", "--json"], 1),
        (&["sql", "selec", "--json"], 1),
        (&["materialize", "t.nothing", "--json"], 1),
    ] {
        let output = project.servo(arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        let problem: Value =
            serde_json::from_str(text.lines().last().unwrap_or_default()).unwrap_or_default();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        assert!(problem["code"].is_string() && problem["detail"].is_string(), "{arguments:?}: {text}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn what_is_available_is_read_what_is_missing_is_said_and_made() {
    let code = r#"
days = servo.DailyPartitions(start="2013-01-01", end="2013-01-04")

@servo.asset(namespace="raw", partitions=days)
def events() -> list:
    return [1]

@servo.asset(namespace="ml", deps=[servo.dep(events, mapping=servo.available())])
def model(events: list) -> int:
    return len(events)
"#;
    let project = Project::new(code);
    project.good(&["materialize", "raw.events", "-p", "2013-01-02"]);
    let plan = project.good(&["plan", "ml.model"]);
    assert!(plan.contains("3 never materialized, left out") && !plan.contains("select it too"), "{plan}");
    let plan = project.json(&["plan", "ml.model", "--json"]);
    assert_eq!(plan["tasks"][0]["inputs"][0]["available"], true);
    let warned = "ml.model reads raw.events without 3 of 4 partitions, which were never materialized";
    assert_eq!(plan["warnings"], json!([warned]));
    project.good(&["materialize", "ml.model"]);
    assert!(
        project.good(&["run", "logs", "latest"]).contains("3 of 4 partitions of raw.events were never made")
    );
    assert_eq!(project.json(&["sql", "select value from ml.model", "--json"]), json!([{ "value": 1 }]));
    let made = project.json(&["materialize", "raw.events", "--missing", "--json"]);
    assert_eq!(made["run"]["tasks_succeeded"], 3);
    for only in ["--missing", "--failed"] {
        let again = project.json(&["materialize", "raw.events", only, "--json"]);
        assert_eq!(again, json!({ "up_to_date": true }), "nothing to do is no failure");
    }
    project.good(&["materialize", "ml.model"]);
    assert_eq!(project.json(&["sql", "select value from ml.model", "--json"]), json!([{ "value": 4 }]));
}

#[test]
fn mistakes_in_the_file_of_the_project_are_told_as_such() {
    let project = Project::new("");
    let told = project.bad(&["materialize", "*"]);
    assert!(told.contains("no asset matches *: there is none; declare one with @servo.asset"), "{told}");
    fs::write(project.path("servo.toml"), "[project]\nmodles = [\"work\"]\n").unwrap();
    let told = project.bad(&["asset", "list"]);
    assert!(told.contains("servo.toml has 2 problems") && told.contains("unknown key 'modles'"), "{told}");
}
