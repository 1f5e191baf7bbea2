//! `servo serve` with a queue that calls its worker, and `servo worker --listen`, both as they are started.

use std::fs;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::{Authority, Serve};
use crate::support::{Project, until};

const CODE: &str = r#"
@servo.asset(namespace="raw", queue="gpu")
def orders() -> list:
    print("counting orders")
    return [1]

@servo.asset(namespace="shop", queue="gpu")
def report(orders) -> list:
    return orders + [2]
"#;

/// A port that nobody has.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// `servo worker --listen` that ends with the test.
struct Called<'a> {
    project: &'a Project,
    process: Child,
    log: String,
}

impl<'a> Called<'a> {
    fn start(
        project: &'a Project,
        server: &str,
        port: u16,
        log: &str,
        key: Option<&str>,
        more: &[&str],
    ) -> Self {
        let at = format!("127.0.0.1:{port}");
        let mut command = project.command(&["worker", "--server", server, "--queue", "gpu", "--listen", &at]);
        if let Some(key) = key {
            command.env("SERVO_KEY", key);
        }
        if project.path("ca.pem").exists() {
            command.env("SERVO_CA_CERT", project.path("ca.pem"));
        }
        command.args(more);
        let file = fs::File::create(project.path(log)).unwrap();
        let process = command.args(["--slots", "2"]).stdout(Stdio::null()).stderr(file).spawn().unwrap();
        Self { project, process, log: log.to_owned() }
    }

    fn told(&self) -> String {
        fs::read_to_string(self.project.path(&self.log)).unwrap()
    }

    fn wait_for(&self, text: &str) {
        let what = format!("{text:?} in {}", self.log);
        until(&what, || self.told().contains(text).then_some(()));
    }

    /// Ends as an operator ends it.
    fn stop(mut self) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let status = until("the worker ends", || self.process.try_wait().unwrap());
        assert!(status.success(), "{status} {}", self.told());
    }
}

impl Drop for Called<'_> {
    fn drop(&mut self) {
        let _gone = self.process.kill();
        let _reaped = self.process.wait();
    }
}

