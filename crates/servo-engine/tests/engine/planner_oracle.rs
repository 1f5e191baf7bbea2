//! Plans of random graphs, mappings, selections and requests against a brute-force evaluator that shares no code with
//! the planner: it has every partition written out and follows every reason until nothing is added.

mod brute;
pub(crate) mod drawn;
pub(crate) mod world;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::json;
use servo_core::partitions::PartitionContext;
use servo_core::selection::Selection;
use servo_core::{AssetKey, MaterializationId, PartitionKey, TenantId, Timestamp, WorkspaceId};
use servo_engine::TaskSpec;
use servo_engine::definitions::{Definitions, Manifest};
use servo_engine::planner::{
    Materializations, PartitionChoice, PlanContext, PlanRequest, Planned, PlanningError, Why, plan,
};

use brute::{Brute, Select, Text, Time};
use drawn::{Drawn, assets, described, drawn};
use world::{Asset, DAY, Part, january, name};

/// The definitions; none if functions of several outputs wait for each other.
fn definitions(assets: &[Asset]) -> Option<Definitions> {
    let manifest = json!({ "manifest_version": 1, "project": "p", "assets": described(assets) });
    let manifest: Manifest = serde_json::from_value(manifest).unwrap();
    match Definitions::check(manifest) {
        Ok(definitions) => Some(definitions),
        Err(problems) => {
            assert!(problems.to_string().contains("waits for itself"), "{problems}");
            None
        }
    }
}

fn select() -> impl Strategy<Value = Select> {
    let leaf = prop_oneof![8 => (0..6usize).prop_map(Select::One), 1 => Just(Select::Tagged), 1 => Just(Select::All)];
    leaf.prop_recursive(4, 12, 3, |inner| {
        let steps = || prop_oneof![2 => Just(None), 3 => Just(Some(0)), 1 => (1..3u32).prop_map(Some)];
        prop_oneof![
            4 => (steps(), steps(), inner.clone()).prop_map(|(up, down, of)| {
                let up = if down.is_none() { up.or(Some(0)) } else { up };
                Select::Neighbours { up, down, of: Box::new(of) }
            }),
            3 => proptest::collection::vec(inner.clone(), 2..4).prop_map(Select::Or),
            2 => proptest::collection::vec(inner.clone(), 2..3).prop_map(Select::And),
            1 => inner.prop_map(|part| Select::Not(Box::new(part))),
        ]
    })
}

/// Names of assets that there are.
fn fitted(select: &Select, assets: usize) -> Select {
    let all = |parts: &[Select]| parts.iter().map(|part| fitted(part, assets)).collect();
    match select {
        Select::One(asset) => Select::One(asset % assets),
        Select::All | Select::Tagged => select.clone(),
        Select::Neighbours { up, down, of } => {
            Select::Neighbours { up: *up, down: *down, of: Box::new(fitted(of, assets)) }
        }
        Select::Not(part) => Select::Not(Box::new(fitted(part, assets))),
        Select::And(parts) => Select::And(all(parts)),
        Select::Or(parts) => Select::Or(all(parts)),
    }
}

fn texts() -> impl Strategy<Value = Vec<Text>> {
    let day = || prop_oneof![8 => 10..15i64, 1 => 3..18i64].prop_map(january);
    let time = || {
        prop_oneof![
            8 => day().prop_map(Time::Day),
            1 => (1..5usize).prop_map(Time::Month),
            2 => (day(), 0..24i64).prop_map(|(day, hour)| Time::Hour(day, hour)),
        ]
    };
    let text = prop_oneof![
        8 => time().prop_map(Text::Time),
        3 => (proptest::option::of(time()), proptest::option::of(time())).prop_map(|(from, to)| Text::Range(from, to)),
        1 => (0..2usize).prop_map(Text::Key),
        1 => (day(), 0..2usize).prop_map(|(day, key)| Text::Both(day, key)),
    ];
    prop_oneof![1 => Just(Vec::new()), 9 => proptest::collection::vec(text, 1..3)]
}

struct FixedMaterializations<'w>(&'w [Asset], &'w BTreeSet<(usize, Part)>);

