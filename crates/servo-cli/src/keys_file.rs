//! The signing keys of a tenant: a file with keys for each purpose, of which the newest signs (ADR-091).
//!
//! Keys are made when they are first needed, and again when the newest is 90 days old or somebody asks for it. Older
//! ones verify for as long as what they signed can live. A process that runs looks at the file now and then.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use servo_core::{Clock, Millis, Timestamp};
use servo_queue::{Keyring, Purpose, SigningKey};
use servo_runtime::SystemClock;

use crate::location::{Location, random, random_token};

const VERSION: u32 = 1;
/// How long a key signs.
const SIGNS_FOR: Millis = Millis::from_hours(90 * 24);
/// How long it verifies afterwards: longer than anything lives that was signed with it.
const VERIFIES_FOR: Millis = Millis::from_hours(26);
/// How often a process that runs looks for newer keys.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The content of `keys.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeysFile {
    version: u32,
    /// The key that workers of this machine show; their envelopes are signed with it.
    worker_key: String,
    /// By purpose, oldest first.
    keys: BTreeMap<String, Vec<StoredKey>>,
}

/// A key in the file.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoredKey {
    id: String,
    secret: String,
    created_at: Timestamp,
    /// From then on nothing is believed that it signed.
    expires_at: Timestamp,
}

impl std::fmt::Debug for StoredKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct KeyStatus {
    pub(crate) purpose: &'static str,
    pub(crate) key_id: String,
    /// Whether it signs; the others only verify.
    pub(crate) signs: bool,
    pub(crate) created_at: Timestamp,
    pub(crate) expires_at: Timestamp,
}

impl KeysFile {
    /// The keys of a tenant, made if they are not there or too old.
    pub(crate) fn open(location: &Location) -> anyhow::Result<Self> {
        Self::open_at(&location.keys_path())
    }

    /// The keys of a server of many tenants: they sign sessions.
    pub(crate) fn of_server(location: &Location) -> anyhow::Result<Self> {
        Self::open_at(&location.dir().join("control").join("keys.json"))
    }

    fn open_at(path: &Path) -> anyhow::Result<Self> {
        let now = SystemClock.now();
        let found = Self::read(path)?;
        let mut keys = match &found {
            Some(found) => found.clone(),
            None => Self { version: VERSION, worker_key: random_token()?, keys: BTreeMap::new() },
        };
        keys.drop_expired(now);
        for purpose in Purpose::ALL {
            let newest = keys.keys.get(purpose.name()).and_then(|keys| keys.last());
            if newest.is_none_or(|newest| now.since(newest.created_at) >= SIGNS_FOR) {
                keys.rotate(purpose, now)?;
            }
        }
        if found.as_ref() != Some(&keys) {
            keys.write(path)?;
        }
        Ok(keys)
    }

    /// The keys of a tenant as they are; others, for this process alone, where there are none.
    pub(crate) fn look(location: &Location) -> anyhow::Result<Self> {
        let mut keys = match Self::read(&location.keys_path())? {
            Some(found) => found,
            None => Self { version: VERSION, worker_key: random_token()?, keys: BTreeMap::new() },
        };
        for purpose in Purpose::ALL {
            if keys.keys.get(purpose.name()).is_none_or(Vec::is_empty) {
                keys.rotate(purpose, SystemClock.now())?;
            }
        }
        Ok(keys)
    }

    /// The key of workers of this machine, if there is one.
    pub(crate) fn worker_key_of(location: &Location) -> anyhow::Result<Option<String>> {
        Ok(Self::read(&location.keys_path())?.map(|keys| keys.worker_key))
    }

    /// Makes new keys for some purposes; gives all that there are then.
    pub(crate) fn rotate_some(location: &Location, purposes: &[Purpose]) -> anyhow::Result<Self> {
        let mut keys = Self::open(location)?;
        for purpose in purposes {
            keys.rotate(*purpose, SystemClock.now())?;
        }
        keys.write(&location.keys_path())?;
        Ok(keys)
    }

