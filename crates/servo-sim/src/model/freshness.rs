//! Freshness, decided again from what was made (ADR-141). Simulated policies are of assets without partitions, and their
//! deadlines, if they have some, are every minute.

use std::collections::BTreeMap;

use serde_json::Value;
use servo_core::{Millis, Timestamp};
use servo_engine::HotRows;

use super::compare::Differences;
use super::follow::{Judged, Rejection, only_if};
use super::log::{list, number, text, texts, time};
use super::{Event, Made, Model};

/// The time between two ticks of a deadline.
const TICK: i64 = 60_000;

/// The freshness of an asset, as it was last decided.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Fresh {
    pub is: String,
    pub since: Timestamp,
    pub data_as_of: Option<Timestamp>,
    /// When there is something to look at.
    pub due: Option<Timestamp>,
    pub policy: Value,
    pub deployment: u64,
    /// When its definition last changed: what was never made is as old as that.
    pub defined: Timestamp,
}

/// Freshness by asset.
pub type Freshness = BTreeMap<String, Fresh>;

/// The finding of a look at an asset: its status, since when, how old its data is, and when to look again.
type Found = (&'static str, Timestamp, Option<Timestamp>, Option<Timestamp>);

impl Fresh {
    fn length(&self, name: &str) -> Millis {
        Millis::new(self.policy.get(name).and_then(Value::as_u64).unwrap_or(0))
    }

    fn found(&self, data_as_of: Option<Timestamp>, now: Timestamp) -> Found {
        let next = |at: Timestamp| Timestamp::from_millis((at.as_millis().div_euclid(TICK) + 1) * TICK);
        let base = data_as_of.unwrap_or(self.defined);
        let (lag, warn) = (self.length("max_lag_ms"), self.length("warn_before_ms"));
        let fails_at = match self.policy.get("cron") {
            None => base.saturating_add(lag),
            Some(_) if lag > Millis::ZERO => next(base.saturating_add(lag)),
            Some(_) => next(next(base)),
        };
        let warns_at = fails_at.saturating_sub(warn);
        if now >= fails_at {
            ("FAIL", fails_at, data_as_of, None)
        } else if now >= warns_at {
            ("WARN", warns_at, data_as_of, Some(fails_at))
        } else {
            ("PASS", base, data_as_of, Some(warns_at))
        }
    }
}

impl Model {
    /// Policies come with deployments; those that are new or have changed are looked at.
    pub(super) fn policies_deployed(&mut self, event: &Event) -> Judged {
        let deployment = number(&event.payload, "number")?;
        for asset in list(&event.payload, "upsert") {
            let definition = asset.get("definition").unwrap_or(&Value::Null);
            let key = text(definition, "key")?.to_owned();
            let known = self.freshness.remove(&key);
            let Some(policy) = definition.get("freshness") else { continue };
            let fresh = match known {
                Some(known) if known.policy == *policy => Fresh { defined: event.at, ..known },
                known => Fresh {
                    is: known.as_ref().map_or("UNKNOWN", |known| known.is.as_str()).to_owned(),
                    since: known.as_ref().map_or(event.at, |known| known.since),
                    data_as_of: known.and_then(|known| known.data_as_of),
                    due: Some(event.at),
                    policy: policy.clone(),
                    deployment,
                    defined: event.at,
                },
            };
            self.freshness.insert(key, fresh);
        }
        for key in texts(&event.payload, "removed") {
            self.freshness.remove(key);
        }
        Ok(())
    }

    /// The data that counts may be another one.
    pub(super) fn look_again(&mut self, asset: &str, at: Timestamp) {
        if let Some(known) = self.freshness.get_mut(asset) {
            known.due = Some(at);
        }
    }

    /// Something was made: what is fresh stays so until its deadline.
    pub(super) fn freshen(&mut self, asset: &str, at: Timestamp) {
        if self.freshness.get(asset).is_some_and(|known| known.is != "PASS") {
            self.look_again(asset, at);
        }
    }

    fn policy(&mut self, event: &Event) -> Result<&mut Fresh, Rejection> {
        let asset = text(&event.payload, "asset_key")?;
        self.freshness.get_mut(asset).ok_or(Rejection::Ignored("unknown asset"))
    }

    pub(super) fn freshness_changed(&mut self, event: &Event) -> Judged {
        let payload = &event.payload;
        let (old, new) = (text(payload, "old")?.to_owned(), text(payload, "new")?.to_owned());
        let (deployment, since) = (number(payload, "deployment")?, time(payload, "since")?);
        let known = self.policy(event)?;
        only_if(known.deployment == deployment && known.is == old, "not in that state")?;
        (known.is, known.since) = (new, since);
        (known.data_as_of, known.due) = (time(payload, "data_as_of").ok(), time(payload, "due_at").ok());
        Ok(())
    }

    pub(super) fn freshness_observed(&mut self, event: &Event) -> Judged {
        let deployment = number(&event.payload, "deployment")?;
        let (data, due) = (time(&event.payload, "data_as_of").ok(), time(&event.payload, "due_at").ok());
        let known = self.policy(event)?;
        only_if(known.deployment == deployment, "not in that state")?;
        only_if((known.data_as_of, known.due) != (data, due), "duplicate")?;
        (known.data_as_of, known.due) = (data, due);
        Ok(())
    }

    fn fresh_at(&self, asset: &str, now: Timestamp) -> Option<Found> {
        let latest = self.data.statuses.get(&(asset.to_owned(), None));
        let made = latest.and_then(|status| status.latest.as_ref()).map(Made::data_as_of);
        Some(self.freshness.get(asset)?.found(made, now))
    }

    /// Whether the data of an asset is older than it may be.
    pub(super) fn is_late(&self, asset: &str, now: Timestamp) -> bool {
        self.fresh_at(asset, now).is_some_and(|(status, ..)| status == "FAIL")
    }

    /// Where a look at an asset has found something else than there was.
    pub(super) fn false_freshness(&self, event: &Event) -> Option<String> {
        let is_change = event.kind == "FreshnessChanged";
        if !is_change && event.kind != "FreshnessObserved" {
            return None;
        }
        let payload = &event.payload;
        let asset = text(payload, "asset_key").ok()?;
        let known = self.freshness.get(asset)?;
        let (status, since, data, due) = self.fresh_at(asset, event.at)?;
        let told = (time(payload, "data_as_of").ok(), time(payload, "due_at").ok());
        if known.due.is_none_or(|due| due > event.at) {
            Some(format!("{asset} is due at {:?}", known.due))
        } else if told != (data, due) {
            Some(format!("{asset} is found at {told:?}, should be {:?}", (data, due)))
        } else if is_change != (known.is != status) {
            Some(format!("{asset} was {}, and is {status}", known.is))
        } else if is_change && (text(payload, "new"), time(payload, "since")) != (Ok(status), Ok(since)) {
            Some(format!("{asset} should be {status} since {since}"))
        } else {
            None
        }
    }

    pub(super) fn compare_freshness(&self, found: &mut Differences, rows: &HotRows) {
        let known = rows.freshness_status.iter().map(|row| {
            let (asset, is) = (row.asset_key.canonical().to_owned(), row.status.name().to_owned());
            (asset, is, row.since, row.data_as_of, row.due_at, row.deployment_number)
        });
        let expected = self.freshness.iter().map(|(asset, it)| {
            (asset.clone(), it.is.clone(), it.since, it.data_as_of, it.due, it.deployment)
        });
        found.same_keys("freshness", &known.collect(), &expected.collect());
    }
}