impl Materializations for FixedMaterializations<'_> {
    fn of<'s>(
        &'s self,
        asset: &AssetKey,
    ) -> Box<dyn Iterator<Item = (Option<PartitionKey>, MaterializationId)> + 's> {
        let position = usize::from(asset.name().as_bytes()[0] - b'a');
        let of = self.1.iter().filter(move |(asset, _)| *asset == position);
        Box::new(of.map(move |(_, part)| {
            let key = self.0[position].key(part).map(|key| PartitionKey::parse(&key).unwrap());
            (key, MaterializationId::from_u128(1))
        }))
    }
}

/// A request in a world.
struct Case {
    assets: Vec<Asset>,
    definitions: Definitions,
    texts: Vec<Text>,
    latest: bool,
    materialized: BTreeSet<(usize, Part)>,
    now: i64,
}

impl Case {
    fn plan(&self, select: &Select) -> Result<Planned, PlanningError> {
        let of = |is_range: bool| {
            self.texts.iter().filter(move |text| text.is_range() == is_range).map(Text::text).collect()
        };
        let partitions = PartitionChoice {
            keys: of(false),
            ranges: of(true),
            latest: self.latest,
            ..PartitionChoice::default()
        };
        let selection = Selection::parse(&select.text()).unwrap_or_else(|error| panic!("{}", error.caret()));
        let operation = servo_core::Operation::Materialize;
        let config = BTreeMap::new();
        let request = PlanRequest { selection, operation, partitions, config, no_retry: false };
        let (tenant, workspace) = (TenantId::parse("acme").unwrap(), WorkspaceId::parse("prod").unwrap());
        let context = PlanContext {
            tenant: &tenant,
            workspace: &workspace,
            at: PartitionContext::from(Timestamp::from_millis(self.now * 1_000)),
            materializations: &FixedMaterializations(&self.assets, &self.materialized),
            max_tasks: 1_000_000,
        };
        plan(&self.definitions, &request, &context)
    }

    fn brute(&self) -> Brute<'_> {
        Brute {
            assets: &self.assets,
            texts: &self.texts,
            latest: self.latest,
            materialized: &self.materialized,
        }
    }

    fn task_key(&self, (asset, part): &(usize, Part)) -> String {
        let partition = self.assets[*asset].key(part).map_or_else(String::new, |key| format!("[{key}]"));
        format!("n/{}{partition}:materialize", name(*asset))
    }
}

/// Tasks with what they wait for.
fn tasks(planned: &Planned) -> BTreeMap<String, BTreeSet<String>> {
    let specs = planned.plan.tasks();
    let key = |position: u32| specs[position as usize].task_key.to_string();
    let sets = planned.plan.sets();
    let upstream = |(position, spec): (u32, &TaskSpec)| {
        let sets = sets.iter().filter(|set| set.downstream.contains(position));
        let together = sets.flat_map(|set| set.upstream.iter());
        let all: Vec<u32> = spec.upstream.iter().copied().chain(together).collect();
        let waits: BTreeSet<String> = all.iter().map(|upstream| key(*upstream)).collect();
        (spec.task_key.to_string(), waits)
    };
    (0u32..).zip(specs.iter()).map(upstream).collect()
}

/// The partitions that tasks make.
fn made(planned: &Planned) -> BTreeSet<(u32, Vec<u64>)> {
    let tasks = planned.tasks.iter();
    tasks.flat_map(|task| task.assets.iter().map(|asset| (*asset, task.index.clone()))).collect()
}

/// Which reasons there are, and for how many partitions, by asset. The parts that they name are written in the order of
/// the text.
fn reasons(planned: &Planned) -> BTreeSet<(u32, &'static str, u128)> {
    let word = |why: &Why| match why {
        Why::Selected { .. } => "selected",
        Why::Upstream { .. } => "upstream",
        Why::Downstream { .. } => "downstream",
        Why::SameFunction { .. } => "same function",
    };
    let all =
        planned.assets.iter().flat_map(|asset| asset.reasons.iter().map(move |reason| (asset.asset, reason)));
    all.map(|(asset, reason)| (asset, word(&reason.why), reason.partitions.len())).collect()
}

fn case() -> impl Strategy<Value = (Vec<Drawn>, i64, Vec<Text>, bool, Vec<u8>)> {
    let materialized = proptest::collection::vec(0..8u8, 6);
    (proptest::collection::vec(drawn(), 1..7), 0..40i64, texts(), prop::bool::weighted(0.2), materialized)
}