/// Starts a run and does not wait for it.
fn begin(serve: &Serve<'_>, project: &Project, key: &str, selection: &str) -> Child {
    let mut command = project.command(&["materialize", selection]);
    command.env("SERVO_URL", &serve.url).env("SERVO_KEY", key);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_queue_calls_its_worker_and_again_when_it_has_been_away() {
    let project = Project::new(CODE);
    let port = free_port();
    let queues = format!("[queues.gpu]\nurl = \"http://127.0.0.1:{port}/push\"\nconcurrency = 4\n");
    fs::write(project.path("serve.toml"), queues).unwrap();
    let serve = Serve::start(&project, &[]);
    let admin = serve.first_key.clone().unwrap();
    let json = |arguments: &[&str]| -> Value {
        serde_json::from_str(&serve.good(&project, &admin, arguments)).unwrap()
    };
    serve.good(&project, &admin, &["deploy"]);
    assert_eq!(json(&["config", "show", "push_limit.gpu", "--json"])["items"][0]["value"], 4);
    // Nobody is there yet: the task waits, and the log says once that its worker does not answer.
    let mut waits = begin(&serve, &project, &admin, "raw.orders");
    until("the worker is missed", || serve.log().contains("queue.push failed").then_some(()));
    assert_eq!(serve.log().matches("queue.push failed").count(), 1, "{}", serve.log());
    // On the same machine the worker finds its key by itself.
    let worker = Called::start(&project, &serve.url, port, "first.log", None, &[]);
    assert!(waits.wait().unwrap().success(), "{} {}", worker.told(), serve.log());
    assert!(worker.told().contains(&format!("queues gpu call http://127.0.0.1:{port}/push")));
    assert_eq!(project.committed("raw/orders").len(), 1);
    let run = json(&["run", "list", "--json"])["items"][0]["run_id"].as_str().unwrap().to_owned();
    assert!(serve.good(&project, &admin, &["run", "logs", &run]).contains("counting orders"));
    let listed = json(&["worker", "list", "--json"]);
    assert_eq!(
        (&listed["items"][0]["state"], &listed["items"][0]["queues"][0]),
        (&"ACTIVE".into(), &"gpu".into())
    );
    // Keys are rotated while it works.
    project.good(&["admin", "keys", "rotate"]);
    serve.good(&project, &admin, &["materialize", "shop.report"]);

    // It goes away, and what is asked for then is done when it comes back.
    worker.stop();
    let mut waits = begin(&serve, &project, &admin, "raw.orders");
    let missed = |times| {
        until("the worker is missed again", || {
            (serve.log().matches("queue.push failed").count() == times).then_some(())
        });
    };
    missed(2);
    assert!(waits.try_wait().unwrap().is_none());
    let worker = Called::start(&project, &serve.url, port, "second.log", None, &[]);
    assert!(waits.wait().unwrap().success(), "{} {}", worker.told(), serve.log());
    assert_eq!(project.committed("raw/orders").len(), 2);
    // A server that is started again finds what it had handed out.
    worker.stop();
    let mut waits = begin(&serve, &project, &admin, "shop.report");
    missed(3);
    let at = serve.url.trim_start_matches("http://").to_owned();
    serve.stop();
    let serve = Serve::start_at(&project, &at, &[]);
    let worker = Called::start(&project, &serve.url, port, "third.log", None, &[]);
    until("it is done after all", || (project.committed("shop/report").len() == 2).then_some(()));
    let _either = waits.wait().unwrap();
    let secrets = [serve.log(), worker.told()].concat();
    assert!(!secrets.contains("sig="), "callback URLs are in no log: {secrets}");
    worker.stop();
    serve.stop();
}

#[test]
fn a_worker_with_a_key_of_its_own_is_called_over_tls_and_reports_over_tls() {
    let project = Project::new(CODE);
    let authority = Authority(&project);
    authority.make("ca");
    authority.certify("ca", "server");
    let tls = ["--tls-cert", "server.pem", "--tls-key", "server.key"];
    // The id of a key is known when there is a server; the address of the worker is the operator's.
    let serve = Serve::start(&project, &[]);
    let admin = serve.first_key.clone().unwrap();
    let create = |role: &str| {
        let arguments = ["admin", "api-keys", "create", "gpu", "--role", role, "--scope", "default/main"];
        serve.good(&project, &admin, &arguments).trim().to_owned()
    };
    let (key, other) = (create("worker"), create("worker"));
    serve.good(&project, &admin, &["deploy"]);
    serve.stop();
    let port = free_port();
    let id = key.split('_').nth(1).unwrap();
    let queues = format!("[queues.gpu]\nurl = \"https://127.0.0.1:{port}/push\"\nkey = \"{id}\"\n");
    fs::write(project.path("serve.toml"), queues).unwrap();
    let log = fs::File::create(project.path("serve.log")).unwrap();
    let mut command = project.command(&["serve", "--listen", "127.0.0.1:0"]);
    let command = command.args(tls).env("SERVO_CA_CERT", project.path("ca.pem")).stderr(log);
    let mut serving = command.stdout(Stdio::null()).spawn().unwrap();
    let url = until("the server says where it is", || {
        let log = fs::read_to_string(project.path("serve.log")).unwrap();
        let line = log.lines().find(|line| line.starts_with("servo serve "))?.to_owned();
        Some(line.split(' ').nth(2).unwrap().to_owned())
    });
    assert!(url.starts_with("https://"), "{url}");
    let materialize = || {
        let mut command = project.command(&["materialize", "+shop.report"]);
        command.env("SERVO_URL", &url).env("SERVO_KEY", &admin);
        command.env("SERVO_CA_CERT", project.path("ca.pem")).stderr(Stdio::null());
        command.stdout(Stdio::null()).spawn().unwrap()
    };
    // One with another key is registered, and believes nothing that is signed for the first.
    let wrong = Called::start(&project, &url, port, "wrong.log", Some(&other), &tls);
    wrong.wait_for("queues gpu call https://");
    let mut run = materialize();
    until("the refusal is in the log of the server", || {
        let log = fs::read_to_string(project.path("serve.log")).unwrap();
        log.contains("answered 401: the signature of the task envelope does not match").then_some(())
    });
    wrong.stop();
    let right = Called::start(&project, &url, port, "right.log", Some(&key), &tls);
    let done = run.wait().unwrap();
    let (told, log) = (right.told(), fs::read_to_string(project.path("serve.log")).unwrap());
    right.stop();
    let _gone = serving.kill();
    let _reaped = serving.wait();
    assert!(done.success(), "{told} {log}");
    assert_eq!(project.committed("shop/report").len(), 1);
}

#[test]
fn what_cannot_be_called_is_said_when_it_is_started() {
    let project = Project::new(CODE);
    fs::write(project.path("serve.toml"), "[queues.gpu]\nurl = \"nowhere\"\n").unwrap();
    let wrong = project.bad(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(wrong.contains("[queues.\"gpu\"]") && wrong.contains("is not the address"), "{wrong}");
    fs::write(project.path("serve.toml"), "[queues.gpu]\nurl = \"https://gpu.example/push?hush\"\n").unwrap();
    let shown = project.good(&["config", "show", "--serve"]);
    assert!(shown.contains("queues.gpu") && shown.contains("https://gpu.example/push"), "{shown}");
    assert!(!shown.contains("hush"), "{shown}");
    // A worker that waits to be called by a queue that waits to be asked would wait for ever.
    fs::remove_file(project.path("serve.toml")).unwrap();
    let serve = Serve::start(&project, &[]);
    let admin = serve.first_key.clone().unwrap();
    serve.good(&project, &admin, &["deploy"]);
    let mut worker = Called::start(&project, &serve.url, free_port(), "worker.log", None, &[]);
    assert!(!worker.process.wait().unwrap().success());
    assert!(worker.told().contains("queue gpu does not call its workers"), "{}", worker.told());
    serve.stop();
}
