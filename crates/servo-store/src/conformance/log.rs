//! The rules of a log.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use futures::future::join_all;

use super::{Storage, Trouble, batch};
use crate::{AppendError, ErrorKind, Log, ReadError, Record, Seq};

async fn fill(log: &dyn Log, last: Seq) {
    for seq in 1..=last {
        log.append(batch(seq, 1)).await.expect("append");
    }
}

async fn contents(log: &dyn Log, from: Seq) -> Result<Vec<Record>, ReadError> {
    log.read(from).try_collect().await
}

fn kind(result: Result<(), AppendError>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

fn read_kind<T>(result: Result<T, ReadError>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

/// A new log has no batches, begins at 1 and waits for batch 1.
pub async fn an_empty_log_reads_as_empty(storage: &dyn Storage) {
    let log = storage.writer().await;
    assert_eq!(contents(&*log, 1).await.expect("read"), []);
    assert_eq!(log.next_seq().await.expect("next"), 1);
    assert_eq!(log.boundary().await.expect("boundary"), 1);
    assert!(!log.describe().is_empty());
}

/// A number that is not the next one is refused, and nothing of it is kept.
pub async fn numbers_have_no_holes(storage: &dyn Storage) {
    let log = storage.writer().await;
    assert_eq!(kind(log.append(batch(2, 1)).await), Some(ErrorKind::Conflict));
    fill(&*log, 3).await;
    assert_eq!(kind(log.append(batch(5, 1)).await), Some(ErrorKind::Conflict));
    assert_eq!(log.next_seq().await.expect("next"), 4);
    let other = storage.writer().await;
    assert_eq!(kind(other.append(batch(9, 2)).await), Some(ErrorKind::Conflict));
    let read = contents(&*other, 1).await.expect("read");
    assert_eq!(read, (1..=3).map(|seq| batch(seq, 1)).collect::<Vec<_>>());
    assert_eq!(contents(&*log, 4).await.expect("reading at the end"), []);
}

/// Of two records with one number the first stays, and the second is told whose it is.
pub async fn a_number_is_given_once(storage: &dyn Storage) {
    let (first, second) = (storage.writer().await, storage.writer().await);
    first.append(batch(1, 1)).await.expect("the first lands");
    let error = second.append(batch(1, 2)).await.expect_err("the second does not");
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains(&batch(1, 1).put_id.to_string()), "says whose it is: {error}");
    second.append(batch(2, 2)).await.expect("decided again, it lands as the next one");
    let expected = vec![batch(1, 1), batch(2, 2)];
    assert_eq!(contents(&*first, 1).await.expect("read"), expected);
}

/// A record that landed without an answer is appended again: `Ok`, and it is there once.
pub async fn a_lost_answer_is_recognized(storage: &dyn Storage) {
    let log = storage.writer().await;
    fill(&*log, 1).await;
    storage.trouble(Trouble::LostAnswer);
    match log.append(batch(2, 1)).await {
        Ok(()) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
    }
    storage.heal();
    log.append(batch(2, 1)).await.expect("mine");
    log.append(batch(1, 1)).await.expect("mine, some time ago");
    storage.writer().await.append(batch(2, 1)).await.expect("mine, through another handle");
    assert_eq!(contents(&*log, 1).await.expect("read"), [batch(1, 1), batch(2, 1)]);
}

/// "Already exists" although nothing landed: it lands after all, or is reported as a reason to try again.
pub async fn nothing_landed_is_tried_again(storage: &dyn Storage) {
    let log = storage.writer().await;
    fill(&*log, 1).await;
    storage.trouble(Trouble::NothingLanded);
    match log.append(batch(2, 1)).await {
        Ok(()) => {}
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            assert_eq!(contents(&*log, 2).await.expect("read"), []);
            log.append(batch(2, 1)).await.expect("the second try");
        }
    }
    assert_eq!(contents(&*log, 2).await.expect("read"), [batch(2, 1)]);
}

