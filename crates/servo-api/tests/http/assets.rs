//! Assets, partitions, deployments and reviews over HTTP.

use crate::support::{Answer, Behaviour, Harness, Setting, layout, project, project_with_customers};
use serde_json::{Value, json};
use servo_api::Code;
use servo_api::client::{ClientError, ListOptions, all_pages};
use servo_api::views::{Partition, ReviewBody};
use servo_core::{AssetKey, PartitionKey};
use servo_engine::{AttemptOutcome, DataStatus, RunState, Verdict};

fn key(text: &str) -> AssetKey {
    AssetKey::parse(text).unwrap()
}

#[tokio::test]
async fn a_project_is_deployed_and_its_assets_are_shown() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::with(root.path(), Setting { deploy: false, ..Setting::default() }).await;
    assert_eq!(harness.get("assets").await.ok(), json!({ "items": [] }));
    let first = harness.post("deployments", &project()).await.accepted();
    assert_eq!(first["assets"], 7);
    assert!(first["accepted_event_id"].is_string());
    // However it is written, it is the same.
    let pretty = serde_json::to_string_pretty(&project()).unwrap();
    let again = harness.post_text("deployments", pretty, &[]).await.accepted();
    assert_eq!(again, json!({ "digest": first["digest"], "assets": 7 }), "it is deployed already");
    let current = harness.get("deployments/current").await.ok();
    assert_eq!(current["digest"], first["digest"]);
    assert_eq!(
        (&current["number"], &current["project"], &current["deployed_by"]),
        (&json!(1), &json!("shop"), &json!("user:local"))
    );

    let mut options = ListOptions { limit: Some(3), ..ListOptions::default() };
    let mut keys = Vec::new();
    loop {
        let page = harness.client.assets("*", &options).await.unwrap();
        keys.extend(page.items.iter().map(|asset| asset.asset_key.to_string()));
        let Some(cursor) = page.next_cursor else { break };
        options.cursor = Some(cursor);
    }
    let expected =
        ["raw.days", "raw.feed", "raw.orders", "shop.clean", "shop.daily", "shop.report", "shop.stubborn"];
    assert_eq!(keys, expected);

    let orders = harness.client.asset(&key("raw.orders")).await.unwrap();
    assert_eq!(orders.asset.description.as_deref(), Some("What was bought."));
    assert_eq!(orders.definition["location"], json!({ "file": "shop/assets.py", "line": 3 }));
    assert_eq!((orders.asset.upstream, orders.downstream), (vec![], vec![key("shop.clean")]));
    assert_eq!((orders.asset.partitioned, orders.asset.partitions.total), (false, 1));
    assert_eq!(orders.latest, None);
    let report = harness.client.asset(&key("shop.report")).await.unwrap();
    assert_eq!((report.asset.upstream, report.downstream), (vec![key("shop.clean")], vec![]));
    harness.close().await;
}

#[tokio::test]
async fn assets_are_listed_by_selection() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let selected = async |selection: &str| {
        let page = harness.client.assets(selection, &ListOptions::default()).await?;
        Ok::<_, ClientError>(page.items.iter().map(|asset| asset.asset_key.to_string()).collect::<Vec<_>>())
    };
    assert_eq!(selected("+shop.report").await.unwrap(), ["raw.orders", "shop.clean", "shop.report"]);
    assert_eq!(selected("tag:team=ops or raw.feed").await.unwrap(), ["raw.days", "raw.feed"]);
    for (selection, expected) in [("shop.clena", "did you mean shop.clean?"), ("raw.* and", "found the end")]
    {
        let error = selected(selection).await.unwrap_err();
        assert_eq!(error.code(), Some(Code::InvalidRequest), "{selection}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let unknown = harness.client.asset(&key("shop.clena")).await.unwrap_err();
    assert_eq!(unknown.to_string(), "there is no asset shop.clena; did you mean shop.clean?");
    let options = ListOptions { limit: Some(1), ..ListOptions::default() };
    let cursor = harness.client.assets("raw.*", &options).await.unwrap().next_cursor;
    let elsewhere = harness.client.assets("*", &ListOptions { cursor, ..options }).await.unwrap_err();
    assert_eq!(elsewhere.code(), Some(Code::InvalidCursor), "a cursor is of one selection");
    harness.close().await;
}

#[tokio::test]
async fn partitions_are_listed_from_either_end() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let days = key("raw.days");
    let name = |partition: Partition| partition.partition.unwrap();
    let forwards = all_pages(async |options: &ListOptions| harness.client.partitions(&days, options).await);
    let forwards: Vec<String> = forwards.await.unwrap().into_iter().map(name).collect();
    let newest = async |options: &ListOptions| harness.client.newest_partitions(&days, options).await;
    let some = ListOptions { limit: Some(7), ..ListOptions::default() };
    let mut page = newest(&some).await.unwrap();
    let mut backwards: Vec<String> = Vec::new();
    loop {
        backwards.extend(page.items.into_iter().map(name));
        let Some(cursor) = page.next_cursor else { break };
        page = newest(&ListOptions { cursor: Some(cursor), ..some.clone() }).await.unwrap();
    }
    assert_eq!(backwards[..2], ["2013-01-31", "2013-01-30"]);
    backwards.reverse();
    assert_eq!(backwards, forwards);
    harness.close().await;
}

