//! A brute-force oracle: resolves a selection and a request by visiting every partition until nothing is added.

use std::collections::{BTreeMap, BTreeSet};

use super::world::{Asset, DAY, Dim, KEYS, Part, State, date, month_starts, name, product, reads};

/// A selection as a tree.
#[derive(Debug, Clone)]
pub(crate) enum Select {
    One(usize),
    All,
    Tagged,
    Neighbours { up: Option<u32>, down: Option<u32>, of: Box<Select> },
    Not(Box<Select>),
    And(Vec<Select>),
    Or(Vec<Select>),
}

impl Select {
    pub(crate) fn text(&self) -> String {
        let joined = |parts: &[Select], by: &str| {
            parts.iter().map(|part| format!("({})", part.text())).collect::<Vec<_>>().join(by)
        };
        let steps = |steps: &u32| if *steps == 0 { String::new() } else { steps.to_string() };
        match self {
            Self::One(asset) => format!("n.{}", name(*asset)),
            Self::All => "*".to_owned(),
            Self::Tagged => "tag:t".to_owned(),
            Self::Neighbours { up, down, of } => {
                let up = up.as_ref().map_or_else(String::new, |up| format!("{}+", steps(up)));
                let down = down.as_ref().map_or_else(String::new, |down| format!("+{}", steps(down)));
                format!("{up}({}){down}", of.text())
            }
            Self::Not(part) => format!("not ({})", part.text()),
            Self::And(parts) => joined(parts, " and "),
            Self::Or(parts) => joined(parts, " or "),
        }
    }

    /// The same with the operands of `and` and `or` the other way round.
    pub(crate) fn turned(&self) -> Self {
        let turned = |parts: &[Self]| parts.iter().rev().map(Self::turned).collect();
        match self {
            Self::One(_) | Self::All | Self::Tagged => self.clone(),
            Self::Neighbours { up, down, of } => {
                Self::Neighbours { up: *up, down: *down, of: Box::new(of.turned()) }
            }
            Self::Not(part) => Self::Not(Box::new(part.turned())),
            Self::And(parts) => Self::And(turned(parts)),
            Self::Or(parts) => Self::Or(turned(parts)),
        }
    }

    fn has_reach(&self) -> bool {
        match self {
            Self::One(_) | Self::All | Self::Tagged | Self::Not(_) => false,
            Self::Neighbours { .. } => true,
            Self::And(parts) | Self::Or(parts) => parts.iter().any(Self::has_reach),
        }
    }
}

/// A time as it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Time {
    Month(usize),
    Day(i64),
    Hour(i64, i64),
}

impl Time {
    fn text(self) -> String {
        match self {
            Self::Month(month) => date(month_starts()[month])[..7].to_owned(),
            Self::Day(day) => date(day),
            Self::Hour(day, hour) => format!("{}T{hour:02}", date(day)),
        }
    }

    /// From when to when, by a clock that is `offset` seconds from UTC.
    fn seconds(self, offset: i64) -> (i64, i64) {
        let (from, to) = match self {
            Self::Month(month) => (month_starts()[month] * DAY, month_starts()[month + 1] * DAY),
            Self::Day(day) => (day * DAY, (day + 1) * DAY),
            Self::Hour(day, hour) => (day * DAY + hour * 3_600, day * DAY + (hour + 1) * 3_600),
        };
        (from - offset, to - offset)
    }
}

/// A part of a request.
#[derive(Debug, Clone)]
pub(crate) enum Text {
    Time(Time),
    Range(Option<Time>, Option<Time>),
    Key(usize),
    /// A date and a region.
    Both(i64, usize),
}

impl Text {
    pub(crate) fn text(&self) -> String {
        let end = |end: &Option<Time>| end.map_or_else(String::new, Time::text);
        match self {
            Self::Time(time) => time.text(),
            Self::Range(from, to) => format!("{}..{}", end(from), end(to)),
            Self::Key(key) => KEYS[*key].0.to_owned(),
            Self::Both(day, key) => format!("date={},region={}", date(*day), KEYS[*key].0),
        }
    }

