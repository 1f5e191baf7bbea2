//! Requests with an identity are carried out once, and get the same answer for a day (ADR-090).

use servo_core::{Fingerprint, Millis};
use servo_engine::{
    Caller, CancelRun, Change, ChangePartitions, Engine, EventData, Input, Plan, Refusal, Reply, RunReply,
    RunRequest, Settings, State, TriggerRun,
};

use crate::support::{SECRET, World, fold, plan, tenant, workspace};

fn one() -> Plan {
    plan(&[("a", &[])])
}

/// Somebody whose request has an id, and a body with this digest.
fn caller(id: &str, body: u8) -> Caller {
    Caller {
        request_id: Some(id.into()),
        request_fingerprint: Some(Fingerprint::from_digest([body; 32])),
        ..Caller::user("me")
    }
}

fn trigger(run_key: &str, caller: Caller) -> Input {
    Input::Trigger(TriggerRun::of_tasks(run_key, one(), RunRequest { caller, ..RunRequest::default() }))
}

fn partitions(add: &[&str], caller: Caller) -> Input {
    let add = add.iter().map(|key| (*key).to_owned()).collect();
    Input::ChangePartitions(ChangePartitions { name: "customers".into(), add, remove: vec![], caller })
}

/// The same workspace after a restart: loaded from its rows.
fn restarted(world: &World) -> Engine {
    let state = State::from_rows(tenant(), workspace(), world.state().rows()).expect("its own rows");
    Engine::new(state, SECRET)
}

#[test]
fn a_request_is_carried_out_once_whatever_run_key_it_came_with() {
    let mut world = World::new(Settings::default());
    let first = world.ask(trigger("made up 1", caller("id", 1))).expect("a run");
    let written = world.events().len();
    // A retry makes up a new run key each time: the id of the request is what counts.
    let again = world.ask(trigger("made up 2", caller("id", 1)));
    assert_eq!(again, Ok(first.clone()));
    assert_eq!(world.events().len(), written, "nothing is recorded twice");
    let step = restarted(&world).step(&[trigger("made up 3", caller("id", 1))], world.now);
    assert_eq!((step.replies, step.events.len()), (vec![Ok(first)], 0));
}

#[test]
fn twice_in_one_batch_is_once() {
    let mut world = World::new(Settings::default());
    let step = world.step(&[trigger("k1", caller("id", 1)), trigger("k2", caller("id", 1))]);
    assert_eq!(step.replies[0], step.replies[1]);
    assert_eq!(world.state().runs().count(), 1);
}

#[test]
fn the_answer_is_in_the_batch_of_what_it_answers() {
    let mut world = World::new(Settings::default());
    let Ok(Reply::Run(RunReply { run_id, accepted })) = world.ask(trigger("k", caller("id", 1))) else {
        panic!("a run")
    };
    let batch = world.log.last().expect("a batch");
    let answered = batch.iter().find_map(|event| {
        if let EventData::RequestAnswered(answered) = &event.data { Some((event, answered)) } else { None }
    });
    let (event, answered) = answered.expect("its answer");
    assert_eq!((answered.run_id, answered.event_id), (Some(run_id), accepted));
    assert_eq!(event.principal, Caller::user("me").principal);
    assert!(batch.iter().any(|event| Some(event.id) == accepted));
}

#[test]
fn an_id_is_for_one_request_and_for_one_caller() {
    let mut world = World::new(Settings::default());
    world.ask(trigger("k1", caller("id", 1))).expect("a run");
    let other = world.ask(trigger("k2", caller("id", 2)));
    assert_eq!(other, Err(Refusal::RequestIdReused { request_id: "id".into() }));
    let step = restarted(&world).step(&[trigger("k2", caller("id", 2))], world.now);
    assert_eq!(
        step.replies,
        [Err(Refusal::RequestIdReused { request_id: "id".into() })],
        "also after a restart"
    );
    let somebody = Caller { principal: Caller::user("somebody").principal, ..caller("id", 2) };
    assert!(world.ask(trigger("k2", somebody)).is_ok());
}

#[test]
fn every_change_gets_the_answer_that_it_was_given() {
    let mut world = World::new(Settings::default());
    let run_id = world.trigger(TriggerRun::new("k", one(), "me"));
    let cancel = || {
        let (caller, reason) = (caller("cancel", 1), String::new());
        Input::Cancel(CancelRun { run_id, caller, reason, force: false })
    };
    let cancelled = world.ask(cancel()).expect("it is cancelled");
    assert!(matches!(cancelled, Reply::Change(Change::Accepted { .. })));
    assert_eq!(world.ask(cancel()), Ok(cancelled), "although the run has ended");
    let added = world.ask(partitions(&["a", "b"], caller("add", 1))).expect("they are added");
    let again = world.ask(partitions(&["a", "b"], caller("add", 1)));
    assert_eq!(again, Ok(added.clone()), "although they are there");
    let Reply::Partitions(reply) = added else { panic!("{added:?}") };
    assert_eq!((reply.added, reply.removed), (2, 0));
    let none = world.ask(partitions(&["a"], caller("none", 1))).expect("nothing to do");
    world
        .ask(Input::ChangePartitions(ChangePartitions {
            name: "customers".into(),
            add: vec![],
            remove: vec!["a".into()],
            caller: Caller::user("me"),
        }))
        .expect("it is removed");
    assert_eq!(
        world.ask(partitions(&["a"], caller("none", 1))),
        Ok(none),
        "that nothing was to be done, too"
    );
}

#[test]
fn a_refusal_is_no_answer() {
    let mut world =
        World::new(Settings { max_concurrent_runs: 1, max_queued_runs: 0, ..Settings::default() });
    world.trigger(TriggerRun::new("k", one(), "me"));
    world.ask(trigger("k2", caller("id", 1))).expect_err("over quota");
    world.succeed("a");
    assert!(matches!(
        world.ask(trigger("k2", caller("id", 1))),
        Ok(Reply::Run(RunReply { accepted: Some(_), .. }))
    ));
}

#[test]
fn an_answer_is_given_for_a_day_of_the_log_whatever_the_clock_does() {
    let mut world = World::new(Settings::default());
    let first = world.ask(partitions(&["0"], caller("id", 1))).expect("a change");
    world.wait(30 * 24 * 3_600);
    assert_eq!(world.ask(partitions(&["0"], caller("id", 1))), Ok(first), "a step of the clock is not a day");
    for hour in 0..26 {
        world.wait(3_600);
        world.ask(partitions(&[&hour.to_string()], Caller::user("me"))).expect("a change");
    }
    assert!(world.state().head().elapsed > Millis::from_hours(25));
    let later = world.ask(partitions(&["0"], caller("id", 2))).expect("the id is free again");
    assert!(matches!(later, Reply::Partitions(reply) if reply.change == Change::Duplicate));
    let settings = world.state().settings().clone();
    let mut replayed = fold(&settings, &world.events()).rows();
    replayed.head.seq = world.state().head().seq;
    assert_eq!(replayed, world.state().rows(), "a replay has the same answers");
    assert_eq!(world.state().rows().answers.len(), 1);
}
