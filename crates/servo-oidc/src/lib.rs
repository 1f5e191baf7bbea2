//! OpenID Connect: who somebody is by the word of a provider.
//!
//! This crate owns discovery, the keys of a provider, the verification of its tokens, and the two ways to log in: with a
//! browser (authorization code with PKCE) and at a terminal (device flow). It refuses to fetch anything but what the
//! configured issuer names, follows no redirects, and takes nothing from a token before its signature is verified. It
//! guarantees that a token is good only if the issuer, the audience, the algorithm and the times are what they must be.
//!
//! ```
//! use servo_oidc::Config;
//!
//! let config: Config = toml::from_str(
//!     r#"
//!     issuer = "https://login.example.org"
//!     client_id = "servo"
//!     [[roles]]
//!     group = "data-platform"
//!     role = "admin"
//!     scope = "*"
//!     "#,
//! )?;
//! assert_eq!(config.checked().unwrap().roles[0].group, "data-platform");
//! # Ok::<_, toml::de::Error>(())
//! ```

mod browser;
mod config;
mod device;
mod error;
mod fetch;
mod jwk;
mod provider;
mod token;

pub use browser::{BrowserLogin, Finished};
pub use config::{Algorithm, ClientSecret, Config, RoleOfGroup};
pub use device::{DeviceLogin, Polled, Tokens};
pub use error::{ConfigError, Error};
pub use provider::Provider;
pub use token::{Claims, has_expired, looks_like_token};
