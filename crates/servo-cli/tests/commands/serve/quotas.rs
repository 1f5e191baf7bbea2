//! Quotas, limits and the audit of a server: what one tenant asks for too much of does not hold up another.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{ORDERS, Serve};
use crate::support::Project;

#[test]
fn a_tenant_that_asks_too_often_is_told_when_to_ask_again_and_others_are_not_held_up() {
    let project = Project::new(ORDERS);
    let limits = "[limits]\ntriggers_per_minute = 2\nrequests_per_minute = 0\nrun_streams = 1\n";
    fs::write(project.path("serve.toml"), limits).unwrap();
    let mut shown = project.command(&["config", "show", "--serve", "--json"]);
    let shown = shown.env("SERVO_LIMITS_PAGE_STREAMS", "7").output().unwrap();
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let one = |name: &str| {
        let found = shown["items"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap();
        format!("{} {}", found["value"].as_str().unwrap(), found["origin"].as_str().unwrap())
    };
    assert_eq!(one("limits.triggers_per_minute"), "2 file");
    assert_eq!(one("limits.page_streams"), "7 environment");
    assert_eq!(one("limits.lists_per_minute"), "1000 default");
    let serve = Serve::start(&project, &[]);
    let admin = serve.first_key.clone().unwrap();
    serve.good(&project, &admin, &["deploy"]);
    let curl = |method: &str, path: &str| {
        let url = format!("{}/api/v1/{path}", serve.url);
        let bearer = format!("Authorization: Bearer {admin}");
        let mut command = Command::new("curl");
        command.args([
            "-si",
            "-m",
            "60",
            "-X",
            method,
            &url,
            "-H",
            &bearer,
            "-H",
            "Content-Type: application/json",
        ]);
        if method == "POST" {
            command.args(["-d", r#"{"selection":"raw.orders"}"#]);
        }
        String::from_utf8(command.output().unwrap().stdout).unwrap().to_lowercase()
    };
    let first = curl("POST", "runs");
    assert!(first.starts_with("http/1.1 202"), "{first}");
    assert!(
        first.contains("x-ratelimit-limit: 2\r\n") && first.contains("x-ratelimit-remaining: 1\r\n"),
        "{first}"
    );
    assert!(curl("POST", "runs").contains("x-ratelimit-remaining: 0\r\n"));
    let refused = curl("POST", "runs");
    assert!(refused.starts_with("http/1.1 429"), "{refused}");
    assert!(refused.contains("retry-after: ") && refused.contains("x-ratelimit-reset: "), "{refused}");
    let problem: Value = serde_json::from_str(refused.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(problem["code"], "rate_limited");
    assert_eq!(problem["quota"]["name"], "triggers_per_minute");
    assert!((1..=30).contains(&problem["retry_after"].as_u64().unwrap()), "{problem}");
    assert!(curl("GET", "runs").starts_with("http/1.1 200"), "reads are counted for themselves");
    // Another tenant is not held up.
    serve.good(&project, &admin, &["admin", "tenants", "create", "acme"]);
    serve.good(&project, &admin, &["admin", "workspaces", "create", "acme/main"]);
    assert!(!curl("POST", "t/acme/w/main/runs").starts_with("http/1.1 429"));
    let told = serve.bad(&project, &admin, &["materialize", "raw.orders"]);
    assert!(told.contains("ask again in"), "{told}");

    // One stream at a time.
    let runs: Value =
        serde_json::from_str(&serve.good(&project, &admin, &["run", "list", "--json"])).unwrap();
    let events = format!("runs/{}/events", runs["items"][0]["run_id"].as_str().unwrap());
    let url = format!("{}/api/v1/{events}", serve.url);
    let bearer = format!("Authorization: Bearer {admin}");
    let mut stream = Command::new("curl");
    let mut stream = stream.args(["-sN", &url, "-H", &bearer]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    // Whoever stops reading ends the stream: it is kept open until the second one is answered.
    let mut lines = BufReader::new(stream.stdout.take().unwrap());
    lines.read_line(&mut line).unwrap();
    let refused = curl("GET", &events);
    drop(lines);
    assert!(refused.starts_with("http/1.1 429") && refused.contains("run_streams"), "{refused}");
    stream.kill().unwrap();
    stream.wait().unwrap();
    serve.stop();
}

#[test]
fn the_audit_of_a_server_has_who_did_what_to_keys_tenants_and_quotas_and_what_was_refused() {
    let (server, laptop) = (Project::new(ORDERS), Project::new(ORDERS));
    let serve = Serve::start(&server, &[]);
    let admin = serve.first_key.clone().unwrap();
    let good = |arguments: &[&str]| serve.good(&laptop, &admin, arguments);
    good(&["admin", "tenants", "create", "acme"]);
    good(&["admin", "tenants", "create", "zeta"]);
    good(&["admin", "workspaces", "create", "acme/main"]);
    let create = |name: &str, role: &str, scope: &str| {
        let arguments = ["admin", "api-keys", "create", name, "--role", role, "--scope", scope, "--json"];
        let made: Value = serde_json::from_str(&good(&arguments)).unwrap();
        (made["key"].as_str().unwrap().to_owned(), made["key_id"].as_str().unwrap().to_owned())
    };
    let (of_acme, of_acme_id) = create("boss, \"acme\"", "admin", "acme/*");
    let (viewer, viewer_id) = create("board", "viewer", "acme/main");
    good(&["admin", "quotas", "set", "acme", "max_concurrent_runs=3"]);
    good(&["admin", "api-keys", "revoke", &viewer_id]);
    let (developer, _) = create("ci", "developer", "acme/main");
    assert!(serve.bad(&laptop, &viewer, &["admin", "tenants", "list"]).contains("revoked"));
    assert!(serve.bad(&laptop, &developer, &["admin", "tenants", "list"]).contains("workspaces.manage"));
    assert!(serve.bad(&laptop, &of_acme, &["admin", "tenants", "disable", "acme"]).contains("admin"));
    let more = ["admin", "api-keys", "create", "x", "--role", "admin", "--scope", "*"];
    assert!(serve.bad(&laptop, &of_acme, &more).contains("nobody gives away"));

    let audit = |key: &str, more: &[&str]| -> Vec<Value> {
        let arguments = [&["admin", "audit", "--server", "--json"], more].concat();
        let page: Value = serde_json::from_str(&serve.good(&laptop, key, &arguments)).unwrap();
        page["items"].as_array().unwrap().clone()
    };
    let texts = |acts: &[Value]| -> Vec<String> {
        let text = |act: &Value, name: &str| act[name].as_str().unwrap_or_default().to_owned();
        acts.iter()
            .map(|act| format!("{} {} {}", text(act, "action"), text(act, "subject"), text(act, "outcome")))
            .collect()
    };
    let all = audit(&admin, &[]);
    let expected = [
        "keys.manage a key as admin in * REFUSED".to_owned(),
        "tenants.manage tenant acme REFUSED".to_owned(),
        "workspaces.manage GET /api/v1/admin/tenants REFUSED".to_owned(),
    ];
    assert_eq!(texts(&all)[..3], expected);
    assert!(texts(&all).contains(&format!("key.revoke {viewer_id} ALLOWED")));
    assert!(texts(&all).contains(&"quota.set acme ALLOWED".to_owned()));
    assert_eq!(texts(&audit(&admin, &["--action", "quota"])), ["quota.set acme ALLOWED"]);
    assert_eq!(audit(&admin, &["--action", "quota"])[0]["detail"], "max_concurrent_runs=3");
    assert_eq!(audit(&admin, &["--refused"]).len(), 3);
    let by_developer = audit(&admin, &["--principal", developer_name(&all).as_str()]);
    assert_eq!(by_developer.len(), 1);
    assert_eq!(audit(&admin, &["--until", "2020-01-01T00:00:00Z"]).len(), 0);
    // Page by page it is the same.
    let (mut paged, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let mut arguments = vec!["admin", "audit", "--server", "--json", "--limit", "2"];
        if let Some(cursor) = &cursor {
            arguments.extend(["--cursor", cursor]);
        }
        let page: Value = serde_json::from_str(&good(&arguments)).unwrap();
        paged.extend(page["items"].as_array().unwrap().clone());
        cursor = page["next_cursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(texts(&paged), texts(&audit(&admin, &["--limit", "1000"])));
    // A tenant's admin reads what is about the tenant, and nothing else.
    let of_tenant = texts(&audit(&of_acme, &[]));
    assert!(of_tenant.contains(&format!("key.create {of_acme_id} ALLOWED")), "{of_tenant:?}");
    assert!(!of_tenant.iter().any(|act| act.contains("zeta")), "{of_tenant:?}");
    assert!(serve.bad(&laptop, &developer, &["admin", "audit", "--server"]).contains("audit.read"));
    let csv = good(&["admin", "audit", "--server", "--csv", "--action", "key.create"]);
    assert!(csv.starts_with("time,who,what,subject,outcome,detail,request_id,event_id\n"), "{csv}");
    assert!(csv.lines().any(|line| line.contains("boss, ") && line.contains(r#""""#)), "{csv}");
    // It is all there after a restart.
    serve.stop();
    let again = Serve::start(&server, &[]);
    let after: Value = serde_json::from_str(&again.good(
        &laptop,
        &admin,
        &["admin", "audit", "--server", "--json", "-n", "1000"],
    ))
    .unwrap();
    assert!(after["items"].as_array().unwrap().len() > all.len());
    again.stop();
}

/// The principal of the refused request to list tenants.
fn developer_name(acts: &[Value]) -> String {
    let found = acts.iter().find(|act| act["action"] == "workspaces.manage").unwrap();
    found["principal"].as_str().unwrap().to_owned()
}

#[test]
fn limits_of_a_tenant_hold_at_once_and_nobody_in_the_tenant_gets_around_them() {
    let project = Project::new(ORDERS);
    let serve = Serve::start(&project, &[]);
    let admin = serve.first_key.clone().unwrap();
    let good = |arguments: &[&str]| serve.good(&project, &admin, arguments);
    good(&["deploy"]);
    let value = |name: &str| -> String {
        let shown: Value = serde_json::from_str(&good(&["config", "show", name, "--json"])).unwrap();
        shown["items"][0]["value"].to_string()
    };
    assert_eq!(value("max_concurrent_runs"), "10", "the default of a tenant");
    good(&["admin", "quotas", "set", "default", "max_tasks_per_run=1", "max_concurrent_runs=3"]);
    assert_eq!((value("max_tasks_per_run"), value("max_concurrent_runs")), ("1".to_owned(), "3".to_owned()));
    let both = |run_key: &str| {
        let body = format!(r#"{{"selection":"raw.orders,shop.report","run_key":"{run_key}"}}"#);
        serve.post(&admin, "runs", &body)
    };
    let refused = both("a");
    assert!(refused["detail"].as_str().unwrap().contains("a run may have 1"), "{refused}");
    good(&["admin", "quotas", "unset", "default", "max_tasks_per_run"]);
    assert!(both("b")["run_id"].is_string(), "at once");
    // As many runs as may be wait, and the next one is told when to ask again.
    good(&["config", "set", "max_queued_runs=0"]);
    for run_key in ["c", "d"] {
        assert!(both(run_key)["run_id"].is_string());
    }
    let refused = both("e");
    assert_eq!(refused["quota"]["name"], "max_queued_runs", "{refused}");
    assert_eq!(refused["retry_after"], 30);

    // Whoever may change settings has no more than the tenant.
    let more = serve.bad(&project, &admin, &["config", "set", "max_concurrent_runs=4"]);
    assert!(more.contains("is more than the 3 that the tenant has"), "{more}");
    good(&["config", "set", "max_concurrent_runs=2"]);
    good(&["config", "unset", "max_concurrent_runs"]);
    assert_eq!(value("max_concurrent_runs"), "3", "not the default of a workspace without a tenant's limits");
    good(&["config", "set", "max_concurrent_runs=2"]);
    good(&["admin", "quotas", "set", "default", "max_concurrent_runs=5"]);
    assert_eq!(value("max_concurrent_runs"), "2", "less than the tenant has is the choice of the workspace");
    good(&["admin", "quotas", "set", "default", "max_concurrent_runs=1"]);
    assert_eq!(value("max_concurrent_runs"), "1");
    serve.stop();
}

#[test]
fn a_tenant_that_floods_the_server_does_not_keep_the_runs_of_another_from_starting() {
    let slow = format!("import time\n{ORDERS}").replace("return [1]", "time.sleep(0.2)\n    return [1]");
    let project = Project::new(&slow);
    fs::write(project.path("serve.toml"), "[limits]\ntriggers_per_minute = 0\n").unwrap();
    let serve = Serve::start(&project, &[]);
    let admin = serve.first_key.clone().unwrap();
    serve.good(&project, &admin, &["admin", "tenants", "create", "quiet"]);
    serve.good(&project, &admin, &["admin", "workspaces", "create", "quiet/main"]);
    let at = |tenant: &str, arguments: &[&str]| {
        let mut command = project.command(arguments);
        command.env("SERVO_URL", &serve.url).env("SERVO_KEY", &admin).env("SERVO_TENANT", tenant);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let mut workers = Vec::new();
    for tenant in ["default", "quiet"] {
        at(tenant, &["deploy"]);
        let scope = format!("{tenant}/main");
        let create = ["admin", "api-keys", "create", "w", "--role", "worker", "--scope", &scope];
        let key = serve.good(&project, &admin, &create).trim().to_owned();
        let mut worker = project.command(&["worker", "--server", &serve.url, "--slots", "1"]);
        worker.env("SERVO_KEY", key).env("SERVO_TENANT", tenant).stderr(Stdio::null());
        workers.push(worker.spawn().unwrap());
    }
    for number in 0..60 {
        let body = format!(r#"{{"selection":"raw.orders","run_key":"{number}"}}"#);
        let asked = serve.post(&admin, "t/default/w/main/runs", &body);
        assert!(asked["run_id"].is_string(), "{asked}");
    }
    at("quiet", &["materialize", "raw.orders"]);
    let left: Value =
        serde_json::from_str(&at("default", &["run", "list", "--state", "QUEUED", "--json"])).unwrap();
    for mut worker in workers {
        worker.kill().unwrap();
        worker.wait().unwrap();
    }
    assert!(!left["items"].as_array().unwrap().is_empty(), "the other one is still at it");
    serve.stop();
}

/// Days since 1970, UTC.
fn day() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() / 86_400
}

#[test]
fn runs_beyond_those_of_a_day_are_refused_until_it_ends_also_after_a_restart() {
    let project = Project::new(ORDERS);
    let serve = Serve::start(&project, &[]);
    let admin = serve.first_key.clone().unwrap();
    let began = day();
    serve.good(&project, &admin, &["deploy"]);
    serve.good(&project, &admin, &["admin", "quotas", "set", "default", "max_daily_runs=2"]);
    let body = |run_key: &str| format!(r#"{{"selection":"raw.orders","run_key":"{run_key}"}}"#);
    for run_key in ["a", "b"] {
        assert!(serve.post(&admin, "runs", &body(run_key))["run_id"].is_string());
    }
    let refused = serve.post(&admin, "runs", &body("c"));
    let more = serve.bad(&project, &admin, &["config", "set", "max_daily_runs=3"]);
    let status = serve.good(&project, &admin, &["admin", "status"]);
    serve.stop();
    let serve = Serve::start(&project, &[]);
    let again = serve.post(&admin, "runs", &body("c"));
    serve.good(&project, &admin, &["admin", "quotas", "set", "default", "max_daily_runs=unlimited"]);
    let unlimited = serve.post(&admin, "runs", &body("c"));
    serve.stop();
    if day() != began {
        return; // The day has ended meanwhile.
    }
    for refused in [&refused, &again] {
        assert_eq!(
            (&refused["status"], &refused["code"]),
            (&429.into(), &"quota_exceeded".into()),
            "{refused}"
        );
        let quota = &refused["quota"];
        assert_eq!(
            (&quota["name"], &quota["limit"], &quota["used"]),
            (&"max_daily_runs".into(), &2.into(), &2.into())
        );
        assert!((1..=86_400).contains(&refused["retry_after"].as_u64().unwrap()), "{refused}");
    }
    assert!(more.contains("is more than the 2 that the tenant has"), "{more}");
    assert!(status.contains("2 of 2 asked for today"), "{status}");
    assert!(unlimited["run_id"].is_string(), "{unlimited}");
}

#[test]
fn tasks_beyond_those_that_may_be_on_their_way_stay_ready_and_why_says_so() {
    let project = Project::new(ORDERS);
    let serve = Serve::start(&project, &["--slots", "1"]);
    let admin = serve.first_key.clone().unwrap();
    let good = |arguments: &[&str]| serve.good(&project, &admin, arguments);
    good(&["admin", "quotas", "set", "default", "max_queued_tasks=0"]);
    let asked = serve.post(&admin, "runs", r#"{"selection":"raw.orders","run_key":"a"}"#);
    let run = asked["run_id"].as_str().unwrap().to_owned();
    let why = good(&["run", "why", &run]);
    assert!(why.contains("0 tasks are on their way to workers, 0 may be"), "{why}");
    good(&["admin", "quotas", "unset", "default", "max_queued_tasks"]);
    good(&["run", "watch", &run]);
    serve.stop();
}

#[test]
fn tenants_share_the_slots_of_the_server_and_one_that_floods_them_does_not_hold_up_another() {
    let slow = format!("import time\n{ORDERS}").replace("return [1]", "time.sleep(0.2)\n    return [1]");
    let (project, of_flood, of_quiet) = (Project::new(ORDERS), Project::new(&slow), Project::new(&slow));
    let settings = format!(
        "slots = 1\n[limits]\ntriggers_per_minute = 0\n[projects]\n\"flood/main\" = {:?}\n\"quiet/main\" = {:?}\n",
        of_flood.root.path(),
        of_quiet.root.path()
    );
    fs::write(project.path("serve.toml"), settings).unwrap();
    let serve = Serve::start(&project, &[]);
    let admin = serve.first_key.clone().unwrap();
    for tenant in ["flood", "quiet"] {
        serve.good(&project, &admin, &["admin", "tenants", "create", tenant]);
        serve.good(&project, &admin, &["admin", "workspaces", "create", &format!("{tenant}/main")]);
    }
    let trigger = |tenant: &str, number: usize| {
        let body = format!(r#"{{"selection":"raw.orders","run_key":"{number}"}}"#);
        let asked = serve.post(&admin, &format!("t/{tenant}/w/main/runs"), &body);
        asked["run_id"].as_str().unwrap_or_else(|| panic!("{asked}")).to_owned()
    };
    let at = |tenant: &str, arguments: &[&str]| {
        let mut command = project.command(arguments);
        command.env("SERVO_URL", &serve.url).env("SERVO_KEY", &admin).env("SERVO_TENANT", tenant);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let ended = |tenant: &str| -> usize {
        let listed = at(tenant, &["run", "list", "--state", "SUCCEEDED", "--limit", "100", "--json"]);
        serde_json::from_str::<Value>(&listed).unwrap()["items"].as_array().unwrap().len()
    };
    // Both run Python before it is counted.
    for tenant in ["flood", "quiet"] {
        let run = trigger(tenant, 1_000);
        at(tenant, &["run", "watch", &run]);
    }
    for number in 0..40 {
        trigger("flood", number);
    }
    let before = ended("flood");
    let runs: Vec<String> = (0..4).map(|number| trigger("quiet", number)).collect();
    for run in &runs {
        at("quiet", &["run", "watch", run]);
    }
    let meanwhile = ended("flood") - before;
    assert!(meanwhile < 30, "{meanwhile} of the flood ended while four of the other had their turns");
    serve.stop();
}