/// A store that stays away is reported as such; the same record lands when it is back.
pub async fn unavailable_is_reported_and_the_same_record_lands_later(storage: &dyn Storage) {
    let log = storage.writer().await;
    fill(&*log, 1).await;
    if storage.trouble(Trouble::Unavailable) {
        assert_eq!(kind(log.append(batch(2, 1)).await), Some(ErrorKind::Unavailable));
    }
    storage.heal();
    assert_eq!(log.next_seq().await.expect("next"), 2);
    log.append(batch(2, 1)).await.expect("lands when the store is back");
    assert_eq!(contents(&*log, 1).await.expect("read"), [batch(1, 1), batch(2, 1)]);
}

/// A writer that meets a record of a newer epoch has been deposed, and is told so.
pub async fn a_newer_epoch_fences_an_older_one(storage: &dyn Storage) {
    let (old, new) = (storage.writer().await, storage.writer().await);
    fill(&*old, 1).await;
    new.append(Record { epoch: 2, ..batch(2, 2) }).await.expect("the new writer");
    let error = old.append(batch(2, 1)).await.expect_err("the old writer");
    assert_eq!(error.kind(), ErrorKind::Fenced);
    assert!(error.to_string().contains("epoch 2"), "{error}");
}

/// A payload that would break the format is refused before anything is written.
pub async fn a_bad_payload_is_refused(storage: &dyn Storage) {
    let log = storage.writer().await;
    for payload in ["", "{}", "[1,\n2]", "[1]\n"] {
        let record = Record { payload: payload.into(), ..batch(1, 1) };
        assert_eq!(kind(log.append(record).await), Some(ErrorKind::Invalid), "{payload:?}");
    }
    assert_eq!(log.next_seq().await.expect("next"), 1);
    log.append(batch(1, 1)).await.expect("append");
}

/// Every acknowledged record is there after a restart, and appending continues after it.
pub async fn reopening_shows_what_was_acknowledged(storage: &dyn Storage) {
    let log = storage.writer().await;
    fill(&*log, 20).await;
    drop(log);
    let log = storage.writer().await;
    assert_eq!(log.next_seq().await.expect("next"), 21);
    log.append(batch(21, 2)).await.expect("append");
    drop(log);
    let log = storage.writer().await;
    let read = contents(&*log, 1).await.expect("read");
    assert_eq!(read.len(), 21);
    assert_eq!(read[19..], [batch(20, 1), batch(21, 2)]);
}

/// A read from the middle gives the rest, from any number.
pub async fn reading_starts_anywhere(storage: &dyn Storage) {
    let log = storage.writer().await;
    fill(&*log, 40).await;
    for from in [1, 2, 17, 39, 40, 41, 1000] {
        let seqs: Vec<Seq> =
            contents(&*log, from).await.expect("read").iter().map(|record| record.seq).collect();
        assert_eq!(seqs, (from..=40).collect::<Vec<_>>(), "from {from}");
    }
}

/// A batch of five megabytes comes back as it was.
pub async fn a_big_batch_is_kept(storage: &dyn Storage) {
    let log = storage.writer().await;
    let payload = Bytes::from(format!("[\"{}\"]", "0123456789abcdef".repeat(5 << 16)));
    assert!(payload.len() > 5_000_000);
    log.append(Record { payload: payload.clone(), ..batch(1, 1) }).await.expect("append");
    log.append(batch(2, 1)).await.expect("append");
    drop(log);
    let read = contents(&*storage.writer().await, 1).await.expect("read");
    assert!(read[0].payload == payload, "the big batch differs");
    assert_eq!(read[1], batch(2, 1));
}

/// Records below the boundary cannot be read, before and after a restart; moving it down does nothing.
pub async fn the_boundary_survives_and_only_moves_up(storage: &dyn Storage) {
    let log = storage.writer().await;
    fill(&*log, 10).await;
    assert_eq!(kind(log.truncate_before(12).await), Some(ErrorKind::Invalid), "beyond the end");
    log.truncate_before(4).await.expect("truncate");
    log.truncate_before(7).await.expect("truncate");
    log.truncate_before(3).await.expect("moving down does nothing");
    drop(log);
    let log = storage.writer().await;
    assert_eq!(log.boundary().await.expect("boundary"), 7);
    assert_eq!(log.next_seq().await.expect("next"), 11);
    assert_eq!(read_kind(contents(&*log, 6).await), Some(ErrorKind::NotFound));
    assert_eq!(contents(&*log, 7).await.expect("read").len(), 4);
    log.truncate_before(11).await.expect("everything");
    assert_eq!(contents(&*log, 11).await.expect("read"), []);
    log.append(batch(11, 1)).await.expect("goes on behind what was deleted");
    drop(log);
    let log = storage.writer().await;
    assert_eq!(contents(&*log, 11).await.expect("read"), [batch(11, 1)]);
}

