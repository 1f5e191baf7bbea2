//! Random acts in random graphs, compared with the naive evaluator.

use proptest::prelude::*;
use servo_core::partitions::MappingDef;
use servo_core::{Millis, PartitionsDef};
use servo_engine::definitions::{Condition, DepDef};
use servo_engine::{Caller, ChangePartitions, Input};

use super::story::{
    Declared, Story, all_upstream, and, any_upstream, at_most, days, eager, missing, not, on_cron,
    on_missing, or, reads, tick,
};

/// Small graphs of a few assets, each reading some of those before it.
fn graph(bytes: &[u8]) -> Vec<Declared> {
    let mut next = bytes.iter().copied().cycle();
    let mut byte = move || next.next().unwrap_or(0);
    let names = ["a", "b", "c", "d"];
    let mut assets: Vec<Declared> = Vec::new();
    for (position, name) in names.iter().enumerate() {
        let partitions = match byte() % 4 {
            0 | 1 => None,
            2 => days(),
            _ => Some(PartitionsDef::Dynamic { name: "customers".to_owned() }),
        };
        let mut deps = Vec::new();
        for before in &assets[..position] {
            if byte() % 2 == 0 {
                // Different partitions read everything of each other.
                let mapping = (before.partitions != partitions).then_some(MappingDef::All);
                deps.push(DepDef { available: byte() % 5 == 0, ..reads(&before.name, mapping) });
            }
        }
        if partitions == days() && byte() % 3 == 0 {
            deps.push(reads(name, Some(MappingDef::Window { from: -1, to: -1 })));
        }
        let automation = condition(&mut byte);
        assets.push(Declared { name: (*name).to_owned(), version: 1, partitions, deps, automation });
    }
    assets
}

fn condition(byte: &mut impl FnMut() -> u8) -> Option<Condition> {
    let hourly = || tick("0 * * * *");
    Some(match byte() % 12 {
        0 | 1 => return None,
        2..=4 => eager(),
        5 => on_cron("0 */3 * * *"),
        6 => on_missing(),
        7 => or(vec![Condition::CodeChanged, and(vec![eager(), Condition::Latest { windows: 2 }])]),
        8 => and(vec![
            or(vec![Condition::Failed, any_upstream(Condition::Failed)]),
            at_most(2, Millis::from_hours(2)),
        ]),
        9 => and(vec![
            any_upstream(Condition::NewlyTrue { of: not(Condition::InProgress).into() }),
            not(any_upstream(missing())),
        ]),
        10 => and(vec![
            all_upstream(Condition::Since { of: Condition::Updated.into(), since: hourly().into() }),
            any_upstream(Condition::Updated),
            at_most(1, Millis::from_hours(1)),
        ]),
        _ => or(vec![missing(), and(vec![any_upstream(any_upstream(Condition::Updated)), hourly()])]),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn conditions_equal_a_naive_evaluator_that_looks_at_everything(
        shape in prop::collection::vec(any::<u8>(), 40),
        acts in prop::collection::vec(any::<(u8, u8, u8)>(), 1..50),
    ) {
        tell(&shape, &acts);
    }
}

/// Plays random acts in a random graph.
fn tell(shape: &[u8], acts: &[(u8, u8, u8)]) {
    let mut story = Story::new(graph(shape));
    let names = ["a", "b", "c", "d"];
    for &(act, which, detail) in acts {
        let name = names[usize::from(which) % names.len()];
        match act % 8 {
            0 | 1 => {
                let partition =
                    match story.assets.iter().find(|asset| asset.name == name).unwrap().partitions.clone() {
                        None => None,
                        Some(PartitionsDef::Dynamic { .. }) => Some(format!("k{}", detail % 4)),
                        Some(_) => Some(format!("2025-01-{}", 12 + detail % 4)),
                    };
                story.request(name, partition.as_deref());
            }
            2..=4 => {
                let open = story.open();
                if !open.is_empty() {
                    let attempt = open[usize::from(which) % open.len()].clone();
                    story.end(attempt, detail % 4 != 0);
                }
            }
            5 => drop(story.wait(u64::from(detail) * 300)),
            6 => {
                let change = ChangePartitions {
                    name: "customers".to_owned(),
                    add: vec![format!("k{}", detail % 4)],
                    remove: if which % 5 == 0 {
                        vec![format!("k{}", (detail % 4 + 1) % 4)]
                    } else {
                        Vec::new()
                    },
                    caller: Caller::user("me"),
                };
                story.ask(Input::ChangePartitions(change));
            }
            _ => {
                let mut assets = story.assets.clone();
                if let Some(asset) = assets.iter_mut().find(|asset| asset.name == name) {
                    asset.version += 1;
                    if detail % 4 == 0 {
                        let mut bytes = [which, detail, act].into_iter().cycle();
                        asset.automation = condition(&mut || bytes.next().unwrap_or(0));
                    }
                }
                story.deploy(assets);
            }
        }
    }
    story.replays();
}

#[test]
fn stories_that_were_found_by_chance_stay_told() {
    let shape = [3, 221, 27, 162, 1, 62, 71, 30, 1, 29, 0, 219, 1, 127, 2, 1, 74, 0];
    let acts = [
        (199, 102, 12),
        (0, 0, 0),
        (62, 0, 90),
        (157, 0, 36),
        (104, 243, 70),
        (47, 84, 0),
        (154, 19, 1),
        (170, 190, 0),
        (18, 1, 1),
        (146, 151, 28),
        (146, 0, 5),
    ];
    tell(&[&shape[..], &[0; 22]].concat(), &acts);
    let shape = [4, 0, 202, 0, 95, 25, 74, 19, 134, 0, 72, 1, 12, 48, 74, 1, 5, 20, 0, 164];
    let acts = [
        (182, 0, 72),
        (0, 0, 0),
        (16, 103, 0),
        (42, 2, 1),
        (98, 0, 0),
        (253, 0, 121),
        (8, 170, 60),
        (66, 104, 5),
        (18, 0, 0),
        (0, 0, 0),
        (127, 61, 20),
        (10, 0, 0),
        (72, 4, 0),
        (13, 0, 0),
        (6, 0, 32),
        (106, 0, 105),
        (0, 0, 0),
        (2, 0, 0),
        (0, 125, 31),
        (7, 11, 104),
        (98, 0, 1),
        (160, 235, 0),
        (61, 0, 0),
        (24, 124, 0),
        (146, 82, 72),
        (213, 0, 11),
    ];
    tell(&[&shape[..], &[0; 20]].concat(), &acts);
}
