//! Rate limits: how often a tenant, a workspace and a credential may ask, and how many streams they may have open.
//!
//! A limit is a bucket that holds what may be asked for in a minute and fills up evenly, so that somebody who was quiet
//! may ask for a minute's worth at once, and nobody gets more than that by waiting for a new minute to begin.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Method, Response};
use servo_core::{TenantId, Timestamp};
use servo_runtime::WorkspaceKey;

use crate::problem::{Code, Problem, QuotaFigures};

const MINUTE: Duration = Duration::from_secs(60);
/// Buckets that are kept; full ones are forgotten first, since a new one is full too.
const MOST_BUCKETS: usize = 10_000;

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

macro_rules! limits {
    ($($(#[$doc:meta])* $field:ident = $default:literal;)*) => {
        /// The limits of a server; 0 is no limit.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct RateLimits {
            $($(#[$doc])* pub $field: u32,)*
        }

        impl Default for RateLimits {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl RateLimits {
            /// No limits at all.
            pub const NONE: Self = Self { $($field: 0,)* };

            /// The name and the default of each.
            pub const ALL: &'static [(&'static str, u32)] = &[$((stringify!($field), $default),)*];

            /// Gives the limit with a name a value; false if there is none of that name.
            pub fn put(&mut self, name: &str, value: u32) -> bool {
                match name {
                    $(stringify!($field) => self.$field = value,)*
                    _ => return false,
                }
                true
            }
        }
    };
}

limits! {
    /// Requests for runs a minute, of a tenant: triggers, retries, backfills.
    triggers_per_minute = 100;
    /// Lists of runs a minute, of a tenant.
    lists_per_minute = 1_000;
    /// Deployments a minute, of a workspace.
    deploys_per_minute = 10;
    /// Requests of any kind a minute, of a key, a session or a person of the identity provider.
    requests_per_minute = 6_000;
    /// Streams of events and logs of runs that are open at once, of a tenant.
    run_streams = 10;
    /// Streams that keep pages up to date and are open at once, of a tenant.
    page_streams = 100;
    /// Streams of any kind that are open at once, of a key, a session or a person of the identity provider.
    streams_per_caller = 20;
    /// Wrong keys of an address before it has to wait for the next one to be looked at.
    wrong_keys = 10;
}

/// Whom a limit is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Whose {
    Tenant(TenantId),
    Workspace(WorkspaceKey),
    Caller(Arc<str>),
}

/// A name of a limit, and whom it is about.
type Meter = (&'static str, Whose);

/// The remaining allowance of a limit.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// In parts of a request, of which a request takes a minute's nanoseconds: all figures are whole.
    tokens: u128,
    at: Instant,
}

impl Bucket {
    const WHOLE: u128 = MINUTE.as_nanos();

    fn full(limit: u32, at: Instant) -> Self {
        Self { tokens: u128::from(limit) * Self::WHOLE, at }
    }

    /// The same at a later time.
    fn filled(self, limit: u32, now: Instant) -> Self {
        let most = u128::from(limit) * Self::WHOLE;
        let since = now.saturating_duration_since(self.at).as_nanos();
        Self { tokens: (self.tokens + since * u128::from(limit)).min(most), at: now }
    }

    fn is_full(self, limit: u32, now: Instant) -> bool {
        self.filled(limit, now).tokens >= u128::from(limit) * Self::WHOLE
    }
}

/// Figures of a limit, for whoever asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    limit: u32,
    remaining: u32,
    /// Until nothing counts any more.
    reset: Duration,
}

impl Standing {
    /// Says them in the headers of an answer.
    pub(crate) fn tell(self, response: &mut Response<Body>, now: Timestamp) {
        let headers = response.headers_mut();
        headers.insert(LIMIT, self.limit.into());
        headers.insert(REMAINING, self.remaining.into());
        let reset = now.as_millis() / 1_000 + i64::try_from(seconds(self.reset)).unwrap_or(i64::MAX);
        headers.insert(RESET, HeaderValue::from(reset));
    }
}

/// A request that is refused for now.
#[derive(Debug)]
pub(crate) struct Limited {
    pub(crate) problem: Box<Problem>,
    pub(crate) standing: Standing,
}

/// Counts what is asked for.
pub(crate) struct Rates {
    limits: RateLimits,
    buckets: Mutex<BTreeMap<Meter, Bucket>>,
    streams: Arc<Mutex<BTreeMap<Meter, u32>>>,
}

