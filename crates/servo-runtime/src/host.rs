//! Many workspaces in one process: opened when somebody wants one, closed when nobody does.
//!
//! The map is never locked while a workspace opens or closes: whoever wants another one goes on, and whoever wants the
//! same one waits for that one alone. A workspace that nobody uses is not there.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use servo_core::{Millis, TenantId, Timestamp, WorkspaceId};
use tokio::sync::RwLock;

/// Names a workspace of a host.
pub type WorkspaceKey = (TenantId, WorkspaceId);

/// The open workspaces of a process, each as whatever it is opened as. They share nothing else.
pub struct Host<T> {
    entries: Mutex<BTreeMap<WorkspaceKey, Arc<Entry<T>>>>,
}

/// The entry of a workspace that is open, or about to be.
struct Entry<T> {
    /// Written by whoever opens or closes it.
    open: RwLock<Option<Arc<T>>>,
    usage: Mutex<Usage>,
}

#[derive(Debug, Clone, Copy)]
struct Usage {
    /// Those who use it, or wait for it.
    users: usize,
    last_used: Timestamp,
}

/// A workspace that is not closed before this is dropped.
pub struct InUse<T> {
    value: Arc<T>,
    _user: User<T>,
}

/// Counts as somebody who uses an entry.
struct User<T>(Arc<Entry<T>>);

impl<T> Drop for User<T> {
    fn drop(&mut self) {
        self.0.usage().users -= 1;
    }
}

impl<T> Deref for InUse<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Entry<T> {
    fn usage(&self) -> MutexGuard<'_, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for Host<T> {
    fn default() -> Self {
        Self { entries: Mutex::default() }
    }
}

impl<T: Send + Sync> Host<T> {
    fn entries(&self) -> MutexGuard<'_, BTreeMap<WorkspaceKey, Arc<Entry<T>>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a user of an entry, before it can be found to be idle.
    fn user(&self, key: &WorkspaceKey, now: Timestamp) -> User<T> {
        let mut entries = self.entries();
        let entry = entries.entry(key.clone()).or_insert_with(|| {
            let usage = Usage { users: 0, last_used: now };
            Arc::new(Entry { open: RwLock::new(None), usage: Mutex::new(usage) })
        });
        let mut usage = entry.usage();
        usage.users += 1;
        usage.last_used = usage.last_used.max(now);
        drop(usage);
        User(entry.clone())
    }

    /// A workspace; opens it if nobody has. Of those who ask at once one opens it, and the others wait.
    pub async fn open<E, F: Future<Output = Result<T, E>>>(
        &self,
        key: &WorkspaceKey,
        now: Timestamp,
        open: impl FnOnce() -> F,
    ) -> Result<InUse<T>, E> {
        let user = self.user(key, now);
        if let Some(value) = &*user.0.open.read().await {
            return Ok(InUse { value: value.clone(), _user: User::again(&user) });
        }
        let entry = user.0.clone();
        let mut opened = entry.open.write().await;
        let value = match &*opened {
            Some(value) => value.clone(),
            None => {
                let value = Arc::new(open().await?);
                *opened = Some(value.clone());
                value
            }
        };
        Ok(InUse { value, _user: user })
    }

    /// The workspaces that are open, and not being opened or closed.
    pub fn all_open(&self) -> Vec<(WorkspaceKey, Arc<T>)> {
        let entries: Vec<_> =
            self.entries().iter().map(|(key, entry)| (key.clone(), entry.clone())).collect();
        let open = |entry: &Entry<T>| entry.open.try_read().ok().and_then(|open| open.clone());
        entries.into_iter().filter_map(|(key, entry)| Some((key, open(&entry)?))).collect()
    }

