//! Partitions of assets, and keys of dynamic ones.

use servo_core::AssetKey;

use super::{Client, ClientError, ListOptions};
use crate::pages::Page;
use crate::views::{
    AssetFreshness, ChangePartitionsBody, MarkBody, Partition, PartitionsChanged, PartitionsOfBody,
    PartitionsSet, RenameBody, Renamed, StalePartitions, UndoBody, WhyStale, WipeBody, Wiped,
};

impl Client {
    /// The partitions of an asset, in their order.
    pub async fn partitions(
        &self,
        asset: &AssetKey,
        options: &ListOptions,
    ) -> Result<Page<Partition>, ClientError> {
        self.get(&["assets", asset.namespace(), asset.name(), "partitions"], &options.query("status")).await
    }

    /// The partitions of an asset, from the last to the first.
    pub async fn newest_partitions(
        &self,
        asset: &AssetKey,
        options: &ListOptions,
    ) -> Result<Page<Partition>, ClientError> {
        let mut query = options.query("status");
        query.push(("newest_first", true.to_string()));
        self.get(&["assets", asset.namespace(), asset.name(), "partitions"], &query).await
    }

    /// Says what a wipe would take.
    pub async fn preview_wipe(
        &self,
        asset: &AssetKey,
        which: &PartitionsOfBody,
    ) -> Result<Wiped, ClientError> {
        let path = ["assets", asset.namespace(), asset.name(), "partitions", "wipe", "preview"];
        let response = self.post(&path, None, which).await?;
        self.read(response).await
    }

    /// Wipes partitions of an asset.
    pub async fn wipe_partitions(&self, asset: &AssetKey, body: &WipeBody) -> Result<Wiped, ClientError> {
        self.change(&["assets", asset.namespace(), asset.name(), "partitions", "wipe"], body).await
    }

    /// Says how partitions of an asset fare.
    pub async fn mark_partitions(
        &self,
        asset: &AssetKey,
        body: &MarkBody,
    ) -> Result<PartitionsSet, ClientError> {
        self.change(&["assets", asset.namespace(), asset.name(), "partitions", "mark"], body).await
    }

    /// Gives an asset another name.
    pub async fn rename_asset(&self, asset: &AssetKey, body: &RenameBody) -> Result<Renamed, ClientError> {
        self.change(&["assets", asset.namespace(), asset.name(), "rename"], body).await
    }

    /// Undoes a wipe that kept the data, or a mark.
    pub async fn undo_partitions(
        &self,
        asset: &AssetKey,
        body: &UndoBody,
    ) -> Result<PartitionsSet, ClientError> {
        self.change(&["assets", asset.namespace(), asset.name(), "partitions", "undo"], body).await
    }

    /// The stale partitions of what is selected: one page, with numbers of all.
    pub async fn stale_partitions(&self, options: &ListOptions) -> Result<StalePartitions, ClientError> {
        self.get(&["partitions", "stale"], &options.query("reason")).await
    }

    /// Assets that have a freshness policy, by key.
    pub async fn freshness(&self, options: &ListOptions) -> Result<Page<AssetFreshness>, ClientError> {
        self.get(&["freshness"], &options.query("status")).await
    }

    /// Why an asset or one of its partitions is stale.
    pub async fn why_stale(
        &self,
        asset: &AssetKey,
        partition: Option<&str>,
    ) -> Result<WhyStale, ClientError> {
        let query: Vec<(&'static str, String)> =
            partition.map(|text| ("partition", text.to_owned())).into_iter().collect();
        self.get(&["assets", asset.namespace(), asset.name(), "why"], &query).await
    }

    /// Adds and removes keys of dynamic partitions.
    pub async fn change_partitions(
        &self,
        name: &str,
        body: &ChangePartitionsBody,
    ) -> Result<PartitionsChanged, ClientError> {
        self.change(&["dynamic-partitions", name], body).await
    }
}
