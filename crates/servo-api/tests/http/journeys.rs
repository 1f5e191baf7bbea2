//! The main journeys of a program over HTTP: what is asked, and what is answered, errors included.
//!
//! A snapshot has the status and the body of each answer, without ids and times. Answers that are good are also in
//! `description/examples.json`; here they stand in the order in which a program meets them.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::support::{Answer, Behaviour, Harness};

/// A journey, as it is recorded.
struct Journey<'h> {
    harness: &'h Harness,
    shown: String,
}

impl<'h> Journey<'h> {
    fn of(harness: &'h Harness) -> Self {
        Self { harness, shown: String::new() }
    }

    async fn gets(&mut self, path: &str) -> Value {
        let answer = self.harness.get(path).await;
        self.answered(&format!("GET {path}"), answer)
    }

    async fn posts(&mut self, path: &str, body: Value) -> Value {
        let answer = self.harness.post(path, &body).await;
        self.answered(&format!("POST {path} {body}"), answer)
    }

    fn answered(&mut self, asked: &str, answer: Answer) -> Value {
        let mut shown = answer.body.clone();
        blot(&mut shown);
        let asked: Vec<String> = asked.split('/').map(word).collect();
        let _infallible = writeln!(self.shown, "{}\n{} {shown:#}\n", asked.join("/"), answer.status);
        answer.body
    }
}

/// Ids, times and figures that are never the same twice.
fn word(text: &str) -> String {
    let is_run = text.starts_with("run_") && text.len() == 30;
    let is_task = text.starts_with("t_") && text.len() == 28;
    let is_ulid = text.len() == 26 && text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
    let is_time = text.len() == 24 && text.ends_with('Z') && text.contains('T');
    let is_key = text.starts_with("retry:");
    let is_digest = text.starts_with("v1:sha256:") || text.starts_with("sha256:");
    if is_run || is_task || is_ulid || is_time || is_key || is_digest {
        "[…]".to_owned()
    } else {
        text.to_owned()
    }
}

fn blot(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let differs = ["usage", "duration_ms", "next_cursor", "uri", "worker_id", "request_id"];
                if differs.contains(&name.as_str()) {
                    *value = "[…]".into();
                }
                blot(value);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(blot),
        Value::String(text) => *text = text.split(' ').map(word).collect::<Vec<_>>().join(" "),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn id<'v>(answer: &'v Value, name: &str) -> &'v str {
    answer[name].as_str().unwrap()
}

#[tokio::test]
async fn runs_are_planned_requested_followed_and_tried_again() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    harness.script.let_asset("shop/clean", Behaviour::Fail(1));
    let mut journey = Journey::of(&harness);
    journey.posts("plan", json!({ "selection": "+shop.clean" })).await;
    journey.posts("plan", json!({ "selection": "shop.claen" })).await;
    journey.posts("plan", json!({ "selection": "shop.daily" })).await;
    journey.posts("runs", json!({ "selection": "shop.clean and" })).await;
    journey.posts("runs", json!({ "selection": "shop.report", "config": { "rate": "much" } })).await;
    journey
        .posts("runs", json!({ "selection": "shop.daily", "partitions": { "keys": ["2013-02-01"] } }))
        .await;
    let run = journey.posts("runs", json!({ "selection": "+shop.clean", "run_key": "mine" })).await;
    let run = id(&run, "run_id").to_owned();
    harness.ended(run.parse().unwrap()).await;
    journey.gets(&format!("runs/{run}")).await;
    journey.gets(&format!("runs/{run}/tasks?state=FAILED")).await;
    journey.posts("runs", json!({ "selection": "raw.orders", "run_key": "mine" })).await;
    journey.posts(&format!("runs/{run}/cancel"), json!({})).await;
    journey.gets(&format!("runs/{run}/why")).await;
    journey.gets("assets/shop/clean/why").await;
    let again = journey.posts(&format!("runs/{run}/retry"), json!({ "from_failure": true })).await;
    let again = id(&again, "run_id").to_owned();
    harness.ended(again.parse().unwrap()).await;
    journey.gets(&format!("runs/{again}")).await;
    journey.gets("runs/run_aaaaaaaaaaaaaaaaaaaaaaaaaa").await;
    journey.gets("runs?state=LOST").await;
    journey.gets("runs?colour=red").await;
    journey.gets("assets/shop/claen").await;
    journey.gets("nothing/here").await;
    insta::assert_snapshot!(journey.shown);
    harness.close().await;
}
