//! Notifications are sent to a real HTTP server, a real SMTP server and real programs.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use servo_core::{RuleId, Timestamp};
use servo_engine::NotificationTrigger;
use servo_engine::definitions::NotificationDef;
use servo_engine::notification::{Delivery, Facts, SendFailure};
use servo_notify::Senders;
use servo_runtime::Notifier;

/// A request that a server was sent.
struct Request {
    line: String,
    headers: BTreeMap<String, String>,
    body: String,
}

/// An HTTP server that answers every request alike, and gives what it was sent.
fn http(answer: &'static str) -> (SocketAddr, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let request = read_request(&mut stream);
            // A client that is gone does not matter.
            let _gone = stream.write_all(answer.as_bytes());
            if sender.send(request).is_err() {
                return;
            }
        }
    });
    (address, requests)
}

fn read_request(stream: &mut TcpStream) -> Request {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    Request { line: line.trim_end().to_owned(), headers, body: String::from_utf8(body).unwrap() }
}

/// An SMTP server that takes one e-mail, and gives the whole conversation. With an answer to `RCPT`.
fn smtp(recipient: &'static str) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = said.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            let mut writer = stream.try_clone().unwrap();
            let mut lines = BufReader::new(stream).lines();
            writer.write_all(b"220 mail.example.org ESMTP\r\n").unwrap();
            let mut is_data = false;
            while let Some(Ok(line)) = lines.next() {
                heard.lock().unwrap().push(line.clone());
                let verb = line.split(' ').next().unwrap_or_default().to_uppercase();
                let answer = match (is_data, verb.as_str()) {
                    (true, ".") => {
                        is_data = false;
                        "250 taken"
                    }
                    (true, _) => continue,
                    (false, "EHLO") => "250-mail.example.org\r\n250-8BITMIME\r\n250 AUTH PLAIN LOGIN",
                    (false, "AUTH") => "235 welcome",
                    (false, "RCPT") => recipient,
                    (false, "DATA") => {
                        is_data = true;
                        "354 go on"
                    }
                    (false, "QUIT") => "221 bye",
                    (false, _) => "250 ok",
                };
                if writer.write_all(format!("{answer}\r\n").as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
    (address, said)
}

fn delivery(to: &str) -> Delivery {
    let rule = format!(
        r#"{{"name":"oncall","when":["run_failed"],"title":"{{trigger}} of {{asset}} ({{owner}})","to":[{to}]}}"#
    );
    let rule: NotificationDef = serde_json::from_str(&rule).unwrap();
    let mut facts =
        Facts::new(Timestamp::from_millis(1_736_899_200_000), "run r failed: 1 of 2 tasks did not succeed");
    facts.assets = vec!["raw.größe".to_owned()];
    facts.owners = vec!["ops@example.org".to_owned()];
    facts.error = Some("ValueError: <it> & 3".to_owned());
    Delivery {
        notification_id: "01JHMR6K5V0000000000000007:run_failed:r:0".into(),
        attempt: 2,
        rule_id: RuleId::NIL,
        rule: Arc::new(rule),
        destination: 0,
        trigger: NotificationTrigger::RunFailed,
        facts: Arc::new(facts),
        private_addresses: false,
    }
}

/// Senders of somebody who works on a machine of their own.
fn senders() -> Senders {
    let base = Some("https://servo.example.org/".to_owned());
    Senders::new("prod").with_private_addresses(true).with_commands(true).with_link_base(base)
}

async fn send(to: &str) -> Result<(), SendFailure> {
    senders().send(&delivery(to)).await
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";

fn next(requests: &Receiver<Request>) -> Request {
    requests.recv_timeout(Duration::from_secs(30)).expect("a request was sent")
}

#[tokio::test]
async fn a_webhook_is_sent_the_facts_signed_with_its_secret() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("secret"), "hunter2\n").unwrap();
    let (address, requests) = http(OK);
    let secret = r#"{"name":"secret","provider":"file","path":"secret"}"#;
    let to = format!(
        r#"{{"type":"webhook","url":"http://{address}/hook?a=1","secret":{secret},"headers":{{"X-Token":{secret}}}}}"#
    );
    let senders = senders().with_project(directory.path().to_path_buf());
    senders.send(&delivery(&to)).await.unwrap();
    let request = next(&requests);
    assert_eq!(request.line, "POST /hook?a=1 HTTP/1.1");
    assert_eq!(request.headers["x-token"], "hunter2");
    assert_eq!(request.headers["idempotency-key"], "01JHMR6K5V0000000000000007:run_failed:r:0");
    let body: serde_json::Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(body["title"], "run_failed of raw.größe (ops@example.org)");
    assert_eq!(body["facts"]["error"], "ValueError: <it> & 3");
    assert_eq!(
        (&body["trigger"], &body["workspace"], &body["attempt"]),
        (&"run_failed".into(), &"prod".into(), &2.into())
    );
    let mut mac = <hmac::Hmac<sha2::Sha256> as hmac::KeyInit>::new_from_slice(b"hunter2").unwrap();
    hmac::Mac::update(&mut mac, request.body.as_bytes());
    let signature = data_encoding::HEXLOWER.encode(&hmac::Mac::finalize(mac).into_bytes());
    assert_eq!(request.headers["x-servo-signature-256"], format!("sha256={signature}"));
}

#[tokio::test]
async fn an_object_of_the_rule_is_filled_in() {
    let (address, requests) = http(OK);
    let to = format!(
        r#"{{"type":"webhook","url":"http://{address}/","json":{{"event_action":"{{action}}","n":[1,"{{asset}}"],
            "payload":{{"summary":"{{summary}}","key":{{"$secret":{{"provider":"env","path":"PATH"}}}}}}}}}}"#
    );
    send(&to).await.unwrap();
    let body: serde_json::Value = serde_json::from_str(&next(&requests).body).unwrap();
    assert_eq!(
        (&body["event_action"], &body["n"]),
        (&"trigger".into(), &serde_json::json!([1, "raw.größe"]))
    );
    assert_eq!(body["payload"]["key"], std::env::var("PATH").unwrap());
}