    /// Closes workspaces that nobody has used for a while and that have nothing to do, one after another.
    pub async fn close_idle<I: Future<Output = bool>, C: Future<Output = ()>>(
        &self,
        now: Timestamp,
        after: Millis,
        is_idle: impl Fn(WorkspaceKey, Arc<T>) -> I,
        close: impl Fn(WorkspaceKey, Arc<T>) -> C,
    ) {
        let entries: Vec<_> =
            self.entries().iter().map(|(key, entry)| (key.clone(), entry.clone())).collect();
        for (key, entry) in entries {
            let is_unused = || {
                let usage = entry.usage();
                usage.users == 0 && now.since(usage.last_used) >= after
            };
            let Some(value) = entry.open.read().await.clone() else { continue };
            if !is_unused() || !is_idle(key.clone(), value).await {
                continue;
            }
            // Whoever wants it from here on waits until it is closed, and opens it again.
            let mut open = entry.open.write().await;
            if is_unused()
                && let Some(value) = open.take()
            {
                close(key.clone(), value).await;
            }
            drop(open);
            let mut entries = self.entries();
            let is_gone = entry.usage().users == 0 && entry.open.try_read().is_ok_and(|open| open.is_none());
            if is_gone {
                entries.remove(&key);
            }
        }
    }

    /// Closes every workspace, used or not.
    pub async fn close_all<C: Future<Output = ()>>(&self, close: impl Fn(WorkspaceKey, Arc<T>) -> C) {
        let entries = std::mem::take(&mut *self.entries());
        for (key, entry) in entries {
            if let Some(value) = entry.open.write().await.take() {
                close(key, value).await;
            }
        }
    }
}

impl<T> User<T> {
    /// One more user of the same entry.
    fn again(user: &Self) -> Self {
        user.0.usage().users += 1;
        Self(user.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn key(name: &str) -> WorkspaceKey {
        (TenantId::parse("acme").unwrap(), WorkspaceId::parse(name).unwrap())
    }

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[tokio::test]
    async fn one_opens_it_while_others_wait_and_those_who_want_another_do_not() {
        let host: Host<usize> = Host::default();
        let (opened, gate) = (AtomicUsize::new(0), tokio::sync::Semaphore::new(0));
        let slow = || async {
            gate.acquire().await.unwrap().forget();
            Ok::<_, ()>(opened.fetch_add(1, Ordering::SeqCst))
        };
        let (a, b) = (key("a"), key("b"));
        let first = host.open(&a, at(0), slow);
        let second = host.open(&a, at(0), slow);
        let both = async { tokio::join!(first, second) };
        let other = async {
            // It would wait for ever if it waited for the first.
            assert_eq!(*host.open(&b, at(0), async || Ok::<_, ()>(7)).await.unwrap(), 7);
            gate.add_permits(1);
        };
        let ((first, second), ()) = tokio::join!(both, other);
        assert_eq!((*first.unwrap(), *second.unwrap()), (0, 0));
        assert_eq!(opened.load(Ordering::SeqCst), 1);
        assert_eq!(host.all_open().len(), 2);
    }

    #[tokio::test]
    async fn one_that_cannot_be_opened_is_tried_again_by_the_next() {
        let host: Host<usize> = Host::default();
        assert_eq!(host.open(&key("a"), at(0), async || Err::<usize, _>("no")).await.err(), Some("no"));
        assert_eq!(*host.open(&key("a"), at(0), async || Ok::<_, &str>(1)).await.unwrap(), 1);
    }

    #[tokio::test]
    async fn what_is_used_or_has_something_to_do_stays_and_the_rest_is_gone() {
        let host: Host<&str> = Host::default();
        let open = async |name: &'static str, now| {
            host.open(&key(name), at(now), || async move { Ok::<_, ()>(name) }).await.unwrap()
        };
        let used = open("used", 0).await;
        drop(open("busy", 0).await);
        drop(open("idle", 0).await);
        drop(open("recent", 900).await);
        let closed = Mutex::new(Vec::new());
        let is_idle = |_, name: Arc<&'static str>| async move { *name != "busy" };
        let close = |_, name: Arc<&'static str>| {
            closed.lock().unwrap().push(*name);
            async {}
        };
        host.close_idle(at(1_000), Millis::new(500), is_idle, close).await;
        assert_eq!(*closed.lock().unwrap(), ["idle"]);
        assert_eq!(host.entries().len(), 3, "nothing is left of it");
        drop(used);
        host.close_idle(at(2_000), Millis::new(500), is_idle, close).await;
        assert_eq!(*closed.lock().unwrap(), ["idle", "recent", "used"]);
        drop(open("idle", 3_000).await);
        host.close_all(close).await;
        assert_eq!(closed.lock().unwrap().len(), 5);
        assert!(host.all_open().is_empty());
    }
}
