//! The values from outside, in one binary.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic like tests do")]

mod canonical_values;
mod cron;
mod cron_properties;
mod cron_syntax;
mod golden;
mod mapping_checks;
mod mappings;
mod mappings_properties;
mod partition_sets;
mod partition_texts;
mod partitions;
mod partitions_cron;
mod partitions_oracle;
mod partitions_properties;
mod properties;
mod schedules_oracle;
mod selection_evaluation;
mod selection_properties;
mod selection_syntax;
mod support;
mod time_zones;
