//! Notifications from end to end: real server, real Python, a real webhook, a real mail server, a real program.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::support::{Dev, Project, until};

/// A webhook that fails the first request, and keeps what it was sent.
fn webhook(port: &mut u16) -> Arc<Mutex<Vec<Value>>> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    *port = listener.local_addr().unwrap().port();
    let kept: Arc<Mutex<Vec<Value>>> = Arc::default();
    let sent = kept.clone();
    std::thread::spawn(move || {
        for (number, stream) in (0..).zip(listener.incoming()) {
            let stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
                    length = value.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            sent.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
            let status = if number == 0 { "503 Service Unavailable" } else { "200 OK" };
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            (&stream).write_all(answer.as_bytes()).unwrap();
        }
    });
    kept
}

/// A mail server that takes everything, and keeps it.
fn mail(port: &mut u16) -> Arc<Mutex<String>> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    *port = listener.local_addr().unwrap().port();
    let kept: Arc<Mutex<String>> = Arc::default();
    let said = kept.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let answer = |text: &str| (&stream).write_all(format!("{text}\r\n").as_bytes()).is_ok();
            answer("220 mail.example.org");
            let mut is_data = false;
            while let Some(Ok(line)) = lines.next() {
                said.lock().unwrap().push_str(&format!("{line}\n"));
                is_data = is_data && line != ".";
                if is_data {
                    continue;
                }
                is_data = line == "DATA";
                if !answer(if is_data { "354 go on" } else { "250 ok" }) {
                    break;
                }
            }
        }
    });
    kept
}

fn history(project: &Project, rule: &str) -> Vec<Value> {
    let page = project.json(&["notification", "history", rule, "--json"]);
    page["items"].as_array().expect("a page").clone()
}

