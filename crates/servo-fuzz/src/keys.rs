//! Keys, ids and partitions.

use std::collections::BTreeMap;
use std::fmt::{Debug, Display};
use std::str::FromStr;
use std::sync::LazyLock;

use servo_core::partitions::{PartitionContext, Span};
use servo_core::{
    AssetId, AssetKey, AttemptId, EventId, Fingerprint, MaterializationId, PartitionKey, PartitionValue,
    Partitions, PartitionsDef, PlanId, PutId, RunId, TaskKey, TenantId, Timestamp, WorkspaceId,
};

/// Keys and ids of every kind: each has one text. Those that are read in other forms print one that is read again.
pub fn names(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    one_text::<AssetId>(text);
    one_text::<AttemptId>(text);
    one_text::<EventId>(text);
    one_text::<Fingerprint>(text);
    one_text::<MaterializationId>(text);
    one_text::<PlanId>(text);
    one_text::<PutId>(text);
    one_text::<RunId>(text);
    one_text::<TaskKey>(text);
    one_text::<TenantId>(text);
    one_text::<WorkspaceId>(text);
    reads_back::<AssetKey>(text);
    reads_back::<Timestamp>(text);
    if let Ok(task) = TaskKey::parse(text) {
        assert_eq!(TaskKey::new(&task.asset(), task.partition().as_ref(), task.operation()), task);
    }
}

fn one_text<T: FromStr + Display>(text: &str) {
    if let Ok(value) = text.parse::<T>() {
        assert_eq!(value.to_string(), text);
    }
}

fn reads_back<T: FromStr + Display + PartialEq + Debug>(text: &str) {
    if let Ok(value) = text.parse::<T>() {
        let printed = value.to_string();
        assert_eq!(printed.parse::<T>().ok().as_ref(), Some(&value), "{text:?} prints as {printed:?}");
    }
}

/// A partition key in its canonical form, and a single value.
pub fn partition_key(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(value) = PartitionValue::parse(text) {
        assert_eq!(value.canonical().as_deref(), Ok(text));
    }
    let key = match PartitionKey::parse(text) {
        Ok(key) => key,
        Err(error) => {
            assert!(error.at <= text.chars().count(), "{error}");
            return;
        }
    };
    assert_eq!(key.canonical(), text);
    assert_eq!(PartitionKey::new(&key.dims()).as_ref(), Ok(&key));
    assert!(!key.to_string().is_empty());
    let json = serde_json::to_string(&key).expect("a key is text");
    assert_eq!(serde_json::from_str::<PartitionKey>(&json).ok().as_ref(), Some(&key));
}

/// Definitions of every kind.
static PARTITIONS: LazyLock<Vec<Partitions>> = LazyLock::new(|| {
    let span = || Span::new("2013-01-01").in_zone("Europe/Amsterdam");
    let hours = || Span::new("2013-01-01T00:00").in_zone("Europe/Amsterdam");
    let days = PartitionsDef::Daily { span: span() };
    let regions =
        PartitionsDef::Static { keys: ["us-east", "eu, west", "2013", "a..b"].map(str::to_owned).into() };
    let tables = PartitionsDef::Dynamic { name: "tables".to_owned() };
    let dims = [("date", days.clone()), ("region", regions.clone()), ("table", tables.clone())];
    let dims = dims.into_iter().map(|(name, def)| (name.to_owned(), def)).collect();
    let all = [
        days,
        PartitionsDef::Hourly { span: hours() },
        PartitionsDef::Weekly { weekday: 1, span: span() },
        PartitionsDef::Monthly { day: 1, span: span() },
        PartitionsDef::Cron { cron: "30 2 * * *".to_owned(), span: hours() },
        regions,
        tables,
        PartitionsDef::Multi { dims },
    ];
    all.iter().map(|def| def.validate().expect("a definition that makes sense")).collect()
});

/// A key or a range of keys as people type them: what is read prints as a key that is read as the same one.
pub fn partition_text(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // The text itself is a dynamic key, so that any text can be one.
    let keys: std::collections::BTreeSet<String> = ["events", text].map(str::to_owned).into();
    let dynamic = BTreeMap::from([("tables".to_owned(), keys.into_iter().collect::<Vec<_>>())]);
    let now: Timestamp = Timestamp::from_millis(1_735_689_600_000);
    let moment = PartitionContext::new(now, &dynamic);
    for partitions in PARTITIONS.iter() {
        if let Ok(set) = partitions.parse_range(text, moment) {
            assert!(set.len() <= partitions.count(moment), "{text:?} is more than there is");
        }
        if let Ok(set) = partitions.parse_named(text, moment) {
            assert!(set.len() <= partitions.count(moment), "{text:?} names more than there is");
        }
        let Ok(partial) = partitions.parse_key(text) else { continue };
        if let Ok(set) = partial.set(moment) {
            assert!(set.len() <= partitions.count(moment));
        }
        let Some(key) = partial.key() else { continue };
        for form in [key.canonical().to_owned(), key.to_string()] {
            let again = partitions.parse_key(&form);
            let again = again.unwrap_or_else(|error| panic!("{text:?} prints as {form:?}: {error}"));
            assert_eq!(again.key().as_ref(), Some(&key), "{text:?} prints as {form:?}");
        }
        if let Ok(index) = partitions.index_of(&key, moment) {
            assert_eq!(partitions.key(index, moment).as_ref(), Some(&key));
        }
    }
}
