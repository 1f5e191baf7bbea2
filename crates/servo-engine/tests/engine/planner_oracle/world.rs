//! A small world written out in full: every partition of every asset, and which partitions each of them reads.

use serde_json::{Value, json};

/// 2023-10-01 in days since 1970-01-01, the first day that dates are written for.
const FIRST_DAY: i64 = 19_631;
const MONTHS: [(i64, i64, i64); 8] = [
    (2023, 10, 31),
    (2023, 11, 30),
    (2023, 12, 31),
    (2024, 1, 31),
    (2024, 2, 29),
    (2024, 3, 31),
    (2024, 4, 30),
    (2024, 5, 31),
];
pub(crate) const DAY: i64 = 86_400;
const HOUR: i64 = 3_600;
/// Zones that never change their clocks, and how far they are from UTC.
pub(crate) const ZONES: [(&str, i64); 4] =
    [("UTC", 0), ("Asia/Tokyo", 9 * HOUR), ("Asia/Kolkata", 19_800), ("America/Phoenix", -7 * HOUR)];

/// Days since 1970-01-01 of 2024-01-`day`.
pub(crate) fn january(day: i64) -> i64 {
    FIRST_DAY + 92 + day - 1
}

/// `2024-01-05` for a day since 1970-01-01.
pub(crate) fn date(day: i64) -> String {
    let mut rest = day - FIRST_DAY;
    for (year, month, length) in MONTHS {
        if rest < length {
            return format!("{year}-{month:02}-{:02}", rest + 1);
        }
        rest -= length;
    }
    panic!("dates are written from 2023-10 to 2024-05");
}

/// The first days of months.
pub(crate) fn month_starts() -> Vec<i64> {
    let lengths = MONTHS.iter().map(|(_, _, length)| *length);
    let starts = lengths.scan(FIRST_DAY, |day, length| Some(std::mem::replace(day, *day + length)));
    starts.collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grain {
    Hour,
    Day,
    Week,
    Month,
}

/// The partitions of an asset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Whole,
    Time {
        grain: Grain,
        zone: usize,
        /// 0 to 3 days later than the first start.
        later: i64,
    },
    Listed,
    /// Days of UTC by two regions.
    Cube,
}

/// A place along a dimension.
#[derive(Debug, Clone)]
pub(crate) struct Slot {
    /// The value as in a canonical key.
    pub(crate) value: String,
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Before the first partition.
    Never,
    Exists,
    NotYet,
}

/// A dimension: what is of time has places before and after those that exist.
#[derive(Debug, Clone)]
pub(crate) struct Dim {
    pub(crate) name: &'static str,
    /// Seconds from UTC, if it is of time.
    pub(crate) offset: Option<i64>,
    pub(crate) slots: Vec<Slot>,
}

impl Dim {
    pub(crate) fn existing(&self) -> Vec<usize> {
        (0..self.slots.len()).filter(|slot| self.slots[*slot].state == State::Exists).collect()
    }
}

fn listed(name: &'static str, keys: &[(&str, &str)]) -> Dim {
    let slot = |(_, coded): &(&str, &str)| Slot {
        value: format!("s:{coded}"),
        start: 0,
        end: 0,
        state: State::Exists,
    };
    Dim { name, offset: None, slots: keys.iter().map(slot).collect() }
}

/// Keys, and how a canonical key writes them.
pub(crate) const KEYS: [(&str, &str); 3] = [("x", "eA"), ("y", "eQ"), ("z", "eg")];

impl Kind {
    fn first_day(self) -> i64 {
        match self {
            Self::Time { grain: Grain::Hour, later, .. } => january(13) + later.min(1),
            Self::Time { grain: Grain::Day, later, .. } => january(5) + later,
            Self::Time { grain: Grain::Week, later, .. } => january(1) - 14 + later,
            Self::Time { grain: Grain::Month, .. } => january(1) - 62,
            Self::Cube => january(10),
            Self::Whole | Self::Listed => 0,
        }
    }

    pub(crate) fn dims(self, now: i64) -> Vec<Dim> {
        match self {
            Self::Whole => Vec::new(),
            Self::Listed => vec![listed("partition", &KEYS)],
            Self::Cube => vec![time(Grain::Day, 0, self.first_day(), now), listed("region", &KEYS[..2])],
            Self::Time { grain, zone, .. } => vec![time(grain, ZONES[zone].1, self.first_day(), now)],
        }
    }

