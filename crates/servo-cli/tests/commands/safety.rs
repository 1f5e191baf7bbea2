//! Safety of a workspace on a machine with others: tokens, locks, logs that were damaged, paths that cannot be
//! written.

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;

use serde_json::Value;

use crate::support::{Dev, Project, until};

const TWO: &str = r#"
@servo.asset(namespace="t")
def one() -> int:
    return 1

@servo.asset(namespace="t")
def two() -> int:
    return 2
"#;

fn notice(project: &Project) -> Value {
    serde_json::from_slice(&fs::read(project.path(".servo/server.json")).unwrap()).unwrap()
}

/// The whole answer to a request.
fn ask(project: &Project, request: &str, headers: &[String]) -> String {
    let url = notice(project)["url"].as_str().unwrap().to_owned();
    let address = url.strip_prefix("http://").unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    write!(stream, "{request} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap()
}

fn readiness(project: &Project) -> Value {
    let token = notice(project)["token"].as_str().unwrap().to_owned();
    let answer = ask(project, "GET /api/v1/readyz", &[format!("Authorization: Bearer {token}")]);
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[test]
fn another_user_of_the_machine_is_told_nothing_and_a_browser_is_let_in_by_a_link() {
    let project = Project::new(TWO);
    let told = project.bad(&["open", "--print"]);
    assert!(told.contains("start one with servo dev"), "{told}");
    let _dev = Dev::start(&project);
    for request in
        ["GET /api/v1/runs", "GET /api/v1/settings", "POST /api/v1/runs", "POST /api/v1/worker/leases"]
    {
        assert_eq!(status(&ask(&project, request, &[])), "401", "{request}");
        assert_eq!(
            status(&ask(&project, request, &["Authorization: Bearer ".to_owned()])),
            "401",
            "{request}"
        );
    }
    let token = notice(&project)["token"].as_str().unwrap().to_owned();
    assert_eq!(token.len(), 64);
    assert_eq!(
        status(&ask(&project, "GET /api/v1/runs", &[format!("Authorization: Bearer {token}")])),
        "200"
    );
    // The CLI shows it by itself, also when it is told where the server is.
    let url = notice(&project)["url"].as_str().unwrap().to_owned();
    let listed = project.command(&["run", "list", "--json"]).env("SERVO_URL", &url).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let elsewhere = tempfile::tempdir().unwrap();
    let mut far = project.command(&["run", "list", "--json"]);
    far.env("SERVO_URL", &url).env("SERVO_DIR", elsewhere.path());
    assert!(!far.output().unwrap().status.success(), "without the token it is refused");
    assert!(far.env("SERVO_TOKEN", &token).output().unwrap().status.success());

    let link = project.good(&["open", "--print"]);
    let path = link.trim().strip_prefix(&url).unwrap();
    let entered = ask(&project, &format!("GET {path}"), &[]);
    assert_eq!(status(&entered), "303", "{entered}");
    let cookie = entered.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
    assert_eq!(status(&ask(&project, "GET /api/v1/runs", &[cookie])), "200");
    assert_eq!(status(&ask(&project, &format!("GET {path}"), &[])), "401", "a link is good once");
}

#[test]
fn a_server_whose_lock_is_deleted_stops_and_nobody_writes_beside_it() {
    let project = Project::new(TWO);
    project.good(&["materialize", "t.one"]);
    let mut dev = Dev::start(&project);
    fs::remove_file(project.home().join("ledger/.lock")).unwrap();
    // Whoever does not know of the server must not get in either.
    let notice = fs::read(project.path(".servo/server.json")).unwrap();
    fs::remove_file(project.path(".servo/server.json")).unwrap();
    let mut second =
        project.command(&["dev", "--port", "0"]).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut said = [0; 12];
    second.stderr.take().unwrap().read_exact(&mut said).unwrap();
    assert_eq!(&said, b"waiting for ");
    second.kill().unwrap();
    second.wait().unwrap();
    fs::write(project.path(".servo/server.json"), notice).unwrap();
    // The first stops before its next append; whoever asked it may do without it then.
    project.servo(&["config", "set", "execution_timeout=31m"]);
    let ended = until("the first has stopped", || dev.process.try_wait().unwrap());
    assert!(!ended.success());
    assert!(dev.log().contains("the lock of the log is gone"), "{}", dev.log());
    project.good(&["materialize", "t.two"]);
    project.good(&["admin", "projections", "verify"]);
}

fn segment(project: &Project) -> PathBuf {
    let mut all: Vec<PathBuf> = fs::read_dir(project.home().join("ledger/orchestration"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    all.sort();
    all.pop().unwrap()
}

#[test]
fn a_log_with_doubled_numbers_is_repaired_by_a_command_that_says_what_it_drops() {
    let project = Project::new(TWO);
    project.good(&["materialize", "t.one"]);
    let whole = project.good(&["admin", "log", "repair"]);
    assert!(whole.contains("the log is whole"), "{whole}");
    let good = fs::read(segment(&project)).unwrap();
    let good_latest = project.latest("t/one");
    let last_good = good.iter().filter(|byte| **byte == b'\n').count();
    project.good(&["materialize", "*"]);
    let newer = fs::read(segment(&project)).unwrap();
    // Another process had the log as it was, and wrote the same numbers behind what the first wrote.
    fs::write(segment(&project), [&good[..], &newer[good.len()..], &newer[good.len()..]].concat()).unwrap();
    let last = newer.iter().filter(|byte| **byte == b'\n').count();
    let told = project.bad(&["materialize", "t.one"]);
    assert!(told.contains("servo admin log repair"), "{told}");
    let told = project.bad(&["admin", "log", "repair"]);
    assert!(told.contains(&format!("the log is good through batch {last}")), "{told}");
    assert!(told.contains("nothing was changed") && told.contains("RunRequested"), "{told}");
    let told = project.good(&["admin", "log", "repair", "--yes"]);
    assert!(told.contains("dropped; a copy is in"), "{told}");
    assert_eq!(fs::read(segment(&project)).unwrap(), newer);
    project.good(&["admin", "projections", "verify"]);

    // The damage is before what the tables have: they are made anew, and data follows.
    let first_of_newer = newer[good.len()..].split_inclusive(|byte| *byte == b'\n').next().unwrap();
    let doubled = [&good[..], &good[good.len() - 2..], first_of_newer].concat();
    fs::write(segment(&project), doubled).unwrap();
    let told = project.json(&["admin", "log", "repair", "--yes", "--json"]);
    assert_eq!(told["good_through_batch"], last_good);
    assert_eq!(told["pointers_corrected"], 1, "{told}");
    assert_eq!(project.latest("t/one")["materialization_id"], good_latest["materialization_id"]);
    project.good(&["admin", "projections", "verify"]);
    project.good(&["materialize", "*"]);
    project.good(&["admin", "projections", "verify"]);
}

#[test]
fn a_path_that_cannot_be_written_is_named_and_holds_up_nothing_else() {
    let project = Project::new(TWO);
    project.good(&["materialize", "*"]);
    let pointer = project.home().join("assets/t/one/latest.json");
    let (before, first) = (fs::read(&pointer).unwrap(), project.latest("t/one"));
    // Nothing can be renamed to a directory that has something in it.
    fs::remove_file(&pointer).unwrap();
    fs::create_dir(&pointer).unwrap();
    fs::write(pointer.join("in the way"), "").unwrap();
    let mut dev = Dev::start(&project);
    project.good(&["materialize", "*"]);
    let told = until("it is shown", || {
        let told = readiness(&project);
        (told["status"] == "degraded").then_some(told)
    });
    assert!(told.to_string().contains("assets/t/one/latest.json"), "{told}");
    assert!(dev.log().contains("t/one/latest.json"), "{}", dev.log());
    let seen = project.servo(&["doctor"]);
    let seen = String::from_utf8(seen.stdout).unwrap();
    assert!(seen.contains("server: data") && seen.contains("t/one/latest.json"), "{seen}");
    // The other pointer and the tables go on.
    until("the tables have everything", || {
        let tables = project.json(&["admin", "projections", "list", "--json"]);
        let through = tables["tables"].as_array()?.iter().map(|table| table["last_seq"].as_u64()).max()??;
        let lines = fs::read(segment(&project)).unwrap().iter().filter(|byte| **byte == b'\n').count();
        (through == lines as u64).then_some(())
    });
    let two = project.latest("t/two");
    assert_eq!(project.committed("t/two").len(), 2);
    assert_ne!(two["materialization_id"], Value::Null);
    let told = project.bad(&["admin", "projections", "verify"]);
    assert!(told.contains("t/one/latest.json"), "{told}");
    // It is not forgotten by a server that is killed.
    dev.process.kill().unwrap();
    dev.process.wait().unwrap();
    fs::remove_dir_all(&pointer).unwrap();
    fs::write(&pointer, before).unwrap();
    let _dev = Dev::start(&project);
    until("it points at the newest", || {
        (project.latest("t/one")["materialization_id"] != first["materialization_id"]).then_some(())
    });
    until("all is well", || (readiness(&project)["status"] == "ok").then_some(()));
    project.good(&["admin", "projections", "verify"]);
}

#[test]
fn verify_finds_pointers_that_are_stale_and_rebuild_mends_them() {
    let project = Project::new(TWO);
    project.good(&["materialize", "*"]);
    let pointer = project.home().join("assets/t/one/latest.json");
    let old = fs::read(&pointer).unwrap();
    project.good(&["materialize", "*"]);
    let right = fs::read(&pointer).unwrap();
    project.good(&["admin", "projections", "verify"]);
    for wrong in [Some(&old), None] {
        match wrong {
            Some(old) => fs::write(&pointer, old).unwrap(),
            None => fs::remove_file(&pointer).unwrap(),
        }
        let told = project.bad(&["admin", "projections", "verify"]);
        assert!(
            told.contains("the data of 1 of 2 partitions") && told.contains("t/one/latest.json"),
            "{told}"
        );
        project.good(&["admin", "projections", "rebuild"]);
        assert_eq!(fs::read(&pointer).unwrap(), right);
        project.good(&["admin", "projections", "verify"]);
    }
    let newest = project.latest("t/two")["materialization_id"].as_str().unwrap().to_owned();
    let marker = project.home().join(format!("assets/t/two/materializations/{newest}/_commit.json"));
    fs::remove_file(marker).unwrap();
    let told = project.bad(&["admin", "projections", "verify"]);
    assert!(told.contains(&newest) && told.contains("_commit.json"), "{told}");
}
