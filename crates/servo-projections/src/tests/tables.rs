//! Properties of every table, whichever there are.

use std::collections::BTreeMap;
use std::path::Path;

use servo_engine::rows::{AppendedRow, HistoryRow, HotRow, HotRows, ReadFrom, Row};
use servo_engine::{for_each_append_only_table, for_each_history_table, for_each_hot_table, for_each_table};

use super::generate::Generator;
use super::support::{Model, check_generated, empty_delta, head, latest, memory, now, open, random_delta};
use crate::immutable::{Cursor, history_key};
use crate::rebuild::compare::{Digests, KeptSince, TableCheck, compare_hot};
use crate::table::StoredRow;
use crate::{Limits, Projection, TABLES};

/// All rows of a table's history, in the order of files.
async fn history<R: StoredRow>(projection: &Projection) -> Vec<R> {
    let mut rows = Vec::new();
    for file in projection.manifest().immutable(R::TABLE) {
        let mut cursor = Cursor::<R>::open(&projection.files, file).await.unwrap();
        while let Some(row) = cursor.next().await.unwrap() {
            rows.push(row);
        }
    }
    rows
}

#[tokio::test]
async fn every_table_is_written_merged_and_read() {
    let blobs = memory();
    let limits = Limits { l0_max_count: 2, tier_fanout: 2, ..Limits::default() };
    let mut compactor = open(&blobs, 1, 1, limits).await;
    let (generator, mut model) = (Generator::new(1), Model::default());
    let mut deltas = Vec::new();
    for seq in 1..=24 {
        let delta = random_delta(&generator, seq, &model);
        model.apply(&delta);
        deltas.push(delta.clone());
        compactor.flush(delta, now()).await.unwrap();
        assert!(compactor.maintenance_error().is_none());
    }
    let projection = latest(&blobs).await;
    let hot = projection.hot_rows().await.unwrap();
    let base = &projection.manifest().base_snapshot.as_ref().unwrap().tables;
    let is_merged = |table: &str| projection.manifest().immutable(table).iter().any(|file| file.level > 0);
    for_each_hot_table!(R => {
        assert!(base.contains_key(R::TABLE), "{} has a base", R::TABLE);
        assert!(!R::hot(&hot).is_empty(), "{} has rows", R::TABLE);
        assert_eq!(R::hot(&hot), R::hot(&model.0), "{}", R::TABLE);
    });
    for_each_history_table!(R => {
        assert!(is_merged(R::TABLE), "{} is merged", R::TABLE);
        let by_key = |rows: Vec<R>| rows.into_iter().map(|row| (history_key(&row), row)).collect();
        let found: BTreeMap<_, R> = by_key(history(&projection).await);
        let expected: BTreeMap<_, R> = by_key(deltas.iter().flat_map(R::ended).cloned().collect());
        assert_eq!(found, expected, "{}", R::TABLE);
    });
    for_each_append_only_table!(R => {
        assert!(is_merged(R::TABLE), "{} is merged", R::TABLE);
        let expected: Vec<R> = deltas.iter().flat_map(R::appended).cloned().collect();
        assert_eq!(history::<R>(&projection).await, expected, "{}", R::TABLE);
    });
}

fn differing(checks: &[TableCheck]) -> Vec<&str> {
    checks.iter().filter(|check| !check.is_ok()).map(|check| check.table.as_str()).collect()
}

#[test]
fn a_hot_row_that_is_missing_is_noticed_in_every_table() {
    let generator = Generator::new(2);
    generator.at_batch(1);
    let nothing = HotRows::empty(head(1));
    assert!(differing(&compare_hot(&nothing, &nothing)).is_empty());
    for_each_hot_table!(R => {
        let mut expected = nothing.clone();
        R::hot_mut(&mut expected).push(generator.row());
        assert_eq!(differing(&compare_hot(&expected, &nothing)), [format!("{} (hot)", R::TABLE)]);
        let mut other = nothing.clone();
        R::hot_mut(&mut other).push(generator.row());
        assert_eq!(differing(&compare_hot(&expected, &other)), [format!("{} (hot)", R::TABLE)]);
    });
}

#[tokio::test]
async fn a_row_of_history_that_is_missing_or_differs_is_noticed_in_every_table() {
    async fn check<R: StoredRow + ReadFrom<Generator>>(rows: fn(&mut servo_engine::Delta) -> &mut Vec<R>) {
        let blobs = memory();
        let mut compactor = open(&blobs, 1, 1, Limits::default()).await;
        let generator = Generator::new(3);
        let (mut written, mut expected) = (empty_delta(1), empty_delta(1));
        let known: Vec<R> = generator.rows(2);
        rows(&mut written).extend(known.clone());
        rows(&mut expected).extend(known);
        compactor.flush(written, now()).await.unwrap();
        let projection = latest(&blobs).await;
        let all = KeptSince { keys: servo_core::Timestamp::MIN, history: None };
        let compare = async |delta| {
            let mut digests = Digests::default();
            digests.add(&delta, all);
            let (files, manifest) = (&projection.files, projection.manifest());
            digests.compare(files, manifest, all).await.unwrap()
        };
        assert!(differing(&compare(expected.clone()).await).is_empty(), "{}", R::TABLE);
        rows(&mut expected).push(generator.row());
        let checks = compare(expected).await;
        assert_eq!(differing(&checks), [format!("{} (history)", R::TABLE)]);
        assert_eq!(checks.iter().map(|check| check.missing).sum::<u64>(), 1);
    }
    for_each_history_table!(R => check::<R>(R::ended_mut).await);
    for_each_append_only_table!(R => check::<R>(R::appended_mut).await);
}

#[test]
fn names_of_tables_are_theirs_alone() {
    let mut names = Vec::new();
    for_each_table!(R => {
        names.push(R::TABLE);
        assert!(R::COLUMNS.iter().any(|column| column.name == "row_version"), "{}", R::TABLE);
        assert!(R::DOC.trim().ends_with('.'), "{}: a sentence about its rows", R::TABLE);
    });
    assert_eq!(names, TABLES);
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), TABLES.len());
}

const BEGIN: &str = "<!-- tables: made by SERVO_UPDATE=1 cargo test -p servo-projections -->\n";
const END: &str = "<!-- end of tables -->\n";

/// One table as an item of a list, in lines of at most 120 characters.
fn described<R: Row>(files: &str) -> String {
    let key: Vec<String> = R::KEY.iter().map(|column| format!("`{column}`")).collect();
    let text = format!("- `{}` ({files}), by {}: {}", R::TABLE, key.join(", "), R::DOC.trim());
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= 120 => *line += &format!(" {word}"),
            Some(_) => lines.push(format!("  {word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn the_docs_know_every_table() {
    let mut tables = String::new();
    let mut with_history = Vec::new();
    for_each_history_table!(R => with_history.push(R::TABLE));
    for_each_hot_table!(R => {
        let files = if with_history.contains(&R::TABLE) { "base, l0, history" } else { "base, l0" };
        tables += &described::<R>(files);
    });
    for_each_append_only_table!(R => tables += &described::<R>("history"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/state-on-disk.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has a place for them");
    let (_, after) = rest.split_once(END).expect("the place has an end");
    check_generated(&path, &format!("{before}{BEGIN}{tables}{END}{after}"));
}
