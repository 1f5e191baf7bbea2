//! Data: reviews, freshness, and partitions without a run.

use servo_core::{EventId, Millis, Timestamp};
use servo_engine::event::{
    FreshnessChanged, FreshnessObserved, KeyList, MaterializationApproved, MaterializationRejected,
    MaterializationReleased, PartitionsExpired, PartitionsMarked, PartitionsRestored, PartitionsWiped,
};
use servo_engine::outputs::materialization_of;
use servo_engine::{AttemptOutcome, EventData, FreshnessStatus};

use super::{asset, attempt_id, days};
use crate::corpus::AT;

pub(super) fn materialization_approved() -> Vec<EventData> {
    let attempt_id = attempt_id();
    let review = |reason: &str| {
        EventData::MaterializationApproved(MaterializationApproved {
            asset_key: asset(),
            materialization_id: materialization_of(attempt_id),
            reason: reason.to_owned(),
        })
    };
    vec![review(""), review("a holiday: \"few\" flights")]
}

pub(super) fn materialization_rejected() -> Vec<EventData> {
    let attempt_id = attempt_id();
    let review = |reason: &str| {
        EventData::MaterializationRejected(MaterializationRejected {
            asset_key: asset(),
            materialization_id: materialization_of(attempt_id),
            reason: reason.to_owned(),
        })
    };
    vec![review(""), review("rows are missing")]
}

pub(super) fn materialization_released() -> Vec<EventData> {
    let attempt_id = attempt_id();
    vec![EventData::MaterializationReleased(MaterializationReleased {
        asset_key: asset(),
        materialization_id: materialization_of(attempt_id),
    })]
}

pub(super) fn freshness_changed() -> Vec<EventData> {
    vec![EventData::FreshnessChanged(FreshnessChanged {
        asset_key: asset(),
        deployment: 7,
        old: FreshnessStatus::Warn,
        new: FreshnessStatus::Fail,
        since: AT,
        data_as_of: Some(AT),
        lag_ms: Some(Millis::from_hours(26)),
        due_at: None,
    })]
}

pub(super) fn freshness_observed() -> Vec<EventData> {
    vec![EventData::FreshnessObserved(FreshnessObserved {
        asset_key: asset(),
        deployment: 7,
        data_as_of: Some(AT),
        due_at: Some(AT),
    })]
}

pub(super) fn partitions_wiped() -> Vec<EventData> {
    let (asset_key, after) = (asset(), EventId::from_parts(1_736_899_200_000, 9));
    let plain = PartitionsWiped {
        asset_key,
        after,
        partitions: Vec::new(),
        count: 1,
        keep_data: false,
        reason: String::new(),
    };
    let full = PartitionsWiped {
        partitions: days(),
        count: 30,
        keep_data: true,
        reason: "größe".to_owned(),
        ..plain.clone()
    };
    vec![EventData::PartitionsWiped(plain), EventData::PartitionsWiped(full)]
}

pub(super) fn partitions_marked() -> Vec<EventData> {
    let (asset_key, after) = (asset(), EventId::from_parts(1_736_899_200_000, 9));
    let plain = PartitionsMarked {
        asset_key,
        after,
        partitions: KeyList::default(),
        outcome: AttemptOutcome::Failed,
        reason: String::new(),
    };
    let days = days();
    let full = PartitionsMarked {
        partitions: KeyList::new(vec![days[0].last().clone(), days[0].from.clone()]),
        outcome: AttemptOutcome::Succeeded,
        reason: "größe".to_owned(),
        ..plain.clone()
    };
    vec![EventData::PartitionsMarked(plain), EventData::PartitionsMarked(full)]
}

pub(super) fn partitions_restored() -> Vec<EventData> {
    vec![EventData::PartitionsRestored(PartitionsRestored {
        asset_key: asset(),
        change: EventId::from_parts(1_736_899_200_000, 9),
        count: 30,
    })]
}

pub(super) fn partitions_expired() -> Vec<EventData> {
    let days = days();
    let plain = PartitionsExpired {
        asset_key: asset(),
        after: EventId::from_parts(1_736_899_200_000, 9),
        made_by: Timestamp::from_millis(1_734_307_200_000),
        partitions: KeyList::default(),
    };
    let full = PartitionsExpired {
        partitions: KeyList::new(vec![days[0].last().clone(), days[0].from.clone()]),
        ..plain.clone()
    };
    vec![EventData::PartitionsExpired(plain), EventData::PartitionsExpired(full)]
}