/// Room for a stream, until it is dropped.
pub(crate) struct OpenStream {
    streams: Arc<Mutex<BTreeMap<Meter, u32>>>,
    meters: Vec<Meter>,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        for meter in &self.meters {
            let left = streams.get_mut(meter).map(|open| {
                *open = open.saturating_sub(1);
                *open
            });
            if left == Some(0) {
                streams.remove(meter);
            }
        }
    }
}

impl Rates {
    pub(crate) fn new(limits: RateLimits) -> Self {
        Self { limits, buckets: Mutex::default(), streams: Arc::default() }
    }

    /// Counts a request; none if nothing limits it. A request that is refused counts for nothing.
    pub(crate) fn take(
        &self,
        method: &Method,
        path: &str,
        workspace: &WorkspaceKey,
        caller: Arc<str>,
        now: Instant,
    ) -> Result<Option<Standing>, Limited> {
        let limits = &self.limits;
        let own = match kind(method, path) {
            Kind::Trigger => Some((
                ("triggers_per_minute", Whose::Tenant(workspace.0.clone())),
                limits.triggers_per_minute,
            )),
            Kind::List => {
                Some((("lists_per_minute", Whose::Tenant(workspace.0.clone())), limits.lists_per_minute))
            }
            Kind::Deploy => {
                Some((("deploys_per_minute", Whose::Workspace(workspace.clone())), limits.deploys_per_minute))
            }
            Kind::RunStream | Kind::PageStream | Kind::Other => None,
            Kind::Unlimited => return Ok(None),
        };
        let every = (("requests_per_minute", Whose::Caller(caller)), limits.requests_per_minute);
        let asked: Vec<(Meter, u32)> =
            own.into_iter().chain([every]).filter(|(_, limit)| *limit > 0).collect();
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let mut filled = Vec::new();
        for (meter, limit) in &asked {
            let before = buckets.get(meter).copied().unwrap_or_else(|| Bucket::full(*limit, now));
            let bucket = before.filled(*limit, now);
            if bucket.tokens < Bucket::WHOLE {
                return Err(refused(meter, *limit, bucket));
            }
            filled.push(Bucket { tokens: bucket.tokens - Bucket::WHOLE, at: now });
        }
        for ((meter, _), bucket) in asked.iter().zip(&filled) {
            buckets.insert(meter.clone(), *bucket);
        }
        if buckets.len() > MOST_BUCKETS {
            buckets.retain(|(name, _), bucket| !bucket.is_full(limits.get(name), now));
        }
        // The one that is the nearest to its end is told.
        let standings = asked.iter().zip(&filled).map(|((_, limit), bucket)| standing(*limit, *bucket));
        Ok(standings.min_by_key(|standing| standing.remaining))
    }

    /// Room for a stream; none if nothing limits it.
    pub(crate) fn open(
        &self,
        method: &Method,
        path: &str,
        workspace: &WorkspaceKey,
        caller: Arc<str>,
    ) -> Result<Option<OpenStream>, Limited> {
        let limits = &self.limits;
        let (name, limit) = match kind(method, path) {
            Kind::RunStream => ("run_streams", limits.run_streams),
            Kind::PageStream => ("page_streams", limits.page_streams),
            Kind::Trigger | Kind::List | Kind::Deploy | Kind::Other | Kind::Unlimited => return Ok(None),
        };
        let of_tenant = ((name, Whose::Tenant(workspace.0.clone())), limit);
        let of_caller = (("streams_per_caller", Whose::Caller(caller)), limits.streams_per_caller);
        let asked: Vec<(Meter, u32)> =
            [of_tenant, of_caller].into_iter().filter(|(_, limit)| *limit > 0).collect();
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        for (meter, limit) in &asked {
            let open = streams.get(meter).copied().unwrap_or_default();
            if open >= *limit {
                let detail = format!(
                    "{} streams of {} are open, which is the most ({}); close one, or ask again later",
                    open, meter.1, meter.0
                );
                let mut problem = limited(meter, *limit, u64::from(open), detail);
                problem.retry_after = Some(5);
                let standing = Standing { limit: *limit, remaining: 0, reset: Duration::from_secs(5) };
                return Err(Limited { problem: Box::new(problem), standing });
            }
        }
        let meters: Vec<Meter> = asked.into_iter().map(|(meter, _)| meter).collect();
        for meter in &meters {
            *streams.entry(meter.clone()).or_default() += 1;
        }
        Ok(Some(OpenStream { streams: self.streams.clone(), meters }))
    }
}

