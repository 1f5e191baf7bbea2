//! Caches responses to requests with an idempotency key: the same request again gets the same response.
//!
//! Kept in memory, for a day, and no more than a number of them. What must not happen twice after a restart either is
//! tied to something in the log: runs to their run key, reviews to what they are about, deployments to their digest.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use bytes::Bytes;
use serde::Serialize;
use servo_core::{Millis, Timestamp};

use crate::problem::{Code, Problem};

const KEPT_FOR: Millis = Millis::from_hours(24);
const KEPT: usize = 10_000;
const REPLAYED: &str = "idempotency-replayed";

/// Identity of an idempotent request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestIdentity {
    /// The caller and its idempotency key; none if the caller gave none.
    pub(crate) key: Option<(Arc<str>, String)>,
    /// Hash of method, path and body.
    pub(crate) fingerprint: String,
}

impl RequestIdentity {
    /// An idempotency key names the run, so that it is the same run after a restart too.
    pub(crate) fn run_key(&self) -> Option<String> {
        self.key.as_ref().map(|(principal, key)| format!("request:{principal}:{key}"))
    }
}

#[derive(Default)]
pub(crate) struct ResponseCache(Mutex<Kept>);

type Key = (Arc<str>, String);
/// None while the first request is in progress.
type Slot = Arc<tokio::sync::Mutex<Option<Bytes>>>;

#[derive(Default)]
struct Kept {
    entries: BTreeMap<Key, Entry>,
    /// In the order of arrival; entries that are gone from `entries` or newer there are skipped.
    order: VecDeque<(Timestamp, Key)>,
}

struct Entry {
    at: Timestamp,
    fingerprint: String,
    slot: Slot,
}

impl ResponseCache {
    /// Runs the request, or returns the cached response. Only accepted requests are cached: after a refusal nothing has
    /// changed, and the next request with the key is a new one.
    pub(crate) async fn once<T: Serialize>(
        &self,
        once: RequestIdentity,
        now: Timestamp,
        work: impl Future<Output = Result<T, Problem>>,
    ) -> Result<Response<Body>, Problem> {
        let Some(key) = once.key else { return accepted(encode(&work.await?)?) };
        let slot = self.claim(&key, &once.fingerprint, now)?;
        let mut answer = slot.lock().await;
        if let Some(known) = &*answer {
            let mut response = accepted(known.clone())?;
            response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
            return Ok(response);
        }
        let outcome = match work.await {
            Ok(value) => encode(&value),
            Err(problem) => Err(problem),
        };
        match &outcome {
            Ok(bytes) => {
                *answer = Some(bytes.clone());
                self.lock().keep(&key, once.fingerprint, &slot, now);
            }
            Err(_) => self.lock().remove(&key, &slot),
        }
        accepted(outcome?)
    }

    /// The slot for the response. An identical request in progress holds its lock.
    fn claim(&self, key: &Key, fingerprint: &str, now: Timestamp) -> Result<Slot, Problem> {
        let mut kept = self.lock();
        kept.drop_old(now);
        if let Some(entry) = kept.entries.get(key) {
            if entry.fingerprint != fingerprint {
                let detail = format!(
                    "idempotency key {:?} was used before for another request; use a new key, or repeat the same request",
                    key.1
                );
                return Err(Problem::new(Code::IdempotencyConflict, detail));
            }
            return Ok(entry.slot.clone());
        }
        let slot = Slot::default();
        kept.keep(key, fingerprint.to_owned(), &slot, now);
        Ok(slot)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn keep(&mut self, key: &Key, fingerprint: String, slot: &Slot, now: Timestamp) {
        if self.entries.get(key).is_some_and(|entry| Arc::ptr_eq(&entry.slot, slot)) {
            return;
        }
        self.entries.insert(key.clone(), Entry { at: now, fingerprint, slot: slot.clone() });
        self.order.push_back((now, key.clone()));
        self.drop_old(now);
    }

    fn remove(&mut self, key: &Key, slot: &Slot) {
        if self.entries.get(key).is_some_and(|entry| Arc::ptr_eq(&entry.slot, slot)) {
            self.entries.remove(key);
        }
    }

    fn drop_old(&mut self, now: Timestamp) {
        while let Some((at, key)) = self.order.front()
            && (self.order.len() > KEPT || now.since(*at) > KEPT_FOR)
        {
            if self.entries.get(key).is_some_and(|entry| entry.at == *at) {
                self.entries.remove(key);
            }
            self.order.pop_front();
        }
    }
}

fn encode(value: &impl Serialize) -> Result<Bytes, Problem> {
    serde_json::to_vec(value).map(Bytes::from).map_err(|error| Problem::internal(&error))
}

fn accepted(body: Bytes) -> Result<Response<Body>, Problem> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::ACCEPTED;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn once(key: &str, body: &str) -> RequestIdentity {
        RequestIdentity { key: Some(("local".into(), key.to_owned())), fingerprint: body.to_owned() }
    }

