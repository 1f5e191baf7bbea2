//! Opening object stores by URL, telling their errors apart, and creating objects so that "already exists" is
//! believed only after looking.

use std::error::Error as StdError;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use servo_core::Backoff;
use url::Url;

use crate::error::is_full;
use crate::timers::{Timers, TokioTimers};

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot open the object store {url}: {source}; use s3://, gs://, az://, file:// or memory:// and the provider's environment variables"
)]
pub struct StoreUrlError {
    /// The URL, without user name and password.
    url: String,
    /// The problem with the URL.
    source: Box<dyn StdError + Send + Sync>,
}

impl StoreUrlError {
    pub(crate) fn new(url: &str, source: Box<dyn StdError + Send + Sync>) -> Self {
        Self { url: redact(url), source }
    }
}

/// Opens `s3://bucket/path`, `gs://…`, `az://…`, `file:///directory` or `memory:///`. Settings come from the
/// environment (`AWS_…`, `GOOGLE_…`, `AZURE_…`) and from `options`, which win.
pub fn open_object_store(
    url: &str,
    options: impl IntoIterator<Item = (String, String)>,
) -> Result<(Arc<dyn ObjectStore>, Path), StoreUrlError> {
    let refuse = |source| StoreUrlError::new(url, source);
    let refused = |error: Error| refuse(error.into());
    let parsed = Url::parse(url).map_err(|error| refuse(error.into()))?;
    // Errors and logs show URLs.
    if parsed.password().is_some() || parsed.query().is_some() {
        return Err(refuse(
            "it must not carry a password or a query; put credentials into the environment".into(),
        ));
    }
    if parsed.scheme() == "file" {
        // Durability is off by default for local directories.
        let path = Path::from_url_path(parsed.path()).map_err(|error| refused(error.into()))?;
        return Ok((Arc::new(LocalFileSystem::new().with_fsync(true)), path));
    }
    let environment = std::env::vars().filter_map(|(key, value)| {
        let known = ["AWS_", "GOOGLE_", "AZURE_"].iter().any(|prefix| key.starts_with(prefix));
        known.then(|| (key.to_ascii_lowercase(), value))
    });
    let (store, path) = object_store::parse_url_opts(&parsed, environment.chain(options)).map_err(refused)?;
    Ok((Arc::from(store), path))
}

fn redact(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let end = rest.find('/').unwrap_or(rest.len());
            let start = rest[..end].rfind('@').map_or(0, |at| at + 1);
            format!("{scheme}://{}", rest[start..].split('?').next().unwrap_or_default())
        }
        None => url.to_owned(),
    }
}

/// The meaning of an object store's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorClass {
    NotFound,
    Full,
    /// Worth another try.
    Passing,
    /// Not worth another try.
    Lasting,
}

pub(crate) fn classify(error: &Error) -> ErrorClass {
    match error {
        Error::NotFound { .. } => ErrorClass::NotFound,
        Error::InvalidPath { .. }
        | Error::NotSupported { .. }
        | Error::NotImplemented { .. }
        | Error::PermissionDenied { .. }
        | Error::Unauthenticated { .. }
        | Error::UnknownConfigurationKey { .. } => ErrorClass::Lasting,
        // S3's 409 arrives as "already exists"; if the name is then not there, it meant "try again".
        Error::AlreadyExists { .. } | Error::Precondition { .. } | Error::NotModified { .. } => {
            ErrorClass::Passing
        }
        other @ (Error::Generic { .. } | Error::JoinError { .. } | _) => match io_cause(other) {
            Some(cause) if is_full(cause) => ErrorClass::Full,
            Some(cause) if is_lasting(cause) => ErrorClass::Lasting,
            Some(_) | None => ErrorClass::Passing,
        },
    }
}

fn io_cause(error: &Error) -> Option<&io::Error> {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref::<io::Error>() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

fn is_lasting(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, IsADirectory, NotADirectory, PermissionDenied, ReadOnlyFilesystem};
    [InvalidInput, IsADirectory, NotADirectory, PermissionDenied, ReadOnlyFilesystem].contains(&error.kind())
}

/// The longest delay between tries, in first delays.
const MAX_BACKOFF: u32 = 16;

/// How often and how patiently to try again.
#[derive(Debug, Clone)]
pub(crate) struct Retry {
    pub(crate) attempts: u32,
    pub(crate) backoff: Duration,
    pub(crate) timers: Arc<dyn Timers>,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 5, backoff: Duration::from_millis(50), timers: Arc::new(TokioTimers::default()) }
    }
}

/// The result of creating an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Created {
    Landed,
    /// An object of that name exists: another writer's, or this writer's own from an attempt whose response was lost.
    Exists,
}

/// Creates an object that must not exist yet. "Already exists" is believed only if the object is there.
pub(crate) async fn create(
    store: &dyn ObjectStore,
    path: &Path,
    bytes: &Bytes,
    retry: &Retry,
) -> Result<Created, Error> {
    let mut attempt = 0;
    // Every put has an id of its own, so writers that failed together do not come back together.
    let seed = u64::from(crc32fast::hash(bytes));
    let mut backoff = Backoff::new(retry.backoff, retry.backoff * MAX_BACKOFF, seed);
    loop {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let error = match store.put_opts(path, PutPayload::from(bytes.clone()), options).await {
            Ok(_) => return Ok(Created::Landed),
            Err(error @ (Error::AlreadyExists { .. } | Error::Precondition { .. })) => {
                match exists(store, path).await {
                    Ok(true) => return Ok(Created::Exists),
                    Ok(false) => error,
                    Err(error) => error,
                }
            }
            Err(error) => error,
        };
        attempt += 1;
        if classify(&error) != ErrorClass::Passing || attempt >= retry.attempts {
            return Err(error);
        }
        tracing::debug!(object = %path, attempt, error = %error, "creating an object again");
        retry.timers.sleep(backoff.next_delay()).await;
    }
}

/// Is there an object of that name?
pub(crate) async fn exists(store: &dyn ObjectStore, path: &Path) -> Result<bool, Error> {
    match store.head(path).await {
        Ok(_) => Ok(true),
        Err(Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_a_url_is_not_shown() {
        let error = open_object_store("s3://user:secret@host/bucket?token=secret", []).expect_err("refused");
        assert!(!error.to_string().contains("secret"), "{error}");
        assert!(error.to_string().contains("s3://host/bucket"), "{error}");
    }

    #[test]
    fn every_kind_of_store_opens_by_url() {
        let key = |name: &str| (name.to_owned(), "dGVzdA==".to_owned());
        for (url, path) in
            [("s3://bucket/a/b", "a/b"), ("memory:///a", "a"), ("file:///tmp/a%20b", "tmp/a b")]
        {
            let (_, found) =
                open_object_store(url, [key("aws_access_key_id"), key("aws_secret_access_key")]).expect(url);
            assert_eq!(found.as_ref(), path);
        }
        let azure = [key("azure_storage_account_name"), key("azure_storage_account_key")];
        open_object_store("az://container/a", azure).expect("azure");
        let service_account = ("google_skip_signature".to_owned(), "true".to_owned());
        open_object_store("gs://bucket/a", [service_account]).expect("gcs");
    }
}
