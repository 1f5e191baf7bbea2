//! `servo dev --demo`: a project to look at, with a history that has something on every page.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use servo_api::Api;
use servo_api::client::{Client, ListOptions};
use servo_api::views::{BackfillBody, RunBody};
use servo_core::{Clock, Millis};
use servo_runtime::{SystemClock, Workspace};

const FILES: &[(&str, &str)] = &[
    ("servo.toml", include_str!("../../templates/demo/servo.toml")),
    ("shop.py", include_str!("../../templates/demo/shop.py")),
];
/// The change made while the history is made, so that there are two deployments to compare.
const BEFORE: &str = r#"owners=["stock@example.org"],"#;
const AFTER: &str = r#"owners=["stock@example.org", "purchasing@example.org"],
    tags={"team": "supply"},"#;
const DIRECTORY: &str = "servo-demo";
/// Days that the demo begins before today.
const DAYS: u64 = 35;
const DAY: Millis = Millis::from_hours(24);
/// How often it is looked whether the project is deployed.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The directory of the demo, below this one. Its files are written if they are not there.
pub(super) fn project() -> anyhow::Result<PathBuf> {
    let directory = Path::new(DIRECTORY).to_owned();
    std::fs::create_dir_all(&directory).with_context(|| format!("creating {DIRECTORY}"))?;
    let start = SystemClock.now().saturating_sub(DAY.saturating_mul(DAYS)).to_string();
    for (file, text) in FILES {
        let path = directory.join(file);
        if !path.exists() {
            let text = text.replace("{{start}}", start.get(..10).unwrap_or_default());
            std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        }
    }
    Ok(directory)
}

/// Makes the history of the demo once the project is deployed, unless there is one.
pub(super) async fn fill(workspace: Workspace, api: Api) {
    if let Err(error) = requests(&workspace, api).await {
        eprintln!("the history of the demo was not made: {error:#}");
    }
}

async fn requests(workspace: &Workspace, api: Api) -> anyhow::Result<()> {
    let client = Client::in_process(api)?;
    let options = ListOptions { limit: Some(1), ..ListOptions::default() };
    if !client.runs(&options).await?.items.is_empty() {
        return Ok(());
    }
    while !workspace.read(|state| state.deployment().is_some()).await? {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let today = SystemClock.now();
    let day = |before: u64| {
        let text = today.saturating_sub(DAY.saturating_mul(before)).to_string();
        text.get(..10).unwrap_or_default().to_owned()
    };
    let days = |from: u64, to: u64| json!({ "ranges": [format!("{}..{}", day(from), day(to))] });
    let asked: [(&str, Option<Value>); 5] = [
        ("+sales.weekly", Some(days(DAYS, 5))),
        ("raw.visits or clean.sessions or sales.conversion", Some(days(DAYS, 8))),
        ("raw.stock", None),
        ("+marketing.audience", None),
        ("marketing.newsletter", None),
    ];
    for (selection, partitions) in asked {
        let mut body = json!({ "selection": selection, "source": "manual" });
        if let Some(partitions) = partitions {
            body["partitions"] = partitions;
        }
        let body: RunBody = serde_json::from_value(body)?;
        let run = client.trigger(&body).await.with_context(|| format!("asking for {selection}"))?.run_id;
        // One after the other: each reads what was made before.
        workspace.wait(run).await?;
    }
    let again = json!({ "selection": "sales.conversion", "partitions": days(DAYS, 8), "chunk_size": 7 });
    let again: BackfillBody = serde_json::from_value(again)?;
    client.create_backfill("demo", &again).await.context("asking for a backfill")?;
    let path = Path::new(DIRECTORY).join("shop.py");
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    std::fs::write(&path, text.replacen(BEFORE, AFTER, 1))
        .with_context(|| format!("writing {}", path.display()))
}
