//! Lists of runs of a workspace that has had a million.

use std::time::Instant;

use anyhow::{Context, ensure};

use super::AREA;
use super::api::{Served, TOKEN};
use crate::graphs::scratch;
use crate::harness::settings;
use crate::history::grow;
use crate::http::{Connection, Times};
use crate::results::{Better, Results};

const RUNS: usize = 1_000_000;
const READS: usize = 200;

pub(super) async fn measure(results: &mut Results) -> anyhow::Result<()> {
    let root = scratch()?;
    grow(root.path(), RUNS, 0).await?;
    let served = Served::open(root.path(), &settings()).await?;
    let mut connection = Connection::open(served.address, TOKEN).await?;
    let (mut times, mut path) = (Vec::new(), "/api/v1/runs?limit=50".to_owned());
    for _ in 0..READS {
        let begun = Instant::now();
        let page = connection.get(&path).await?;
        times.push(begun.elapsed());
        let page = page.json()?;
        ensure!(page["items"].as_array().is_some_and(|items| items.len() == 50), "a page is not full");
        let next = page["next_cursor"].as_str().context("there are more")?;
        path = format!("/api/v1/runs?limit=50&cursor={next}");
    }
    served.close().await?;
    let times = Times::of(times)?;
    let what = "list of 50 runs of 1,000,000, p95";
    results.add(AREA, what, (times.percentile(95), "ms"), Better::Lower, 20.0);
    Ok(())
}
