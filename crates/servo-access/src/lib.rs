//! Who may do what on a server: roles and their permissions, grants, API keys, sessions, tenants,
//! workspaces and quotas.
//!
//! **Owns** the control ledger of a server: a log of its own, beside those of the workspaces, that says which keys,
//! tenants and workspaces there are ([`ControlEvent`], [`ControlState`]). It is decided and folded as the state of a
//! workspace is: [`decide`] and [`ControlState::apply`] are pure, and [`ControlLedger`] answers when it is durable.
//!
//! **Refuses** to know HTTP. Whoever authenticates a request makes an [`Identity`] of it; what that one may do follows
//! from its grants alone ([`Identity::allows`]).
//!
//! **Guarantees** that the secret of a key is in no event, state or message: only its hash is kept, and it is compared
//! in constant time.
//!
//! ```
//! use servo_access::{Allowed, Grant, Identity, Permission, Role, Scope};
//! use servo_engine::Principal;
//!
//! let scope: Scope = "acme/main".parse()?;
//! let grants = vec![Grant { role: Role::Operator, scope, assets: None }];
//! let identity = Identity { principal: Principal::user("zoë"), grants };
//! let (acme, main) = ("acme".parse()?, "main".parse()?);
//! assert_eq!(identity.allows(Permission::RunsTrigger, &acme, &main), Allowed::Everything);
//! assert_eq!(identity.allows(Permission::AssetsDeploy, &acme, &main), Allowed::Nothing);
//! assert_eq!(identity.allows(Permission::RunsRead, &"other".parse()?, &main), Allowed::Invisible);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod acts;
mod decide;
mod event;
mod grant;
mod key;
mod ledger;
mod quotas;
mod role;
mod session;
mod state;

pub use acts::{ActPlace, ControlAct};
pub use decide::{ControlCommand, ControlRefusal, NewKey, decide};
pub use event::{
    AddressLockedOut, ControlData, ControlEvent, KeyCreated, KeyRevoked, KeyUsed, QuotaSet, RequestDenied,
    SessionEnded, SessionStarted, SessionsEnded, TenantChanged, TenantCreated, TenantRemoved,
    WorkspaceChanged, WorkspaceCreated, WorkspaceRemoved, read_batch, write_batch,
};
pub use grant::{Allowed, Grant, Identity, Scope, ScopeError};
pub use key::{KEY_PREFIX, KeyHash, KeyId, KeyText, parse_key};
pub use ledger::{ControlLedger, LedgerError};
pub use quotas::{Quota, Quotas};
pub use role::{Permission, Role};
pub use session::{Session, SessionId, SessionOf};
pub use state::{ApiKey, ControlState, KeyStatus, Tenant, WorkspaceEntry};
