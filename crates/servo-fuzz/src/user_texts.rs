//! Texts that people type: selections and cron expressions.

use std::sync::LazyLock;

use servo_core::selection::{AssetGraph, AssetInfo, Selection};
use servo_core::{AssetKey, Cron, Timestamp};

static GRAPH: LazyLock<AssetGraph> = LazyLock::new(|| {
    let assets = ["analytics/delays", "analytics/reports", "raw/flights", "raw/weather"];
    let info = |key: &str| {
        let mut info = AssetInfo::new(AssetKey::parse(key).expect("a key"));
        info.tags.insert("team".to_owned(), "ops".to_owned());
        info.kinds.push("table".to_owned());
        info
    };
    let upstream = vec![vec![2, 3], vec![0], vec![], vec![]];
    AssetGraph::new(assets.into_iter().map(info).collect(), upstream).expect("a graph without cycles")
});

/// A selection: what it prints reads back as the same, and it selects what its parts match.
pub fn selection(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let selection = match Selection::parse(text) {
        Ok(selection) => selection,
        Err(error) => {
            assert!(error.at <= text.chars().count(), "{error}");
            return;
        }
    };
    let printed = selection.to_string();
    assert_eq!(Selection::parse(&printed).as_ref(), Ok(&selection), "{printed}");
    if let Ok(selected) = selection.evaluate(&GRAPH) {
        assert_eq!(selected, selection.expr().matching(&GRAPH), "{printed}");
    }
}

/// Where clocks change, where they do not, and where a day was left out.
const ZONES: [&str; 4] = ["UTC", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"];

/// A cron expression: what it prints reads back as the same, and ticks are numbered in their order.
pub fn cron(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(cron) = Cron::parse(text) else { return };
    assert_eq!(Cron::parse(cron.as_str()).as_ref(), Ok(&cron));
    // Any time, but the same for the same bytes.
    let any = i64::from(crc32fast::hash(bytes)) * 1_000 + 1;
    for zone in ZONES {
        let ticks = cron.in_zone(zone).expect("a zone that there is");
        for at in [Timestamp::MIN, Timestamp::from_millis(any), Timestamp::from_millis(-any), Timestamp::MAX]
        {
            let (previous, next) = (ticks.previous(at), ticks.next(at));
            assert!(previous.is_none_or(|previous| previous <= at), "{cron} in {zone} at {at}");
            assert!(next.is_none_or(|next| next > at), "{cron} in {zone} at {at}");
            for tick in previous.into_iter().chain(next) {
                assert_eq!(ticks.tick(ticks.rank(tick)), Some(tick), "{cron} in {zone}");
            }
            if let (Some(previous), Some(next)) = (previous, next) {
                assert_eq!(ticks.rank(next), ticks.rank(previous) + 1, "{cron} in {zone} at {at}");
                assert_eq!(ticks.next(previous), Some(next), "{cron} in {zone} at {at}");
            }
        }
    }
}
