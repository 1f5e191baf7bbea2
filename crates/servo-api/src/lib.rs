//! The HTTP API of Servo, for people, programs and workers.
//!
//! This crate owns the routes, the server, their description as OpenAPI, and the client. It refuses to decide: every
//! change is a command of a workspace. It guarantees that every answer is either what the description says or a problem
//! document that names what is wrong, that every route is in the table of permissions, and that a request that carries
//! an idempotency key is done once.

mod access;
mod answer;
mod app;
mod asset_limits;
mod authentication;
mod callback_urls;
pub mod client;
mod description;
mod etag;
mod extract;
mod follow;
mod front;
mod guard;
mod idempotency;
mod lockout;
mod login;
mod logs;
mod oidc;
mod pages;
mod problem;
mod push;
mod rates;
mod reads;
mod refusals;
mod routes;
mod server;
mod sse;
#[cfg(feature = "testing")]
pub mod testing;
mod tls;
mod ui;
pub mod views;
mod worker_calls;
mod write_timeout;

pub use access::{Access, Permission, ROUTES};
pub use app::{Api, ProjectCode, SqlEngine, SqlQuery};
pub use authentication::{ApiKeys, Authenticated, Authenticator, Credential, bearer};
pub use callback_urls::callback_urls;
pub use front::{WorkspaceStatus, Workspaces};
pub use login::Logins;
pub use pages::Page;
pub use problem::{Code, DefinitionProblem, Problem, QuotaFigures, SourceLocation, Violation};
pub use rates::RateLimits;
pub use routes::{Health, Version, asset_fingerprint, openapi, router, worker_keyring};
pub use server::{Served, serve, serve_many};
pub use servo_access::SessionOf;
pub use tls::{Certificate, ClientAuthority, TlsError};
pub use worker_calls::{CalledWorker, PUSH_PATH, WorkerCredential, WorkerEndpoint, serve_worker};
