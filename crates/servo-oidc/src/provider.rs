//! A provider: its addresses and its keys, fetched when they are needed and kept for a while.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::Url;

use crate::config::{Config, is_trustworthy};
use crate::error::{ConfigError, Error};
use crate::fetch;
use crate::jwk::{Jwk, Keys};

/// How long addresses and keys are taken for current.
const FRESH: Duration = Duration::from_secs(3600);

/// The parts of a discovery document that are used.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Metadata {
    issuer: String,
    pub(crate) jwks_uri: String,
    pub(crate) authorization_endpoint: Option<String>,
    pub(crate) token_endpoint: Option<String>,
    pub(crate) device_authorization_endpoint: Option<String>,
    pub(crate) end_session_endpoint: Option<String>,
}

/// Something that was fetched.
struct Fetched<T> {
    value: Arc<T>,
    at: Instant,
}

impl<T> Clone for Fetched<T> {
    fn clone(&self) -> Self {
        Self { value: self.value.clone(), at: self.at }
    }
}

/// A cached value that one task at a time fetches.
struct Cached<T> {
    held: RwLock<Option<Fetched<T>>>,
    /// When it was last tried.
    fetching: Mutex<Option<Instant>>,
}

impl<T> Default for Cached<T> {
    fn default() -> Self {
        Self { held: RwLock::new(None), fetching: Mutex::new(None) }
    }
}

impl<T> Cached<T> {
    fn held(&self) -> Option<Fetched<T>> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        held.clone()
    }

    /// The cached value if it is fresh enough, else a fetched one; if fetching fails, the cached one all the same.
    async fn get(
        &self,
        at_most_every: Duration,
        is_good: impl Fn(&Fetched<T>) -> bool,
        fetch: impl AsyncFnOnce() -> Result<T, Error>,
    ) -> Result<Arc<T>, Error> {
        if let Some(held) = self.held().filter(&is_good) {
            return Ok(held.value);
        }
        let mut tried = self.fetching.lock().await;
        let held = self.held();
        if let Some(held) = held.clone().filter(&is_good) {
            return Ok(held.value);
        }
        if tried.is_some_and(|at| at.elapsed() < at_most_every)
            && let Some(held) = held
        {
            return Ok(held.value);
        }
        *tried = Some(Instant::now());
        match fetch().await {
            Ok(value) => {
                let value = Arc::new(value);
                let fetched = Fetched { value: value.clone(), at: Instant::now() };
                *self.held.write().unwrap_or_else(PoisonError::into_inner) = Some(fetched);
                Ok(value)
            }
            Err(error) => match held {
                Some(held) => {
                    tracing::warn!(%error, "oidc.fetch failed; what was fetched before is used");
                    Ok(held.value)
                }
                None => Err(error),
            },
        }
    }
}

/// An identity provider. Clones share what was fetched.
#[derive(Clone)]
pub struct Provider(Arc<Shared>);

struct Shared {
    config: Config,
    http: reqwest::Client,
    metadata: Cached<Metadata>,
    keys: Cached<Keys>,
}

impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Provider").field("issuer", &self.0.config.issuer).finish_non_exhaustive()
    }
}

impl Provider {
    /// The provider of a configuration. Fetches nothing yet.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        let config = config.checked()?;
        let http = fetch::client().map_err(|problem| ConfigError { field: "issuer", problem })?;
        Ok(Self(Arc::new(Shared { config, http, metadata: Cached::default(), keys: Cached::default() })))
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    pub(crate) fn http(&self) -> &reqwest::Client {
        &self.0.http
    }

    pub(crate) fn unavailable(&self, reason: impl Into<String>) -> Error {
        Error::Unavailable { issuer: self.0.config.issuer.clone(), reason: reason.into() }
    }

    pub(crate) fn unsupported(&self, missing: &'static str) -> Error {
        Error::Unsupported { issuer: self.0.config.issuer.clone(), missing }
    }

    /// The addresses of the provider, by its discovery document.
    pub(crate) async fn metadata(&self) -> Result<Arc<Metadata>, Error> {
        let is_fresh = |held: &Fetched<Metadata>| held.at.elapsed() < FRESH;
        self.0.metadata.get(self.between(), is_fresh, async || self.discover().await).await
    }

    /// Anybody can make up a token that names an unknown key: the provider is not asked each time.
    fn between(&self) -> Duration {
        Duration::from_secs(self.0.config.key_refetch_seconds)
    }

    async fn discover(&self) -> Result<Metadata, Error> {
        let issuer = &self.0.config.issuer;
        let address = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let found: Metadata = self.fetch(&address).await?;
        if found.issuer != *issuer {
            return Err(self.unavailable(format!("its document is that of {:?}", found.issuer)));
        }
        let named = [
            Some(&found.jwks_uri),
            found.authorization_endpoint.as_ref(),
            found.token_endpoint.as_ref(),
            found.device_authorization_endpoint.as_ref(),
        ];
        for address in named.into_iter().flatten() {
            if !Url::parse(address).is_ok_and(|url| is_trustworthy(&url)) {
                return Err(self.unavailable(format!("{address:?} is no https:// address")));
            }
        }
        Ok(found)
    }

    /// The key that a token names. A key that is not known may be a new one.
    pub(crate) async fn key(&self, id: Option<&str>) -> Result<Jwk, Error> {
        let unknown = || Error::token("it is signed with a key that the provider does not publish");
        let is_good = |held: &Fetched<Keys>| held.at.elapsed() < FRESH && held.value.find(id).is_some();
        let keys = self.0.keys.get(self.between(), is_good, async || {
            let metadata = self.metadata().await?;
            self.fetch(&metadata.jwks_uri).await
        });
        let keys = keys.await?;
        keys.find(id).cloned().ok_or_else(unknown)
    }

    async fn fetch<T: DeserializeOwned>(&self, address: &str) -> Result<T, Error> {
        let answered = fetch::json(self.0.http.get(address)).await;
        match answered.map_err(|reason| self.unavailable(reason))? {
            (status, value) if status.is_success() => Ok(value),
            (status, _) => Err(self.unavailable(format!("{address} answers {status}"))),
        }
    }
}