#[tokio::test]
async fn slack_is_sent_a_text_that_mentions_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let (address, requests) = http(OK);
    std::fs::write(directory.path().join("slack"), format!("http://{address}/services/T0/B0/token")).unwrap();
    let to = r#"{"type":"slack","url":{"name":"url","provider":"file","path":"slack"}}"#;
    let senders = senders().with_project(directory.path().to_path_buf());
    senders.send(&delivery(to)).await.unwrap();
    let request = next(&requests);
    assert_eq!(request.line, "POST /services/T0/B0/token HTTP/1.1");
    let body: serde_json::Value = serde_json::from_str(&request.body).unwrap();
    let text = body["text"].as_str().unwrap();
    assert!(text.starts_with("*run_failed of raw.größe (ops@example.org)*\n"), "{text}");
    assert!(text.contains("error: ValueError: &lt;it&gt; &amp; 3"), "{text}");
    assert!(text.contains("<https://servo.example.org/assets/raw/größe|Look at it>"), "{text}");
}

#[tokio::test]
async fn answers_decide_whether_it_is_tried_again_and_no_secret_is_told() {
    let answers = [
        (
            "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 8\r\nConnection: close\r\n\r\ntoken-77",
            true,
            "503",
        ),
        ("HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", true, "429"),
        (
            "HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\nConnection: close\r\n\r\nno_service",
            false,
            "no_service",
        ),
        (
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            false,
            "redirects are not followed",
        ),
        ("nonsense\r\n\r\n", true, "failed"),
    ];
    for (answer, retry, said) in answers {
        let directory = tempfile::tempdir().unwrap();
        let (address, _requests) = http(answer);
        std::fs::write(directory.path().join("slack"), format!("http://{address}/token-77")).unwrap();
        std::fs::write(directory.path().join("token"), "token-77").unwrap();
        let to = r#"{"type":"webhook","url":{"name":"url","provider":"file","path":"slack"},
            "headers":{"X-Token":{"name":"x","provider":"file","path":"token"}}}"#;
        let senders = senders().with_project(directory.path().to_path_buf());
        let failure = senders.send(&delivery(to)).await.unwrap_err();
        assert_eq!(failure.retry, retry, "{answer}: {failure:?}");
        assert!(failure.message.contains(said), "{answer}: {failure:?}");
        assert!(!failure.message.contains("token-77"), "{failure:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_and_a_secret_that_is_not_there_are_told_without_the_address() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let failure =
        send(&format!(r#"{{"type":"webhook","url":"http://127.0.0.1:{port}/secret"}}"#)).await.unwrap_err();
    assert!(failure.retry && failure.message.contains("cannot be reached"), "{failure:?}");
    assert!(!failure.message.contains("secret"), "{failure:?}");
    let to = r#"{"type":"slack","url":{"name":"url","provider":"env","path":"SERVO_NOTIFY_MISSING"}}"#;
    let failure = send(to).await.unwrap_err();
    assert!(failure.retry && failure.message.contains("env SERVO_NOTIFY_MISSING"), "{failure:?}");
}

#[tokio::test]
async fn private_addresses_are_refused_unless_they_are_allowed() {
    let (address, requests) = http(OK);
    let served = Senders::new("prod");
    let port = address.port();
    for host in ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0x7f000001", "169.254.169.254"] {
        let to = format!(r#"{{"type":"webhook","url":"http://{host}:{port}/"}}"#);
        let failure = served.send(&delivery(&to)).await.unwrap_err();
        assert!(failure.message.contains("private address"), "{host}: {failure:?}");
    }
    let mail = format!(
        r#"{{"type":"email","host":"localhost","port":{port},"security":"none","from":"a@b.c","to":["d@e.f"]}}"#
    );
    let failure = served.send(&delivery(&mail)).await.unwrap_err();
    assert!(failure.message.contains("private address") && !failure.retry, "{failure:?}");
    assert!(requests.try_recv().is_err(), "nobody was reached");
    let to = format!(r#"{{"type":"webhook","url":"http://127.0.0.1:{port}/"}}"#);
    served.send(&Delivery { private_addresses: true, ..delivery(&to) }).await.unwrap();
    assert_eq!(next(&requests).line, "POST / HTTP/1.1");
    let other = r#"{"type":"webhook","url":{"name":"url","provider":"env","path":"HOME"}}"#;
    let failure = send(other).await.unwrap_err();
    assert!(!failure.retry && failure.message.contains("address of the webhook"), "{failure:?}");
}

#[tokio::test]
async fn an_email_is_delivered_with_a_login() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("smtp"), "hunter2").unwrap();
    let (address, said) = smtp("250 ok");
    let to = format!(
        r#"{{"type":"email","host":"127.0.0.1","port":{},"security":"none","username":"servo",
            "password":{{"name":"password","provider":"file","path":"smtp"}},
            "from":"servo@example.org","to":["ops@example.org","data@example.org"]}}"#,
        address.port()
    );
    let senders = senders().with_project(directory.path().to_path_buf());
    senders.send(&delivery(&to)).await.unwrap();
    let said = said.lock().unwrap().join("\n");
    assert!(said.contains("MAIL FROM:<servo@example.org>"), "{said}");
    assert!(
        said.contains("RCPT TO:<ops@example.org>") && said.contains("RCPT TO:<data@example.org>"),
        "{said}"
    );
    assert!(said.contains("AUTH "), "{said}");
    assert!(said.contains("Subject: ") && said.contains("Auto-Submitted: auto-generated"), "{said}");
    assert!(said.contains("Message-ID: <") && said.contains("@servo>"), "{said}");
}

