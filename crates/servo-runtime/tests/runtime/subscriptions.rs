//! Following what becomes durable.

use servo_core::EventId;
use servo_engine::{Event, State, TriggerRun};
use servo_store::MemoryFault;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::support::{Harness, diamond, events, memory, one, within};

#[tokio::test]
async fn a_follower_is_told_every_event_in_order_and_only_when_it_is_in_the_log() {
    let (log, stores) = memory();
    let harness = Harness::open(stores, |_| {}).await.unwrap();
    let mut followed = harness.workspace.subscribe();
    let run = harness.trigger("followed", diamond()).await;
    harness.ended(run).await;
    let last = harness.workspace.inspect(|state| state.head().last_event).await.unwrap();
    let mut told: Vec<Event> = Vec::new();
    while told.last().map(|event| event.id) != Some(last) {
        let batch = within(followed.recv()).await.unwrap();
        let logged = events(&log).await;
        assert!(batch.iter().all(|event| logged.contains(event)), "durable before it is told");
        told.extend(batch.iter().cloned());
    }
    let logged: Vec<Event> = events(&log).await.into_iter().filter(|event| event.id <= last).collect();
    assert_eq!(told, logged);
    harness.close().await;
}

#[tokio::test]
async fn a_follower_that_falls_behind_is_told_so_and_goes_on() {
    let (_, stores) = memory();
    let harness = Harness::open(stores, |_| {}).await.unwrap();
    let mut followed = harness.workspace.subscribe();
    for number in 0..70 {
        harness.run(&format!("run {number}"), one("a")).await;
    }
    // Whoever inspects the engine after a batch is answered after that batch was told.
    let last = harness.workspace.inspect(|state: &State| state.head().last_event).await.unwrap();
    assert!(matches!(followed.try_recv(), Err(TryRecvError::Lagged(_))));
    let mut newest = EventId::NIL;
    while newest < last {
        newest = followed.try_recv().unwrap().last().map_or(newest, |event| event.id);
    }
    harness.close().await;
}

#[tokio::test]
async fn a_follower_is_told_to_look_again_when_a_batch_failed() {
    let (log, stores) = memory();
    let harness = Harness::open(stores, |_| {}).await.unwrap();
    let mut followed = harness.workspace.subscribe();
    log.choose(|_| Some(MemoryFault::Full));
    let lost = harness.workspace.trigger(TriggerRun::new("lost", one("a"), "test"));
    assert!(within(lost).await.unwrap_err().is_transient());
    let batch = within(followed.recv()).await.unwrap();
    assert_eq!(batch.len(), 0);
    log.choose(|_| None);
    harness.close().await;
}

#[tokio::test]
async fn followers_are_let_go_when_the_workspace_ends() {
    let (_, stores) = memory();
    let harness = Harness::open(stores, |_| {}).await.unwrap();
    let workspace = harness.workspace.clone();
    let mut followed = workspace.subscribe();
    harness.run("only", one("a")).await;
    harness.close().await;
    let closed = async {
        loop {
            match followed.recv().await {
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    };
    within(closed).await;
    assert!(
        matches!(workspace.subscribe().recv().await, Err(RecvError::Closed)),
        "also those who come later"
    );
}