#[tokio::test]
async fn keys_of_dynamic_partitions_are_added_and_removed_once() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::with(root.path(), Setting { deploy: false, ..Setting::default() }).await;
    harness.post("deployments", &project_with_customers()).await.accepted();

    let path = "dynamic-partitions/customers";
    let body = json!({ "add": ["acme", "globex", "acme"] });
    let key = [("idempotency-key", "monday")];
    let first = harness.post_with(path, &body, &key).await.accepted();
    assert_eq!((&first["added"], &first["removed"]), (&json!(2), &json!(0)));
    let head = harness.head().await;
    assert_eq!(harness.post_with(path, &body, &key).await.accepted(), first, "the same answer");
    let again = harness.post(path, &body).await.accepted();
    assert_eq!(again, json!({ "added": 0, "removed": 0 }), "there is nothing to do");
    assert_eq!(harness.head().await, head);
    let other = json!({ "remove": ["acme"] });
    assert_eq!(harness.post_with(path, &other, &key).await.problem().code, Code::IdempotencyConflict);
    assert_eq!(harness.post(path, &other).await.accepted()["removed"], 1);
    let shown = harness.client.asset(&crate::assets::key("crm.profiles")).await.unwrap();
    assert_eq!(shown.asset.partitions.total, 1);

    let unknown = harness.post("dynamic-partitions/custmers", &body).await.problem();
    assert_eq!((unknown.status, unknown.code), (404, Code::UnknownPartitions));
    assert_eq!(&*unknown.detail, "no asset has dynamic partitions custmers; there are customers");
    let empty = harness.post(path, &json!({ "add": [""] })).await.problem();
    assert_eq!(empty.code, Code::InvalidRequest);
    let both = harness.post(path, &json!({ "add": ["x"], "remove": ["x"] })).await.problem();
    assert_eq!(both.code, Code::InvalidRequest);
    harness.close().await;
}

#[tokio::test]
async fn the_tables_hold_what_was_durable_when_they_are_asked_for() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    for _ in 0..3 {
        harness.run("raw.orders").await;
        let durable = harness.head().await;
        assert!(harness.client.tables().await.unwrap().last_seq >= durable);
    }
    harness.close().await;
}

#[tokio::test]
async fn what_is_materialized_is_shown() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let run = harness.run("raw.orders").await;
    let orders = harness.client.asset(&key("raw.orders")).await.unwrap();
    let latest = orders.latest.unwrap();
    assert_eq!((latest.run_id, latest.partition_key), (Some(run.run_id), None));
    assert_eq!(orders.asset.partitions.materialized, 1);
    let whole = harness.client.partitions(&key("raw.orders"), &ListOptions::default()).await.unwrap();
    assert_eq!((whole.items.len(), whole.items[0].status), (1, DataStatus::Materialized));

    let ask = async |partitions: Value| {
        let body = json!({ "selection": "raw.days", "partitions": partitions });
        let accepted = harness.post("runs", &body).await.accepted();
        harness.ended(accepted["run_id"].as_str().unwrap().parse().unwrap()).await
    };
    ask(json!({ "ranges": ["2013-01-02..2013-01-04"] })).await;
    harness.script.let_asset("raw/days", Behaviour::Fail(u32::MAX));
    assert_eq!(ask(json!({ "keys": ["2013-01-04", "2013-01-05"] })).await.state, RunState::Failed);
    let days = harness.client.asset(&key("raw.days")).await.unwrap();
    let totals = days.asset.partitions;
    let figures = (totals.total, totals.materialized, totals.last_attempt_failed, totals.never_succeeded);
    assert_eq!(figures, (31, 2, 1, 1));
    assert_eq!(days.latest.unwrap().partition.as_deref(), Some("2013-01-04"));

    let mut options = ListOptions { limit: Some(10), ..ListOptions::default() };
    let mut partitions = Vec::new();
    loop {
        let page = harness.client.partitions(&key("raw.days"), &options).await.unwrap();
        partitions.extend(page.items);
        let Some(cursor) = page.next_cursor else { break };
        options.cursor = Some(cursor);
    }
    assert_eq!(partitions.len(), 31);
    let statuses: Vec<DataStatus> = partitions[..5].iter().map(|partition| partition.status).collect();
    use DataStatus::{LastAttemptFailed, Materialized, NeverMaterialized};
    assert_eq!(
        statuses,
        [NeverMaterialized, Materialized, Materialized, LastAttemptFailed, NeverMaterialized]
    );
    assert_eq!(partitions[3].partition_key, Some(PartitionKey::parse("date=d:2013-01-04").unwrap()));
    assert_eq!(partitions[3].last_attempt_outcome, Some(AttemptOutcome::Failed));
    assert_eq!(partitions[0].last_attempt_outcome, None);

    let failing = ListOptions { state: Some("last_attempt_failed".to_owned()), ..ListOptions::default() };
    let failing = harness.client.partitions(&key("raw.days"), &failing).await.unwrap();
    assert_eq!((failing.items.len(), failing.next_cursor), (1, None));
    harness.close().await;
}