    pub(crate) fn json(self) -> Value {
        let keys = |some: &[(&str, &str)]| some.iter().map(|(key, _)| (*key).to_owned()).collect::<Vec<_>>();
        match self {
            Self::Whole => Value::Null,
            Self::Listed => json!({ "kind": "static", "keys": keys(&KEYS) }),
            Self::Cube => json!({ "kind": "multi", "dims": {
                "date": { "kind": "daily", "span": { "start": date(self.first_day()) } },
                "region": { "kind": "static", "keys": keys(&KEYS[..2]) },
            } }),
            Self::Time { grain, zone, .. } => {
                let start = date(self.first_day());
                let span = |start: String| json!({ "start": start, "timezone": ZONES[zone].0 });
                match grain {
                    Grain::Hour => json!({ "kind": "hourly", "span": span(format!("{start}T00:00")) }),
                    Grain::Day => json!({ "kind": "daily", "span": span(start) }),
                    Grain::Week => json!({ "kind": "weekly", "weekday": 1, "span": span(start) }),
                    Grain::Month => json!({ "kind": "monthly", "day": 1, "span": span(start) }),
                }
            }
        }
    }
}

/// Windows of a grain from long before the first to long after now.
fn time(grain: Grain, offset: i64, first_day: i64, now: i64) -> Dim {
    let first = first_day * DAY - offset;
    let (name, starts): (&'static str, Vec<i64>) = match grain {
        Grain::Hour => ("hour", (-120..240).map(|hour| first + hour * HOUR).collect()),
        Grain::Day => ("date", (-20..60).map(|day| first + day * DAY).collect()),
        Grain::Week => {
            // 2024-01-01 was a Monday.
            ("week", (-6..12).map(|week| (january(1) + week * 7) * DAY - offset).collect())
        }
        Grain::Month => ("month", month_starts().iter().map(|day| day * DAY - offset).collect()),
    };
    let slot = |pair: &[i64]| {
        let (start, end) = (pair[0], pair[1]);
        let local = start + offset;
        let value = match grain {
            Grain::Hour => {
                let (day, second) = (start.div_euclid(DAY), start.rem_euclid(DAY));
                format!("t:{}T{:02}:{:02}:00.000000Z", date(day), second / HOUR, second / 60 % 60)
            }
            Grain::Day | Grain::Week | Grain::Month => format!("d:{}", date(local.div_euclid(DAY))),
        };
        let state = match (start >= first, end <= now) {
            (false, _) => State::Never,
            (true, true) => State::Exists,
            (true, false) => State::NotYet,
        };
        Slot { value, start, end, state }
    };
    Dim { name, offset: Some(offset), slots: starts.windows(2).map(slot).collect() }
}

pub(crate) fn name(asset: usize) -> char {
    (b'a' + asset as u8) as char
}

/// A partition by its place along each dimension.
pub(crate) type Part = Vec<usize>;

/// Which partitions of another asset a partition reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Map {
    /// Not written: what is inferred.
    Inferred,
    Same,
    Window(i64, i64),
    Overlap,
    All,
    Last,
    /// x reads y and z, y reads x, z reads nothing.
    Table,
    /// Along the date, and the same or all along what else there is.
    Dates(Box<Map>),
}

