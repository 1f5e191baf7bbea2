//! Partitions and mappings against a second opinion: an oracle that works them out from wall clocks, in Python.
//!
//! It knows every zone whose clocks change between 2000 and 2040, and asks about all of it that is not plain
//! arithmetic. The questions come with their answers, a JSON object in each line; long answers are a digest of lines,
//! and are asked for again, in full, where the digest differs.

mod answers;

use std::collections::BTreeSet;

use jiff::tz::TimeZoneDatabase;

use crate::support::oracle;

/// How many tests share the zones, so that they run beside each other.
const PARTS: usize = 12;

macro_rules! parts {
    ($($part:literal $name:ident)*) => {
        $(
            #[test]
            fn $name() {
                zones_of_part_agree($part);
            }
        )*
    };
}

parts! {
    0 zones_of_the_first_part_agree
    1 zones_of_the_second_part_agree
    2 zones_of_the_third_part_agree
    3 zones_of_the_fourth_part_agree
    4 zones_of_the_fifth_part_agree
    5 zones_of_the_sixth_part_agree
    6 zones_of_the_seventh_part_agree
    7 zones_of_the_eighth_part_agree
    8 zones_of_the_ninth_part_agree
    9 zones_of_the_tenth_part_agree
    10 zones_of_the_eleventh_part_agree
    11 zones_of_the_twelfth_part_agree
}

fn zones_of_part_agree(part: usize) {
    let mut answered = 0;
    let mut wrong = Vec::new();
    oracle::ask("partitions_oracle", &["cases", &part.to_string(), &PARTS.to_string()], "", |case| {
        answered += 1;
        // A zone that is wrong is so in many ways: the first few tell enough.
        if wrong.len() < 10 {
            wrong.extend(answers::check(case));
        }
    });
    assert!(answered > 100, "only {answered} cases");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_zone_whose_clocks_change_is_asked_about() {
    let time = |text: &str| text.parse::<jiff::Timestamp>().unwrap();
    let (from, until) = (time("1999-12-31T23:59:59Z"), time("2041-01-01T00:00:00Z"));
    let database = TimeZoneDatabase::bundled();
    let changes = |name: &str| {
        let zone = database.get(name).unwrap();
        // Some transitions change only the name of the time.
        let offset = zone.to_offset(from);
        zone.following(from).take_while(|next| next.timestamp() < until).any(|next| next.offset() != offset)
    };
    let ours: BTreeSet<String> =
        database.available().map(|name| name.to_string()).filter(|name| changes(name)).collect();
    let mut theirs = BTreeSet::new();
    oracle::ask("partitions_oracle", &["zones"], "", |line| theirs = serde_json::from_str(line).unwrap());
    assert_eq!(ours.difference(&theirs).collect::<Vec<_>>(), [""; 0], "the oracle does not have them");
    assert_eq!(theirs.difference(&ours).collect::<Vec<_>>(), [""; 0], "only the oracle has them");
    assert!(ours.len() > 300, "{}", ours.len());
}
