//! Wiping and marking partitions: what a request means is found on a snapshot, the engine decides.

use servo_core::{AssetKey, EventId};
use servo_engine::requests::{PartitionsOf, WipePreview, prepare_mark, prepare_wipe};
use servo_engine::{
    AttemptOutcome, Caller, Change, PartitionsReply, Refusal, RenameAsset, RestorePartitions, State,
    WipePartitions,
};

use crate::error::Error;
use crate::requests::Asked;
use crate::workspace::Workspace;

/// Most tries to find what a request means, if definitions change meanwhile.
const MAX_TRIES: u32 = 5;

/// A request to wipe partitions.
#[derive(Debug, Clone, Default)]
pub struct WipeRequest {
    /// Which partitions.
    pub partitions: PartitionsOf,
    /// Whether their data stays.
    pub keep_data: bool,
    /// Whether attempts that are at work on them do not matter.
    pub force: bool,
    /// Why.
    pub reason: String,
    /// Who asks.
    pub caller: Caller,
}

impl Workspace {
    /// Says what a wipe would take. Changes nothing.
    pub async fn preview_wipe(&self, asset: AssetKey, which: PartitionsOf) -> Result<WipePreview, Error> {
        let at = self.now();
        let found = self.read(move |state| prepare_wipe(state, &asset, &which, at)).await?;
        Ok(found.map(|(_, preview)| preview)?)
    }

    /// Wipes partitions; answers when that is durable, with what was taken. Data goes a moment later. `Duplicate` if
    /// nothing is known of any of them. A request that was answered before is answered the same, with how many they
    /// were; which, is not known any more.
    pub async fn wipe_partitions(
        &self,
        asset: AssetKey,
        request: WipeRequest,
    ) -> Result<(WipePreview, PartitionsReply), Error> {
        let at = self.now();
        let WipeRequest { partitions, keep_data, force, reason, caller } = request;
        let found =
            self.asked(&caller, move |state| Ok(prepare_wipe(state, &asset, &partitions, at)?)).await?;
        let (command, preview) = match found {
            Asked::First(found) => found,
            Asked::Again(known) => {
                let reply = known.partitions();
                return Ok((WipePreview { count: reply.removed, ..WipePreview::default() }, reply));
            }
        };
        let command = WipePartitions { keep_data, force, reason, caller, ..command };
        Ok((preview, self.ask(command).await?))
    }

    /// Says how partitions fare; answers when that is durable, and the same if it was asked before.
    pub async fn mark_partitions(
        &self,
        asset: AssetKey,
        partitions: PartitionsOf,
        outcome: AttemptOutcome,
        reason: String,
        caller: Caller,
    ) -> Result<PartitionsReply, Error> {
        let mut tries = 1;
        loop {
            let (asset, partitions, at) = (asset.clone(), partitions.clone(), self.now());
            let prepare = move |state: &State| Ok(prepare_mark(state, &asset, &partitions, outcome, at)?);
            let mut command = match self.asked(&caller, prepare).await? {
                Asked::First(command) => command,
                Asked::Again(known) => return Ok(known.partitions()),
            };
            command.reason.clone_from(&reason);
            command.caller.clone_from(&caller);
            match self.ask(command).await {
                Err(Error::Refused(Refusal::StalePlan(_))) if tries < MAX_TRIES => tries += 1,
                answered => return answered,
            }
        }
    }

    /// Gives what was made of an asset to another name; answers when that is durable. Data follows a moment later, and
    /// nothing that makes or reads it is handed out before.
    pub async fn rename_asset(&self, from: AssetKey, to: AssetKey, caller: Caller) -> Result<Change, Error> {
        self.ask(RenameAsset { from, to, caller }).await
    }

    /// Undoes a wipe that kept the data, or a mark; the last one of the asset that can be undone if none is named.
    pub async fn restore_partitions(
        &self,
        asset: AssetKey,
        change: Option<EventId>,
        caller: Caller,
    ) -> Result<PartitionsReply, Error> {
        self.ask(RestorePartitions { asset, change, caller }).await
    }
}