    pub(crate) fn is_range(&self) -> bool {
        matches!(self, Self::Range(..))
    }
}

/// The places that a time names: those that start in it, or else those around it.
fn named(dim: &Dim, time: Time) -> Vec<usize> {
    let (from, to) = time.seconds(dim.offset.expect("a dimension of time"));
    let all = || 0..dim.slots.len();
    let starting: Vec<usize> =
        all().filter(|slot| from <= dim.slots[*slot].start && dim.slots[*slot].start < to).collect();
    if !starting.is_empty() {
        return starting;
    }
    all().filter(|slot| dim.slots[*slot].start < to && from < dim.slots[*slot].end).collect()
}

fn existing(dim: &Dim, slots: Vec<usize>) -> Option<Vec<usize>> {
    let there: Vec<usize> =
        slots.into_iter().filter(|slot| dim.slots[*slot].state == State::Exists).collect();
    (!there.is_empty()).then_some(there)
}

/// The partitions that a text names for an asset; `Err(true)` if it names other dimensions.
fn read(asset: &Asset, text: &Text) -> Result<Vec<Part>, bool> {
    let timed = asset.dims.iter().position(|dim| dim.offset.is_some());
    let with = |position: usize, slots: Vec<usize>| {
        let mut lists: Vec<Vec<usize>> = asset.dims.iter().map(Dim::existing).collect();
        lists[position] = slots;
        product(&lists)
    };
    match text {
        Text::Range(None, None) => Ok(asset.parts()),
        Text::Time(_) | Text::Range(..) => {
            let timed = timed.ok_or(false)?;
            let dim = &asset.dims[timed];
            let (from, to) = match text {
                Text::Range(from, to) => (*from, *to),
                Text::Time(time) => (Some(*time), Some(*time)),
                Text::Key(_) | Text::Both(..) => panic!("not a time"),
            };
            // What is before or after all that is written out.
            let beyond = |time: Time| {
                let is_before = time.seconds(dim.offset.unwrap_or(0)).1 <= dim.slots[0].start;
                if is_before { 0 } else { dim.slots.len() }
            };
            let first = from.map_or(0, |from| named(dim, from).first().copied().unwrap_or(beyond(from)));
            let last =
                to.map_or(dim.slots.len(), |to| named(dim, to).last().map_or(beyond(to), |last| last + 1));
            existing(dim, (first..last).collect()).map(|slots| with(timed, slots)).ok_or(false)
        }
        Text::Key(key) => {
            let listed = asset.dims.iter().position(|dim| dim.offset.is_none() && dim.slots.len() > *key);
            listed.map(|position| with(position, vec![*key])).ok_or(false)
        }
        Text::Both(day, key) => {
            let [days, _] = asset.dims.as_slice() else { return Err(true) };
            let days = existing(days, named(days, Time::Day(*day))).ok_or(false)?;
            Ok(product(&[days, vec![*key]]))
        }
    }
}

/// The partitions that a date and a region name for an asset without the region.
fn read_part(asset: &Asset, text: &Text) -> Option<Vec<Part>> {
    let Text::Both(day, _) = text else { return None };
    let [dim] = asset.dims.as_slice() else { return None };
    dim.offset?;
    existing(dim, named(dim, Time::Day(*day))).map(|slots| product(&[slots]))
}

/// The newest along time, all along the rest.
fn latest(asset: &Asset) -> Vec<Part> {
    let along = |dim: &Dim| match dim.offset {
        Some(_) => dim.existing().into_iter().next_back().into_iter().collect(),
        None => dim.existing(),
    };
    product(&asset.dims.iter().map(along).collect::<Vec<_>>())
}

/// The selected partitions of an asset, and whether partitions led there.
type Meaning = BTreeMap<usize, (BTreeSet<Part>, bool)>;

pub(crate) struct Brute<'w> {
    pub(crate) assets: &'w [Asset],
    pub(crate) texts: &'w [Text],
    pub(crate) latest: bool,
    pub(crate) materialized: &'w BTreeSet<(usize, Part)>,
}

