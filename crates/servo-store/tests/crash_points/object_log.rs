//! The log of objects.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::TryStreamExt;
use futures::executor::block_on;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use object_store::path::Path;
use servo_store::conformance::layout;
use servo_store::testing::{HookedStore, RequestVerdict};
use servo_store::{ObjectLog, ObjectLogOptions};

use crate::crashes::named;
use crate::script::Writer;

/// How many writes of the one who starts again are interrupted too.
const WRITES_OF_RECOVERY: u64 = 6;

/// A log as a new client of the store sees it.
fn open(client: &HookedStore) -> ObjectLog {
    let options = ObjectLogOptions { read_ahead: 2, ..ObjectLogOptions::default() };
    ObjectLog::new(Arc::new(client.clone()), &Path::from("bucket"), &layout(), options)
}

/// The names of all objects. They are written once, so that nothing else can differ.
fn names(store: &HookedStore) -> Vec<String> {
    let objects: Vec<_> = block_on(store.client().list(None).try_collect()).expect("a listing");
    let mut names: Vec<String> = objects.into_iter().map(|object| object.location.to_string()).collect();
    names.sort();
    names
}

type Crash = (u64, RequestVerdict);

/// Whether each write of the script is a deletion, and the names of what is left when nobody dies.
fn undisturbed() -> (Vec<bool>, Vec<String>) {
    let store = HookedStore::new(Arc::new(InMemory::new()));
    let writes = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&writes);
    store.on_write(Box::new(move |request| {
        seen.lock().expect("no panic").push(request.is_delete);
        RequestVerdict::Go
    }));
    block_on(Writer::default().go_on(|| Ok(open(&store)))).expect("nothing fails");
    let writes = writes.lock().expect("no panic").clone();
    (writes, names(&store))
}

/// Runs the script with these deaths. How many there were.
fn survive(crashes: &[Crash], expected: &[String]) -> usize {
    let store = HookedStore::new(Arc::new(InMemory::new()));
    let plan: BTreeMap<u64, RequestVerdict> = crashes.iter().copied().collect();
    store.on_write(Box::new(move |request| plan.get(&request.number).copied().unwrap_or(RequestVerdict::Go)));
    let mut writer = Writer::default();
    let mut deaths = 0;
    loop {
        let client = store.client();
        let Err(error) = block_on(writer.go_on(|| Ok(open(&client)))) else { break };
        assert!(!client.is_alive(), "it did not die: {error}");
        deaths += 1;
    }
    assert!(deaths > 0, "nobody died");
    block_on(writer.go_on(|| Ok(open(&store)))).expect("there is nothing left to do");
    let is_late = |crash: &Crash| matches!(crash.1, RequestVerdict::DieAndLandLater(_));
    if !crashes.iter().any(is_late) {
        assert_eq!(names(&store), expected, "other objects are left than without dying");
    }
    deaths
}

/// In how many of the cases everybody died who should.
fn survive_all(cases: impl Iterator<Item = Vec<Crash>>, expected: &[String]) -> usize {
    cases.filter(|crashes| named(crashes, || survive(crashes, expected)) == crashes.len()).count()
}

fn every_death(writes: &[bool], ways: &[RequestVerdict]) -> Vec<Crash> {
    (1..).zip(writes).flat_map(|(at, _)| ways.iter().map(move |way| (at, *way))).collect()
}

#[test]
fn a_client_dies_at_every_put_and_every_delete() {
    let (writes, expected) = undisturbed();
    let deletes = writes.iter().filter(|is_delete| **is_delete).count();
    assert!(deletes >= 15, "deletions of several objects are interrupted in the middle: {deletes}");
    let ways = [
        RequestVerdict::DieBefore,
        RequestVerdict::DieAfter,
        RequestVerdict::DieAndLandLater(1),
        RequestVerdict::DieAndLandLater(2),
        RequestVerdict::DieAndLandLater(5),
        RequestVerdict::DieAndLandLater(25),
    ];
    let cases = every_death(&writes, &ways).into_iter().map(|crash| vec![crash]);
    let points = survive_all(cases, &expected);
    eprintln!("log of objects: {points} deaths");
    assert!(points >= 200, "{points}");
}

#[test]
fn a_client_dies_at_every_write_and_the_next_one_while_it_goes_on() {
    let (writes, expected) = undisturbed();
    let ways = [RequestVerdict::DieBefore, RequestVerdict::DieAfter, RequestVerdict::DieAndLandLater(3)];
    let last = writes.len() as u64;
    let again = |first: Crash| {
        (1..=WRITES_OF_RECOVERY).flat_map(move |later| ways.map(|way| vec![first, (first.0 + later, way)]))
    };
    let cases = every_death(&writes, &ways).into_iter().filter(|(at, _)| *at < last).flat_map(again);
    let points = survive_all(cases, &expected);
    eprintln!("log of objects: {points} pairs of deaths");
    assert!(points >= 1_500, "{points}");
}
