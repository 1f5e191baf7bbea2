//! Lock-out: an address that has shown wrong keys waits before the next one is looked at.
//!
//! A few mistakes cost nothing. Then every wrong key doubles the wait, up to some minutes. Credentials that were good
//! from the same address before are looked at all the same, so that nobody is locked out by a neighbour (ADR-216).

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::problem::{Code, Problem};

/// The first wait, which doubles with every wrong key.
const INITIAL_DELAY: Duration = Duration::from_secs(1);
const MAX_DELAY: Duration = Duration::from_secs(300);
/// An address that has shown no wrong key for so long has shown none.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(900);
/// Addresses that are remembered: the one that was quiet for longest is forgotten first.
const MOST_ADDRESSES: usize = 10_000;
/// Good credentials that are remembered, by hash: the oldest is forgotten first.
const MOST_GOOD: usize = 10_000;

/// Wrong keys by the address that they came from. Memory is bounded, whoever asks.
#[derive(Debug)]
pub(crate) struct Lockout {
    /// Wrong keys that cost nothing; 0 locks nobody out.
    allowed: u32,
    addresses: Mutex<Addresses>,
    hasher: RandomState,
}

/// Who has shown which credentials.
#[derive(Debug, Default)]
struct Addresses {
    wrong: BTreeMap<IpAddr, Wrong>,
    good: BTreeSet<u64>,
    /// The same, from the oldest to the newest.
    good_by_age: VecDeque<u64>,
}

/// Wrong keys of one address.
#[derive(Debug, Clone, Copy)]
struct Wrong {
    count: u32,
    last: Instant,
    until: Instant,
}

/// An address was locked out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LockedOut {
    pub(crate) address: IpAddr,
    pub(crate) wrong_keys: u32,
    pub(crate) wait: Duration,
}

impl Lockout {
    pub(crate) fn new(allowed: u32) -> Self {
        Self { allowed, addresses: Mutex::default(), hasher: RandomState::new() }
    }

    /// Whether a credential may be looked at; how long to wait if not.
    pub(crate) fn check(&self, from: IpAddr, shown: &str, now: Instant) -> Result<(), Problem> {
        let from = source(from);
        let known = self.lock();
        let Some(wrong) = known.wrong.get(&from).filter(|wrong| wrong.until > now) else { return Ok(()) };
        if known.good.contains(&self.hash(from, shown)) {
            return Ok(());
        }
        let wait = wrong.until - now;
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        let detail =
            format!("{from} has shown {} wrong keys; wait {seconds} s before another one", wrong.count);
        let mut problem = Problem::new(Code::RateLimited, detail);
        problem.retry_after = Some(u32::try_from(seconds).unwrap_or(u32::MAX));
        Err(problem)
    }

    /// A credential was good.
    pub(crate) fn was_good(&self, from: IpAddr, shown: &str) {
        if self.allowed == 0 {
            return;
        }
        let hash = self.hash(source(from), shown);
        let mut known = self.lock();
        if !known.good.insert(hash) {
            return;
        }
        known.good_by_age.push_back(hash);
        if known.good_by_age.len() > MOST_GOOD
            && let Some(oldest) = known.good_by_age.pop_front()
        {
            known.good.remove(&oldest);
        }
    }

    /// A credential was wrong. Says so if the address is locked out by it.
    pub(crate) fn was_wrong(&self, from: IpAddr, now: Instant) -> Option<LockedOut> {
        if self.allowed == 0 {
            return None;
        }
        let address = source(from);
        let mut known = self.lock();
        let before = known.wrong.get(&address).filter(|wrong| now - wrong.last < FORGOTTEN_AFTER);
        let count = before.map_or(0, |wrong| wrong.count).saturating_add(1);
        let beyond = count.checked_sub(self.allowed);
        let wait = beyond.map_or(Duration::ZERO, |beyond| {
            INITIAL_DELAY.saturating_mul(1 << beyond.min(16)).min(MAX_DELAY)
        });
        known.wrong.insert(address, Wrong { count, last: now, until: now + wait });
        if known.wrong.len() > MOST_ADDRESSES {
            known.forget_the_quietest();
        }
        beyond.map(|_| LockedOut { address, wrong_keys: count, wait })
    }

