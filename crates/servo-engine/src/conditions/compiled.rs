//! Conditions with their texts read, and how far each looks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use servo_core::cron::Ticks;
use servo_core::partitions::{PartitionContext, PartitionSet};
use servo_core::{AssetKey, Cron, Millis, Timestamp};

use crate::definitions::{Asset, Condition, opening_and_closing};

/// Looks at everything upstream, however far.
pub(crate) const WITHOUT_END: u32 = u32::MAX;

/// The conditions of deployed assets, by position.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conditions {
    by_asset: BTreeMap<u32, Arc<Compiled>>,
    /// For each asset its place in an order in which each comes after those that it reads.
    order: Vec<u32>,
    /// The most windows of time that one of them counts as newest.
    latest_windows: u64,
    /// For each asset how many steps above it are looked at by a condition at it or below.
    looked_at: Vec<u32>,
}

/// The condition of one asset.
#[derive(Debug, Clone)]
pub(crate) struct Compiled {
    pub(crate) condition: Arc<Condition>,
    pub(crate) root: Node,
    /// How many steps upstream it looks.
    pub(crate) depth: u32,
    /// Ticks at which it may change.
    pub(crate) ticks: Vec<Arc<Ticks>>,
    /// The times that its limits count over.
    pub(crate) limits: Vec<Millis>,
}

/// A part of a condition.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    Since(Box<Node>, Box<Node>),
    NewlyTrue(Box<Node>),
    Named(Box<Node>),
    Missing,
    NewPartition,
    Updated,
    Stale,
    CodeChanged,
    InProgress,
    Failed,
    Tick(Arc<Ticks>),
    Any(Scope, Box<Node>),
    All(Scope, Box<Node>),
    Latest(u64),
    /// Opening and closing.
    During(Arc<Ticks>, Arc<Ticks>),
    AtMost(u32, Millis),
}

/// The upstream assets that a part is about.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    only: BTreeSet<AssetKey>,
    ignore: BTreeSet<AssetKey>,
}

impl Scope {
    fn new(only: &[String], ignore: &[String]) -> Self {
        let keys = |texts: &[String]| texts.iter().filter_map(|text| AssetKey::parse(text).ok()).collect();
        Self { only: keys(only), ignore: keys(ignore) }
    }

    pub(crate) fn has(&self, asset: &AssetKey) -> bool {
        (self.only.is_empty() || self.only.contains(asset)) && !self.ignore.contains(asset)
    }
}

impl Conditions {
    pub(crate) fn get(&self, asset: u32) -> Option<&Arc<Compiled>> {
        self.by_asset.get(&asset)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Arc<Compiled>)> {
        self.by_asset.iter().map(|(asset, compiled)| (*asset, compiled))
    }

    /// The place of an asset in an order in which each comes after those that it reads.
    pub(crate) fn order(&self, asset: u32) -> u32 {
        self.order[asset as usize]
    }

    /// The most windows of time that a condition counts as newest.
    pub(crate) fn latest_windows(&self) -> u64 {
        self.latest_windows
    }

    /// Whether a condition is about an asset, or looks at it from below, where `readers` are.
    pub(crate) fn is_watched(&self, asset: u32, readers: &[u32]) -> bool {
        self.by_asset.contains_key(&asset) || readers.iter().any(|reader| self.looked_at(*reader) > 0)
    }

    pub(super) fn looked_at(&self, asset: u32) -> u32 {
        self.looked_at[asset as usize]
    }
}

/// Reads the conditions of checked assets. `makers` has for each the first asset of the function that makes it.
pub(crate) fn compile(assets: &[Asset], makers: &[u32], readers: impl Fn(u32) -> Vec<u32>) -> Conditions {
    let mut cache = BTreeMap::new();
    let mut by_asset = BTreeMap::new();
    for (position, asset) in (0u32..).zip(assets) {
        let Some(condition) = &asset.def.automation else { continue };
        // What was checked can be read; definitions of a newer version are not compiled at all.
        let Some(root) = node(condition, &mut cache) else { continue };
        let mut compiled = Compiled {
            condition: condition.clone(),
            depth: depth(&root),
            ticks: Vec::new(),
            limits: Vec::new(),
            root: Node::Missing,
        };
        timed(&root, &mut compiled);
        compiled.root = root;
        by_asset.insert(position, Arc::new(compiled));
    }
    if by_asset.is_empty() {
        return Conditions::default();
    }
    let order = order(assets, makers, &readers);
    let mut backwards: Vec<u32> = (0..assets.len() as u32).collect();
    backwards.sort_by_key(|asset| std::cmp::Reverse(order[*asset as usize]));
    let mut looked_at = vec![0u32; assets.len()];
    for asset in backwards {
        let own = by_asset.get(&asset).map_or(0, |compiled| compiled.depth);
        let below = readers(asset).into_iter().filter(|reader| *reader != asset);
        let below = below.map(|reader| match looked_at[reader as usize] {
            WITHOUT_END => WITHOUT_END,
            steps => steps.saturating_sub(1),
        });
        looked_at[asset as usize] = below.chain([own]).max().unwrap_or(0);
    }
    let latest_windows = by_asset.values().map(|compiled| latest(&compiled.root)).max().unwrap_or(0);
    Conditions { by_asset, order, latest_windows, looked_at }
}

