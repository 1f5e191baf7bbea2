//! `servo serve` through the real binary: keys, roles, tenants, TLS, settings, and secrets that appear nowhere.

#![allow(unreachable_pub)]

mod called_workers;
mod quotas;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::{PATIENCE, Project, until};

pub const ORDERS: &str = r#"
@servo.asset(namespace="raw")
def orders() -> list:
    return [1]

@servo.asset(namespace="shop")
def report(orders) -> list:
    return orders
"#;

/// `servo serve` that ends with the test.
pub struct Serve<'a> {
    project: &'a Project,
    process: Child,
    pub url: String,
    /// The key that was printed, if one was.
    pub first_key: Option<String>,
}

impl<'a> Serve<'a> {
    pub fn start(project: &'a Project, options: &[&str]) -> Self {
        Self::start_at(project, "127.0.0.1:0", options)
    }

    pub fn start_at(project: &'a Project, address: &str, options: &[&str]) -> Self {
        let log = fs::File::create(project.path("serve.log")).unwrap();
        let mut command = project.command(&["serve", "--listen", address]);
        let mut process = command.args(options).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let is_first = !project.path(".servo/control").exists();
        let mut first_key = None;
        if is_first {
            let mut line = String::new();
            BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
            first_key = Some(line.trim().rsplit(' ').next().unwrap().to_owned());
        }
        let url = until("the server says where it is", || {
            let log = fs::read_to_string(project.path("serve.log")).unwrap();
            let line = log.lines().find(|line| line.starts_with("servo serve "))?.to_owned();
            Some(line.split(' ').nth(2).unwrap().to_owned())
        });
        Self { project, process, url, first_key }
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.project.path("serve.log")).unwrap()
    }

    /// A command that speaks to it from somewhere else.
    pub fn asked(&self, from: &Project, key: &str, arguments: &[&str]) -> std::process::Output {
        from.command(arguments).env("SERVO_URL", &self.url).env("SERVO_KEY", key).output().unwrap()
    }

    pub fn good(&self, from: &Project, key: &str, arguments: &[&str]) -> String {
        let output = self.asked(from, key, arguments);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {told}\n{}", self.log());
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn bad(&self, from: &Project, key: &str, arguments: &[&str]) -> String {
        let output = self.asked(from, key, arguments);
        assert_eq!(
            output.status.code(),
            Some(1),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stdout)
        );
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// The answer to a request, whatever the status.
    pub fn post(&self, key: &str, path: &str, body: &str) -> Value {
        let (url, bearer) = (format!("{}/api/v1/{path}", self.url), format!("Authorization: Bearer {key}"));
        let json = "Content-Type: application/json";
        let asked = Command::new("curl").args(["-s", &url, "-H", &bearer, "-H", json, "-d", body]).output();
        serde_json::from_slice(&asked.unwrap().stdout).unwrap()
    }

    /// Ends as an operator ends it.
    pub fn stop(mut self) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let status = until("the server ends", || self.process.try_wait().unwrap());
        assert!(status.success(), "{status} {}", self.log());
    }
}

impl Drop for Serve<'_> {
    fn drop(&mut self) {
        let _gone = self.process.kill();
        let _reaped = self.process.wait();
    }
}

