//! Assets, deployments, reviews, and the server itself.

use serde::Serialize;
use servo_core::{AssetKey, MaterializationId};
use servo_engine::Verdict;

use super::{Client, ClientError, ListOptions};
use crate::pages::Page;
use crate::routes::{Health, Version};
use crate::views::{
    Accepted, Asset, AssetDetail, CheckResult, Deployed, Deployment, DeploymentDetail, DeploymentDiff,
    Lineage, LoginLink, LoginOptions, MaterializationDetail, MaterializationRecord, Quarantined, Readiness,
    ReviewBody, RollbackBody, RolledBack, Tables,
};

impl Client {
    /// The version of the server.
    pub async fn version(&self) -> Result<Version, ClientError> {
        self.get(&["version"], &[]).await
    }

    /// Whether the server is of use, and what it needs for that. Asked once: that it is not is an answer.
    pub async fn ready(&self) -> Result<Readiness, ClientError> {
        let request = self.authorized(self.http.get(self.url(&["readyz"])));
        let response = self.exchange(request).await.map_err(|error| self.unreachable(error))?;
        self.read(response).await
    }

    /// Ways to log in to the server.
    pub async fn login_options(&self) -> Result<LoginOptions, ClientError> {
        self.get(&["login-options"], &[]).await
    }

    /// A link that lets one browser in, once: a path of the server.
    pub async fn login(&self) -> Result<LoginLink, ClientError> {
        let response = self.post(&["logins"], None, &serde_json::Value::Null).await?;
        self.read(response).await
    }

    /// The assets that a selection means, by key; `*` means all.
    pub async fn assets(&self, selection: &str, options: &ListOptions) -> Result<Page<Asset>, ClientError> {
        let mut query = options.query("state");
        query.push(("selection", selection.to_owned()));
        self.get(&["assets"], &query).await
    }

    /// Answers when the server runs the code that was saved before.
    pub async fn current_code(&self) -> Result<Health, ClientError> {
        self.get(&["code"], &[]).await
    }

    /// How much the tables hold, when they hold everything that is durable now.
    pub async fn tables(&self) -> Result<Tables, ClientError> {
        self.get(&["tables"], &[]).await
    }

    /// The materializations of an asset, the newest first.
    pub async fn materializations(
        &self,
        asset: &AssetKey,
        options: &ListOptions,
    ) -> Result<Page<MaterializationRecord>, ClientError> {
        let route = ["assets", asset.namespace(), asset.name(), "materializations"];
        self.get(&route, &options.query("state")).await
    }

    /// The lineage of a materialization of an asset.
    pub async fn lineage(&self, asset: &AssetKey, query: &[(&str, String)]) -> Result<Lineage, ClientError> {
        self.get(&["assets", asset.namespace(), asset.name(), "lineage"], query).await
    }

    /// One asset.
    pub async fn asset(&self, asset: &AssetKey) -> Result<AssetDetail, ClientError> {
        self.get(&["assets", asset.namespace(), asset.name()], &[]).await
    }

    /// The latest materialization of an asset, or of one of its partitions.
    pub async fn materialization(
        &self,
        asset: &AssetKey,
        partition: Option<&str>,
    ) -> Result<MaterializationDetail, ClientError> {
        let query: Vec<(&str, String)> =
            partition.map(|text| ("partition", text.to_owned())).into_iter().collect();
        self.get(&["assets", asset.namespace(), asset.name(), "materialization"], &query).await
    }

    /// Results of checks, the newest first.
    pub async fn checks(&self, options: &ListOptions) -> Result<Page<CheckResult>, ClientError> {
        self.get(&["checks"], &options.query("state")).await
    }

    /// Materializations that wait for review.
    pub async fn quarantine(&self, options: &ListOptions) -> Result<Page<Quarantined>, ClientError> {
        self.get(&["quarantine"], &options.query("state")).await
    }

    /// Reviews a quarantined materialization.
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

    /// The current deployment.
    pub async fn deployment(&self) -> Result<Deployment, ClientError> {
        self.get(&["deployments", "current"], &[]).await
    }

    /// Says what deploying a manifest would do.
    pub async fn preview_deployment(&self, manifest: &impl Serialize) -> Result<Deployed, ClientError> {
        let response = self.post(&["deployments", "preview"], None, manifest).await?;
        self.read(response).await
    }

    /// Deployments, the newest first.
    pub async fn deployments(&self, options: &ListOptions) -> Result<Page<Deployment>, ClientError> {
        self.get(&["deployments"], &options.query("state")).await
    }

    /// One deployment, by its number.
    pub async fn deployment_by_number(&self, number: u64) -> Result<DeploymentDetail, ClientError> {
        self.get(&["deployments", &number.to_string()], &[]).await
    }

    /// A page of the differences between two deployments; with the current one if the second is not given.
    pub async fn deployment_diff(
        &self,
        from: u64,
        to: Option<u64>,
        cursor: Option<&str>,
    ) -> Result<DeploymentDiff, ClientError> {
        let mut query = vec![("limit", "100".to_owned())];
        query.extend(to.map(|to| ("to", to.to_string())));
        query.extend(cursor.map(|cursor| ("cursor", cursor.to_owned())));
        self.get(&["deployments", &from.to_string(), "diff"], &query).await
    }

    /// Makes the definitions of an earlier deployment current.
    pub async fn roll_back(&self, number: u64, body: &RollbackBody) -> Result<RolledBack, ClientError> {
        self.change(&["deployments", &number.to_string(), "rollback"], body).await
    }

    /// Deploys a manifest, as the SDK wrote it: its digest is that of what is sent.
    pub async fn deploy(&self, manifest: &impl Serialize) -> Result<Deployed, ClientError> {
        self.change(&["deployments"], manifest).await
    }
}
