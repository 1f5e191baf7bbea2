//! A real provider in a process of its own, and a browser that follows redirects.

#![allow(clippy::unwrap_used, dead_code, reason = "each test file uses a part")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// Where browsers come back to; nobody listens there.
pub(crate) const CALLBACK: &str = "http://127.0.0.1:9/callback";

/// The provider, until it is dropped.
pub(crate) struct TestProvider {
    process: Child,
    pub(crate) issuer: String,
    port: u16,
}

impl Drop for TestProvider {
    fn drop(&mut self) {
        let _gone = self.process.kill();
        let _gone = self.process.wait();
    }
}

impl TestProvider {
    /// Starts one; none where Node or its packages cannot be had, which is said.
    pub(crate) fn start(callbacks: &[&str]) -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self::start_on(port, callbacks)
    }

    pub(crate) fn start_on(port: u16, callbacks: &[&str]) -> Option<Self> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../servo-oidc/tests/provider");
        if !directory.join("node_modules/oidc-provider").exists() {
            eprintln!(
                "skipped: the packages of the test provider are not installed; make setup does, where npm is"
            );
            return None;
        }
        let mut command = Command::new("node");
        command.arg("provider.mjs").arg(port.to_string()).args(callbacks).current_dir(directory);
        let mut process = match command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn() {
            Ok(process) => process,
            Err(error) => {
                eprintln!("skipped: node does not start: {error}");
                return None;
            }
        };
        let mut issuer = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut issuer).unwrap();
        assert!(issuer.starts_with("http://"), "the provider has not started");
        Some(Self { process, issuer: issuer.trim().to_owned(), port })
    }

    /// The same at the same address, with other keys.
    pub(crate) fn restarted(mut self, callbacks: &[&str]) -> Self {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        Self::start_on(self.port, callbacks).unwrap()
    }

    /// A token as the provider signs it.
    pub(crate) async fn mint(&self, what: &Value) -> String {
        let request = http().post(format!("{}/test/mint", self.issuer)).body(what.to_string());
        request.send().await.unwrap().error_for_status().unwrap().text().await.unwrap()
    }
}

pub(crate) fn http() -> reqwest::Client {
    reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().build().unwrap()
}

/// Follows redirects as a browser does, with cookies.
#[derive(Default)]
pub(crate) struct Browser {
    cookies: BTreeMap<(String, String), String>,
}

impl Browser {
    fn authority(url: &url::Url) -> String {
        format!("{}:{}", url.host_str().unwrap(), url.port_or_known_default().unwrap())
    }

    pub(crate) fn cookie(&self, authority: &str, prefix: &str) -> Option<(String, String)> {
        let found = self.cookies.iter().find(|((at, name), _)| at == authority && name.starts_with(prefix));
        found.map(|((_, name), value)| (name.clone(), value.clone()))
    }

    pub(crate) fn set(&mut self, authority: &str, name: &str, value: &str) {
        self.cookies.insert((authority.to_owned(), name.to_owned()), value.to_owned());
    }

    pub(crate) async fn send(&mut self, request: reqwest::RequestBuilder) -> reqwest::Response {
        let mut request = request.build().unwrap();
        let authority = Self::authority(request.url());
        let mine = self.cookies.iter().filter(|((at, _), _)| *at == authority);
        let line = mine.map(|((_, name), value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ");
        if !line.is_empty() {
            request.headers_mut().insert("cookie", line.parse().unwrap());
        }
        let response = http().execute(request).await.unwrap();
        for line in response.headers().get_all("set-cookie") {
            let line = line.to_str().unwrap();
            let (name, value) = line.split(';').next().unwrap().split_once('=').unwrap();
            let key = (authority.clone(), name.to_owned());
            if value.is_empty() || line.contains("Max-Age=0") {
                self.cookies.remove(&key);
            } else {
                self.cookies.insert(key, value.to_owned());
            }
        }
        response
    }

    /// Goes somewhere and follows redirects until there are none, or one leads to `stop`; gives that, or the answer.
    pub(crate) async fn go(&mut self, url: &str, stop: &str) -> Result<reqwest::Response, url::Url> {
        let mut url = url::Url::parse(url).unwrap();
        for _ in 0..20 {
            let response = self.send(http().get(url.clone())).await;
            if !response.status().is_redirection() {
                return Ok(response);
            }
            url = url.join(response.headers()["location"].to_str().unwrap()).unwrap();
            if url.as_str().starts_with(stop) {
                return Err(url);
            }
        }
        panic!("too many redirects");
    }

    /// Enters the code that somebody at a terminal was given.
    pub(crate) async fn approve(&mut self, address: &str, user_code: &str) {
        let mut page = self.go(address, "never:").await.unwrap();
        // The page asks for the code, then whether it is right.
        for _ in 0..2 {
            let address = page.url().clone();
            let text = page.text().await.unwrap();
            let field = |name: &str| -> Option<String> {
                let after = text.split(&format!("name=\"{name}\" value=\"")).nth(1)?;
                Some(after.split('"').next()?.to_owned())
            };
            let Some(xsrf) = field("xsrf") else { panic!("{text}") };
            let mut form = url::form_urlencoded::Serializer::new(String::new());
            form.append_pair("xsrf", &xsrf).append_pair("user_code", user_code).append_pair("confirm", "yes");
            let post = http().post(address.join("/device").unwrap()).body(form.finish());
            let answered = self.send(post.header("content-type", "application/x-www-form-urlencoded")).await;
            page = match answered.headers().get("location") {
                Some(next) => {
                    let next = address.join(next.to_str().unwrap()).unwrap();
                    self.go(next.as_str(), "never:").await.unwrap()
                }
                None => answered,
            };
            if page.content_length() == Some(4) {
                break;
            }
        }
        assert_eq!(page.text().await.unwrap(), "done");
    }
}

/// A parameter of an address.
pub(crate) fn parameter(url: &url::Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(found, _)| found == name).map(|(_, value)| value.into_owned())
}