    fn at(hours: u64) -> Timestamp {
        Timestamp::EPOCH.saturating_add(Millis::from_hours(hours))
    }

    /// Counts executions of the request.
    #[derive(Default)]
    struct Work(AtomicU32);

    impl Work {
        async fn done(&self) -> Result<u32, Problem> {
            Ok(self.0.fetch_add(1, Ordering::SeqCst))
        }

        async fn refused(&self) -> Result<u32, Problem> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Err(Problem::new(Code::UnknownRun, "no"))
        }

        fn count(&self) -> u32 {
            self.0.load(Ordering::SeqCst)
        }
    }

    #[tokio::test]
    async fn the_same_request_is_done_once_and_another_is_refused() {
        let (answers, work) = (ResponseCache::default(), Work::default());
        let first = answers.once(once("k", "a"), at(0), work.done()).await.unwrap();
        assert_eq!((first.status(), first.headers().get(REPLAYED)), (StatusCode::ACCEPTED, None));
        let again = answers.once(once("k", "a"), at(1), work.done()).await.unwrap();
        assert!(again.headers().contains_key(REPLAYED));
        let refused = answers.once(once("k", "b"), at(1), work.done()).await.unwrap_err();
        assert_eq!(refused.code, Code::IdempotencyConflict);
        assert_eq!(work.count(), 1);
        let without = RequestIdentity { key: None, fingerprint: "a".to_owned() };
        answers.once(without, at(1), work.done()).await.unwrap();
        assert_eq!(work.count(), 2);
    }

    #[tokio::test]
    async fn what_was_refused_may_be_asked_again() {
        let (answers, work) = (ResponseCache::default(), Work::default());
        answers.once(once("k", "a"), at(0), work.refused()).await.unwrap_err();
        answers.once(once("k", "b"), at(0), work.done()).await.unwrap();
        assert_eq!(work.count(), 2);
        answers.once(once("k", "b"), at(0), work.done()).await.unwrap();
        assert_eq!(work.count(), 2);
    }

    #[tokio::test]
    async fn requests_at_the_same_time_are_done_once() {
        let (answers, work) = (ResponseCache::default(), Work::default());
        let gate = tokio::sync::Semaphore::new(0);
        let slow = async {
            let _permit = gate.acquire().await;
            work.done().await
        };
        let (first, second, ()) = tokio::join!(
            answers.once(once("k", "a"), at(0), slow),
            answers.once(once("k", "a"), at(0), work.done()),
            async { gate.add_permits(1) },
        );
        assert!(!first.unwrap().headers().contains_key(REPLAYED));
        assert!(second.unwrap().headers().contains_key(REPLAYED));
        assert_eq!(work.count(), 1);
    }

    #[tokio::test]
    async fn answers_are_kept_for_a_day_and_no_more_than_a_number_of_them() {
        let (answers, work) = (ResponseCache::default(), Work::default());
        answers.once(once("k", "a"), at(0), work.done()).await.unwrap();
        answers.once(once("k", "a"), at(24), work.done()).await.unwrap();
        assert_eq!(work.count(), 1);
        answers.once(once("k", "b"), at(25), work.done()).await.unwrap();
        assert_eq!(work.count(), 2);
        for number in 0..KEPT {
            answers.once(once(&number.to_string(), "a"), at(25), work.done()).await.unwrap();
        }
        assert_eq!(answers.lock().entries.len(), KEPT);
        answers.once(once("k", "c"), at(25), work.done()).await.expect("the oldest is forgotten");
    }
}