#[tokio::test]
async fn a_refused_recipient_is_told_and_not_tried_again() {
    let (address, _said) = smtp("550 no such user");
    let to = format!(
        r#"{{"type":"email","host":"127.0.0.1","port":{},"security":"none","from":"a@b.c","to":["d@e.f"]}}"#,
        address.port()
    );
    let failure = send(&to).await.unwrap_err();
    assert!(!failure.retry && failure.message.contains("no such user"), "{failure:?}");
    let (address, _said) = smtp("450 later");
    let later = to.replace(
        &format!("\"port\":{}", to.split("\"port\":").nth(1).unwrap().split(',').next().unwrap()),
        &format!("\"port\":{}", address.port()),
    );
    assert!(send(&later).await.unwrap_err().retry);
}

#[tokio::test]
async fn a_mail_server_without_protection_is_not_trusted_with_anything() {
    let (address, said) = smtp("250 ok");
    let to = format!(
        r#"{{"type":"email","host":"127.0.0.1","port":{},"from":"a@b.c","to":["d@e.f"]}}"#,
        address.port()
    );
    let failure = send(&to).await.unwrap_err();
    assert!(failure.message.contains("127.0.0.1 did not take the e-mail"), "{failure:?}");
    assert!(!said.lock().unwrap().join("\n").contains("MAIL FROM"), "nothing was said without STARTTLS");
}

fn script(directory: &tempfile::TempDir, text: &str) -> String {
    let path = directory.path().join("told.sh");
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[tokio::test]
async fn a_command_is_given_the_notification() {
    let directory = tempfile::tempdir().unwrap();
    let program = script(&directory, "cat > told.json; echo $SERVO_NOTIFICATION_TRIGGER $1 > told.txt");
    let senders = senders().with_project(directory.path().to_path_buf());
    let to = format!(r#"{{"type":"command","command":["{program}","a b"]}}"#);
    senders.send(&delivery(&to)).await.unwrap();
    let told = std::fs::read_to_string(directory.path().join("told.json")).unwrap();
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["facts"]["assets"][0], "raw.größe");
    assert_eq!(std::fs::read_to_string(directory.path().join("told.txt")).unwrap(), "run_failed a b\n");
}

#[tokio::test]
async fn a_command_that_fails_or_hangs_is_told_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let program = script(&directory, "echo the pager is broken >&2; exit 3");
    let failure = send(&format!(r#"{{"type":"command","command":["{program}"]}}"#)).await.unwrap_err();
    assert!(failure.retry && failure.message.contains("the pager is broken"), "{failure:?}");
    let hangs = script(&directory, "sleep 600 & echo $! > pid; wait");
    let to = format!(r#"{{"type":"command","command":["{hangs}"],"timeout_ms":1000}}"#);
    let senders = senders().with_project(directory.path().to_path_buf());
    let failure = senders.send(&delivery(&to)).await.unwrap_err();
    assert!(failure.message.contains("did not end within"), "{failure:?}");
    let pid = std::fs::read_to_string(directory.path().join("pid")).unwrap();
    let is_gone = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    };
    for _ in 0..1_000 {
        if is_gone() {
            return;
        }
        tokio::task::yield_now().await;
        std::thread::yield_now();
    }
    assert!(is_gone(), "its child is gone");
}

#[tokio::test]
async fn a_server_runs_no_commands_unless_it_is_told_to() {
    let failure = Senders::new("prod").send(&delivery(r#"{"type":"command","command":["true"]}"#)).await;
    assert!(failure.unwrap_err().message.contains("SERVO_NOTIFY_COMMANDS=1"));
}