#[tokio::test]
async fn what_a_check_blocked_is_listed_approved_and_rejected() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    harness.script.let_asset("shop/clean", Behaviour::Quarantine);
    let clean = key("shop.clean");
    let quarantine = async || harness.client.quarantine(&ListOptions::default()).await.unwrap().items;
    assert_eq!(harness.run("shop.clean").await.state, RunState::Failed);
    let waiting = quarantine().await;
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0].asset_key, clean);
    let output = waiting[0].output.as_ref().unwrap();
    assert_eq!(output.state, servo_engine::OutputState::Quarantined);
    let id = waiting[0].materialization_id;

    let missing =
        harness.client.review(&clean, id, Verdict::Approve, &ReviewBody::default()).await.unwrap_err();
    assert_eq!(missing.code(), Some(Code::ReviewFailed), "its data is not there");
    let home = root.path().join(layout().prefix());
    let kept = home.join(layout().quarantine(&clean, None, id));
    std::fs::create_dir_all(&kept).unwrap();
    std::fs::write(kept.join("_reason.json"), "{}").unwrap();
    let body = ReviewBody { reason: "it is right after all".to_owned(), ..ReviewBody::default() };
    let approved = harness.client.review(&clean, id, Verdict::Approve, &body).await.unwrap();
    assert!(approved.accepted_event_id.is_some());
    assert_eq!(quarantine().await, []);
    let shown = harness.client.asset(&clean).await.unwrap();
    assert_eq!(shown.latest.unwrap().materialization_id, id);
    assert!(home.join(layout().materialization(&clean, None, id)).join("_commit.json").is_file());
    let again = harness.client.review(&clean, id, Verdict::Reject, &body).await.unwrap_err();
    assert_eq!(again.code(), Some(Code::NotInQuarantine));

    harness.run("shop.clean").await;
    let id = quarantine().await[0].materialization_id;
    harness.client.review(&clean, id, Verdict::Reject, &ReviewBody::default()).await.unwrap();
    assert_eq!(quarantine().await, []);
    assert_ne!(harness.client.asset(&clean).await.unwrap().latest.unwrap().materialization_id, id);
    harness.close().await;
}