/// Kahn's order of assets; outputs of one function do not wait for each other.
fn order(assets: &[Asset], makers: &[u32], readers: &impl Fn(u32) -> Vec<u32>) -> Vec<u32> {
    let is_edge = |from: u32, to: u32| makers[from as usize] != makers[to as usize];
    let mut waits_for = vec![0u32; assets.len()];
    for (position, asset) in (0u32..).zip(assets) {
        let mut deps: Vec<u32> = asset.deps.iter().map(|dep| dep.asset).collect();
        deps.sort_unstable();
        deps.dedup();
        waits_for[position as usize] = deps.into_iter().filter(|dep| is_edge(*dep, position)).count() as u32;
    }
    let mut ready: BTreeSet<u32> =
        (0..assets.len() as u32).filter(|asset| waits_for[*asset as usize] == 0).collect();
    let mut order = vec![0u32; assets.len()];
    let mut next = 0;
    while let Some(asset) = ready.pop_first() {
        order[asset as usize] = next;
        next += 1;
        let mut behind = readers(asset);
        behind.sort_unstable();
        behind.dedup();
        for reader in behind.into_iter().filter(|reader| is_edge(asset, *reader)) {
            waits_for[reader as usize] -= 1;
            if waits_for[reader as usize] == 0 {
                ready.insert(reader);
            }
        }
    }
    order
}

type TickCache = BTreeMap<(String, String), Arc<Ticks>>;

fn ticks(cron: &str, zone: Option<&str>, cache: &mut TickCache) -> Option<Arc<Ticks>> {
    let zone = zone.unwrap_or("UTC");
    let key = (cron.to_owned(), zone.to_owned());
    if let Some(known) = cache.get(&key) {
        return Some(known.clone());
    }
    let ticks = Arc::new(Cron::parse(cron).ok()?.in_zone(zone).ok()?);
    cache.insert(key, ticks.clone());
    Some(ticks)
}

fn node(condition: &Condition, cache: &mut TickCache) -> Option<Node> {
    let many = |of: &[Condition], cache: &mut TickCache| {
        of.iter().map(|part| node(part, cache)).collect::<Option<Vec<_>>>()
    };
    Some(match condition {
        Condition::And { of } => Node::And(many(of, cache)?),
        Condition::Or { of } => Node::Or(many(of, cache)?),
        Condition::Not { of } => Node::Not(node(of, cache)?.into()),
        Condition::Since { of, since } => Node::Since(node(of, cache)?.into(), node(since, cache)?.into()),
        Condition::NewlyTrue { of } => Node::NewlyTrue(node(of, cache)?.into()),
        Condition::Named { of, .. } => Node::Named(node(of, cache)?.into()),
        Condition::Missing => Node::Missing,
        Condition::NewPartition => Node::NewPartition,
        Condition::Updated => Node::Updated,
        Condition::Stale => Node::Stale,
        Condition::CodeChanged => Node::CodeChanged,
        Condition::InProgress => Node::InProgress,
        Condition::Failed => Node::Failed,
        Condition::CronTick { cron, timezone } => Node::Tick(ticks(cron, timezone.as_deref(), cache)?),
        Condition::AnyUpstream { of, only, ignore } => {
            Node::Any(Scope::new(only, ignore), node(of, cache)?.into())
        }
        Condition::AllUpstream { of, only, ignore } => {
            Node::All(Scope::new(only, ignore), node(of, cache)?.into())
        }
        Condition::Latest { windows } => Node::Latest(u64::from(*windows)),
        Condition::During { from, to, days, timezone } => {
            let (opening, closing) = opening_and_closing(from, to, days).ok()?;
            let zone = timezone.as_deref();
            Node::During(ticks(&opening, zone, cache)?, ticks(&closing, zone, cache)?)
        }
        Condition::AtMost { times, per_ms } => Node::AtMost(*times, *per_ms),
    })
}