/// A task by the first asset that it makes and its partition, and what it waits for.
pub(crate) type Tasks = BTreeMap<(usize, Part), BTreeSet<(usize, Part)>>;

impl Brute<'_> {
    /// The tasks, or none if the request is to be refused.
    pub(crate) fn tasks(&self, select: &Select) -> Option<Tasks> {
        let mut spoken_of = BTreeSet::new();
        self.meaning(select, &BTreeMap::new(), &mut spoken_of);
        let asked = self.asked(&spoken_of)?;
        let mut meaning = self.meaning(select, &asked, &mut BTreeSet::new());
        meaning.retain(|asset, _| !self.assets[*asset].is_external);
        let mut planned: BTreeMap<usize, BTreeSet<Part>> = BTreeMap::new();
        for (asset, (parts, _)) in &meaning {
            let made = self.outputs(*asset, |other| meaning.contains_key(&other));
            for output in made {
                planned.entry(output).or_default().extend(parts.iter().cloned());
            }
        }
        planned.retain(|_, parts| !parts.is_empty());
        if planned.is_empty() {
            return None;
        }
        let owner = |asset: usize| {
            planned.keys().copied().find(|other| self.assets[*other].function == self.assets[asset].function)
        };
        let mut tasks = Tasks::new();
        for (asset, parts) in &planned {
            let first = owner(*asset).expect("it is planned itself");
            for part in parts {
                let waits = tasks.entry((first, part.clone())).or_default();
                for dep in &self.assets[*asset].deps {
                    let same_function = self.assets[dep.of].function == self.assets[*asset].function;
                    if same_function && dep.of != *asset && planned.contains_key(&dep.of) {
                        continue;
                    }
                    let (read, is_missing) =
                        reads(&dep.map, &self.assets[*asset], part, &self.assets[dep.of]);
                    if is_missing {
                        return None;
                    }
                    let made = planned.get(&dep.of);
                    let inside = read.into_iter().filter(|part| made.is_some_and(|made| made.contains(part)));
                    waits.extend(inside.map(|part| (owner(dep.of).expect("it is planned"), part)));
                }
                waits.remove(&(first, part.clone()));
            }
        }
        Some(tasks)
    }

    /// The outputs made together with an asset: all of its function, or those that are wanted.
    fn outputs(&self, asset: usize, is_wanted: impl Fn(usize) -> bool) -> Vec<usize> {
        let this = &self.assets[asset];
        let others = (0..self.assets.len()).filter(|other| self.assets[*other].function == this.function);
        others.filter(|other| !this.can_subset || *other == asset || is_wanted(*other)).collect()
    }

    fn asked(&self, assets: &BTreeSet<usize>) -> Option<BTreeMap<usize, BTreeSet<Part>>> {
        if assets.is_empty() {
            return (self.texts.is_empty() && !self.latest).then(BTreeMap::new);
        }
        let mut asked: BTreeMap<usize, BTreeSet<Part>> = BTreeMap::new();
        for text in self.texts {
            let read: BTreeMap<usize, _> =
                assets.iter().map(|asset| (*asset, read(&self.assets[*asset], text))).collect();
            if read.values().all(Result::is_err) {
                return None;
            }
            for (asset, read) in read {
                let parts = match read {
                    Ok(parts) => Some(parts),
                    Err(true) => read_part(&self.assets[asset], text),
                    Err(false) => None,
                };
                if let Some(parts) = parts {
                    asked.entry(asset).or_default().extend(parts);
                }
            }
        }
        if self.latest {
            for asset in assets {
                asked.entry(*asset).or_default().extend(latest(&self.assets[*asset]));
            }
        }
        let is_lacking = |asset: &usize| !self.assets[*asset].is_external && !asked.contains_key(asset);
        (!assets.iter().any(is_lacking)).then_some(asked)
    }

    fn matching(&self, select: &Select) -> BTreeSet<usize> {
        let all = || 0..self.assets.len();
        match select {
            Select::One(asset) => BTreeSet::from([*asset]),
            Select::All => all().collect(),
            Select::Tagged => all().filter(|asset| self.assets[*asset].is_tagged).collect(),
            Select::Not(part) => {
                let part = self.matching(part);
                all().filter(|asset| !part.contains(asset)).collect()
            }
            Select::Or(parts) => parts.iter().flat_map(|part| self.matching(part)).collect(),
            Select::And(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| self.matching(part)).collect();
                all().filter(|asset| parts.iter().all(|part| part.contains(asset))).collect()
            }
            Select::Neighbours { up, down, of } => {
                let start = self.matching(of);
                let reads = |from: usize, to: usize| self.assets[from].deps.iter().any(|dep| dep.of == to);
                let up = up.map(|steps| self.within(&start, steps, reads)).unwrap_or_default();
                let down =
                    down.map(|steps| self.within(&start, steps, |a, b| reads(b, a))).unwrap_or_default();
                &(&start | &up) | &down
            }
        }
    }

    fn within(
        &self,
        start: &BTreeSet<usize>,
        steps: u32,
        leads: impl Fn(usize, usize) -> bool,
    ) -> BTreeSet<usize> {
        let mut set = start.clone();
        for _ in 0..if steps == 0 { self.assets.len() as u32 } else { steps } {
            let next = (0..self.assets.len()).filter(|to| set.iter().any(|from| leads(*from, *to)));
            let next: Vec<usize> = next.collect();
            set.extend(next);
        }
        set
    }

    fn meaning(
        &self,
        select: &Select,
        asked: &BTreeMap<usize, BTreeSet<Part>>,
        spoken_of: &mut BTreeSet<usize>,
    ) -> Meaning {
        match select {
            Select::Or(parts) => {
                parts.iter().map(|part| self.meaning(part, asked, spoken_of)).fold(Meaning::new(), united)
            }
            Select::And(parts) if select.has_reach() => {
                let mut all = Meaning::new();
                let mut keep: BTreeSet<usize> = (0..self.assets.len()).collect();
                for part in parts {
                    if part.has_reach() {
                        let meaning = self.meaning(part, asked, spoken_of);
                        keep.retain(|asset| meaning.contains_key(asset));
                        all = united(all, meaning);
                    } else {
                        let matching = self.matching(part);
                        keep.retain(|asset| matching.contains(asset));
                    }
                }
                all.retain(|asset, _| keep.contains(asset));
                all
            }
            Select::Neighbours { up, down, of } => {
                let start = self.meaning(of, asked, spoken_of);
                let mut all = start.clone();
                if let Some(steps) = up {
                    all = united(all, self.follow(&start, *steps, true, asked, spoken_of));
                }
                if let Some(steps) = down {
                    all = united(all, self.follow(&start, *steps, false, asked, spoken_of));
                }
                all
            }
            Select::One(_) | Select::All | Select::Tagged | Select::Not(_) | Select::And(_) => {
                let member = |asset: usize| {
                    let parts = self.ask(asset, asked, spoken_of);
                    (asset, (parts, self.assets[asset].has_partitions()))
                };
                self.matching(select).into_iter().map(member).collect()
            }
        }
    }

    fn ask(
        &self,
        asset: usize,
        asked: &BTreeMap<usize, BTreeSet<Part>>,
        spoken_of: &mut BTreeSet<usize>,
    ) -> BTreeSet<Part> {
        if !self.assets[asset].has_partitions() {
            return BTreeSet::from([Vec::new()]);
        }
        spoken_of.insert(asset);
        asked.get(&asset).cloned().unwrap_or_default()
    }

    /// Follows every partition along every dependency until nothing is added.
    fn follow(
        &self,
        start: &Meaning,
        steps: u32,
        is_up: bool,
        asked: &BTreeMap<usize, BTreeSet<Part>>,
        spoken_of: &mut BTreeSet<usize>,
    ) -> Meaning {
        let reads_any = |from: usize, to: usize| self.assets[from].deps.iter().any(|dep| dep.of == to);
        let leads = |from: usize, to: usize| match is_up {
            true => self.outputs(from, |_| false).into_iter().any(|output| reads_any(output, to)),
            false => reads_any(to, from),
        };
        let within = self.within(&start.keys().copied().collect(), steps, leads);
        let mut found: Meaning =
            within.iter().map(|asset| (*asset, start.get(asset).cloned().unwrap_or_default())).collect();
        // What leads where does not depend on partitions, so it is settled first.
        loop {
            let before = found.clone();
            for (from, to) in self.edges(&within, is_up) {
                let is_told = found[&from].1 || self.assets[from].has_partitions();
                found.get_mut(&to).expect("it is within reach").1 |= is_told;
            }
            if found == before {
                break;
            }
        }
        loop {
            let before = found.clone();
            for (asset, dep) in self.deps(&within, is_up) {
                let (down, up) = (&self.assets[asset], &self.assets[dep.of]);
                let own = dep.of == asset;
                let (from, to) = if is_up { (asset, dep.of) } else { (dep.of, asset) };
                // Upstream, what one function makes at once is read for at once.
                let sources: Vec<usize> = if is_up {
                    let all = self.outputs(from, |other| within.contains(&other));
                    all.into_iter().filter(|source| within.contains(source)).collect()
                } else {
                    vec![from]
                };
                let parts: BTreeSet<Part> =
                    sources.iter().flat_map(|source| found[source].0.clone()).collect();
                let is_open =
                    !sources.iter().any(|source| found[source].1 || self.assets[*source].has_partitions());
                if parts.is_empty() {
                    continue;
                }
                let led_to: BTreeSet<Part> = if is_open && self.assets[to].has_partitions() {
                    self.ask(to, asked, spoken_of)
                } else if is_up {
                    parts.iter().flat_map(|part| reads(&dep.map, down, part, up).0).collect()
                } else {
                    let readers = down.parts().into_iter();
                    readers
                        .filter(|reader| {
                            reads(&dep.map, down, reader, up).0.iter().any(|part| parts.contains(part))
                        })
                        .collect()
                };
                let led_to = led_to
                    .into_iter()
                    .filter(|part| !own || self.materialized.contains(&(asset, part.clone())) != is_up);
                let led_to: Vec<Part> = led_to.collect();
                let targets = if own && is_up { sources } else { vec![to] };
                for target in targets.into_iter().filter(|target| within.contains(target)) {
                    found.get_mut(&target).expect("it is within reach").0.extend(led_to.iter().cloned());
                }
            }
            if found == before {
                return found;
            }
        }
    }

    /// The dependencies between assets within reach; upstream also of what is made at once with one of them.
    fn deps(&self, within: &BTreeSet<usize>, is_up: bool) -> Vec<(usize, &super::world::Dep)> {
        let readers: BTreeSet<usize> = within
            .iter()
            .flat_map(|asset| if is_up { self.outputs(*asset, |_| false) } else { vec![*asset] })
            .collect();
        let mut deps = Vec::new();
        for reader in readers {
            for dep in &self.assets[reader].deps {
                let same_function = self.assets[dep.of].function == self.assets[reader].function;
                let inside = is_up
                    && same_function
                    && dep.of != reader
                    && (within.contains(&dep.of) || !self.assets[reader].can_subset);
                if (within.contains(&dep.of) || dep.of == reader) && !inside {
                    deps.push((reader, dep));
                }
            }
        }
        deps
    }

    fn edges(&self, within: &BTreeSet<usize>, is_up: bool) -> Vec<(usize, usize)> {
        let deps = self.deps(within, is_up).into_iter().filter(|(reader, dep)| dep.of != *reader);
        deps.flat_map(|(reader, dep)| {
            if !is_up {
                return vec![(dep.of, reader)];
            }
            let made = self.outputs(reader, |other| within.contains(&other));
            made.into_iter().filter(|from| within.contains(from)).map(|from| (from, dep.of)).collect()
        })
        .collect()
    }
}

fn united(mut all: Meaning, more: Meaning) -> Meaning {
    for (asset, (parts, is_told)) in more {
        let known = all.entry(asset).or_default();
        known.0.extend(parts);
        known.1 |= is_told;
    }
    all
}
