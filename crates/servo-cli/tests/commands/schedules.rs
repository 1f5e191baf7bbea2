//! Schedules from end to end: real server, real Python, real clock.

use serde_json::{Value, json};

use crate::support::{Dev, Project, until};

const CLOCKWORK: &str = r#"
@servo.asset(namespace="raw")
def beat() -> int:
    return 1

servo.schedule(name="seconds", cron="* * * * * *", selection="raw.beat", tags={"by": "clock"}, if_running="skip")
servo.schedule(name="yearly", cron="0 0 1 1 *", timezone="Europe/Amsterdam", selection="raw.*")
"#;

fn ticks(project: &Project, schedule: &str, status: &str) -> Vec<Value> {
    let page = project.json(&["schedule", "ticks", schedule, "--status", status, "--json"]);
    page["items"].as_array().expect("a page").clone()
}

#[test]
fn a_schedule_ticks_runs_pauses_and_is_asked_for_by_hand() {
    let project = Project::new(CLOCKWORK);
    let dev = Dev::start(&project);
    dev.wait_for("seconds ticks next at");
    let tick = until("a tick", || ticks(&project, "seconds", "triggered").pop());
    let run = tick["runs"][0]["run_id"].as_str().expect("a run").to_owned();
    let ended = until("its run", || {
        let run = project.json(&["run", "show", &run, "--json"])["run"].take();
        (run["state"] == "SUCCEEDED").then_some(run)
    });
    assert_eq!(ended["labels"]["by"], "clock");
    assert_eq!(ended["source"]["type"], "schedule");

    project.good(&["schedule", "pause", "seconds"]);
    assert!(project.good(&["schedule", "list"]).contains("paused"));
    let skipped = until("a tick of the pause", || ticks(&project, "seconds", "skipped").pop());
    assert!(skipped["reason"].as_str().is_some());
    let by_hand = project.json(&["schedule", "trigger", "seconds", "--json"]);
    let newest = ticks(&project, "seconds", "triggered").remove(0);
    assert_eq!((&newest["manual"], &newest["runs"][0]["run_id"]), (&true.into(), &by_hand["run_id"]));
    let found = project.good(&["sql", "select count(*) > 0 as n from schedule_ticks", "--json"]);
    assert!(found.contains("true"), "{found}");
}

#[test]
fn schedules_are_created_previewed_and_deleted_and_mistakes_are_said() {
    let project = Project::new(CLOCKWORK);
    let preview = project.good(&["schedule", "preview", "yearly", "--count", "2"]);
    assert!(preview.lines().all(|line| line.ends_with("-12-31T23:00:00.000Z")), "{preview}");
    let create = |more: &[&str]| {
        let arguments = [&["schedule", "create", "mine", "--select", "raw.beat"], more].concat();
        project.servo(&arguments)
    };
    for (more, problem) in [
        (&["--cron", "61 * * * *"][..], "minute 61 is not between 0 and 59"),
        (&["--cron", "0 0 * * *", "--timezone", "Mars/Olympus"], "is not a time zone"),
        (&["--cron", "0 0 * * *", "--max-catchup-ticks", "0"], "not between 1 and 1000"),
    ] {
        let output = create(more);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(problem), "{said}");
    }
    assert!(create(&["--cron", "0 0 * * *"]).status.success());
    let mine = project.json(&["schedule", "show", "mine", "--json"]);
    assert_eq!((&mine["origin"], &mine["state_version"]), (&"api".into(), &1.into()));
    let wrong = project.bad(&["schedule", "pause", "mine", "--expected-state-version", "7"]);
    assert!(wrong.contains("has state version 1, not 7"), "{wrong}");
    project.good(&["schedule", "update", "mine", "--cron", "30 2 * * *", "--if-running", "skip"]);
    let changed = project.json(&["schedule", "show", "mine", "--json"]);
    let told = ["cron", "if_running", "selection", "state_version"].map(|name| changed[name].clone());
    assert_eq!(json!(told), json!(["30 2 * * *", "skip", "raw.beat", 2]));
    let same = project.good(&["schedule", "update", "mine", "--cron", "30 2 * * *"]);
    assert!(same.contains("mine was like that already"), "{same}");
    let late =
        project.bad(&["schedule", "update", "mine", "--priority", "3", "--expected-state-version", "1"]);
    assert!(late.contains("has state version 2, not 1"), "{late}");
    let of_code = project.bad(&["schedule", "update", "yearly", "--priority", "3"]);
    assert!(of_code.contains("is declared in code"), "{of_code}");
    assert!(project.bad(&["schedule", "delete", "yearly"]).contains("is declared in code"));
    project.good(&["schedule", "delete", "mine"]);
    assert!(project.bad(&["schedule", "show", "mine"]).contains("there is no schedule mine"));
}

#[test]
fn reconcile_ticks_without_a_server() {
    let project = Project::new(CLOCKWORK);
    project.good(&["deploy"]);
    let tick = until("a tick", || {
        project.good(&["reconcile", "--once"]);
        ticks(&project, "seconds", "triggered").pop()
    });
    assert_eq!(tick["schedule"], "seconds");
}

#[test]
fn what_only_a_server_does_is_said_to_rest_until_one_is_there() {
    let project = Project::new(CLOCKWORK);
    let told = |project: &Project| {
        let output = project.command(&["schedule", "list"]).output().expect("it runs");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(told(&project).contains("no schedule ticks until one does"), "{}", told(&project));
    let dev = Dev::start(&project);
    dev.wait_for("seconds ticks next at");
    assert_eq!(told(&project), "");
}
