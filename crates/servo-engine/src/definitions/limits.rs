//! Figures are within their limits, and names that an asset uses exist.

use std::collections::BTreeSet;

use serde_json::Value;
use servo_core::{Millis, to_canonical_string};

use super::manifest::{
    AssetDef, CheckDef, CheckKind, Compute, Location, MANIFEST_VERSION, Manifest, ResourceDef,
};
use super::problem::{self, Report};
use super::{MAX_ASSETS, automation, conditions};
use crate::retry::RetryPolicy;

const SECOND: u64 = 1_000;
const DAY: u64 = 86_400 * SECOND;
/// The longest that an attempt may run, and that a check may take.
const MAX_TIMEOUT: u64 = 7 * DAY;
/// Checks are written into events and envelopes, where they are nested deeper. JSON is read to 127 levels there.
const MAX_SPEC_DEPTH: usize = 32;
const MAX_ATTEMPTS: u32 = 100;
const MILLION: u64 = 1_000_000;
pub(super) const PROVIDERS: [&str; 2] = ["env", "file"];

/// Whether the version and the size of the manifest are supported.
pub(super) fn readable(manifest: &Manifest, report: &mut Report) -> bool {
    if manifest.manifest_version != MANIFEST_VERSION {
        let message = format!(
            "version {} was written by another release; this one reads version {MANIFEST_VERSION}",
            manifest.manifest_version
        );
        report.add(None, "manifest", message, "install the same release of the SDK and of servo");
    }
    if manifest.assets.len() > MAX_ASSETS {
        let message = format!("has {} assets, {MAX_ASSETS} are allowed", manifest.assets.len());
        report.add(None, "manifest", message, "split the project, or use partitions instead of assets");
    }
    report.is_empty()
}

/// Checks the declaration of one asset.
pub(super) fn check(asset: &AssetDef, resources: &[ResourceDef], report: &mut Report) {
    let mut about = About { report, location: &asset.location, subject: problem::asset(&asset.key) };
    if let Some(retry) = &asset.retry {
        check_retry(retry, &mut about);
    }
    if let Some(timeout) = asset.timeout_ms {
        about.within("timeout", timeout, SECOND, MAX_TIMEOUT);
    }
    if let Some(expires_after) = asset.expires_after_ms {
        about.within("expires_after", expires_after, SECOND, 3_660 * DAY);
        if asset.external {
            about.add("is made elsewhere, and cannot expire here", "leave expires_after= out");
        }
    }
    if let Some(freshness) = &asset.freshness {
        if freshness.cron.is_none() || freshness.max_lag_ms > Millis::ZERO {
            about.within("max_lag of freshness", freshness.max_lag_ms, SECOND, 3_660 * DAY);
        }
        if freshness.warn_before_ms > Millis::ZERO {
            about.within("warn_before of freshness", freshness.warn_before_ms, SECOND, 3_660 * DAY);
        }
        if let Some(cron) = &freshness.cron {
            automation::check_cron(cron, freshness.timezone.as_deref(), &mut about);
        }
    }
    let asks_for_nothing = |compute: &Compute| {
        compute.cpu_millicores == Some(0) || compute.memory_bytes == Some(0) || compute.gpus == Some(0)
    };
    if asset.compute.as_ref().is_some_and(asks_for_nothing) {
        about.add("compute asks for nothing", "leave cpu=, memory= or gpus= out instead of 0");
    }
    if asset.single_call && asset.partitions.is_none() {
        about.add(
            "has single_call, and no partitions to be given in one call",
            "declare its partitions=, or leave single_call= out",
        );
    }
    if asset.single_call && asset.multi.is_some() {
        about.add(
            "has single_call, and is made together with other assets",
            "leave single_call= out, or make it with an @asset of its own",
        );
    }
    if let Some(condition) = &asset.automation {
        conditions::check(condition, asset.external, &mut about);
    }
    for name in asset.resources.iter().chain(&asset.io) {
        if !resources.iter().any(|resource| resource.name == *name) {
            about.add(
                format!("uses resource {name}, which is not declared"),
                format!("declare it: servo.resource(\"{name}\", …)"),
            );
        }
    }
    for secret in &asset.secrets {
        if !PROVIDERS.contains(&secret.provider.as_str()) {
            about.add(
                format!("secret {} is kept by {:?}, which is not known", secret.name, secret.provider),
                format!("use one of {}", PROVIDERS.join(", ")),
            );
        }
    }
    let mut names = BTreeSet::new();
    for check in asset.checks.iter() {
        let place = check.location.as_ref().unwrap_or(&asset.location);
        let mut about = About { report: about.report, location: place, subject: about.subject.clone() };
        if !names.insert(&check.name) {
            about.add(format!("has two checks named {}", check.name), "give one of them another name=");
        }
        check_check(check, &mut about);
    }
}