fn refused(meter: &Meter, limit: u32, bucket: Bucket) -> Limited {
    let missing = Bucket::WHOLE - bucket.tokens;
    let wait = Duration::from_nanos(u64::try_from(missing / u128::from(limit)).unwrap_or(u64::MAX));
    let detail = format!(
        "{} may ask for this {limit} times a minute ({}); ask again in {} s",
        meter.1,
        meter.0,
        seconds(wait)
    );
    let mut problem = limited(meter, limit, u64::from(limit), detail);
    problem.retry_after = Some(u32::try_from(seconds(wait)).unwrap_or(u32::MAX));
    Limited { problem: Box::new(problem), standing: standing(limit, bucket) }
}

fn limited(meter: &Meter, limit: u32, used: u64, detail: String) -> Problem {
    let mut problem = Problem::new(Code::RateLimited, detail);
    let figures = QuotaFigures { name: meter.0.to_owned(), limit: u64::from(limit), used };
    problem.quota = Some(Box::new(figures));
    problem
}

fn standing(limit: u32, bucket: Bucket) -> Standing {
    let remaining = u32::try_from(bucket.tokens / Bucket::WHOLE).unwrap_or(u32::MAX);
    let missing = u128::from(limit) * Bucket::WHOLE - bucket.tokens;
    let reset = Duration::from_nanos(u64::try_from(missing / u128::from(limit)).unwrap_or(u64::MAX));
    Standing { limit, remaining, reset }
}

/// Whole seconds, never too few.
fn seconds(length: Duration) -> u64 {
    length.as_secs() + u64::from(length.subsec_nanos() > 0)
}

impl std::fmt::Display for Whose {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tenant(tenant) => write!(f, "tenant {tenant}"),
            Self::Workspace((tenant, workspace)) => write!(f, "workspace {tenant}/{workspace}"),
            Self::Caller(caller) => f.write_str(caller),
        }
    }
}

impl RateLimits {
    fn get(&self, name: &str) -> u32 {
        match name {
            "triggers_per_minute" => self.triggers_per_minute,
            "lists_per_minute" => self.lists_per_minute,
            "deploys_per_minute" => self.deploys_per_minute,
            _ => self.requests_per_minute,
        }
    }
}

/// The class of a request, which decides its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Trigger,
    List,
    Deploy,
    RunStream,
    PageStream,
    Other,
    /// Of workers, whose tasks are limited, and what says nothing about a workspace.
    Unlimited,
}

