//! Assets, deployments, reviews, and the server itself.

use servo_core::{AssetKey, MaterializationId};
use servo_engine::Verdict;

use super::{Client, ClientError, ListOptions};
use crate::pages::Page;
use crate::routes::{Health, Version};
use crate::views::{Accepted, Asset, AssetDetail, Deployed, Deployment, Partition, Quarantined, ReviewBody};

impl Client {
    /// The version of the server.
    pub async fn version(&self) -> Result<Version, ClientError> {
        self.get(&["version"], &[]).await
    }

    /// Whether the workspace takes requests.
    pub async fn ready(&self) -> Result<Health, ClientError> {
        self.get(&["readyz"], &[]).await
    }

    /// The assets that are deployed, by key.
    pub async fn assets(&self, options: &ListOptions) -> Result<Page<Asset>, ClientError> {
        self.get(&["assets"], &options.query("state")).await
    }

    /// One asset.
    pub async fn asset(&self, asset: &AssetKey) -> Result<AssetDetail, ClientError> {
        self.get(&["assets", asset.namespace(), asset.name()], &[]).await
    }

    /// The partitions of an asset.
    pub async fn partitions(
        &self,
        asset: &AssetKey,
        options: &ListOptions,
    ) -> Result<Page<Partition>, ClientError> {
        self.get(&["assets", asset.namespace(), asset.name(), "partitions"], &options.query("status")).await
    }

    /// What waits for review.
    pub async fn quarantine(&self, options: &ListOptions) -> Result<Page<Quarantined>, ClientError> {
        self.get(&["quarantine"], &options.query("state")).await
    }

    /// Decides about something that waits for review.
    pub async fn review(
        &self,
        asset: &AssetKey,
        materialization: MaterializationId,
        verdict: Verdict,
        body: &ReviewBody,
    ) -> Result<Accepted, ClientError> {
        let verdict = match verdict {
            Verdict::Approve => "approve",
            Verdict::Reject => "reject",
        };
        let id = materialization.to_string();
        self.change(&["quarantine", asset.namespace(), asset.name(), &id, verdict], body).await
    }

    /// What is deployed.
    pub async fn deployment(&self) -> Result<Deployment, ClientError> {
        self.get(&["deployments", "current"], &[]).await
    }

    /// Deploys a manifest, as the SDK writes it.
    pub async fn deploy(
        &self,
        manifest: &servo_engine::definitions::Manifest,
    ) -> Result<Deployed, ClientError> {
        self.change(&["deployments"], manifest).await
    }
}