impl Map {
    pub(crate) fn json(&self) -> Value {
        match self {
            Self::Inferred => Value::Null,
            Self::Same => json!({ "kind": "same" }),
            Self::Window(from, to) => json!({ "kind": "window", "from": from, "to": to }),
            Self::Overlap => json!({ "kind": "time" }),
            Self::All => json!({ "kind": "all" }),
            Self::Last => json!({ "kind": "last" }),
            Self::Table => json!({ "kind": "static", "map": { "x": ["y", "z"], "y": ["x"] } }),
            Self::Dates(map) => json!({ "kind": "dims", "dims": { "date": { "mapping": map.json() } } }),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Dep {
    pub(crate) of: usize,
    pub(crate) map: Map,
}

#[derive(Debug, Clone)]
pub(crate) struct Asset {
    pub(crate) kind: Kind,
    pub(crate) dims: Vec<Dim>,
    pub(crate) deps: Vec<Dep>,
    pub(crate) is_external: bool,
    pub(crate) is_tagged: bool,
    /// Assets with the same number are made by one function.
    pub(crate) function: usize,
    /// Whether that function can leave outputs out.
    pub(crate) can_subset: bool,
}

impl Asset {
    pub(crate) fn parts(&self) -> Vec<Part> {
        product(&self.dims.iter().map(Dim::existing).collect::<Vec<_>>())
    }

    pub(crate) fn has_partitions(&self) -> bool {
        !self.dims.is_empty()
    }

    /// The canonical key of a partition.
    pub(crate) fn key(&self, part: &Part) -> Option<String> {
        let values =
            self.dims.iter().zip(part).map(|(dim, slot)| format!("{}={}", dim.name, dim.slots[*slot].value));
        self.has_partitions().then(|| values.collect::<Vec<_>>().join(","))
    }
}

pub(crate) fn product(lists: &[Vec<usize>]) -> Vec<Part> {
    let mut parts = vec![Vec::new()];
    for list in lists {
        parts = parts
            .iter()
            .flat_map(|part| list.iter().map(move |slot| [part.as_slice(), &[*slot]].concat()))
            .collect();
    }
    parts
}

/// The partitions of `up` that one partition of `down` reads, and whether one that it must read does not exist.
pub(crate) fn reads(map: &Map, down: &Asset, part: &Part, up: &Asset) -> (Vec<Part>, bool) {
    let mut is_missing = false;
    let mut lists = Vec::new();
    for dim in &up.dims {
        let source = down.dims.iter().position(|other| other.name == dim.name);
        let only = (down.dims.len() == 1 && up.dims.len() == 1).then_some(0);
        let along = match map {
            Map::Dates(map) if dim.name == "date" => (map.as_ref(), source),
            Map::Dates(_) => (if source.is_some() { &Map::Same } else { &Map::All }, source),
            Map::Inferred if down.dims.is_empty() => (&Map::All, None),
            Map::Inferred => (&Map::Same, source.or(only)),
            Map::Same | Map::Window(..) | Map::Overlap | Map::All | Map::Last | Map::Table => {
                (map, source.or(only))
            }
        };
        let from = along.1.map(|source| &down.dims[source].slots[part[source]]);
        lists.push(slots(along.0, from, dim, &mut is_missing));
    }
    (product(&lists), is_missing)
}

fn slots(map: &Map, from: Option<&Slot>, dim: &Dim, is_missing: &mut bool) -> Vec<usize> {
    let mut take = |wanted: Vec<usize>| {
        *is_missing |= wanted.iter().any(|slot| dim.slots[*slot].state == State::NotYet);
        wanted.into_iter().filter(|slot| dim.slots[*slot].state == State::Exists).collect::<Vec<_>>()
    };
    let same = |from: &Slot| dim.slots.iter().position(|slot| slot.value == from.value);
    match (map, from) {
        (Map::All, _) => dim.existing(),
        (Map::Last, _) => {
            let last = dim.existing().pop();
            *is_missing |= last.is_none();
            last.into_iter().collect()
        }
        (Map::Same, Some(from)) => {
            let found = same(from).filter(|slot| dim.slots[*slot].state != State::Never);
            let taken = take(found.into_iter().collect());
            *is_missing |= found.is_none();
            taken
        }
        (Map::Window(first, last), Some(from)) => {
            let at = same(from).expect("the grids of one rhythm are alike") as i64;
            // What is before all that is written out never exists.
            take((at + first..=at + last).filter_map(|slot| usize::try_from(slot).ok()).collect())
        }
        (Map::Overlap, Some(from)) => {
            let overlaps =
                |slot: &Slot| slot.start < from.end && from.start < slot.end && slot.state != State::Never;
            let found: Vec<usize> = (0..dim.slots.len()).filter(|slot| overlaps(&dim.slots[*slot])).collect();
            let none = found.is_empty();
            let taken = take(found);
            *is_missing |= none;
            taken
        }
        (Map::Table, Some(from)) => {
            let read: &[usize] = match from.value.as_str() {
                "s:eA" => &[1, 2],
                "s:eQ" => &[0],
                _ => &[],
            };
            read.to_vec()
        }
        (map, from) => panic!("{map:?} of {from:?} is not generated"),
    }
}