    fn hash(&self, from: IpAddr, shown: &str) -> u64 {
        self.hasher.hash_one((from, shown))
    }

    fn lock(&self) -> MutexGuard<'_, Addresses> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Addresses {
    fn forget_the_quietest(&mut self) {
        let quietest = self.wrong.iter().min_by_key(|(_, wrong)| wrong.last).map(|(address, _)| *address);
        quietest.map(|address| self.wrong.remove(&address));
    }
}

/// The address that is counted. A network of IPv6 is one: whoever has an address there has all of them.
fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6([a, b, c, d, 0, 0, 0, 0].into())
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn waits_double_after_a_few_wrong_keys_and_end_by_themselves() {
        let (lockout, start) = (Lockout::new(3), Instant::now());
        let attacker = address(1);
        assert_eq!(lockout.was_wrong(attacker, start), None);
        assert_eq!(lockout.was_wrong(attacker, start), None);
        lockout.check(attacker, "key", start).expect("mistakes cost nothing");
        let locked = lockout.was_wrong(attacker, start).expect("the third");
        assert_eq!((locked.wrong_keys, locked.wait), (3, seconds(1)));
        let refused = lockout.check(attacker, "key", start).expect_err("locked out");
        assert_eq!((refused.code, refused.retry_after), (Code::RateLimited, Some(1)));
        lockout.check(attacker, "key", start + seconds(1)).expect("waited");
        let waits: Vec<u64> = (1..12)
            .filter_map(|_| lockout.was_wrong(attacker, start).map(|locked| locked.wait.as_secs()))
            .collect();
        assert_eq!(waits, [2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
        assert_eq!(lockout.was_wrong(attacker, start + FORGOTTEN_AFTER), None, "long ago is forgotten");
    }

    #[test]
    fn others_and_keys_that_were_good_before_are_let_in() {
        let (lockout, now) = (Lockout::new(1), Instant::now());
        lockout.was_good(address(1), "mine");
        lockout.was_wrong(address(1), now).expect("locked out");
        lockout.check(address(2), "key", now).expect("another address");
        lockout.check(address(1), "mine", now).expect("a neighbour's key that was good before");
        lockout.check(address(1), "guess", now).expect_err("locked out");
        lockout.check(address(2), "mine", now).expect("not locked out there");
        lockout.was_wrong(address(2), now).expect("locked out");
        lockout.check(address(2), "mine", now).expect_err("it was never good from there");
    }

    #[test]
    fn addresses_of_one_network_of_ipv6_are_one_and_mapped_ones_are_those_of_ipv4() {
        let (lockout, now) = (Lockout::new(1), Instant::now());
        lockout.was_wrong("2001:db8::1".parse().expect("an address"), now).expect("locked out");
        lockout.check("2001:db8::ffff:2".parse().expect("an address"), "key", now).expect_err("the same");
        lockout.check("2001:db8:0:1::1".parse().expect("an address"), "key", now).expect("another");
        lockout.was_wrong("::ffff:192.0.2.7".parse().expect("an address"), now).expect("locked out");
        lockout.check(address(7), "key", now).expect_err("the same");
    }

    #[test]
    fn memory_is_bounded_however_many_addresses_try() {
        let (lockout, now) = (Lockout::new(1), Instant::now());
        for number in 0..MOST_ADDRESSES as u32 + 50 {
            let from = IpAddr::V4((0x0a00_0000 + number).into());
            lockout.was_wrong(from, now + Duration::from_millis(u64::from(number)));
            lockout.was_good(from, "key");
        }
        let known = lockout.lock();
        assert_eq!(
            (known.wrong.len(), known.good.len(), known.good_by_age.len()),
            (MOST_ADDRESSES, MOST_GOOD, MOST_GOOD)
        );
        assert!(!known.wrong.contains_key(&IpAddr::from([10, 0, 0, 0])), "the quietest went first");
    }

    #[test]
    fn without_a_limit_nobody_is_locked_out() {
        let (lockout, now) = (Lockout::new(0), Instant::now());
        assert!((0..100).all(|_| lockout.was_wrong(address(1), now).is_none()));
        lockout.check(address(1), "key", now).expect("no limit");
    }
}
