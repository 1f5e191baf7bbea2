//! Sensors, and schedules with functions, from end to end: real server, real Python.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::{Dev, Project, until};

const SENSING: &str = r#"
import os, sys, time

customers = servo.DynamicPartitions("customers")

@servo.asset(namespace="raw")
def beat() -> int:
    return 1

@servo.asset(namespace="raw", partitions=customers)
def orders(ctx) -> str:
    return str(ctx.partition)

@servo.asset(namespace="mart")
def report() -> int:
    return 2

@servo.schedule(cron="* * * * * *", selection="raw.beat", if_running="skip")
def every_second(ctx: servo.ScheduleContext):
    print("tick", ctx.scheduled_at.isoformat())
    return servo.RunRequest(tags={"by": "function"})

@servo.sensor(interval="1s", selection="raw.orders")
def inbox(ctx: servo.SensorContext):
    """Files in a directory."""
    names = sorted(os.listdir("inbox")) if os.path.isdir("inbox") else []
    new = [name for name in names if ctx.cursor is None or name > ctx.cursor]
    if not new:
        return servo.SkipReason("no new files")
    return servo.SensorResult(
        [servo.RunRequest(partition=name, run_key=name) for name in new],
        cursor=new[-1],
        add_partitions={"customers": new},
    )

@servo.push_sensor(selection="raw.beat")
def hook(ctx, message):
    if message.data.get("fail"):
        raise ValueError("no such customer")
    return servo.RunRequest(tags={"file": message.data["file"]})

@servo.push_sensor(selection="raw.beat", secret=servo.SecretRef.env("HOOK_SECRET"), signature="github")
def signed(ctx, message): ...

servo.asset_sensor(name="after_beat", on="raw.beat", selection="mart.report")

@servo.sensor(interval="1s", timeout="1s", selection="raw.beat")
def hangs(ctx):
    time.sleep(600)

@servo.sensor(interval="1s", selection="raw.beat")
def exits(ctx):
    os._exit(7)
"#;

fn evals(project: &Project, sensor: &str, status: &str) -> Vec<Value> {
    let page = project.json(&["sensor", "evals", sensor, "--status", status, "--json"]);
    page["items"].as_array().expect("a page").clone()
}

