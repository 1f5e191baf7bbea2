//! Keys of a provider (RFC 7517), and signatures that are verified with them (RFC 7518).

use data_encoding::BASE64URL_NOPAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};
use serde::Deserialize;

use crate::config::Algorithm;

/// The keys that a provider publishes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Keys {
    keys: Vec<Jwk>,
}

/// A public key. Those of kinds that are not known here have none of the parts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Jwk {
    kty: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default, rename = "use")]
    purpose: Option<String>,
    #[serde(default)]
    alg: Option<String>,
    #[serde(default)]
    crv: Option<String>,
    #[serde(default)]
    n: Option<String>,
    #[serde(default)]
    e: Option<String>,
    #[serde(default)]
    x: Option<String>,
    #[serde(default)]
    y: Option<String>,
}

impl Keys {
    /// The signing key with an id; without an id, the only one there is.
    pub(crate) fn find(&self, id: Option<&str>) -> Option<&Jwk> {
        let mut signing = self.keys.iter().filter(|key| {
            key.purpose.as_deref().is_none_or(|purpose| purpose == "sig")
                && id.is_none_or(|id| key.kid.as_deref() == Some(id))
        });
        let found = signing.next()?;
        (id.is_some() || signing.next().is_none()).then_some(found)
    }
}

impl Jwk {
    /// Whether a signature of a message is one of this key. A key is good for its own kind of algorithm alone, so that
    /// a token cannot choose how it is verified.
    pub(crate) fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        if self.alg.as_deref().is_some_and(|alg| alg != algorithm.name()) {
            return false;
        }
        let rsa = |parameters: &'static RsaParameters| {
            let (Some(n), Some(e)) = (part(self.n.as_ref()), part(self.e.as_ref())) else { return false };
            self.kty == "RSA"
                && RsaPublicKeyComponents { n, e }.verify(parameters, message, signature).is_ok()
        };
        let point = |kind: &str, curve: &str, way: &'static dyn VerificationAlgorithm, size: usize| {
            let is_kind = self.kty == kind && self.crv.as_deref() == Some(curve);
            let Some(x) = part(self.x.as_ref()).filter(|x| is_kind && x.len() == size) else { return false };
            let key = match part(self.y.as_ref()) {
                Some(y) if kind == "EC" && y.len() == size => [&[4], x.as_slice(), y.as_slice()].concat(),
                None if kind == "OKP" => x,
                Some(_) | None => return false,
            };
            UnparsedPublicKey::new(way, key).verify(message, signature).is_ok()
        };
        match algorithm {
            Algorithm::RS256 => rsa(&RSA_PKCS1_2048_8192_SHA256),
            Algorithm::RS384 => rsa(&RSA_PKCS1_2048_8192_SHA384),
            Algorithm::RS512 => rsa(&RSA_PKCS1_2048_8192_SHA512),
            Algorithm::PS256 => rsa(&RSA_PSS_2048_8192_SHA256),
            Algorithm::PS384 => rsa(&RSA_PSS_2048_8192_SHA384),
            Algorithm::PS512 => rsa(&RSA_PSS_2048_8192_SHA512),
            Algorithm::ES256 => point("EC", "P-256", &ECDSA_P256_SHA256_FIXED, 32),
            Algorithm::ES384 => point("EC", "P-384", &ECDSA_P384_SHA384_FIXED, 48),
            Algorithm::EdDSA => point("OKP", "Ed25519", &ED25519, 32),
        }
    }
}

fn part(text: Option<&String>) -> Option<Vec<u8>> {
    BASE64URL_NOPAD.decode(text?.as_bytes()).ok()
}
