//! Workers through the real binary: they prove themselves, die, sleep, share a name, have other code or another disk.

use std::fs;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::{Dev, Project, until};

/// Assets of two queues. Those named `slow` say that they have begun, and wait for a file.
const CODE: &str = r#"
import os, pathlib, time

@servo.asset(namespace="t")
def near() -> int:
    return 1

@servo.asset(namespace="t", queue="gpu")
def far() -> int:
    return 2

def wait(name):
    pathlib.Path(f"begun-{name}-{os.getpid()}").touch()
    while not os.path.exists("go"):
        time.sleep(0.02)
    return os.getpid()

@servo.asset(namespace="slow", queue="gpu")
def s0() -> int:
    return wait("s0")

@servo.asset(namespace="slow", queue="gpu")
def s1() -> int:
    return wait("s1")

@servo.asset(namespace="slow", queue="gpu")
def s2() -> int:
    return wait("s2")

@servo.asset(namespace="slow", queue="gpu")
def s3() -> int:
    return wait("s3")
"#;

/// `servo worker` of queue gpu that ends with the test.
struct Worker {
    process: Child,
    log: std::path::PathBuf,
}

impl Worker {
    fn start(project: &Project, server: &str, name: &str, log: &str, options: &[&str]) -> Self {
        let log = project.path(log);
        let process = project
            .command(&["worker", "--server", server, "--queue", "gpu", "--name", name])
            .args(options)
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Self { process, log }
    }

    fn told(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    fn wait_for(&self, text: &str) {
        until(&format!("{text:?} in {}", self.log.display()), || self.told().contains(text).then_some(()));
    }

    fn signal(&self, signal: &str) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _gone = self.process.kill();
        let _reaped = self.process.wait();
    }
}

fn address(project: &Project) -> String {
    let text = fs::read(project.path(".servo/server.json")).unwrap();
    let found: Value = serde_json::from_slice(&text).unwrap();
    found["url"].as_str().unwrap().to_owned()
}

/// The key that workers in the same directory find by themselves.
fn worker_key(project: &Project) -> String {
    let text = fs::read(project.path(".servo/tenant=default/keys.json")).unwrap();
    let keys: Value = serde_json::from_slice(&text).unwrap();
    keys["worker_key"].as_str().unwrap().to_owned()
}

/// Ids of the workers of queue gpu that are in a state.
fn workers(project: &Project, state: &str) -> Vec<String> {
    let listed = project.json(&["worker", "list", "--all", "--json"]);
    let items = listed["items"].as_array().unwrap().iter();
    let found = items.filter(|worker| worker["state"] == state && worker["queues"][0] == "gpu");
    found.map(|worker| worker["worker_id"].as_str().unwrap().to_owned()).collect()
}

/// Starts a run and does not wait for it.
fn begin(project: &Project, selection: &str, log: &str) -> Child {
    let log = fs::File::create(project.path(log)).unwrap();
    project.command(&["materialize", selection]).stdout(Stdio::null()).stderr(log).spawn().unwrap()
}

