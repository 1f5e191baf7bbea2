//! Many tenants and workspaces in one server, and the walls between them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use reqwest::Method;
use serde_json::{Value, json};
use servo_access::{ControlCommand, Role};
use servo_api::{Api, ApiKeys, Code, Problem, Served, WorkspaceStatus, Workspaces, serve_many};
use servo_engine::Principal;
use servo_queue::LocalQueue;
use servo_runtime::{Config, Stores, Workspace, WorkspaceKey};
use servo_worker::LogFiles;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::roles::{api_keys, key};
use crate::support::{Answer, keys, project};

/// Workspaces in a directory, as the control ledger has them.
struct InDirectory {
    root: PathBuf,
    api_keys: ApiKeys,
    opened: AtomicUsize,
}

#[async_trait]
impl Workspaces for InDirectory {
    fn usual(&self) -> WorkspaceKey {
        ("acme".parse().unwrap(), "main".parse().unwrap())
    }

    fn status(&self, (tenant, workspace): &WorkspaceKey) -> WorkspaceStatus {
        let state = self.api_keys.control().state();
        match (state.is_open(tenant, workspace), state.workspace(tenant, workspace)) {
            (true, _) => WorkspaceStatus::On,
            (false, Some(_)) => WorkspaceStatus::Off,
            (false, None) => WorkspaceStatus::Unknown,
        }
    }

    fn all(&self) -> Vec<WorkspaceKey> {
        let state = self.api_keys.control().state();
        let all = state.tenants().flat_map(|(tenant, found)| {
            found.workspaces.keys().map(move |workspace| (tenant.clone(), workspace.clone()))
        });
        all.collect()
    }

    fn to_start(&self) -> Vec<WorkspaceKey> {
        Vec::new()
    }

    async fn open(&self, (tenant, workspace): &WorkspaceKey) -> Result<Api, Problem> {
        self.opened.fetch_add(1, Ordering::SeqCst);
        let stores = Stores::open_directory(&self.root, tenant.clone(), workspace.clone()).unwrap();
        let logs = Arc::new(LogFiles::new(&self.root, stores.layout.clone()));
        let queue = LocalQueue::new(1_024);
        let config = Config::new(queue.clone(), *b"a secret for tests", keys());
        let workspace = Workspace::open(stores, config).await.unwrap();
        let mut api = Api::new(workspace, queue, logs, keys());
        api.api_keys = Some(self.api_keys.clone());
        Ok(api)
    }

    async fn is_idle(&self, _: &WorkspaceKey, _: &Api) -> bool {
        true
    }

    async fn close(&self, _: &WorkspaceKey, api: &Api) {
        api.workspace.clone().shutdown().await.unwrap();
    }
}

/// A server of many workspaces.
struct Server {
    keys: ApiKeys,
    workspaces: Arc<InDirectory>,
    address: std::net::SocketAddr,
    http: reqwest::Client,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<std::io::Result<()>>,
}