/// Every file below a directory.
fn files(at: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(at).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn a_laptop_deploys_to_a_served_workspace_with_the_role_that_its_key_has_and_secrets_appear_nowhere() {
    let (server, laptop) = (Project::new(ORDERS), Project::new(ORDERS));
    let serve = Serve::start(&server, &[]);
    let admin = serve.first_key.clone().unwrap();
    assert!(admin.starts_with("servo_"), "{admin}");
    serve.good(&laptop, &admin, &["admin", "tenants", "create", "acme"]);
    serve.good(&laptop, &admin, &["admin", "workspaces", "create", "acme/prod"]);
    let create = |name: &str, role: &str| {
        let arguments =
            ["admin", "api-keys", "create", name, "--role", role, "--scope", "acme/prod", "--service"];
        serve.good(&laptop, &admin, &arguments).trim().to_owned()
    };
    let (developer, viewer) = (create("ci", "developer"), create("board", "viewer"));
    assert!(serve.good(&laptop, &developer, &["deploy"]).contains("deployed 2 assets"));
    assert!(serve.good(&laptop, &viewer, &["asset", "list"]).contains("raw.orders"));
    let refused = serve.bad(&laptop, &viewer, &["run", "cancel", "run_aaaaaaaaaaaaaaaaaaaaaaaaaa"]);
    assert!(refused.contains("runs.cancel") && refused.contains("operator"), "{refused}");
    // The key is good for one workspace; another one is not there.
    let other = serve.bad(&laptop, &viewer, &["--tenant", "default", "--workspace", "main", "run", "list"]);
    let never = serve.bad(&laptop, &viewer, &["--tenant", "defoult", "--workspace", "main", "run", "list"]);
    assert_eq!(other.replace("default", "defoult"), never);
    // An admin of the server names the workspace.
    let named = ["--tenant", "acme", "--workspace", "prod", "audit", "--refused", "--json"];
    let audit: Value = serde_json::from_str(&serve.good(&laptop, &admin, &named)).unwrap();
    assert_eq!(audit["items"][0]["action"], "runs.cancel");
    let listed: Value =
        serde_json::from_str(&serve.good(&laptop, &admin, &["admin", "api-keys", "list", "--json"])).unwrap();
    let keys = listed["items"].as_array().unwrap();
    assert_eq!(keys.len(), 3);
    assert!(keys.iter().all(|key| key["last_used_at"].is_string()), "{listed}");
    // Switched off and revoked.
    serve.good(&laptop, &admin, &["admin", "workspaces", "disable", "acme/prod"]);
    assert!(serve.bad(&laptop, &developer, &["run", "list"]).contains("switched off"));
    serve.good(&laptop, &admin, &["admin", "workspaces", "enable", "acme/prod"]);
    let id = viewer.split('_').nth(1).unwrap();
    serve.good(&laptop, &admin, &["admin", "api-keys", "revoke", id]);
    assert!(serve.bad(&laptop, &viewer, &["run", "list"]).contains("was revoked"));
    let last = if developer.ends_with('0') { '1' } else { '0' };
    let wrong = format!("{}{last}", &developer[..developer.len() - 1]);
    assert!(serve.bad(&laptop, &wrong, &["run", "list"]).contains("not one of this server"));
    // Limits.
    let set =
        serve.good(&laptop, &admin, &["admin", "quotas", "set", "acme", "max_concurrent_runs=3", "--json"]);
    assert!(set.contains(r#"{"name":"max_concurrent_runs","value":3,"default":10,"is_set":true}"#), "{set}");

    // Canaries: the secrets of all keys, and the token of the server.
    let arguments = fs::read(format!("/proc/{}/cmdline", serve.process.id())).unwrap();
    let token: Value = serde_json::from_slice(&fs::read(server.path(".servo/server.json")).unwrap()).unwrap();
    let token = token["token"].as_str().unwrap().to_owned();
    let log = serve.log();
    serve.stop();
    let secrets: Vec<String> =
        [&admin, &developer, &viewer].iter().map(|key| key.rsplit('_').next().unwrap().to_owned()).collect();
    assert!(
        log.lines()
            .filter(|line| line.starts_with('{'))
            .all(|line| serde_json::from_str::<Value>(line).is_ok())
    );
    let requests: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let is_deploy = |line: &&Value| {
        line["message"] == "api.request" && line["method"] == "POST" && line["path"] == "/api/v1/deployments"
    };
    let deployed = requests.iter().find(is_deploy);
    let deployed = deployed.unwrap_or_else(|| panic!("{log}"));
    assert!(deployed["request_id"].is_string() && deployed["status"] == 202, "{deployed}");
    assert_eq!((&deployed["tenant"], &deployed["workspace"]), (&"acme".into(), &"prod".into()));
    let cancel = "/api/v1/runs/run_aaaaaaaaaaaaaaaaaaaaaaaaaa/cancel";
    let cancelled = requests.iter().find(|line| line["path"] == cancel).unwrap();
    assert_eq!(cancelled["run_id"], "run_aaaaaaaaaaaaaaaaaaaaaaaaaa", "of the run that it is about");
    let stored = files(&server.path(".servo"));
    assert!(stored.iter().any(|path| path.ends_with("keys.json")));
    for secret in secrets.iter().chain([&token]) {
        assert!(!log.contains(secret.as_str()), "in the log");
        assert!(!String::from_utf8_lossy(&arguments).contains(secret.as_str()), "in the list of processes");
        for path in &stored {
            let text = fs::read(path).unwrap_or_default();
            assert!(!String::from_utf8_lossy(&text).contains(secret.as_str()), "in {}", path.display());
        }
    }

    // Keys survive a restart, and no other key is printed.
    let again = Serve::start(&server, &[]);
    assert!(again.first_key.is_none());
    assert!(again.good(&laptop, &developer, &["asset", "list"]).contains("raw.orders"));
    // On its own machine, whoever may read the directory needs no key.
    assert!(server.good(&["admin", "tenants", "list"]).contains("acme"));
    again.stop();
}

#[test]
fn a_server_with_a_certificate_speaks_tls_and_reads_it_again_when_it_changes() {
    let (server, laptop) = (Project::new(ORDERS), Project::new(ORDERS));
    let certify = |name: &str| {
        let subject = format!("/CN={name}");
        let (key, certificate) = (server.path("new.key"), server.path("new.pem"));
        let made = Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-days",
                "2",
            ])
            .args(["-subj", &subject, "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"])
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .stderr(Stdio::null())
            .status();
        assert!(made.unwrap().success());
        fs::rename(key, server.path("server.key")).unwrap();
        fs::rename(certificate, server.path("server.pem")).unwrap();
    };
    let wrong = server.bad(&["serve", "--listen", "127.0.0.1:0", "--tls-cert", "server.pem"]);
    assert!(wrong.contains("belong together"), "{wrong}");
    certify("first");
    let serve = Serve::start(&server, &["--tls-cert", "server.pem", "--tls-key", "server.key"]);
    assert!(serve.url.starts_with("https://127.0.0.1:"), "{}", serve.url);
    let subject = || {
        let address = serve.url.trim_start_matches("https://");
        let mut shown = Command::new("openssl")
            .args(["s_client", "-connect", address])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let text = std::io::read_to_string(shown.stdout.take().unwrap()).unwrap();
        let _ended = shown.wait();
        text
    };
    assert!(subject().contains("CN = first") || subject().contains("CN=first"), "{}", subject());
    // A client that does not know the certificate is not let down quietly.
    let key = serve.first_key.clone().unwrap();
    let refused = serve.asked(&laptop, &key, &["run", "list"]);
    assert_eq!(refused.status.code(), Some(4), "{}", String::from_utf8_lossy(&refused.stderr));
    certify("second");
    let begun = std::time::Instant::now();
    while !(subject().contains("CN = second") || subject().contains("CN=second")) {
        assert!(begun.elapsed() < PATIENCE, "{}", subject());
    }
    // One that cannot be used changes nothing.
    fs::write(server.path("server.pem"), "no certificate").unwrap();
    until("it is reported", || serve.log().contains("the one before stays").then_some(()));
    assert!(subject().contains("second"));
    serve.stop();
}

#[test]
fn settings_of_a_server_come_from_flags_variables_a_file_and_defaults_in_this_order() {
    let project = Project::new(ORDERS);
    fs::write(
        project.path("serve.toml"),
        "listen = \"127.0.0.1:1\"\nidle_after = 7\nhosts = [\"a.example\", \"b.example\"]\n",
    )
    .unwrap();
    let shown = project
        .command(&["config", "show", "--serve", "--json"])
        .env("SERVO_IDLE_AFTER", "9")
        .output()
        .unwrap();
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let one = |name: &str| {
        let it = shown["items"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap().clone();
        format!(
            "{} {} {}",
            it["value"].as_str().unwrap(),
            it["origin"].as_str().unwrap(),
            it["source"].as_str().unwrap()
        )
    };
    assert_eq!(one("listen"), "127.0.0.1:1 file serve.toml");
    assert_eq!(one("idle_after"), "9 environment SERVO_IDLE_AFTER");
    assert_eq!(one("hosts"), "a.example,b.example file serve.toml");
    assert_eq!(one("drain"), "30 default ");
    // A flag wins, and what is wrong is said with where it comes from.
    let wrong = project.bad(&["serve", "--slots", "many"]);
    assert!(wrong.contains("slots from flag --slots") && wrong.contains("\"many\""), "{wrong}");
    fs::write(project.path("serve.toml"), "listen = \"nowhere\"\n").unwrap();
    let wrong = project.bad(&["serve"]);
    assert!(wrong.contains("listen from file serve.toml"), "{wrong}");
    fs::write(project.path("serve.toml"), "lisen = \"127.0.0.1:1\"\n").unwrap();
    let wrong = project.bad(&["serve"]);
    assert!(wrong.contains("there is no setting lisen"), "{wrong}");
    assert!(!project.path(".servo/control").exists(), "nothing was begun");
}

#[test]
fn a_worker_with_a_key_for_workers_runs_the_tasks_of_its_workspace_and_no_other() {
    let project = Project::new(ORDERS);
    let serve = Serve::start(&project, &[]);
    let admin = serve.first_key.clone().unwrap();
    let create = |role: &str, scope: &str| {
        let arguments = ["admin", "api-keys", "create", "w", "--role", role, "--scope", scope];
        serve.good(&project, &admin, &arguments).trim().to_owned()
    };
    serve.good(&project, &admin, &["deploy"]);
    let start = |key: &str| {
        let mut command = project.command(&["worker", "--server", &serve.url, "--slots", "1"]);
        command.env("SERVO_KEY", key).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut worker = start(&create("worker", "default/main"));
    let made = serve.asked(&project, &admin, &["materialize", "raw.orders"]);
    let told = String::from_utf8_lossy(&made.stderr).into_owned();
    worker.kill().unwrap();
    worker.wait().unwrap();
    assert!(made.status.success(), "{told} {}", serve.log());
    let viewer = create("viewer", "default/main");
    let refused =
        project.command(&["worker", "--server", &serve.url]).env("SERVO_KEY", viewer).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("workers.serve"), "{refused:?}");
    serve.stop();
}

/// An authority in the directory of a project, and certificates of it.
struct Authority<'a>(&'a Project);

impl Authority<'_> {
    fn run(&self, arguments: &[&str]) {
        let made = Command::new("openssl").args(arguments).current_dir(self.0.root.path()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    fn make(&self, name: &str) {
        let (key, pem, subject) = (format!("{name}.key"), format!("{name}.pem"), format!("/CN={name}"));
        let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
        let common = ["-days", "2", "-subj", &subject, "-keyout", &key, "-out", &pem];
        self.run(&[&["req", "-x509"], &curve[..], &common[..]].concat());
    }

    fn certify(&self, authority: &str, name: &str) {
        let (key, request, pem) = (format!("{name}.key"), format!("{name}.csr"), format!("{name}.pem"));
        let subject = format!("/CN={name}");
        let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
        let common = ["-subj", &subject, "-keyout", &key, "-out", &request];
        self.run(&[&["req", "-new"], &curve[..], &common[..]].concat());
        fs::write(self.0.path("names"), "subjectAltName=IP:127.0.0.1,DNS:localhost\n").unwrap();
        let (ca, ca_key) = (format!("{authority}.pem"), format!("{authority}.key"));
        self.run(&[
            "x509",
            "-req",
            "-in",
            &request,
            "-CA",
            &ca,
            "-CAkey",
            &ca_key,
            "-CAcreateserial",
            "-days",
            "2",
            "-extfile",
            "names",
            "-out",
            &pem,
        ]);
    }
}

#[test]
fn workers_reach_a_server_over_tls_with_certificates_and_keys_that_are_rotated_without_a_stop() {
    let project = Project::new(ORDERS);
    let authority = Authority(&project);
    authority.make("ca");
    authority.make("other-ca");
    authority.certify("ca", "server");
    authority.certify("ca", "worker");
    authority.certify("other-ca", "stranger");
    let wrong = project.bad(&["serve", "--listen", "127.0.0.1:0", "--tls-client-ca", "ca.pem"]);
    assert!(wrong.contains("tls_client_ca needs tls_cert"), "{wrong}");
    let options = ["--tls-cert", "server.pem", "--tls-key", "server.key", "--tls-client-ca", "ca.pem"];
    let serve = Serve::start(&project, &options);
    let admin = serve.first_key.clone().unwrap();
    let ca = ("SERVO_CA_CERT", project.path("ca.pem"));
    let asked = |key: &str, arguments: &[&str]| {
        let mut command = project.command(arguments);
        command.env("SERVO_URL", &serve.url).env("SERVO_KEY", key).env(ca.0, &ca.1).output().unwrap()
    };
    let good = |arguments: &[&str]| {
        let output = asked(&admin, arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    good(&["deploy"]);
    let create = || -> String {
        good(&["admin", "api-keys", "create", "w", "--role", "worker", "--scope", "default/main"])
            .trim()
            .to_owned()
    };
    let (first, second) = (create(), create());
    // The server and the key of a worker are those of a context.
    let config = project.path("contexts.toml");
    let context =
        |name: &str, key: &str| format!("[contexts.{name}]\nurl = \"{}\"\nkey = \"{key}\"\n", serve.url);
    fs::write(&config, context("first", &first) + &context("second", &second)).unwrap();
    let worker = |context: &str, certificate: Option<&str>| {
        let log = fs::File::create(project.path("worker.log")).unwrap();
        let mut command =
            project.command(&["worker", "--context", context, "--slots", "1", "--name", context]);
        command.env("SERVO_CONFIG", &config).env(ca.0, &ca.1).stderr(log);
        if let Some(name) = certificate {
            command.env("SERVO_CLIENT_CERT", project.path(&format!("{name}.pem")));
            command.env("SERVO_CLIENT_KEY", project.path(&format!("{name}.key")));
        }
        command.spawn().unwrap()
    };
    let mut bare = worker("first", None);
    assert!(!bare.wait().unwrap().success());
    let told = fs::read_to_string(project.path("worker.log")).unwrap();
    assert!(told.contains("show a certificate of its authority"), "{told}");
    let mut stranger = worker("first", Some("stranger"));
    until("the handshake of a stranger fails", || {
        let told = fs::read_to_string(project.path("worker.log")).unwrap();
        (!told.is_empty()).then_some(())
    });
    stranger.kill().unwrap();
    stranger.wait().unwrap();

    let state = |name: &str| -> Option<String> {
        let listed: Value = serde_json::from_str(&good(&["worker", "list", "--all", "--json"])).unwrap();
        let workers = listed["items"].as_array().unwrap().clone();
        let found = workers.iter().find(|worker| worker["name"] == name)?;
        found["state"].as_str().map(str::to_owned)
    };
    let mut old = worker("first", Some("worker"));
    until("the first worker is there", || (state("first")? == "ACTIVE").then_some(()));
    good(&["materialize", "raw.orders"]);
    // Both keys are good at once; the old one is revoked when its worker has gone.
    let mut new = worker("second", Some("worker"));
    until("the second worker is there", || (state("second")? == "ACTIVE").then_some(()));
    let pid = old.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert!(old.wait().unwrap().success());
    good(&["admin", "api-keys", "revoke", first.split('_').nth(1).unwrap()]);
    good(&["materialize", "shop.report"]);
    let mut late = worker("first", Some("worker"));
    assert!(!late.wait().unwrap().success(), "its key was revoked");
    new.kill().unwrap();
    new.wait().unwrap();
    serve.stop();
}

/// A process that ends with the test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

#[test]
fn a_worker_elsewhere_calls_the_functions_of_schedules_and_sensors() {
    let project = Project::new(
        r#"
import os

@servo.asset(namespace="raw")
def beat() -> int:
    return 1

def request():
    return servo.RunRequest(tags={"by": os.environ.get("PLACE", "the server")})

@servo.schedule(cron="* * * * * *", selection="raw.beat", if_running="skip")
def every_second(ctx):
    return request()

@servo.sensor(interval="1s", selection="raw.beat")
def inbox(ctx):
    if ctx.cursor is not None:
        return servo.SkipReason("nothing new")
    return servo.SensorResult([request()], cursor="seen")
"#,
    );
    let serve = Serve::start(&project, &[]);
    let admin = serve.first_key.clone().unwrap();
    serve.good(&project, &admin, &["deploy"]);
    let create = ["admin", "api-keys", "create", "w", "--role", "worker", "--scope", "default/main"];
    let key = serve.good(&project, &admin, &create).trim().to_owned();
    let mut worker = project.command(&["worker", "--server", &serve.url, "--slots", "1"]);
    worker.env("SERVO_KEY", key).env("PLACE", "the worker").stderr(Stdio::null());
    let _worker = Ends(worker.spawn().unwrap());
    let told = |arguments: &[&str]| -> Value {
        serde_json::from_str(&serve.good(&project, &admin, arguments)).unwrap()
    };
    let by = |list: &[&str]| {
        until("a run of an evaluation", || {
            let found = told(list)["items"].as_array()?.first()?["runs"][0]["run_id"].as_str()?.to_owned();
            let run = told(&["run", "show", &found, "--json"]);
            run["run"]["labels"]["by"].as_str().map(str::to_owned)
        })
    };
    assert_eq!(by(&["schedule", "ticks", "every_second", "--status", "triggered", "--json"]), "the worker");
    assert_eq!(by(&["sensor", "evals", "inbox", "--status", "triggered", "--json"]), "the worker");
    let idle = told(&["sensor", "evaluate", "inbox", "--dry-run", "--json"]);
    assert_eq!(idle["reason"], "nothing new", "{idle}");
}