#[test]
fn sensors_poll_are_told_and_fail_without_holding_up_others() {
    let project = Project::new(SENSING);
    let dev = Dev::start(&project);
    dev.wait_for("every_second ticks next at");

    // A schedule with a function.
    let tick = until("a tick", || {
        let page = project.json(&["schedule", "ticks", "every_second", "--status", "triggered", "--json"]);
        page["items"].as_array().expect("a page").first().cloned()
    });
    let run = tick["runs"][0]["run_id"].as_str().expect("a run");
    let run = project.json(&["run", "show", run, "--json"])["run"].take();
    assert_eq!(run["labels"]["by"], "function");
    project.good(&["schedule", "pause", "every_second"]);

    // One that polls, while others hang and die.
    let idle = until("an evaluation", || evals(&project, "inbox", "no_new_data").pop());
    assert_eq!(idle["reason"], "no new files");
    std::fs::create_dir_all(project.path("inbox")).unwrap();
    std::fs::write(project.path("inbox/acme"), "").unwrap();
    let found = until("a new file", || evals(&project, "inbox", "triggered").pop());
    assert_eq!((&found["cursor_after"], found["runs"].as_array().unwrap().len()), (&json!("acme"), 1));
    until("its run", || {
        let run = project.json(&["run", "show", found["runs"][0]["run_id"].as_str()?, "--json"]);
        (run["run"]["state"] == "SUCCEEDED").then_some(())
    });
    let hung = until("a timeout", || evals(&project, "hangs", "failed").pop());
    assert!(hung["reason"].as_str().unwrap().contains("it took longer than 1s"), "{hung}");
    let died = until("a crash", || evals(&project, "exits", "failed").pop());
    assert!(died["reason"].as_str().unwrap().contains("exit code 7"), "{died}");

    // One that is told, twice.
    let push = |id: &str, data: &str| project.good(&["sensor", "push", "hook", "--id", id, "--data", data]);
    assert!(push("m1", r#"{"file": "a.csv"}"#).contains("was taken"));
    assert!(push("m1", r#"{"file": "a.csv"}"#).contains("was taken before"));
    let told = until("its evaluation", || evals(&project, "hook", "triggered").pop());
    assert_eq!(told["message_id"], "m1");
    push("m2", r#"{"fail": true}"#);
    let failed = until("a failure", || evals(&project, "hook", "failed").pop());
    assert!(failed["reason"].as_str().unwrap().contains("no such customer"), "{failed}");
    assert!(failed["retry_at"].is_string());

    // One that watches an asset.
    let followed = until("the asset sensor", || evals(&project, "after_beat", "triggered").pop());
    assert_eq!(followed["trigger"], "asset");

    // By hand.
    let dry = project.good(&["sensor", "evaluate", "inbox", "--dry-run"]);
    assert!(dry.contains("would request nothing: no new files"), "{dry}");
    let sample = r#"{"file": "sample.csv"}"#;
    let by_hand = project.json(&["sensor", "evaluate", "hook", "--payload", sample, "--json"]);
    assert_eq!(by_hand["status"], "TRIGGERED");
    assert!(by_hand["requests"][0]["run_id"].is_string(), "{by_hand}");
    project.good(&["sensor", "reset-cursor", "inbox"]);
    let dry = project.json(&["sensor", "evaluate", "inbox", "--dry-run", "--json"]);
    assert_eq!(dry["requests"][0]["partition"], "acme");
    project.good(&["sensor", "pause", "inbox"]);
    assert!(project.good(&["sensor", "list"]).contains("paused"));
    let wrong = project.bad(&["sensor", "resume", "inbox", "--expected-state-version", "1"]);
    assert!(wrong.contains("somebody has changed it"), "{wrong}");
    assert!(project.bad(&["sensor", "push", "inbox"]).contains("takes no messages"));
    assert!(project.bad(&["sensor", "show", "nothing"]).contains("there is no sensor nothing"));
    let found = project.good(&["sql", "select count(*) > 0 as n from sensor_evals", "--json"]);
    assert!(found.contains("true"), "{found}");
}

/// The status of the answer to a message from somebody who knows no key of the server.
fn pushed(project: &Project, sensor: &str, secret: &str) -> u16 {
    let notice = std::fs::read(project.path(".servo/server.json")).unwrap();
    let notice: Value = serde_json::from_slice(&notice).unwrap();
    let url = notice["url"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
    let body = format!(r#"{{"message_id": "of {secret}"}}"#);
    let mut stream = TcpStream::connect(&url).unwrap();
    write!(
        stream,
        "POST /api/v1/orchestration/sensors/{sensor}/push HTTP/1.1\r\nHost: {url}\r\nConnection: close\r\n\
         Authorization: Bearer {secret}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_sensor_with_a_secret_is_created_and_changed_over_the_interface() {
    let project = Project::new(SENSING);
    let variables = [("SERVO_SENSOR_ONE", "the first"), ("SERVO_SENSOR_TWO", "the second")];
    let dev = Dev::in_environment(&project, &["--port", "0"], &variables);
    dev.wait_for("reloaded when you save");
    let create =
        ["sensor", "create", "told", "--push", "--select", "raw.beat", "--secret-env", "SERVO_SENSOR_ONE"];
    project.good(&create);
    assert!(project.good(&["sensor", "show", "told"]).contains("show the secret in env SERVO_SENSOR_ONE"));
    assert_eq!((pushed(&project, "told", "the second"), pushed(&project, "told", "the first")), (401, 202));

    project.good(&[
        "sensor",
        "update",
        "told",
        "--secret-env",
        "SERVO_SENSOR_TWO",
        "--tag",
        "by=hook",
        "--expected-state-version",
        "1",
    ]);
    let shown = project.json(&["sensor", "show", "told", "--json"]);
    let secret = json!({"provider": "env", "path": "SERVO_SENSOR_TWO"});
    assert_eq!(shown["verify"], json!({"scheme": "token", "secret": secret}));
    assert_eq!((&shown["selection"], &shown["tags"]["by"]), (&json!("raw.beat"), &json!("hook")));
    assert_eq!((pushed(&project, "told", "the first"), pushed(&project, "told", "the second")), (401, 202));
    let late = project.bad(&["sensor", "update", "told", "--priority", "2", "--expected-state-version", "1"]);
    assert!(late.contains("somebody has changed it"), "{late}");
    let same = project.good(&["sensor", "update", "told", "--tag", "by=hook"]);
    assert!(same.contains("told was like that already"), "{same}");

    project.good(&["sensor", "update", "told", "--no-secret"]);
    assert_eq!(pushed(&project, "told", "the second"), 401, "whoever may use the server, and nobody else");
    let mut wrong = create.to_vec();
    (wrong[2], wrong[7]) = ("other", "SERVO_KEY");
    assert!(project.bad(&wrong).contains("that begin with SERVO_SENSOR_"));
    assert!(project.bad(&["sensor", "update", "hook", "--priority", "1"]).contains("is declared in code"));
}

#[test]
fn functions_are_called_by_hand_without_a_server() {
    let project = Project::new(SENSING);
    std::fs::create_dir_all(project.path("inbox")).unwrap();
    std::fs::write(project.path("inbox/acme"), "").unwrap();
    let dry = project.json(&["sensor", "evaluate", "inbox", "--dry-run", "--json"]);
    assert_eq!(dry["requests"][0]["partition"], "acme");
    assert_eq!(dry["requests"][0]["tasks"], 1, "planned with the partition that it would add: {dry}");
    assert_eq!(project.json(&["sensor", "show", "inbox", "--json"])["cursor"], Value::Null);
    let done = project.json(&["sensor", "evaluate", "inbox", "--json"]);
    assert_eq!((&done["status"], &done["cursor_after"]), (&json!("TRIGGERED"), &json!("acme")));
    assert_eq!(project.json(&["sensor", "show", "inbox", "--json"])["cursor"], "acme");
    let run = done["requests"][0]["run_id"].as_str().expect("a run");
    assert_eq!(project.json(&["run", "show", run, "--json"])["run"]["source_name"], "inbox");
    assert!(project.good(&["run", "list"]).contains("sensor inbox"));
    let run = project.json(&["schedule", "trigger", "every_second", "--json"]);
    assert_eq!(run["tasks"], 1);
    let polled = until("an evaluation without a server", || {
        project.good(&["reconcile", "--once"]);
        evals(&project, "inbox", "no_new_data,triggered").into_iter().find(|it| it["manual"].is_null())
    });
    assert_eq!(polled["trigger"], "poll");
    let failed = project.servo(&["sensor", "evaluate", "hook", "--payload", r#"{"fail": true}"#]);
    assert!(!failed.status.success());
    assert!(String::from_utf8_lossy(&failed.stdout).contains("no such customer"));
}

#[test]
fn a_message_that_waited_for_a_server_is_told_once() {
    let project = Project::new(
        r#"
@servo.asset(namespace="raw")
def broken() -> int:
    raise ValueError("no")

@servo.run_status_sensor(status="FAILED")
def failed(ctx, message):
    with open("told", "a") as file:
        file.write(f"{message.data['selection']}\n")
"#,
    );
    assert!(!project.servo(&["materialize", "raw.broken"]).status.success());
    let _dev = Dev::start(&project);
    until("its evaluation", || evals(&project, "failed", "no_new_data").pop());
    // A second call of the same message would have begun with the first.
    project.good(&["sensor", "evaluate", "failed", "--payload", r#"{"selection": "by hand"}"#]);
    assert_eq!(std::fs::read_to_string(project.path("told")).unwrap(), "raw.broken\nby hand\n");
}

#[test]
fn a_tick_by_hand_is_of_the_partition_that_was_asked_for_whatever_its_function_chooses() {
    let project = Project::new(
        r#"
@servo.asset(namespace="raw", partitions=servo.StaticPartitions(["eu", "us"]))
def orders(ctx) -> str:
    return str(ctx.partition)

@servo.schedule(cron="0 0 1 1 *", selection="raw.orders")
def yearly(ctx):
    return [servo.RunRequest(partition="us"), servo.RunRequest(partition="eu")]
"#,
    );
    let run = project.json(&["schedule", "trigger", "yearly", "--partition", "eu", "--json"]);
    let run = project.json(&["run", "show", run["run_id"].as_str().expect("a run"), "--json"])["run"].take();
    assert_eq!(run["partitions"]["keys"], json!(["eu"]));
    assert_eq!(run["source_name"], "yearly");
    let ticks = project.json(&["schedule", "ticks", "yearly", "--json"]);
    assert_eq!(ticks["items"][0]["runs"].as_array().map(Vec::len), Some(1), "{ticks}");
    project.json(&["schedule", "trigger", "yearly", "--json"]);
    let ticks = project.json(&["schedule", "ticks", "yearly", "--json"]);
    assert_eq!(ticks["items"][0]["runs"].as_array().map(Vec::len), Some(2), "{ticks}");
}