fn world((drawn, hours, texts, latest, made): &(Vec<Drawn>, i64, Vec<Text>, bool, Vec<u8>)) -> Option<Case> {
    let now = january(15) * DAY + hours * 3_600;
    let assets = assets(drawn, now);
    let definitions = definitions(&assets)?;
    let mut materialized = BTreeSet::new();
    for (position, asset) in assets.iter().enumerate().filter(|(_, asset)| !asset.is_external) {
        let made = usize::from(made[position]);
        for (at, part) in asset.parts().into_iter().enumerate() {
            // Nothing, everything up to some partition, or all but a few.
            let is_made = match made {
                0..3 => false,
                3..6 => at < made * 2 - 4,
                _ => at % made != 1,
            };
            if is_made {
                materialized.insert((position, part));
            }
        }
    }
    Some(Case { assets, definitions, texts: texts.clone(), latest: *latest, materialized, now })
}

/// Runs a check on many worlds; it tells whether there was a plan to look at, and there must have been enough of them.
fn check(cases: u32, check: impl Fn(&Case, &Select) -> Result<bool, TestCaseError>) {
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let looked_at = Cell::new(0);
    let result = TestRunner::new(config).run(&(case(), select()), |(drawn, select)| {
        if let Some(case) = world(&drawn) {
            let select = fitted(&select, case.assets.len());
            looked_at.set(looked_at.get() + u32::from(check(&case, &select)?));
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    assert!(looked_at.get() > cases / 4, "only {} plans were looked at", looked_at.get());
}

#[test]
fn a_plan_has_the_tasks_and_edges_that_brute_force_finds() {
    check(4_000, |case, select| {
        let expected = case.brute().tasks(select);
        let planned = case.plan(select);
        let texts: Vec<String> = case.texts.iter().map(Text::text).collect();
        let told = format!("{} for {texts:?}: {:?}", select.text(), planned.as_ref().err());
        prop_assert_eq!(expected.is_some(), planned.is_ok(), "{}", told);
        let (Some(expected), Ok(planned)) = (expected, planned) else { return Ok(false) };
        let keys = |waits: &BTreeSet<_>| waits.iter().map(|task| case.task_key(task)).collect();
        let expected: BTreeMap<String, BTreeSet<String>> =
            expected.iter().map(|(task, waits)| (case.task_key(task), keys(waits))).collect();
        prop_assert_eq!(&tasks(&planned), &expected, "{}", told);
        for task in &planned.tasks {
            prop_assert!(
                planned.reasons(task).next().is_some(),
                "{}: nothing says why {:?} is planned",
                told,
                task
            );
        }
        Ok(true)
    });
}

#[test]
fn operands_commute_and_plus_only_adds() {
    check(1_500, |case, select| {
        let Ok(planned) = case.plan(select) else { return Ok(false) };
        let turned = case.plan(&select.turned()).unwrap();
        prop_assert_eq!(planned.plan.fingerprint(), turned.plan.fingerprint(), "{}", select.text());
        prop_assert_eq!(reasons(&planned), reasons(&turned), "{}", select.text());
        let before = made(&planned);
        for (up, down) in [(Some(0), None), (None, Some(0)), (Some(0), Some(0)), (Some(1), Some(2))] {
            let wider = Select::Neighbours { up, down, of: Box::new(select.clone()) };
            let Ok(planned) = case.plan(&wider) else { continue };
            prop_assert!(before.is_subset(&made(&planned)), "{} loses tasks", wider.text());
        }
        Ok(true)
    });
}

#[test]
fn what_plus_plans_finds_all_that_it_reads() {
    check(1_500, |case, select| {
        let select = Select::Neighbours { up: Some(0), down: None, of: Box::new(select.clone()) };
        let Ok(planned) = case.plan(&select) else { return Ok(false) };
        // Of what a part without partitions leads to, only what the request asks for is planned.
        if !case.assets.iter().all(Asset::has_partitions) {
            return Ok(true);
        }
        for input in planned.tasks.iter().flat_map(|task| &task.inputs) {
            prop_assert!(input.never_materialized.is_none(), "{}: {:?}", select.text(), input);
        }
        Ok(true)
    });
}
