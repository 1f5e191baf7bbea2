//! `servo dev --demo`: a project to look at, with a history that has something on every page.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use servo_api::Api;
use servo_api::client::Client;
use servo_api::views::{BackfillBody, RunBody, TriggerScheduleBody};
use servo_core::{Clock, Millis, Timestamp};
use servo_engine::controllers::Dispatching;
use servo_runtime::{Stores, SystemClock, Workspace};
use servo_worker::project::Project;

use crate::location::Location;
use crate::session::{ServerContext, Session, WorkerScope};

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
/// How often it is looked whether the project is deployed, or a backfill has ended.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The directory of the demo, below this one. Its files are written if they are not there.
pub(super) fn project() -> anyhow::Result<PathBuf> {
    let directory = Path::new(DIRECTORY).to_owned();
    std::fs::create_dir_all(&directory).with_context(|| format!("creating {DIRECTORY}"))?;
    for (file, text) in FILES {
        let path = directory.join(file);
        if !path.exists() {
            let text = text.replace("{{start}}", &day(DAYS));
            std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        }
    }
    Ok(directory)
}

/// Something that was asked for.
enum Asked {
    /// A run, of days from so many to so many before today where it has partitions.
    Run(&'static str, Option<(u64, u64)>),
    /// A backfill of such days.
    Backfill(&'static str, (u64, u64)),
    /// A tick of a schedule, for the day that is so many before today.
    Tick(&'static str, u64),
}

/// What was asked for before the demo was started, and how many hours before.
const PAST: &[(u64, &[Asked])] = &[
    (72, &[Asked::Run("+sales.weekly", Some((DAYS, 5)))]),
    (70, &[Asked::Backfill("raw.visits or clean.sessions or sales.conversion", (DAYS, 9))]),
    (46, &[Asked::Tick("nightly", 4), Asked::Run("+marketing.audience", None)]),
    (22, &[Asked::Tick("nightly", 3), Asked::Run("+marketing.audience", None)]),
    (17, &[Asked::Run("raw.visits or clean.sessions or sales.conversion", Some((8, 6)))]),
    (12, &[Asked::Run("raw.stock", None), Asked::Run("raw.products", None)]),
    (7, &[Asked::Run("raw.visits or clean.sessions or sales.conversion", Some((5, 3)))]),
    (3, &[Asked::Run("+marketing.audience or marketing.newsletter", None)]),
];
/// What is asked for once it is served.
const PRESENT: &[Asked] = &[
    Asked::Run("+sales.weekly", Some((2, 2))),
    Asked::Run("+marketing.audience", None),
    Asked::Run("marketing.newsletter", None),
];

/// A clock that is behind that of the machine.
struct Behind(Millis);

impl Clock for Behind {
    fn now(&self) -> Timestamp {
        SystemClock.now().saturating_sub(self.0)
    }
}

/// Makes what happened on the days before. For each moment the workspace is opened with a clock that is so far behind, as
/// if a machine had been on now and then.
pub(super) async fn live_through(location: &Location, stores: &Stores, project: &Project, slots: usize) {
    eprintln!("making the history of the demo: three days, some seconds");
    for (hours, asked) in PAST {
        if let Err(error) = live(location, stores, project, slots, *hours, asked).await {
            eprintln!("what happened {hours} hours ago was not made: {error:#}");
        }
    }
}

async fn live(
    location: &Location,
    stores: &Stores,
    project: &Project,
    slots: usize,
    hours: u64,
    asked: &[Asked],
) -> anyhow::Result<()> {
    let clock: Arc<dyn Clock> = Arc::new(Behind(Millis::from_hours(hours)));
    let server = ServerContext { clock: Some(&clock), ..ServerContext::default() };
    let (stores, project, reach) = (stores.clone(), project.clone(), WorkerScope::Alone { backfills: true });
    let mut session =
        Session::open(location, stores, project, slots, reach, Dispatching::All, server).await?;
    let done = async {
        session.deploy(location.caller()).await?;
        ask(&session.workspace, &Client::in_process(session.api())?, asked).await
    };
    let done = done.await;
    session.close().await?;
    done
}

/// Goes on with the history of the demo once the project is deployed, if it was just begun.
pub(super) async fn fill(workspace: Workspace, api: Api) {
    if let Err(error) = requests(&workspace, api).await {
        eprintln!("the history of the demo was not made: {error:#}");
    }
}

async fn requests(workspace: &Workspace, api: Api) -> anyhow::Result<()> {
    while !workspace.read(|state| state.deployment().is_some()).await? {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    ask(workspace, &Client::in_process(api)?, PRESENT).await?;
    let path = Path::new(DIRECTORY).join("shop.py");
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    std::fs::write(&path, text.replacen(BEFORE, AFTER, 1))
        .with_context(|| format!("writing {}", path.display()))
}

/// Asks for one thing after the other: each reads what was made before.
async fn ask(workspace: &Workspace, client: &Client, asked: &[Asked]) -> anyhow::Result<()> {
    for each in asked {
        match each {
            Asked::Run(selection, days) => {
                let mut body = json!({ "selection": selection, "source": "manual" });
                if let Some(days) = days {
                    body["partitions"] = partitions(*days);
                }
                let body: RunBody = serde_json::from_value(body)?;
                let accepted = client.trigger(&body).await;
                workspace.wait(accepted.with_context(|| format!("asking for {selection}"))?.run_id).await?;
            }
            Asked::Tick(schedule, day) => {
                let body = json!({ "partitions": partitions((*day, *day)) });
                let body: TriggerScheduleBody = serde_json::from_value(body)?;
                let accepted = client.trigger_schedule(schedule, &body).await;
                workspace.wait(accepted.with_context(|| format!("ticking {schedule}"))?.run_id).await?;
            }
            Asked::Backfill(selection, days) => {
                let body =
                    json!({ "selection": selection, "partitions": partitions(*days), "chunk_size": 7 });
                let body: BackfillBody = serde_json::from_value(body)?;
                let accepted = client.create_backfill("demo", &body).await;
                let id = accepted.with_context(|| format!("backfilling {selection}"))?.backfill_id;
                while !client.backfill(id).await?.is_ended {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            }
        }
    }
    Ok(())
}

/// Days from so many to so many before today, as partitions of a request.
fn partitions((from, to): (u64, u64)) -> Value {
    json!({ "ranges": [format!("{}..{}", day(from), day(to))] })
}

/// The day that is so many before today.
fn day(before: u64) -> String {
    let text = SystemClock.now().saturating_sub(DAY.saturating_mul(before)).to_string();
    text.get(..10).unwrap_or_default().to_owned()
}
