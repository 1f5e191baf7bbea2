//! Which assets selections mean, and what is said about names that match nothing.

use servo_core::AssetKey;
use servo_core::selection::{AssetGraph, AssetInfo, GraphError, Selection};

fn asset(key: &str) -> AssetInfo {
    AssetInfo::new(AssetKey::parse(key).unwrap())
}

/// raw.flights, raw.weather → analytics.delays → analytics.weekly → report.weekly; raw.flights → report.map
fn airline() -> AssetGraph {
    let mut delays = asset("analytics.delays");
    delays.tags =
        [("team", "ops"), ("tier", "gold")].map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    delays.owners = vec!["ops@example.org".to_owned(), "ann".to_owned()];
    let mut weekly = asset("analytics.weekly");
    weekly.group = Some("weekly reports".to_owned());
    weekly.tags = [("team".to_owned(), "bi".to_owned())].into();
    let mut flights = asset("raw.flights");
    flights.kinds = vec!["python".to_owned(), "parquet".to_owned()];
    let assets = vec![
        delays,                 // 0
        weekly,                 // 1
        flights,                // 2
        asset("raw.weather"),   // 3
        asset("report.map"),    // 4
        asset("report.weekly"), // 5
    ];
    let upstream = vec![vec![2, 3], vec![0], vec![], vec![], vec![2], vec![1]];
    AssetGraph::new(assets, upstream).unwrap()
}

fn selected(graph: &AssetGraph, text: &str) -> Vec<usize> {
    let set =
        Selection::parse(text).unwrap().evaluate(graph).unwrap_or_else(|error| panic!("{text}: {error}"));
    let positions: Vec<_> = set.positions().collect();
    assert_eq!(set.len(), positions.len());
    assert!(positions.iter().all(|position| set.contains(*position)));
    positions
}

#[test]
fn selections_mean_sorted_positions() {
    let graph = airline();
    for (text, expected) in [
        ("analytics.delays", &[0][..]),
        ("analytics/delays", &[0]),
        ("*", &[0, 1, 2, 3, 4, 5]),
        ("analytics.*", &[0, 1]),
        ("*.weekly", &[1, 5]),
        ("r*.*", &[2, 3, 4, 5]),
        ("raw.fl?ghts", &[2]),
        ("r*.?a?", &[4]),
        ("+analytics.delays", &[0, 2, 3]),
        ("analytics.delays+", &[0, 1, 5]),
        ("+analytics.delays+", &[0, 1, 2, 3, 5]),
        ("1+analytics.weekly", &[0, 1]),
        ("2+analytics.weekly", &[0, 1, 2, 3]),
        ("raw.flights+1", &[0, 2, 4]),
        ("1+analytics.weekly+1", &[0, 1, 5]),
        ("raw.flights+2", &[0, 1, 2, 4]),
        ("+(report.map or raw.weather)", &[2, 3, 4]),
        ("1+(raw.weather+1)", &[0, 2, 3]),
        ("tag:team", &[0, 1]),
        ("tag:team=ops", &[0]),
        ("tag:t*=*", &[0, 1]),
        ("tag:tier=bi", &[]),
        ("tag:team=OPS", &[]),
        ("group:\"weekly reports\"", &[1]),
        ("group:weekly*", &[1]),
        ("group:*", &[1]),
        ("owner:ann", &[0]),
        ("owner:*@example.org", &[0]),
        ("kind:parquet", &[2]),
        ("kind:nothing", &[]),
        ("tag:team+1", &[0, 1, 5]),
        ("not raw.*", &[0, 1, 4, 5]),
        ("not *", &[]),
        ("not not report.map", &[4]),
        ("raw.*,report.map", &[2, 3, 4]),
        ("+report.weekly and not raw.*", &[0, 1, 5]),
        ("raw.* and report.*", &[]),
        ("raw.flights or report.* and *.weekly", &[2, 5]),
        ("raw.* and not (raw.flights or +report.weekly)", &[]),
    ] {
        assert_eq!(selected(&graph, text), expected, "{text}");
    }
}

#[test]
fn names_that_match_nothing_come_with_near_misses() {
    let graph = airline();
    let missing = "see the names with \"servo asset list\"";
    for (text, message) in [
        ("analytics.delay", "no asset matches analytics.delay: did you mean analytics.delays?".to_owned()),
        ("analytics.dealys", "no asset matches analytics.dealys: did you mean analytics.delays?".to_owned()),
        ("Analytics.Delays", "no asset matches Analytics.Delays: did you mean analytics.delays?".to_owned()),
        ("raw.delays", "no asset matches raw.delays: did you mean analytics.delays?".to_owned()),
        (
            "raw.weekly",
            "no asset matches raw.weekly: did you mean analytics.weekly or report.weekly?".to_owned(),
        ),
        ("delays", "delays has no namespace: did you mean analytics.delays?".to_owned()),
        ("weekyl", "weekyl has no namespace: did you mean analytics.weekly or report.weekly?".to_owned()),
        (
            "nowhere",
            "nowhere has no namespace: write namespace.nowhere, or *.nowhere for every namespace".to_owned(),
        ),
        ("week*", "week* has no namespace: did you mean *.week*?".to_owned()),
        ("not raw.flight", "no asset matches raw.flight: did you mean raw.flights?".to_owned()),
        ("raw.* and not (raw.flights or +raw.gone)", format!("no asset matches raw.gone: {missing}")),
        ("not delays", "delays has no namespace: did you mean analytics.delays?".to_owned()),
        ("analytcs.*", "no asset matches analytcs.*: did you mean analytics.*?".to_owned()),
        ("raw.week*", "no asset matches raw.week*: did you mean analytics.week* or report.week*?".to_owned()),
        ("other.*", format!("no asset matches other.*: {missing}")),
        ("an*.delayz", "no asset matches an*.delayz: did you mean analytics.delays?".to_owned()),
        ("x*.y*", format!("no asset matches x*.y*: {missing}")),
        ("other.thing", format!("no asset matches other.thing: {missing}")),
        (
            "kind:none and +raw.flight, raw.wether or raw.flight",
            "no asset matches raw.flight: did you mean raw.flights?; \
             no asset matches raw.wether: did you mean raw.weather?"
                .to_owned(),
        ),
    ] {
        let error = Selection::parse(text).unwrap().evaluate(&graph).expect_err(text);
        assert_eq!(error.to_string(), message, "{text}");
    }
}