impl Server {
    async fn on(root: &Path) -> Self {
        let api_keys = api_keys(root).await;
        let opened = AtomicUsize::new(0);
        let workspaces = Arc::new(InDirectory { root: root.to_owned(), api_keys: api_keys.clone(), opened });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = Served {
            workspaces: workspaces.clone(),
            access_token: None,
            api_keys: Some(api_keys.clone()),
            session_keys: keys(),
            oidc: None,
            authenticators: Vec::new(),
            limits: servo_api::RateLimits::NONE,
            hosts: Vec::new(),
            certificate: None,
            worker_authority: None,
            write_timeout: Duration::from_secs(30),
            idle_after: Duration::from_secs(3_600),
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(serve_many(listener, served, async move {
            let _dropped = stopped.await;
        }));
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { keys: api_keys, workspaces, address, http, stop, serving }
    }

    async fn ask(&self, key: &str, method: Method, path: &str, body: Option<Value>) -> Answer {
        let url = format!("http://{}/api/v1/{path}", self.address);
        let mut request = self.http.request(method, url).bearer_auth(key);
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        Answer::of(request.send().await.unwrap()).await
    }

    async fn get(&self, key: &str, path: &str) -> Answer {
        self.ask(key, Method::GET, path, None).await
    }

    async fn close(self) {
        drop(self.stop);
        self.serving.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn what_belongs_to_another_tenant_is_answered_as_what_does_not_exist() {
    let root = tempfile::tempdir().unwrap();
    let server = Server::on(root.path()).await;
    let acme = key(&server.keys, 1, Role::Admin, "acme/*", None).await;
    let zeta = key(&server.keys, 2, Role::Developer, "zeta/main", None).await;
    assert_eq!(server.workspaces.opened.load(Ordering::SeqCst), 0, "nobody has asked");

    // A key that is good for one workspace is about that one.
    server.ask(&zeta, Method::POST, "deployments", Some(project())).await.accepted();
    let run = json!({ "selection": "raw.orders" });
    let accepted = server.ask(&zeta, Method::POST, "runs", Some(run)).await.accepted();
    let run = accepted["run_id"].as_str().unwrap().to_owned();
    server.get(&zeta, &format!("t/zeta/w/main/runs/{run}")).await.ok();

    // Of others it is not even told that they are there: byte for byte but for the name that was asked for.
    let bytes = async |key: &str, path: &str| {
        let url = format!("http://{}/api/v1/{path}", server.address);
        let response = server.http.get(url).bearer_auth(key).send().await.unwrap();
        let mut headers: Vec<_> =
            response.headers().iter().map(|(name, it)| (name.to_string(), it.clone())).collect();
        headers.retain(|(name, _)| name != "x-request-id" && name != "date");
        (response.status(), headers, response.bytes().await.unwrap())
    };
    let hidden = bytes(&acme, "t/zeta/w/main/runs").await;
    let missing = bytes(&acme, "t/zeto/w/main/runs").await;
    let told = String::from_utf8(hidden.2.to_vec()).unwrap().replace("zeta", "zeto");
    assert_eq!((hidden.0.as_u16(), hidden.1, told.as_bytes()), (404, missing.1, &*missing.2));
    let hidden = server.get(&zeta, "t/acme/w/other/settings").await;
    assert_eq!((hidden.status, hidden.problem().code), (404, Code::UnknownWorkspace));
    // A run of another tenant is as unknown as one that never was.
    let foreign = server.get(&acme, &format!("t/acme/w/main/runs/{run}")).await;
    let never = server.get(&acme, "t/acme/w/main/runs/run_aaaaaaaaaaaaaaaaaaaaaaaaaa").await;
    let told = foreign.body.to_string().replace(&run, "run_aaaaaaaaaaaaaaaaaaaaaaaaaa");
    assert_eq!((foreign.status, told), (404, never.body.to_string()));
    // Nor are its keys, its workspaces and its limits.
    let listed = server.get(&acme, "admin/keys").await.ok();
    let scopes: Vec<&str> =
        listed["items"].as_array().unwrap().iter().map(|it| it["scope"].as_str().unwrap()).collect();
    assert_eq!(scopes, ["acme/*"]);
    let revoke =
        async |id: &str| server.ask(&acme, Method::POST, &format!("admin/keys/{id}/revoke"), None).await;
    let (foreign, never) = (revoke("020202020202").await, revoke("0f0f0f0f0f0f").await);
    let told = foreign.body.to_string().replace("020202020202", "0f0f0f0f0f0f");
    assert_eq!((foreign.status, told), (404, never.body.to_string()));
    for path in ["admin/tenants/zeta/quotas", "admin/tenants/zeto/quotas"] {
        assert_eq!(server.get(&acme, path).await.problem().code, Code::UnknownTenant, "{path}");
    }
    let named = server.get(&acme, "admin/workspaces").await.ok();
    let names: Vec<&str> =
        named["items"].as_array().unwrap().iter().map(|it| it["tenant"].as_str().unwrap()).collect();
    assert_eq!(names, ["acme", "acme"]);
    // Nobody without a key learns anything by asking for one or another.
    let plain = async |path: &str| {
        let url = format!("http://{}/api/v1/{path}", server.address);
        Answer::of(server.http.get(url).send().await.unwrap()).await
    };
    let (there, not) = (plain("t/zeta/w/main/runs").await, plain("t/zeto/w/main/runs").await);
    assert_eq!((there.status, there.body), (401, not.body));
    let opened = server.workspaces.opened.load(Ordering::SeqCst);
    assert_eq!(opened, 2, "those that were used, and no others");
    server.close().await;
}

#[tokio::test]
async fn keys_tenants_and_workspaces_are_made_switched_off_and_removed_over_the_interface() {
    let root = tempfile::tempdir().unwrap();
    let server = Server::on(root.path()).await;
    let admin = key(&server.keys, 1, Role::Admin, "*", None).await;
    let post =
        async |key: &str, path: &str, body: Value| server.ask(key, Method::POST, path, Some(body)).await;
    assert_eq!(post(&admin, "admin/tenants", json!({ "tenant": "new" })).await.ok()["changed"], true);
    assert_eq!(
        post(&admin, "admin/tenants", json!({ "tenant": "new" })).await.problem().code,
        Code::NameTaken
    );
    let workspace = json!({ "tenant": "new", "workspace": "main" });
    post(&admin, "admin/workspaces", workspace).await.ok();
    let body = json!({ "name": "ci", "role": "developer", "scope": "new/main", "service": true, "expires_in_ms": 60_000 });
    let created = post(&admin, "admin/keys", body).await.ok();
    let ci = created["key"].as_str().unwrap().to_owned();
    let id = created["key_id"].as_str().unwrap().to_owned();
    assert!(ci.starts_with(&format!("servo_{id}_")), "{created}");
    server.get(&ci, "runs").await.ok();
    let listed = server.get(&admin, "admin/keys").await.ok();
    let found = listed["items"].as_array().unwrap().iter().find(|it| it["key_id"] == id).unwrap();
    assert!(
        found["last_used_at"].is_string() && found["expires_at"].is_string() && found.get("key").is_none()
    );
    assert!(!listed.to_string().contains(ci.rsplit('_').next().unwrap()));
    // Its holder may not make keys, and nobody may make more than they have.
    let more = json!({ "name": "x", "role": "viewer", "scope": "new/main" });
    assert_eq!(post(&ci, "admin/keys", more).await.status, 403);
    let of_tenant = json!({ "name": "boss", "role": "admin", "scope": "new/*" });
    let boss = post(&admin, "admin/keys", of_tenant).await.ok()["key"].as_str().unwrap().to_owned();
    for beyond in ["*", "acme/*", "acme/main"] {
        let body = json!({ "name": "x", "role": "viewer", "scope": beyond });
        assert_eq!(post(&boss, "admin/keys", body).await.status, 403, "{beyond}");
    }
    assert_eq!(post(&boss, "admin/tenants/new/disable", json!({})).await.status, 403, "that is the server's");
    // Switched off: closed to its keys, with the reason.
    post(&boss, "admin/workspaces/new/main/disable", json!({})).await.ok();
    assert_eq!(server.get(&ci, "runs").await.problem().code, Code::WorkspaceDisabled);
    post(&boss, "admin/workspaces/new/main/enable", json!({})).await.ok();
    server.get(&ci, "runs").await.ok();
    let remove = async |path: &str| server.ask(&admin, Method::DELETE, path, None).await;
    assert_eq!(remove("admin/workspaces/new/main").await.problem().code, Code::InvalidStateTransition);
    post(&admin, "admin/tenants/new/disable", json!({})).await.ok();
    assert_eq!(server.get(&ci, "runs").await.problem().code, Code::WorkspaceDisabled);
    remove("admin/tenants/new").await.ok();
    assert_eq!(server.get(&ci, "runs").await.status, 401, "its keys went with it");
    // Limits.
    let patch =
        async |body: Value| server.ask(&admin, Method::PATCH, "admin/tenants/acme/quotas", Some(body)).await;
    let set = patch(json!({ "set": { "max_concurrent_runs": 3, "max_daily_runs": null } })).await.ok();
    let value =
        |name: &str| set["items"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap().clone();
    assert_eq!(
        (&value("max_concurrent_runs")["value"], &value("max_concurrent_runs")["is_set"]),
        (&json!(3), &json!(true))
    );
    assert_eq!(value("max_tasks_per_run")["value"], 10_000);
    assert_eq!(patch(json!({ "set": { "max_dreams": 1 } })).await.problem().code, Code::InvalidRequest);
    // What is recorded is who did it.
    let state = server.keys.control().state();
    let created_by = state.key(&id.parse().unwrap()).unwrap().created_by.clone();
    assert_eq!(created_by, Principal::user("admin of *#010101010101"));
    let unknown = ControlCommand::RevokeKey("0f0f0f0f0f0f".parse().unwrap());
    assert!(server.keys.control().ask(&Principal::system(), &unknown).await.is_err());
    server.close().await;
}

#[tokio::test]
async fn callers_are_told_of_the_workspaces_that_they_may_open_and_of_no_others() {
    let root = tempfile::tempdir().unwrap();
    let server = Server::on(root.path()).await;
    let everything = key(&server.keys, 1, Role::Admin, "*", None).await;
    let zeta = key(&server.keys, 2, Role::Viewer, "zeta/*", None).await;
    let other = key(&server.keys, 3, Role::Viewer, "acme/other", None).await;
    let seen = async |key: &str, query: &str| {
        let page = server.get(key, &format!("workspaces{query}")).await.ok();
        let text = |it: &Value, name: &str| it[name].as_str().unwrap().to_owned();
        let name = |it: &Value| format!("{}/{}", text(it, "tenant"), text(it, "workspace"));
        let names: Vec<String> = page["items"].as_array().unwrap().iter().map(name).collect();
        (names, page["next_cursor"].as_str().map(str::to_owned))
    };
    assert_eq!(seen(&zeta, "").await.0, ["zeta/main"]);
    assert_eq!(seen(&other, "").await.0, ["acme/other"]);
    let (first, cursor) = seen(&everything, "?limit=2").await;
    assert_eq!(first, ["acme/main", "acme/other"]);
    assert_eq!(seen(&everything, &format!("?limit=2&cursor={}", cursor.unwrap())).await.0, ["zeta/main"]);
    let off = server.ask(&everything, Method::POST, "admin/workspaces/acme/other/disable", None).await;
    off.ok();
    assert_eq!(seen(&everything, "").await.0, ["acme/main", "zeta/main"], "one that is switched off is none");
    server.close().await;
}

/// Asks for something that is not there, and notes how long that took.
async fn refused(server: &Server, key: &str, path: &str, into: &mut Vec<Duration>) {
    let begun = std::time::Instant::now();
    let answer = server.get(key, path).await;
    into.push(begun.elapsed());
    assert_eq!(answer.status, 404, "{path}");
}

#[tokio::test]
async fn a_refusal_takes_as_long_for_what_another_tenant_has_as_for_what_nobody_has() {
    /// Of each kind; they take turns, so that whatever else the machine does meets all of them.
    const REQUESTS: usize = 300;
    /// Differences below this cannot be told from noise over a network.
    const NOISE: Duration = Duration::from_millis(1);
    let root = tempfile::tempdir().unwrap();
    let server = Server::on(root.path()).await;
    let acme = key(&server.keys, 1, Role::Admin, "acme/*", None).await;
    let zeta = key(&server.keys, 2, Role::Developer, "zeta/main", None).await;
    server.ask(&zeta, Method::POST, "deployments", Some(project())).await.accepted();
    let run = json!({ "selection": "raw.orders" });
    let accepted = server.ask(&zeta, Method::POST, "runs", Some(run)).await.accepted();
    let run = accepted["run_id"].as_str().unwrap().to_owned();
    let pairs = [
        (format!("t/acme/w/main/runs/{run}"), "t/acme/w/main/runs/run_aaaaaaaaaaaaaaaaaaaaaaaaaa".to_owned()),
        (format!("t/zeta/w/main/runs/{run}"), format!("t/zeto/w/main/runs/{run}")),
        ("admin/tenants/zeta/quotas".to_owned(), "admin/tenants/zeto/quotas".to_owned()),
    ];
    for (theirs, nobodys) in &pairs {
        let (mut there, mut absent) = (Vec::new(), Vec::new());
        for _ in 0..REQUESTS {
            refused(&server, &acme, theirs, &mut there).await;
            refused(&server, &acme, nobodys, &mut absent).await;
        }
        let middle = |times: &mut Vec<Duration>| {
            times.sort_unstable();
            times[times.len() / 2]
        };
        let (there, absent) = (middle(&mut there), middle(&mut absent));
        let (less, more) = (there.min(absent), there.max(absent));
        assert!(more <= less * 2 + NOISE, "{theirs}: {there:?}, and {absent:?} for {nobodys}");
    }
    server.close().await;
}