    fn read(path: &Path) -> anyhow::Result<Option<Self>> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
        };
        let keys: Self = serde_json::from_slice(&bytes).with_context(|| {
            format!("{} is not a file of keys; delete it, and new keys are made", path.display())
        })?;
        if keys.version > VERSION {
            bail!("{} is of version {}, this servo reads up to {VERSION}", path.display(), keys.version);
        }
        if keys.worker_key.is_empty() || keys.keys.values().flatten().any(|key| key.secret.is_empty()) {
            bail!(
                "{} has a key without a secret, with which anybody could sign; delete the file, and new keys are made",
                path.display()
            );
        }
        Ok(Some(keys))
    }

    /// Whole or not at all, for the eyes of its owner.
    fn write(&self, path: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_vec_pretty(self)?;
        crate::location::write_private(path, &text).with_context(|| format!("writing {}", path.display()))
    }

    fn rotate(&mut self, purpose: Purpose, now: Timestamp) -> anyhow::Result<()> {
        let keys = self.keys.entry(purpose.name().to_owned()).or_default();
        if let Some(before) = keys.last_mut() {
            before.expires_at = before.expires_at.min(now.saturating_add(VERIFIES_FOR));
        }
        let expires_at = now.saturating_add(SIGNS_FOR).saturating_add(VERIFIES_FOR);
        let id = HEXLOWER.encode(&random()?[..4]);
        keys.push(StoredKey { id, secret: random_token()?, created_at: now, expires_at });
        Ok(())
    }

    fn drop_expired(&mut self, now: Timestamp) {
        for keys in self.keys.values_mut() {
            keys.retain(|key| key.expires_at > now);
        }
    }

    /// The ring of the keys that are good now.
    pub(crate) fn ring(&self) -> anyhow::Result<Keyring> {
        let mut valid = self.clone();
        valid.drop_expired(SystemClock.now());
        let mut keys = Vec::new();
        for purpose in Purpose::ALL {
            for key in valid.keys.get(purpose.name()).into_iter().flatten() {
                let secret = HEXLOWER.decode(key.secret.as_bytes()).context("a key is not hexadecimal")?;
                keys.push(SigningKey { purpose, id: key.id.clone(), secret });
            }
        }
        Ok(Keyring::of(keys)?)
    }

    /// The key that workers of this machine show.
    pub(crate) fn worker_key(&self) -> &str {
        &self.worker_key
    }

    /// The keys without their secrets, by purpose and age.
    pub(crate) fn statuses(&self) -> Vec<KeyStatus> {
        let of = |purpose: Purpose| {
            let keys = self.keys.get(purpose.name()).map_or(&[][..], Vec::as_slice);
            keys.iter().enumerate().map(move |(place, key)| KeyStatus {
                purpose: purpose.name(),
                key_id: key.id.clone(),
                signs: place + 1 == keys.len(),
                created_at: key.created_at,
                expires_at: key.expires_at,
            })
        };
        Purpose::ALL.into_iter().flat_map(of).collect()
    }
}

/// Gives a ring the keys of the file, for as long as a process runs: rotated ones, and without those that expired.
pub(crate) async fn keep_current(location: Location, ring: Keyring) {
    keep(&ring, || KeysFile::open(&location)).await;
}

/// The same for the keys of a server.
pub(crate) async fn keep_server_current(location: Location, ring: Keyring) {
    keep(&ring, || KeysFile::of_server(&location)).await;
}

async fn keep(ring: &Keyring, open: impl Fn() -> anyhow::Result<KeysFile>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        match open().and_then(|keys| keys.ring()) {
            Ok(newer) => ring.replace(&newer),
            Err(error) => {
                tracing::warn!(%error, "the signing keys could not be read; the ones before are kept")
            }
        }
    }
}

/// Where the keys are.
impl Location {
    fn keys_path(&self) -> PathBuf {
        self.tenant_dir().join("keys.json")
    }
}