/// A writer that slept through a deletion re-creates a deleted name: it is fenced, and nothing shows.
pub async fn a_deleted_number_cannot_come_back(storage: &dyn Storage) {
    let (stale, live) = (storage.writer().await, storage.writer().await);
    fill(&*stale, 2).await;
    for seq in 3..=8 {
        live.append(batch(seq, 2)).await.expect("append");
    }
    live.truncate_before(7).await.expect("truncate");
    for seq in [3, 4] {
        assert_eq!(kind(stale.append(batch(seq, 1)).await), Some(ErrorKind::Fenced), "batch {seq}");
    }
    let fresh = storage.writer().await;
    assert_eq!(
        kind(fresh.append(batch(5, 1)).await),
        Some(ErrorKind::Fenced),
        "a writer that has just opened"
    );
    assert_eq!(read_kind(contents(&*stale, 3).await), Some(ErrorKind::NotFound));
    assert_eq!(contents(&*fresh, 7).await.expect("read"), [batch(7, 2), batch(8, 2)]);
    assert_eq!(stale.next_seq().await.expect("next"), 9);
}

/// Eight writers race for each of twenty numbers: one winner each, and the log holds the winners' records.
pub async fn exactly_one_of_racing_writers_wins_each_number(storage: &dyn Storage) {
    const WRITERS: u64 = 8;
    const NUMBERS: Seq = 20;
    let tasks =
        join_all((1..=WRITERS).map(|_| storage.writer())).await.into_iter().zip(1..).map(|(log, writer)| {
            tokio::spawn(async move {
                let log: Arc<dyn Log> = log;
                let mut won = Vec::new();
                for seq in 1..=NUMBERS {
                    loop {
                        match log.append(batch(seq, writer)).await {
                            Ok(()) => won.push(seq),
                            Err(error) if error.kind() == ErrorKind::Unavailable => continue,
                            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
                        }
                        break;
                    }
                }
                (writer, won)
            })
        });
    let mut winners: BTreeMap<Seq, Vec<u64>> = BTreeMap::new();
    for task in join_all(tasks.collect::<Vec<_>>()).await {
        let (writer, won) = task.expect("no writer panics");
        for seq in won {
            winners.entry(seq).or_default().push(writer);
        }
    }
    let read = contents(&*storage.writer().await, 1).await.expect("read");
    assert_eq!(read.len() as u64, NUMBERS);
    for record in read {
        let winner = winners.remove(&record.seq).expect("somebody won it");
        assert_eq!(winner.len(), 1, "batch {} was won by {winner:?}", record.seq);
        assert_eq!(record, batch(record.seq, winner[0]));
    }
}

/// Every rule in turn, each on a fresh storage, for stores that are slow to start.
pub async fn every_log_rule<S: Storage>(fresh: impl AsyncFn() -> S) {
    an_empty_log_reads_as_empty(&fresh().await).await;
    numbers_have_no_holes(&fresh().await).await;
    a_number_is_given_once(&fresh().await).await;
    a_lost_answer_is_recognized(&fresh().await).await;
    nothing_landed_is_tried_again(&fresh().await).await;
    unavailable_is_reported_and_the_same_record_lands_later(&fresh().await).await;
    a_newer_epoch_fences_an_older_one(&fresh().await).await;
    a_bad_payload_is_refused(&fresh().await).await;
    reopening_shows_what_was_acknowledged(&fresh().await).await;
    reading_starts_anywhere(&fresh().await).await;
    a_big_batch_is_kept(&fresh().await).await;
    the_boundary_survives_and_only_moves_up(&fresh().await).await;
    a_deleted_number_cannot_come_back(&fresh().await).await;
    exactly_one_of_racing_writers_wins_each_number(&fresh().await).await;
}