#[test]
fn only_the_first_ten_misses_are_reported() {
    let text: Vec<_> = (0..25).map(|index| format!("raw.x{index}")).collect();
    let error = Selection::parse(&text.join(",")).unwrap().evaluate(&airline()).unwrap_err();
    assert_eq!((error.unmatched.len(), error.more), (10, 15));
    assert!(error.to_string().ends_with("; and 15 more that match nothing"), "{error}");
}

#[test]
fn an_empty_graph_has_nothing_to_match() {
    let graph = AssetGraph::new(vec![], vec![]).unwrap();
    assert_eq!(selected(&graph, "not kind:table"), [0usize; 0]);
    assert!(Selection::parse("*").unwrap().evaluate(&graph).is_err());
}

#[test]
fn cycles_end() {
    let assets = ["a.a", "a.b", "a.c", "a.d"].map(asset).to_vec();
    let graph = AssetGraph::new(assets, vec![vec![2, 0], vec![0, 0], vec![1], vec![2]]).unwrap();
    assert_eq!(selected(&graph, "+a.a"), [0, 1, 2]);
    assert_eq!(selected(&graph, "a.a+"), [0, 1, 2, 3]);
    assert_eq!(selected(&graph, "1+a.a"), [0, 2]);
    assert_eq!(selected(&graph, "4294967295+a.a+4294967295"), [0, 1, 2, 3]);
}

#[test]
fn namespaces_that_are_prefixes_of_each_other_are_kept_apart() {
    let names = ["a-.x", "a.x", "a0.x", "a_.x", "aa.x"];
    let graph = AssetGraph::new(names.map(asset).to_vec(), vec![vec![]; 5]).unwrap();
    for (position, name) in names.iter().enumerate() {
        assert_eq!(selected(&graph, name), [position]);
        assert_eq!(selected(&graph, &name.replace('x', "*")), [position]);
    }
}

#[test]
fn a_graph_checks_its_parts() {
    let error = |assets: &[&str], upstream| {
        AssetGraph::new(assets.iter().map(|key| asset(key)).collect(), upstream).unwrap_err()
    };
    assert_eq!(
        error(&["b.b", "a.a"], vec![vec![]; 2]).to_string(),
        "asset a.a comes after b.b: sort the assets by key, each once"
    );
    assert!(matches!(error(&["a.a", "a.a"], vec![vec![]; 2]), GraphError::NotSorted { .. }));
    assert_eq!(
        error(&["a.a"], vec![]).to_string(),
        "0 lists of upstream assets for 1 assets: give one for each"
    );
    assert_eq!(
        error(&["a.a"], vec![vec![1]]).to_string(),
        "asset a.a depends on position 1, but there are 1 assets"
    );
}

/// 10 layers of 1,000 assets, each reading three of the layer before.
fn layers() -> AssetGraph {
    let assets =
        (0..10_000).map(|index| asset(&format!("layer{}.asset_{:03}", index / 1_000, index % 1_000)));
    let upstream = (0..10_000u32).map(|index| match index.checked_sub(1_000) {
        None => vec![],
        Some(below) => (0..3).map(|step| below / 1_000 * 1_000 + (below + step) % 1_000).collect(),
    });
    AssetGraph::new(assets.collect(), upstream.collect()).unwrap()
}

#[test]
fn a_graph_of_ten_thousand_assets_is_evaluated() {
    let graph = layers();
    assert_eq!(selected(&graph, "*").len(), 10_000);
    assert_eq!(selected(&graph, "+layer9.*").len(), 10_000);
    assert_eq!(
        selected(&graph, "+layer9.asset_500").len(),
        (0..10).map(|layer| 2 * layer + 1).sum::<usize>()
    );
    assert_eq!(selected(&graph, "2+layer9.asset_500+1").len(), 1 + 3 + 5);
    assert_eq!(selected(&graph, "layer0.asset_500+").len(), 100);
    assert_eq!(selected(&graph, "+*.asset_?00+ and not layer?.*"), [0usize; 0]);
    let error = Selection::parse("layer3.aset_123").unwrap().evaluate(&graph).unwrap_err();
    assert_eq!(error.unmatched[0].near_misses[0], "layer3.asset_123");
}
