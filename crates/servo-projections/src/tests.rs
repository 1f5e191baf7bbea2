//! Tests of the crate as a whole, grouped by what they are about.

mod compaction;
mod corpus;
mod damage;
mod duckdb;
mod fencing;
mod generate;
mod kept;
mod paging;
mod rebuilding;
mod round_trip;
mod run_keys;
mod sdk;
mod support;
mod tables;
mod workload;
