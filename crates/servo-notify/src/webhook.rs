//! Webhooks, and Slack's among them: one `POST`, no redirects, an answer within seconds.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use reqwest::{Client, StatusCode, redirect};
use serde_json::{Map, Value};
use servo_engine::definitions::{SecretDef, TextOrSecret, secret_in};
use servo_engine::notification::{Delivery, SendFailure};
use sha2::Sha256;
use tokio::sync::OnceCell;
use url::{Host, Url};

use crate::addresses::{PRIVATE, PublicOnly, is_public};
use crate::secrets::Secrets;
use crate::{Senders, again, never};

const CONNECT: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(10);

/// Characters of an answer that are told of a failure.
const TOLD: usize = 200;
/// Bytes of an answer that are read for it.
const READ: usize = 4_096;

/// The clients, one for each way of finding hosts. Each is made when it is first needed: it loads the certificates of
/// the system, which takes longer than most commands, and most commands send nothing.
#[derive(Default)]
pub(crate) struct Clients {
    /// Reaches public addresses only, and asks no proxy, which would find hosts by itself.
    public: OnceCell<Client>,
    /// Reaches this machine and its network.
    direct: OnceCell<Client>,
    /// Reaches everything else, by the proxies of the environment.
    everywhere: OnceCell<Client>,
}

impl Clients {
    /// The client for a host that is near, on this machine or its network, or not; `private` if it may be.
    async fn reaching(&self, private: bool, is_near: bool) -> Result<&Client, SendFailure> {
        let builder = Client::builder()
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT)
            .timeout(ANSWER)
            .pool_max_idle_per_host(1)
            .user_agent(concat!("servo/", env!("CARGO_PKG_VERSION")));
        let (client, builder) = match (private, is_near) {
            (false, _) => (&self.public, builder.no_proxy().dns_resolver(PublicOnly)),
            (true, true) => (&self.direct, builder.no_proxy()),
            (true, false) => (&self.everywhere, builder),
        };
        let built = client.get_or_try_init(|| async { builder.build() }).await;
        built.map_err(|error| never(format!("no requests can be sent from here: {error}")))
    }
}

/// A webhook as its rule declares it.
pub(crate) struct Hook<'a> {
    pub(crate) url: &'a TextOrSecret,
    pub(crate) headers: &'a BTreeMap<String, TextOrSecret>,
    pub(crate) json: Option<&'a Map<String, Value>>,
    pub(crate) secret: Option<&'a SecretDef>,
}

/// Sends a notification to a webhook.
pub(crate) async fn send(
    senders: &Senders,
    delivery: &Delivery,
    hook: &Hook<'_>,
    private: bool,
    secrets: &mut Secrets,
) -> Result<(), SendFailure> {
    let object = match hook.json {
        Some(object) => filled(senders, delivery, &Value::Object(object.clone()), secrets)?,
        None => senders.object(delivery),
    };
    let mut headers = Vec::new();
    for (name, value) in hook.headers {
        headers.push((name.clone(), secrets.text(value)?));
    }
    let body = object.to_string();
    if let Some(reference) = hook.secret {
        headers.push(("X-Servo-Signature-256".to_owned(), signature(&secrets.get(reference)?, &body)));
    }
    headers.push(("Idempotency-Key".to_owned(), delivery.notification_id.to_string()));
    let url = secrets.text(hook.url)?;
    post(senders, &url, headers, body, private).await
}

/// Sends a notification to an incoming webhook of Slack.
pub(crate) async fn slack(
    senders: &Senders,
    delivery: &Delivery,
    url: &SecretDef,
    private: bool,
    secrets: &mut Secrets,
) -> Result<(), SendFailure> {
    let words = senders.words(delivery);
    let mut text = format!("*{}*\n{}", escaped(&words.title), escaped(&words.body));
    if let Some(link) = &words.link {
        text.push_str(&format!("\n<{}|Look at it>", escaped(link)));
    }
    let url = secrets.get(url)?;
    post(senders, &url, Vec::new(), serde_json::json!({ "text": text }).to_string(), private).await
}

/// As Slack wants it: everything else would be a mention or a link.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// An object with its texts filled in, and its secrets.
fn filled(
    senders: &Senders,
    delivery: &Delivery,
    value: &Value,
    secrets: &mut Secrets,
) -> Result<Value, SendFailure> {
    if let Some(reference) = secret_in(value) {
        return Ok(Value::String(secrets.get(&reference)?));
    }
    Ok(match value {
        Value::String(text) => Value::String(senders.fill(text, delivery)),
        Value::Array(items) => {
            let items: Result<_, _> =
                items.iter().map(|item| filled(senders, delivery, item, secrets)).collect();
            Value::Array(items?)
        }
        Value::Object(fields) => {
            let mut object = Map::new();
            for (name, field) in fields {
                object.insert(name.clone(), filled(senders, delivery, field, secrets)?);
            }
            Value::Object(object)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    })
}

fn signature(secret: &str, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(body.as_bytes());
    format!("sha256={}", HEXLOWER.encode(&mac.finalize().into_bytes()))
}

async fn post(
    senders: &Senders,
    url: &str,
    headers: Vec<(String, String)>,
    body: String,
    private: bool,
) -> Result<(), SendFailure> {
    // The address may be a secret, so that nothing that is said repeats it.
    let url = Url::parse(url).map_err(|_| never("the address of the webhook is none"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(never("the address of the webhook is neither of http nor of https"));
    }
    let literal = match url.host() {
        Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
        Some(Host::Domain(_)) => None,
        None => return Err(never("the address of the webhook names no host")),
    };
    if !private && literal.is_some_and(|address| !is_public(address)) {
        return Err(never(format!("the webhook is not reached: {PRIVATE}")));
    }
    let is_near = literal.map_or(url.host_str() == Some("localhost"), |address| !is_public(address));
    let client = senders.http.reaching(private, is_near).await?;
    let mut request = client.post(url).header("Content-Type", "application/json");
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let answer = request.body(body).send().await.map_err(|error| again(told(error)))?;
    let status = answer.status();
    if status.is_success() {
        return Ok(());
    }
    if status.is_redirection() {
        return Err(never(format!("the webhook answered {status}; redirects are not followed")));
    }
    let message = format!("the webhook answered {status}{}", excerpt(answer).await);
    let is_passing = status.is_server_error()
        || matches!(
            status,
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS
        );
    Err(SendFailure { message, retry: is_passing })
}

/// The error of a request, without its address.
fn told(error: reqwest::Error) -> String {
    let (is_late, is_unreachable) = (error.is_timeout(), error.is_connect());
    let error = error.without_url();
    let mut causes = Vec::new();
    let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(&error);
    while let Some(found) = cause {
        causes.push(found.to_string());
        cause = found.source();
    }
    let last = causes.pop().unwrap_or_else(|| error.to_string());
    if is_late {
        format!("the webhook did not answer within {} s", ANSWER.as_secs())
    } else if is_unreachable {
        format!("the webhook cannot be reached: {last}")
    } else {
        format!("the request to the webhook failed: {last}")
    }
}

/// The beginning of an answer.
async fn excerpt(mut answer: reqwest::Response) -> String {
    let mut read = Vec::new();
    while let (Ok(Some(chunk)), true) = (answer.chunk().await, read.len() < READ) {
        read.extend_from_slice(&chunk);
    }
    let text = String::from_utf8_lossy(&read);
    let text: String =
        text.chars().map(|each| if each.is_control() { ' ' } else { each }).take(TOLD).collect();
    let text = text.trim();
    if text.is_empty() { String::new() } else { format!(": {text}") }
}