fn depth(node: &Node) -> u32 {
    match node {
        Node::And(of) | Node::Or(of) => of.iter().map(depth).max().unwrap_or(0),
        Node::Since(of, since) => depth(of).max(depth(since)),
        Node::Not(of) | Node::NewlyTrue(of) | Node::Named(of) => depth(of),
        Node::Any(_, of) | Node::All(_, of) => depth(of).saturating_add(1),
        Node::Stale => WITHOUT_END,
        Node::Missing
        | Node::NewPartition
        | Node::Updated
        | Node::CodeChanged
        | Node::InProgress
        | Node::Failed
        | Node::Tick(_)
        | Node::Latest(_)
        | Node::During(..)
        | Node::AtMost(..) => 0,
    }
}

/// The most windows of time that count as newest in a condition.
fn latest(node: &Node) -> u64 {
    match node {
        Node::And(of) | Node::Or(of) => of.iter().map(latest).max().unwrap_or(0),
        Node::Since(of, since) => latest(of).max(latest(since)),
        Node::Not(of) | Node::NewlyTrue(of) | Node::Named(of) | Node::Any(_, of) | Node::All(_, of) => {
            latest(of)
        }
        Node::Latest(windows) => *windows,
        Node::Missing
        | Node::NewPartition
        | Node::Updated
        | Node::Stale
        | Node::CodeChanged
        | Node::InProgress
        | Node::Failed
        | Node::Tick(_)
        | Node::During(..)
        | Node::AtMost(..) => 0,
    }
}

/// Notes the parts of a condition that change with time alone.
fn timed(node: &Node, compiled: &mut Compiled) {
    match node {
        Node::And(of) | Node::Or(of) => of.iter().for_each(|part| timed(part, compiled)),
        Node::Since(of, since) => {
            timed(of, compiled);
            timed(since, compiled);
        }
        Node::Not(of) | Node::NewlyTrue(of) | Node::Named(of) | Node::Any(_, of) | Node::All(_, of) => {
            timed(of, compiled);
        }
        Node::Tick(ticks) => compiled.ticks.push(ticks.clone()),
        Node::During(opening, closing) => compiled.ticks.extend([opening.clone(), closing.clone()]),
        Node::AtMost(_, per) => compiled.limits.push(*per),
        Node::Missing
        | Node::NewPartition
        | Node::Updated
        | Node::Stale
        | Node::CodeChanged
        | Node::InProgress
        | Node::Failed
        | Node::Latest(_) => {}
    }
}

impl Compiled {
    /// The next time after this one at which the condition may change for partitions that exist, by the clock alone.
    pub(crate) fn next_tick(&self, after: Timestamp) -> Option<Timestamp> {
        self.ticks.iter().filter_map(|ticks| ticks.next(after)).min()
    }

    /// Partitions for which it can be true at all.
    pub(crate) fn bound(&self, asset: &Asset, at: PartitionContext<'_>) -> PartitionSet {
        bound(&self.root, asset, at)
    }
}

fn bound(node: &Node, asset: &Asset, at: PartitionContext<'_>) -> PartitionSet {
    let all = || {
        let partitions = asset.partitions.as_ref();
        partitions.map_or_else(PartitionSet::unpartitioned, |partitions| partitions.all(at))
    };
    match node {
        Node::And(of) => of.iter().fold(all(), |set, part| set.intersection(&bound(part, asset, at))),
        Node::Or(of) => of.iter().fold(PartitionSet::EMPTY, |set, part| set.union(&bound(part, asset, at))),
        Node::Named(of) | Node::NewlyTrue(of) => bound(of, asset, at),
        Node::Since(of, _) => bound(of, asset, at),
        Node::Latest(windows) => match &asset.partitions {
            Some(partitions) => partitions.newest(*windows, at),
            None => PartitionSet::unpartitioned(),
        },
        Node::Not(_)
        | Node::Missing
        | Node::NewPartition
        | Node::Updated
        | Node::Stale
        | Node::CodeChanged
        | Node::InProgress
        | Node::Failed
        | Node::Tick(_)
        | Node::Any(..)
        | Node::All(..)
        | Node::During(..)
        | Node::AtMost(..) => all(),
    }
}