#[tokio::test]
async fn definitions_that_have_not_changed_are_not_sent_again() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let mut manifest = project();
    manifest["schedules"] = json!([{
        "name": "nightly", "cron": "0 3 * * *", "selection": "raw.orders",
        "location": { "file": "shop/assets.py", "line": 3 },
    }]);
    harness.post("deployments", &manifest).await.accepted();
    let ask = async |path: &str, tag: Option<&str>| {
        let mut request = harness.http.get(harness.url(path));
        if let Some(tag) = tag {
            request = request.header("if-none-match", tag);
        }
        Answer::of(request.send().await.unwrap()).await
    };
    let mut tags = std::collections::BTreeMap::new();
    let paths = [
        "assets",
        "assets/raw/orders",
        "deployments/current",
        "orchestration/schedules",
        "orchestration/schedules/nightly",
        "orchestration/sensors",
        "notifications",
    ];
    for path in paths {
        let whole = ask(path, None).await;
        let tag = whole.headers["etag"].to_str().unwrap().to_owned();
        assert!(tag.starts_with('"') && tag.ends_with('"') && tag.len() > 16, "{path}: a strong one: {tag}");
        for shown in [tag.clone(), format!("\"other\", {tag}"), format!("W/{tag}"), "*".to_owned()] {
            let same = ask(path, Some(&shown)).await;
            assert_eq!((same.status, &same.body), (304, &Value::Null), "{path} {shown}");
            assert_eq!(same.headers["etag"], tag.as_str(), "{path}");
        }
        let other = ask(path, Some("\"other\"")).await;
        assert_eq!((other.status, other.body), (200, whole.ok()), "{path}");
        tags.insert(path, tag);
    }
    manifest["assets"][0]["description"] = json!("What was sold.");
    manifest["schedules"][0]["cron"] = json!("0 4 * * *");
    harness.post("deployments", &manifest).await.accepted();
    for (path, tag) in &tags {
        let again = ask(path, Some(tag)).await;
        let is_new = again.status == 200 && again.headers["etag"] != tag.as_str();
        let has_changed = !matches!(*path, "orchestration/sensors" | "notifications");
        assert_eq!(is_new, has_changed, "{path}: {}", again.status);
    }
    let unknown = ask("assets/raw/nothing", Some("*")).await;
    assert_eq!(unknown.problem().status, 404, "what is not there has no tag");
    harness.close().await;
}

#[tokio::test]
async fn a_picture_beside_the_data_is_shown_and_nothing_else_of_its_directory() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    harness.run("raw.orders").await;
    let orders = key("raw.orders");
    let id = harness.client.asset(&orders).await.unwrap().latest.unwrap().materialization_id;
    let directory = root.path().join(layout().prefix()).join(layout().materialization(&orders, None, id));
    std::fs::create_dir_all(&directory).unwrap();
    let image =
        |file: &str| json!({ "$servo": "image", "media_type": "image/png", "file": file }).to_string();
    let named = ["_plot-delays.svg", "_plot-by_hour.png", "_plot-huge.png", "_plot-gone.png", "_commit.json"];
    let metadata: std::collections::BTreeMap<_, _> = named.iter().map(|file| (*file, image(file))).collect();
    std::fs::write(directory.join("_commit.json"), json!({ "metadata": metadata }).to_string()).unwrap();
    let svg = "<svg xmlns='http://www.w3.org/2000/svg'/>";
    std::fs::write(directory.join("_plot-delays.svg"), svg).unwrap();
    std::fs::write(directory.join("_plot-by_hour.png"), b"\x89PNG").unwrap();
    std::fs::write(directory.join("_plot-nobody-said-so.png"), b"\x89PNG").unwrap();
    std::fs::File::create(directory.join("_plot-huge.png")).unwrap().set_len((16 << 20) + 1).unwrap();

    let path = |file: &str| format!("assets/raw/orders/materializations/{id}/files/{file}");
    let shown = harness.http.get(harness.url(&path("_plot-delays.svg"))).send().await.unwrap();
    let header = |name: &str| shown.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "image/svg+xml");
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert_eq!(header("content-disposition"), "inline; filename=\"_plot-delays.svg\"");
    let policy = header("content-security-policy");
    assert!(policy.contains("sandbox") && policy.contains("default-src 'none'"), "{policy}");
    assert_eq!(shown.text().await.unwrap(), svg);
    let shown = harness.http.get(harness.url(&path("_plot-by_hour.png"))).send().await.unwrap();
    assert_eq!(shown.headers()["content-type"], "image/png");
    assert_eq!(shown.bytes().await.unwrap().as_ref(), b"\x89PNG");

    let others =
        ["_commit.json", "_plot-nobody-said-so.png", "_plot-huge.png", "_plot-gone.png", "data.json"];
    for file in others.into_iter().chain(["..%2F_commit.json", "%2e%2e", "_plot-%2F..%2F_plot-by_hour.png"]) {
        let problem = harness.get(&path(file)).await.problem();
        assert_eq!((problem.status, problem.code), (404, Code::NotFound), "{file}");
    }
    let elsewhere = path("_plot-delays.svg").replace("orders", "feed");
    assert_eq!(harness.get(&elsewhere).await.problem().status, 404, "it is of another asset");
    let partition = format!("{}?partition=monday", path("_plot-delays.svg"));
    assert_eq!(harness.get(&partition).await.problem().status, 400, "the asset has no partitions");
    harness.close().await;
}
