//! Names of tenants and workspaces: short, lower case, safe in paths and in colon-separated ids.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::parse_error::{ParseError, unexpected};
use crate::serde_text::deserialize_from_text;

const MAX_LEN: usize = 63;

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Accepts 1 to 63 characters `[a-z0-9][a-z0-9_-]*`.
            pub fn parse(text: &str) -> Result<Self, ParseError> {
                check($what, text)?;
                Ok(Self(text.into()))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl FromStr for $name {
            type Err = ParseError;

            fn from_str(text: &str) -> Result<Self, ParseError> {
                Self::parse(text)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        deserialize_from_text!($name, "a name of 1 to 63 characters [a-z0-9][a-z0-9_-]*", $name::parse);
    };
}

name_type!(
    /// Names a tenant: who owns workspaces and secrets.
    ///
    /// ```
    /// use servo_core::TenantId;
    /// assert_eq!(TenantId::parse("acme-2")?.as_str(), "acme-2");
    /// assert!(TenantId::parse("Acme").is_err());
    /// # Ok::<(), servo_core::ParseError>(())
    /// ```
    TenantId,
    "tenant"
);
name_type!(
    /// Names a workspace of a tenant: one log, one engine.
    WorkspaceId,
    "workspace"
);

fn check(what: &'static str, text: &str) -> Result<(), ParseError> {
    let refuse = |at, problem| Err(ParseError::at_byte(what, text, at, problem));
    if !text.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit()) {
        return refuse(0, unexpected(text, 0, "a letter a-z or a digit"));
    }
    let allowed = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'_' | b'-');
    if let Some(at) = text.bytes().position(|c| !allowed(c)) {
        return refuse(at, unexpected(text, at, "a letter a-z, a digit, \"_\" or \"-\""));
    }
    if text.len() > MAX_LEN {
        return refuse(MAX_LEN, format!("has {} characters, at most {MAX_LEN} are allowed", text.len()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_to_their_alphabet_and_length() {
        for good in ["a", "0", "acme", "a_b-c", &"x".repeat(63)] {
            assert_eq!(TenantId::parse(good).unwrap().as_str(), good);
        }
        for (bad, at) in [("", 0), ("-a", 0), ("A", 0), ("a:b", 1), ("aé", 1), (&"x".repeat(64), 63)] {
            assert_eq!(WorkspaceId::parse(bad).unwrap_err().at, at, "{bad}");
        }
    }

    #[test]
    fn json_is_validated_too() {
        assert_eq!(serde_json::from_str::<TenantId>("\"acme\"").unwrap().as_str(), "acme");
        assert!(serde_json::from_str::<TenantId>("\"a/b\"").is_err());
    }
}
