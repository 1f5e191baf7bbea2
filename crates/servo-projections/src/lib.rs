//! Parquet tables, manifests, recovery and rebuild: what the state leaves on disk for readers and for its own restart.
//!
//! **Owns** the form of the tables (a contract with everybody who queries them), the files that make them up, the
//! manifests that name those files, and the way back from the log.
//!
//! **Refuses** to decide anything. Rows come in as the engine made them and go out the same.
//!
//! **Guarantees**
//! - Nothing is visible before its manifest is. A crash, a full disk or a fenced writer leaves the tables as the
//!   newest manifest says; changes that could not be written go out with the next flush.
//! - [`Projection::hot_rows`] gives exactly the rows that the state had when the manifest was written.
//! - A row is rewritten a handful of times in its life, and a page of old runs reads a few row groups, whatever the
//!   length of history (P8).
//! - No listing, except where a person asks for maintenance (P6).
//! - Size and checksum of every part of a file are verified before it is parsed. A bad file is [`Error::Damaged`],
//!   named, with the way out; a newer one is [`Error::Newer`]. Never a panic, never silence.
//!
//! Files: each **hot** table is a base snapshot and L0 deltas on top, with tombstones. Rows that do not change any more
//! lie in **history**: ended runs with their tasks and edges, in the order in which they were asked for, older
//! deployments, and the tables that only grow. Which tables there are, and their columns, is declared by the engine
//! ([`servo_engine::tables!`]); nothing here names one unless it is asked for by name.
//!
//! ```
//! use std::sync::Arc;
//! use servo_core::Timestamp;
//! use servo_engine::State;
//! use servo_projections::{Compactor, Limits, Projection, RunFilter};
//! use servo_store::{Blobs, Layout, MemoryBlobs, SystemPutIds};
//!
//! # let rt = tokio::runtime::Builder::new_current_thread().build()?;
//! # rt.block_on(async {
//! let layout = Layout::new("acme".parse()?, "main".parse()?);
//! let blobs: Arc<dyn Blobs> = Arc::new(MemoryBlobs::in_memory(&layout));
//! let mut state = State::new(layout.tenant().clone(), layout.workspace().clone());
//!
//! let (limits, put_ids) = (Limits::default(), Arc::new(SystemPutIds::default()));
//! let mut compactor = Compactor::open(blobs.clone(), layout.clone(), 1, limits, put_ids).await?;
//! compactor.flush(state.take_delta(), Timestamp::from_millis(1)).await?;
//!
//! let projection = Projection::open_latest(blobs, layout).await?.expect("something has been published");
//! assert_eq!(projection.hot_rows().await?, state.rows());
//! assert!(projection.runs_after(None, 50, &RunFilter::default()).await?.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod audit;
mod backfill_filter;
mod batch;
mod checks;
mod compactor;
mod conflicts;
mod costs;
mod deployments;
mod encode;
mod error;
mod files;
mod history;
mod history_retention;
mod hot;
mod immutable;
mod key_file;
mod limits;
mod lineage;
mod manifest;
mod manifests;
mod newest;
mod open_file;
mod projection;
pub mod rebuild;
mod request_keys;
mod retention;
mod run_filter;
mod run_keys;
mod segments;
mod status_file;
mod table;
#[cfg(test)]
mod tests;
mod tiers;
mod value;
mod writer;

pub use audit::AuditFilter;
pub use backfill_filter::BackfillFilter;
pub use checks::{CheckFilter, CheckPlace, NoPlace, newest_first as newest_checks_first};
pub use compactor::Compactor;
pub use costs::{CostFilter, CostGroup, CostGrouping, CostSum, CostTotals};
pub use deployments::DefinitionsAsOf;
pub use error::Error;
pub use files::MetadataCache;
pub use history::merge_page;
pub use limits::Limits;
pub use lineage::{LineageSide, Wanted};
pub use manifest::{BaseSnapshot, Dedup, FileRef, L0Delta, L0Limits, Manifest, TableFiles, Watermarks};
pub use projection::Projection;
pub use run_filter::{RunFilter, RunOrder};
pub use table::{SCHEMA_VERSION, TABLES};