#[test]
fn what_fails_is_told_to_everybody_tried_again_and_told_when_it_is_well_again() {
    let (mut hook_port, mut mail_port) = (0, 0);
    let (hooked, mailed) = (webhook(&mut hook_port), mail(&mut mail_port));
    let project = Project::new(&format!(
        r#"
import os

@servo.asset(namespace="shop", owners=["ops@example.org"])
def orders() -> int:
    if not os.path.exists("well"):
        raise ValueError("no orders today")
    return 1

servo.notify(
    "oncall",
    when=["run_failed", "recovered"],
    selection="shop.*",
    title="{{trigger}}: {{asset}} ({{owner}})",
    to=[
        servo.Webhook("http://127.0.0.1:{hook_port}/hook"),
        servo.Email(host="127.0.0.1", port={mail_port}, security="none", sender="servo@example.org",
                    to=["data@example.org"]),
        servo.Command(["sh", "-c", "cat >> told.jsonl; echo >> told.jsonl"]),
    ],
)
"#
    ));
    let dev = Dev::start(&project);
    dev.wait_for("servo dev");
    let listed = project.good(&["notification", "list"]);
    assert!(listed.contains("oncall") && listed.contains("webhook, email, command"), "{listed}");
    let failed = project.bad(&["materialize", "shop.orders"]);
    assert!(failed.contains("no orders today"), "{failed}");
    let sent = until("everybody is told", || {
        let all = history(&project, "oncall");
        (all.len() == 3 && all.iter().all(|it| it["status"] == "SENT")).then_some(all)
    });
    // The webhook has failed once.
    let tries = |channel: &str| {
        sent.iter().find(|it| it["channel"] == channel).map(|it| it["attempts"].clone()).unwrap_or_default()
    };
    assert_eq!((tries("webhook"), tries("email"), tries("command")), (2.into(), 1.into(), 1.into()));
    let told = hooked.lock().unwrap().clone();
    assert_eq!(told.len(), 2);
    assert_eq!(told[0]["notification_id"], told[1]["notification_id"]);
    let facts = &told[1]["facts"];
    assert_eq!(
        (&facts["assets"][0], &facts["owners"][0]),
        (&"shop.orders".into(), &"ops@example.org".into())
    );
    assert!(facts["error"].as_str().unwrap().contains("no orders today"), "{facts}");
    let link = told[1]["link"].as_str().unwrap();
    assert!(link.contains("/runs/run_"), "{link}");
    let letter = mailed.lock().unwrap().clone();
    assert!(letter.contains("Subject: run_failed: shop.orders (ops@example.org)"), "{letter}");
    assert!(letter.contains("RCPT TO:<data@example.org>"), "{letter}");
    let printed = std::fs::read_to_string(project.path("told.jsonl")).unwrap();
    assert!(printed.contains(r#""trigger":"run_failed""#), "{printed}");
    let shown = project.good(&["notification", "show", "oncall"]);
    assert!(shown.contains("asset:shop.orders"), "{shown}");

    std::fs::write(project.path("well"), "").unwrap();
    project.good(&["materialize", "shop.orders"]);
    until("the recovery", || {
        let told = hooked.lock().unwrap();
        told.iter().any(|it| it["trigger"] == "recovered").then_some(())
    });

    // By hand, and paused.
    let tested = project.good(&["notification", "test", "oncall"]);
    assert_eq!(tested, "webhook sent\nemail sent\ncommand sent\n");
    project.good(&["notification", "pause", "oncall"]);
    std::fs::remove_file(project.path("well")).unwrap();
    project.bad(&["materialize", "shop.orders"]);
    assert_eq!(history(&project, "oncall").iter().filter(|it| it["trigger"] == "run_failed").count(), 3);
    let counts = project.json(&[
        "sql",
        "select trigger, status, count(*) n from notifications group by all order by all",
        "--json",
    ]);
    assert!(counts.to_string().contains("recovered"), "{counts}");
}

#[test]
fn a_rule_is_created_tested_and_removed_without_a_server() {
    let mut port = 0;
    let hooked = webhook(&mut port);
    let project = Project::new("@servo.asset(namespace=\"shop\")\ndef orders() -> int:\n    return 1\n");
    let rule = format!(
        r#"{{"name": "mine", "when": ["run_failed"], "to": [{{"type": "webhook", "url": "http://127.0.0.1:{port}/"}}]}}"#
    );
    std::fs::write(project.path("rule.json"), &rule).unwrap();
    let created = project.good(&["notification", "create", "rule.json"]);
    assert!(created.contains("mine is defined"), "{created}");
    let refused = project.bad(&["notification", "test", "mine"]);
    assert!(refused.contains("webhook failed: the webhook answered 503"), "{refused}");
    assert_eq!(project.good(&["notification", "test", "mine"]), "webhook sent\n");
    assert_eq!(hooked.lock().unwrap().len(), 2, "a test is tried once");
    std::fs::write(project.path("rule.json"), rule.replace("run_failed", "retries_exhausted")).unwrap();
    assert_eq!(project.good(&["notification", "update", "rule.json"]), "mine is changed\n");
    assert_eq!(project.good(&["notification", "update", "rule.json"]), "mine was like that already\n");
    let shown = project.json(&["notification", "show", "mine", "--json"]);
    assert_eq!(shown["when"], serde_json::json!(["retries_exhausted"]));
    let late = project.bad(&["notification", "update", "rule.json", "--expected-state-version", "1"]);
    assert!(late.contains("somebody has changed it"), "{late}");
    project.good(&["notification", "delete", "mine"]);
    let gone = project.bad(&["notification", "show", "mine"]);
    assert!(gone.contains("there is no notification rule mine"), "{gone}");
    let command = rule.replace(
        &format!(r#"{{"type": "webhook", "url": "http://127.0.0.1:{port}/"}}"#),
        r#"{"type": "command", "command": ["true"]}"#,
    );
    std::fs::write(project.path("rule.json"), command).unwrap();
    let refused = project.bad(&["notification", "create", "rule.json"]);
    assert!(refused.contains("belongs into a project"), "{refused}");
    std::fs::write(project.path("rule.json"), "{").unwrap();
    let refused = project.bad(&["notification", "create", "rule.json"]);
    assert!(refused.contains("is no notification rule"), "{refused}");
}