/// The slow assets that have begun, by name and process.
fn begun(project: &Project) -> Vec<String> {
    let files = fs::read_dir(project.root.path()).unwrap().flatten();
    let names = files.filter_map(|file| Some(file.file_name().to_str()?.strip_prefix("begun-")?.to_owned()));
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn go(project: &Project) {
    fs::write(project.path("go"), "").unwrap();
}

#[test]
fn a_queue_without_a_worker_is_named_and_holds_up_no_other() {
    let project = Project::new(CODE);
    let _dev = Dev::start(&project);
    let mut waits = begin(&project, "t.far or slow.*", "waits.log");
    until("the command says what it waits for", || {
        let told = fs::read_to_string(project.path("waits.log")).unwrap();
        told.contains("no worker serves queue gpu; 5 tasks wait since").then_some(())
    });
    project.good(&["materialize", "t.near"]);
    let why = project.json(&["run", "list", "--json", "--state", "RUNNING"])["items"][0]["run_id"].clone();
    let why = project.good(&["run", "why", why.as_str().unwrap()]);
    assert!(why.contains("would change it: servo worker --queue gpu"), "{why}");
    assert_eq!(project.json(&["admin", "status", "--json"])["tasks_dispatched"], 0);
    go(&project);
    let worker = Worker::start(&project, &address(&project), "w", "w.log", &["--slots", "2"]);
    assert!(waits.wait().unwrap().success(), "{}", worker.told());
    assert_eq!(project.committed("t/far").len(), 1);
}

#[test]
fn a_worker_with_a_disk_of_its_own_is_refused_and_stores_nothing() {
    let project = Project::new(CODE);
    let _dev = Dev::start(&project);
    let (server, key) = (address(&project), worker_key(&project));
    let elsewhere = tempfile::tempdir().unwrap();
    let own = elsewhere.path().to_str().unwrap();
    let told = project.bad(&["--dir", own, "worker", "--server", &server, "--key", &key, "--queue", "gpu"]);
    assert!(told.contains("does not share the storage of this workspace"), "{told}");
    assert_eq!(workers(&project, "ACTIVE"), [""; 0]);
    let other = project.bad(&["--workspace", "other", "worker", "--server", &server, "--key", &key]);
    assert!(other.contains("this server has workspace default/main"), "{other}");
    let left: Vec<_> = fs::read_dir(project.home().join("workers")).unwrap().flatten().collect();
    assert!(left.is_empty(), "no challenge is left behind: {left:?}");
}

#[test]
fn two_processes_of_one_name_are_two_workers_and_run_each_attempt_once() {
    let project = Project::new(CODE);
    let _dev = Dev::start(&project);
    let server = address(&project);
    let _twins =
        ["one.log", "other.log"].map(|log| Worker::start(&project, &server, "twin", log, &["--slots", "2"]));
    let ids = until("both are registered", || Some(workers(&project, "ACTIVE")).filter(|ids| ids.len() == 2));
    assert!(ids[0] != ids[1] && ids.iter().all(|id| id.starts_with("twin-")), "{ids:?}");
    let mut run = begin(&project, "slow.*", "run.log");
    let begun_ones = until("all four have begun", || Some(begun(&project)).filter(|begun| begun.len() == 4));
    let names: Vec<&str> = begun_ones.iter().map(|name| &name[..2]).collect();
    assert_eq!(names, ["s0", "s1", "s2", "s3"], "the slots of both are used, and nothing runs twice");
    go(&project);
    assert!(run.wait().unwrap().success());
    assert_eq!(begun(&project).len(), 4);
}

#[test]
fn a_worker_that_is_killed_is_lost_and_another_does_its_work() {
    let project = Project::new(CODE);
    let _dev = Dev::with(&project, &["--port", "0", "--worker-timeout", "3"]);
    let server = address(&project);
    let killed = Worker::start(&project, &server, "killed", "killed.log", &["--slots", "1"]);
    killed.wait_for("1 slots for");
    let mut run = begin(&project, "slow.*", "run.log");
    until("it has begun one", || (begun(&project).len() == 1).then_some(()));
    killed.signal("-KILL");
    until("it is lost", || (workers(&project, "LOST").len() == 1).then_some(()));
    assert_eq!(workers(&project, "ACTIVE"), [""; 0]);
    go(&project);
    let heir = Worker::start(&project, &server, "heir", "heir.log", &["--slots", "2"]);
    assert!(run.wait().unwrap().success(), "{}", heir.told());
    for asset in ["s0", "s1", "s2", "s3"] {
        assert_eq!(project.committed(&format!("slow/{asset}")).len(), 1, "{asset}");
    }
    heir.signal("-TERM");
    until("it has left", || (workers(&project, "LEFT").len() == 1).then_some(()));
}

#[test]
fn a_worker_that_sleeps_is_lost_and_registers_again_when_it_wakes_up() {
    let project = Project::new(CODE);
    let _dev = Dev::with(&project, &["--port", "0", "--worker-timeout", "3"]);
    let sleeper = Worker::start(&project, &address(&project), "sleeper", "sleeper.log", &["--slots", "1"]);
    sleeper.wait_for("1 slots for");
    sleeper.signal("-STOP");
    until("it is lost", || (workers(&project, "LOST").len() == 1).then_some(()));
    let mut run = begin(&project, "t.far", "run.log");
    until("the command says what it waits for", || {
        let told = fs::read_to_string(project.path("run.log")).unwrap();
        told.contains("no worker serves queue gpu; 1 task waits").then_some(())
    });
    sleeper.signal("-CONT");
    assert!(run.wait().unwrap().success(), "{}", sleeper.told());
    assert_eq!(workers(&project, "ACTIVE").len(), 1);
}

#[test]
fn a_worker_takes_up_new_code_when_it_is_deployed() {
    let project = Project::new(CODE);
    let dev = Dev::start(&project);
    let worker = Worker::start(&project, &address(&project), "w", "w.log", &["--slots", "1"]);
    worker.wait_for("1 slots for");
    project.good(&["materialize", "t.far"]);
    project.save(&CODE.replace("return 2", "return 22"));
    dev.wait_for("definitions have changed");
    worker.wait_for("registered with the code of deployment 2");
    project.good(&["materialize", "t.far"]);
    // The pointer follows when the run has ended.
    until("the newest data is that of the new code", || {
        let latest = project.latest("t/far")["materialization_id"].as_str()?.to_owned();
        let data = project.home().join("assets/t/far/materializations").join(latest);
        let mut files = fs::read_dir(data).ok()?.flatten().map(|file| file.path());
        let is_data =
            |file: &std::path::PathBuf| !file.file_name().unwrap().to_string_lossy().starts_with('_');
        files.find(is_data).filter(|file| fs::read_to_string(file).unwrap() == "22")
    });
}

#[test]
fn a_worker_with_other_code_says_what_differs_and_joins_when_it_has_the_same() {
    let (project, other) = (Project::new(CODE), Project::new(&CODE.replace("return 2", "return 3")));
    let _dev = Dev::start(&project);
    let state = project.path(".servo");
    let options = ["--dir", state.to_str().unwrap()];
    let worker = Worker::start(&other, &address(&project), "w", "w.log", &options);
    worker.wait_for("t.far differs");
    assert_eq!(workers(&project, "ACTIVE"), [""; 0]);
    other.save(CODE);
    until("it is registered", || (workers(&project, "ACTIVE").len() == 1).then_some(()));
    project.good(&["materialize", "t.far"]);
}

#[test]
fn a_worker_may_be_started_before_its_server() {
    let project = Project::new(CODE);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let server = format!("http://127.0.0.1:{port}");
    let worker = Worker::start(&project, &server, "early", "early.log", &["--key", "sesame"]);
    worker.wait_for("it is tried again until it works");
    let _dev = Dev::with(&project, &["--port", &port, "--worker-key", "sesame"]);
    until("it is registered", || (workers(&project, "ACTIVE").len() == 1).then_some(()));
}
