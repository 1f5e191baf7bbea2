//! Automation conditions.

use servo_core::AssetKey;

use super::{Client, ClientError, ListOptions};
use crate::pages::Page;
use crate::views::{Accepted, Condition, ConditionEvaluation, ExplainedCondition, PauseConditionBody};

const CONDITIONS: [&str; 2] = ["orchestration", "conditions"];

fn of<'a>(asset: &'a AssetKey, what: &'a [&'a str]) -> Vec<&'a str> {
    let names = [asset.namespace(), asset.name()];
    CONDITIONS.into_iter().chain(names).chain(what.iter().copied()).collect()
}

impl Client {
    /// The assets that have an automation condition, by key.
    pub async fn conditions(&self, options: &ListOptions) -> Result<Page<Condition>, ClientError> {
        self.get(&CONDITIONS, &options.query("status")).await
    }

    /// Why the condition of an asset holds or not: for one partition, or for the newest.
    pub async fn explain_condition(
        &self,
        asset: &AssetKey,
        partition: Option<&str>,
        newest: usize,
    ) -> Result<ExplainedCondition, ClientError> {
        let mut query = vec![("newest", newest.to_string())];
        query.extend(partition.map(|partition| ("partition", partition.to_owned())));
        self.get(&of(asset, &[]), &query).await
    }

    /// The evaluations that requested something of an asset, the newest first.
    pub async fn condition_evaluations(
        &self,
        asset: &AssetKey,
        options: &ListOptions,
    ) -> Result<Page<ConditionEvaluation>, ClientError> {
        self.get(&of(asset, &["evaluations"]), &options.query("status")).await
    }

    /// Pauses or resumes the automation of an asset.
    pub async fn pause_condition(
        &self,
        asset: &AssetKey,
        paused: bool,
        body: &PauseConditionBody,
    ) -> Result<Accepted, ClientError> {
        let what = if paused { "pause" } else { "resume" };
        self.change(&of(asset, &[what]), body).await
    }
}
