//! Reading the tables as one manifest has them.

use std::sync::Arc;

use servo_engine::rows::{
    AuditRow, DynamicPartitionRow, MaterializationRow, PartitionStatusRow, QuarantineRow, RemovalRow,
    Row as _, TaskCostRow,
};
use servo_engine::{HotRows, RestoredStatuses};
use servo_store::{Blobs, Layout};
use tokio::runtime::Handle;

use crate::error::Error;
use crate::files::{Files, MetadataCache};
use crate::hot::{self, Changes};
use crate::immutable::Cursor;
use crate::manifest::Manifest;
use crate::manifests::Manifests;
use crate::table::StoredRow;
use crate::{request_keys, run_keys, status_file};

/// The tables at one moment. Cheap to clone; never changes.
#[derive(Clone)]
pub struct Projection {
    pub(crate) files: Files,
    pub(crate) manifest: Arc<Manifest>,
}

impl Projection {
    /// The newest manifest's tables; none if nothing has been published yet.
    pub async fn open_latest(blobs: Arc<dyn Blobs>, layout: Layout) -> Result<Option<Projection>, Error> {
        let manifests = Manifests { blobs: Arc::clone(&blobs), layout };
        let manifest = manifests.newest().await?;
        Ok(manifest.map(|manifest| Self::from_manifest(blobs, Arc::new(manifest), Arc::default())))
    }

    /// The tables of a manifest already read. Share `cache` between the projections of a workspace.
    pub fn from_manifest(
        blobs: Arc<dyn Blobs>,
        manifest: Arc<Manifest>,
        cache: Arc<MetadataCache>,
    ) -> Projection {
        Self { files: Files { blobs, cache }, manifest }
    }

    /// The manifest it reads.
    pub fn manifest(&self) -> &Arc<Manifest> {
        &self.manifest
    }

    /// Materializations that wait for review, by asset and materialization.
    pub async fn quarantine(&self) -> Result<Vec<QuarantineRow>, Error> {
        let mut rows: Vec<QuarantineRow> = hot::merged(&self.files, &self.manifest).await?;
        rows.retain(|row| row.approved_event_id.is_none());
        Ok(rows)
    }

    /// Every materialization there ever was, oldest file first. Reads all of history: for checks, not for pages.
    pub async fn materializations(&self) -> Result<Vec<MaterializationRow>, Error> {
        self.whole().await
    }

    /// Every act there ever was, oldest file first. Reads all of history: for checks, not for pages.
    pub async fn audit(&self) -> Result<Vec<AuditRow>, Error> {
        self.whole().await
    }

    /// What every attempt cost there ever was, oldest file first. Reads all of history: for checks, not for pages.
    pub async fn task_costs(&self) -> Result<Vec<TaskCostRow>, Error> {
        self.whole().await
    }

    /// Every removal there ever was, oldest file first. Reads all of history: for checks, not for pages.
    pub async fn removals(&self) -> Result<Vec<RemovalRow>, Error> {
        self.whole().await
    }

    async fn whole<R: StoredRow>(&self) -> Result<Vec<R>, Error> {
        let mut rows = Vec::new();
        for file in self.manifest.immutable(R::TABLE) {
            let mut cursor = Cursor::<R>::open(&self.files, file).await?;
            while let Some(row) = cursor.next().await? {
                rows.push(row);
            }
        }
        Ok(rows)
    }

    /// The status of every partition, sorted by asset and partition.
    pub async fn partition_status(&self) -> Result<Vec<PartitionStatusRow>, Error> {
        hot::merged(&self.files, &self.manifest).await
    }

    /// The keys of dynamic partitions, sorted by name and key.
    pub async fn dynamic_partitions(&self) -> Result<Vec<DynamicPartitionRow>, Error> {
        hot::merged(&self.files, &self.manifest).await
    }

    /// All rows that recovery needs but those of partitions, whose statuses are restored without them: there may be
    /// millions.
    pub async fn restorable(&self) -> Result<(HotRows, RestoredStatuses), Error> {
        let mut manifest = Manifest::clone(&self.manifest);
        let base = manifest.base_snapshot.iter_mut().map(|base| &mut base.tables);
        let deltas = manifest.l0_deltas.iter_mut().map(|delta| &mut delta.tables);
        base.chain(deltas).for_each(|tables| drop(tables.remove(PartitionStatusRow::TABLE)));
        let others = Self { files: self.files.clone(), manifest: Arc::new(manifest) };
        Ok((others.hot_rows().await?, self.statuses().await?))
    }

    /// The status of every partition, from files of packed statuses as far as there are some.
    pub(crate) async fn statuses(&self) -> Result<RestoredStatuses, Error> {
        let mut statuses = RestoredStatuses::default();
        let packed = self.manifest.base_snapshot.as_ref().map(|base| &base.packed_statuses);
        let (base, deltas) = hot::base_and_deltas::<PartitionStatusRow>(&self.manifest);
        for file in base {
            match packed.and_then(|packed| packed.get(&file.path)) {
                Some(packed) => status_file::restore(&self.files, packed, &mut statuses).await?,
                None => {
                    let add = |row: &PartitionStatusRow| statuses.add(row);
                    hot::for_each(&self.files, file, add).await?;
                }
            }
        }
        let changes = Changes::<PartitionStatusRow>::of(&self.files, deltas.into_iter()).await?;
        changes.into_changes().for_each(|(key, row, is_new)| statuses.change(key, row, is_new));
        Ok(statuses)
    }

    /// All rows that recovery needs: equal to `State::rows` when the manifest was written.
    pub async fn hot_rows(&self) -> Result<HotRows, Error> {
        let (files, manifest) = (self.files.clone(), Arc::clone(&self.manifest));
        let keys = async move {
            let idempotency = request_keys::idempotency(&files, &manifest).await?;
            Ok::<_, Error>((idempotency, request_keys::answers(&files, &manifest).await?))
        };
        let (run_keys, run_keys_evicted) = run_keys::newest(&self.files, &self.manifest).await?;
        let (idempotency, answers, hot);
        if let Ok(runtime) = Handle::try_current() {
            // Decoding a million keys takes a core; the hot tables need not wait for it.
            let keys = runtime.spawn(keys);
            hot = hot::read_all(&self.files, &self.manifest).await?;
            (idempotency, answers) = match keys.await {
                Ok(keys) => keys?,
                Err(failure) => std::panic::resume_unwind(failure.into_panic()),
            };
        } else {
            hot = hot::read_all(&self.files, &self.manifest).await?;
            (idempotency, answers) = keys.await?;
        }
        Ok(HotRows { run_keys, run_keys_evicted, idempotency, answers, ..hot })
    }
}