fn kind(method: &Method, path: &str) -> Kind {
    let Some(path) = path.strip_prefix("/api/v1/") else { return Kind::Unlimited };
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let is_post = *method == Method::POST;
    match parts.as_slice() {
        ["healthz" | "readyz" | "version" | "openapi.json" | "login-options" | "worker" | "tasks", ..] => {
            Kind::Unlimited
        }
        ["runs"] if is_post => Kind::Trigger,
        ["runs"] => Kind::List,
        ["runs", _, "retry" | "retry-now"]
        | ["orchestration", "schedules", _, "trigger"]
        | ["orchestration", "sensors", _, "evaluate" | "push"]
        | ["orchestration", "backfills"]
        | ["orchestration", "backfills", _, "retry-failed"]
            if is_post =>
        {
            Kind::Trigger
        }
        ["deployments"] | ["deployments", _, "rollback"] if is_post => Kind::Deploy,
        ["runs", _, "events"] | ["runs", _, "tasks", _, "attempts", _, "logs", "stream"] => Kind::RunStream,
        ["changes"] => Kind::PageStream,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(tenant: &str) -> WorkspaceKey {
        (tenant.parse().unwrap(), "main".parse().unwrap())
    }

    fn trigger(rates: &Rates, tenant: &str, caller: &str, now: Instant) -> Result<u32, u32> {
        let taken = rates.take(&Method::POST, "/api/v1/runs", &workspace(tenant), caller.into(), now);
        match taken {
            Ok(standing) => Ok(standing.unwrap().remaining),
            Err(limited) => Err(limited.problem.retry_after.unwrap()),
        }
    }

    #[test]
    fn a_minutes_worth_may_be_asked_for_at_once_and_comes_back_evenly() {
        let rates = Rates::new(RateLimits { triggers_per_minute: 6, ..RateLimits::NONE });
        let start = Instant::now();
        for left in (0..6).rev() {
            assert_eq!(trigger(&rates, "acme", "key a", start), Ok(left));
        }
        assert_eq!(
            trigger(&rates, "acme", "key b", start),
            Err(10),
            "the tenant has used it up, not the key"
        );
        assert_eq!(trigger(&rates, "zeta", "key c", start), Ok(5), "and no other tenant");
        let later = start + Duration::from_millis(9_999);
        assert_eq!(trigger(&rates, "acme", "key a", later), Err(1), "a refused request counts for nothing");
        let later = start + Duration::from_secs(10);
        assert_eq!(trigger(&rates, "acme", "key a", later), Ok(0));
        let much_later = start + Duration::from_secs(3_600);
        assert_eq!(trigger(&rates, "acme", "key a", much_later), Ok(5), "no more than a minute's worth");
    }

    #[test]
    fn in_any_minute_no_more_is_let_through_than_twice_the_limit() {
        let rates = Rates::new(RateLimits { triggers_per_minute: 60, ..RateLimits::NONE });
        let start = Instant::now();
        let mut let_through = 0;
        for step in 0..6_000u32 {
            let now = start + Duration::from_millis(10) * step;
            let_through += u32::from(trigger(&rates, "acme", "a", now).is_ok());
        }
        assert_eq!(let_through, 119, "60 at once, and one a second from then on");
    }

    #[test]
    fn streams_are_counted_until_they_end() {
        let limits =
            RateLimits { run_streams: 2, streams_per_caller: 3, page_streams: 9, ..RateLimits::NONE };
        let rates = Rates::new(limits);
        let open = |path: &str, caller: &str| {
            rates.open(&Method::GET, path, &workspace("acme"), caller.into()).map(Option::unwrap)
        };
        let (events, changes) = ("/api/v1/runs/run_x/events", "/api/v1/changes");
        let first = open(events, "a").unwrap();
        let _second = open(events, "b").unwrap();
        let refused = open(events, "c").map(drop).unwrap_err();
        assert_eq!(refused.problem.code, Code::RateLimited);
        assert_eq!(refused.problem.quota.unwrap().name, "run_streams");
        drop(first);
        let _third = open(events, "a").unwrap();
        let (_fourth, _fifth) = (open(changes, "a").unwrap(), open(changes, "a").unwrap());
        let refused = open(changes, "a").map(drop).unwrap_err();
        assert_eq!(refused.problem.quota.unwrap().name, "streams_per_caller");
        let others = rates.open(&Method::GET, events, &workspace("zeta"), "z".into());
        assert!(others.is_ok());
        let plain = rates.open(&Method::GET, "/api/v1/runs", &workspace("acme"), "a".into());
        assert!(plain.unwrap().is_none());
    }

    #[test]
    fn every_route_is_of_one_kind() {
        for (method, path, expected) in [
            ("POST", "/api/v1/runs", Kind::Trigger),
            ("GET", "/api/v1/runs", Kind::List),
            ("HEAD", "/api/v1/runs/", Kind::List),
            ("POST", "/api/v1/runs/run_x/retry", Kind::Trigger),
            ("POST", "/api/v1/orchestration/backfills", Kind::Trigger),
            ("GET", "/api/v1/orchestration/backfills", Kind::Other),
            ("POST", "/api/v1/orchestration/backfills/preview", Kind::Other),
            ("POST", "/api/v1/deployments", Kind::Deploy),
            ("GET", "/api/v1/deployments", Kind::Other),
            ("GET", "/api/v1/runs/run_x/events", Kind::RunStream),
            ("GET", "/api/v1/changes", Kind::PageStream),
            ("POST", "/api/v1/worker/leases", Kind::Unlimited),
            ("POST", "/api/v1/tasks/x/completed", Kind::Unlimited),
            ("GET", "/api/v1/healthz", Kind::Unlimited),
            ("GET", "/assets/index.js", Kind::Unlimited),
        ] {
            assert_eq!(kind(&method.parse().unwrap(), path), expected, "{method} {path}");
        }
    }
}
