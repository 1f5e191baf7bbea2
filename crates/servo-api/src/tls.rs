//! TLS with a certificate of one's own, which is read again when its files change.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig, version};
use servo_core::sha256_hex;
use tokio_rustls::TlsAcceptor;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{} cannot be read: {source}", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not PEM, or has nothing of the kind in it.
    #[error("{} has no {what} in PEM: {problem}", .file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// The expected content.
        what: &'static str,
        /// The problem.
        problem: String,
    },
    /// The key does not belong to the certificate, or is of a kind that is not supported.
    #[error("{} and {} do not belong together: {source}", .certificate.display(), .key.display())]
    Mismatch {
        /// The certificate.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
        /// Why.
        source: rustls::Error,
    },
}

/// The certificate of a server and its key, in files. Clones share what was read.
#[derive(Debug, Clone)]
pub struct Certificate {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    certificate: PathBuf,
    key: PathBuf,
    current: RwLock<Current>,
}

#[derive(Debug, Clone)]
struct Current {
    key: Arc<CertifiedKey>,
    /// Of the content of both files.
    digest: String,
}

impl Certificate {
    /// Reads a chain of certificates and its key, both PEM.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let current = load(certificate, key)?;
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        Ok(Self { inner: Arc::new(Inner { certificate, key, current: RwLock::new(current) }) })
    }

    /// Reads the files again; true if they have changed. If they cannot be used, what was read before stays.
    pub fn reload(&self) -> Result<bool, TlsError> {
        let Inner { certificate, key, current } = &*self.inner;
        let read = load(certificate, key)?;
        let mut current = current.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = current.digest != read.digest;
        if is_new {
            *current = read;
        }
        Ok(is_new)
    }

    /// Accepts connections with whatever certificate was read last: TLS 1.2 and 1.3. Whoever connects may show a
    /// certificate of `clients`, if there is such an authority; one that is not of it is refused.
    pub(crate) fn acceptor(&self, clients: Option<&ClientAuthority>) -> Result<TlsAcceptor, rustls::Error> {
        let versions = &[&version::TLS13, &version::TLS12];
        let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let builder = builder.with_protocol_versions(versions)?;
        let builder = match clients {
            Some(ClientAuthority(verifier)) => builder.with_client_cert_verifier(verifier.clone()),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(self.inner.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// Who vouches for the certificates of workers. Clones share what was read.
#[derive(Debug, Clone)]
pub struct ClientAuthority(Arc<dyn ClientCertVerifier>);

impl ClientAuthority {
    /// Reads the certificates of an authority, PEM.
    pub fn read(file: &Path) -> Result<Self, TlsError> {
        let malformed =
            |problem: String| TlsError::Malformed { file: file.to_owned(), what: "certificate", problem };
        let mut roots = RootCertStore::empty();
        let text =
            std::fs::read(file).map_err(|source| TlsError::Unreadable { file: file.to_owned(), source })?;
        for certificate in CertificateDer::pem_slice_iter(&text) {
            let certificate = certificate.map_err(|error| malformed(error.to_string()))?;
            roots.add(certificate).map_err(|error| malformed(error.to_string()))?;
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        // People and programs show keys; only workers have to show a certificate, which their routes see to.
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .allow_unauthenticated()
            .build()
            .map_err(|error| malformed(error.to_string()))?;
        Ok(Self(verifier))
    }
}

impl ResolvesServerCert for Inner {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.read().unwrap_or_else(PoisonError::into_inner).key.clone())
    }
}

fn load(certificate: &Path, key: &Path) -> Result<Current, TlsError> {
    let read = |file: &Path| {
        std::fs::read(file).map_err(|source| TlsError::Unreadable { file: file.to_owned(), source })
    };
    let malformed =
        |file: &Path, what, problem: String| TlsError::Malformed { file: file.to_owned(), what, problem };
    let (certificate_text, key_text) = (read(certificate)?, read(key)?);
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&certificate_text).collect();
    let chain = chain.map_err(|error| malformed(certificate, "certificate", error.to_string()))?;
    if chain.is_empty() {
        return Err(malformed(certificate, "certificate", "it is empty".to_owned()));
    }
    let secret = PrivateKeyDer::from_pem_slice(&key_text)
        .map_err(|error| malformed(key, "private key", error.to_string()))?;
    let certified =
        CertifiedKey::from_der(chain, secret, &aws_lc_rs::default_provider()).map_err(|source| {
            TlsError::Mismatch { certificate: certificate.to_owned(), key: key.to_owned(), source }
        })?;
    let digest = sha256_hex([certificate_text, key_text].concat());
    Ok(Current { key: Arc::new(certified), digest })
}
