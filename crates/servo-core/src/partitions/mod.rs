//! Which partitions an asset has: definitions, and counting, naming and finding keys without listing them.
//!
//! [`PartitionsDef`] is what a user declares: plain data with one canonical JSON text. [`PartitionsDef::validate`]
//! reports every problem at once, or gives [`Partitions`], which answers questions about keys.
//!
//! | kind | dimension | value | a key stands for |
//! |---|---|---|---|
//! | hourly | `hour` | `t` | 3,600 seconds from that instant |
//! | daily | `date` | `d` | a local day, of 23, 24 or 25 hours or whatever the zone made of it |
//! | weekly | `week` | `d` | seven local days from that date |
//! | monthly | `month` | `d` | from that date to the same day of the next month |
//! | cron | `tick` | `t` | from that tick of a [cron expression](crate::cron) to the next |
//! | static, dynamic | `partition` | `s` | whatever the user means by it |
//! | multi | the names given | those of its dimensions | one value of each |
//!
//! A time partition exists once its window has closed, `end_offset` windows later or (if negative) earlier;
//! `start` and `end` are both included. Time costs no more for a century than for a day.
//!
//! A [`PartitionSet`] is any set of partitions as ranges of indexes. A [`Mapping`] gives the partitions of one asset
//! that those of another read, and back. [`Partitions::parse_named`] and [`Partitions::parse_range`] read what
//! people type.
//!
//! ```
//! use servo_core::{PartitionsDef, Timestamp, partitions::Span};
//!
//! let days = PartitionsDef::Daily { span: Span::new("2013-01-01").until("2013-12-31") }.validate()?;
//! let now = Timestamp::MAX;
//! assert_eq!(days.count(now), 365);
//! let last = days.key(364, now).unwrap();
//! assert_eq!(last.canonical(), "date=d:2013-12-31");
//! assert_eq!(days.index_of(&last, now)?, 364);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod block;
mod both;
mod bounds;
mod calendar;
mod context;
mod cron;
mod def;
mod dimension;
mod disjoint;
mod error;
mod hourly;
mod indexes;
mod listed;
mod mapping;
mod overlap;
mod packed;
mod partition_set;
mod ranges;
mod set;
mod span;
mod text;
mod time;

pub use crate::zone::check_timezone;
pub use block::{Block, Indexes};
pub use context::PartitionContext;
pub use def::PartitionsDef;
pub use error::{KeyError, Problem, Problems, Reason};
pub use mapping::{DimMapping, Mapped, Mapping, MappingAt, MappingDef, Mismatch, Missing};
pub use packed::PackedPartitions;
pub use partition_set::PartitionSet;
pub use set::Partitions;
pub use span::Span;
pub use text::{PartialKey, Wording};

use crate::zone;