fn check_retry(retry: &RetryPolicy, about: &mut About<'_>) {
    if !(1..=MAX_ATTEMPTS).contains(&retry.max_attempts) {
        about.add(
            format!("retry has max_attempts={}, 1 to {MAX_ATTEMPTS} are allowed", retry.max_attempts),
            "count the first attempt too: 1 is no retry",
        );
    }
    about.within("delay of retry", retry.initial_delay_ms, 0, DAY);
    about.within("max_delay of retry", retry.max_delay_ms, 0, 7 * DAY);
    if retry.initial_delay_ms > retry.max_delay_ms {
        about.add("delay of retry is longer than its max_delay", "raise max_delay=, or lower delay=");
    }
    if !(MILLION..=100 * MILLION).contains(&retry.multiplier_ppm) {
        about.add("backoff of retry is not between 1 and 100", "2 doubles the wait after each failure");
    }
    if retry.jitter_ppm > MILLION {
        about.add("jitter of retry is not between 0 and 1", "0.1 shortens waits by up to a tenth");
    }
}

fn check_check(check: &CheckDef, about: &mut About<'_>) {
    let name = &check.name;
    if name.is_empty() || name.len() > 128 || name.chars().any(char::is_control) {
        about.add(format!("check name {name:?} is not 1 to 128 printable characters"), "give it a name=");
    }
    if let Some(timeout) = check.timeout_ms {
        about.within(&format!("timeout of check {name}"), timeout, SECOND, MAX_TIMEOUT);
    }
    if let Err(error) = to_canonical_string(&check.spec) {
        about.add(format!("check {name} has {error}"), "use whole numbers and texts");
    }
    if check.spec.values().any(|value| nests_deeper(value, MAX_SPEC_DEPTH)) {
        about.add(
            format!("check {name} nests values deeper than {MAX_SPEC_DEPTH} levels"),
            "use a flat list of values",
        );
    }
    let number = |field: &str| check.spec.get(field).and_then(Value::as_i64);
    for (least, most) in [("min", "max"), ("min_ratio_ppm", "max_ratio_ppm")] {
        if let (CheckKind::RowCount, Some(min), Some(max)) = (check.kind, number(least), number(most))
            && min > max
        {
            let (least, most) = (least.trim_end_matches("_ppm"), most.trim_end_matches("_ppm"));
            about.add(format!("check {name} has {least} above {most}: it can never pass"), "swap them");
        }
    }
}

/// Whether a value has more than so many levels of arrays and objects.
fn nests_deeper(value: &Value, levels: usize) -> bool {
    let deeper = |inner: &Value| nests_deeper(inner, levels - 1);
    match value {
        Value::Array(_) | Value::Object(_) if levels == 0 => true,
        Value::Array(values) => values.iter().any(deeper),
        Value::Object(values) => values.values().any(deeper),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Problems of one thing, at one place.
pub(super) struct About<'a> {
    pub(super) report: &'a mut Report,
    pub(super) location: &'a Location,
    pub(super) subject: String,
}

impl About<'_> {
    pub(super) fn add(&mut self, message: impl Into<String>, fix: impl Into<String>) {
        self.report.add(Some(self.location), self.subject.clone(), message, fix);
    }

    pub(super) fn within(&mut self, what: &str, value: Millis, least: u64, most: u64) {
        if !(least..=most).contains(&value.get()) {
            let range = format!("between {} and {}", Millis::new(least), Millis::new(most));
            self.add(format!("{what} is {value}, not {range}"), format!("choose a time {range}"));
        }
    }
}
