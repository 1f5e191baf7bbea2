//! The id of a run, derived from what the run is for.

use std::fmt;
use std::str::FromStr;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::base32;
use crate::names::{TenantId, WorkspaceId};
use crate::parse_error::{ParseError, unexpected};
use crate::serde_text::deserialize_from_text;

const PREFIX: &str = "run_";
const DIGITS: usize = 26;
const LEN: usize = PREFIX.len() + DIGITS;

/// Names a run. The same run key in the same workspace always gives the same id, and without the tenant's secret
/// nobody can compute it.
///
/// ```
/// use servo_core::{RunId, TenantId, WorkspaceId};
/// let (tenant, workspace) = (TenantId::parse("acme")?, WorkspaceId::parse("prod")?);
/// let run = RunId::derive(b"secret", &tenant, &workspace, "daily:2025-01-15");
/// assert_eq!(run, RunId::derive(b"secret", &tenant, &workspace, "daily:2025-01-15"));
/// assert_eq!(run.to_string().parse::<RunId>()?, run);
/// # Ok::<(), servo_core::ParseError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(u128);

impl RunId {
    /// First 16 bytes of HMAC-SHA256(`secret`, `tenant:workspace:run_key`); neither name can hold a colon, so no
    /// two triples give the same text.
    pub fn derive(secret: &[u8], tenant: &TenantId, workspace: &WorkspaceId, run_key: &str) -> RunId {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes a key of any length");
        for part in [tenant.as_str(), ":", workspace.as_str(), ":", run_key] {
            mac.update(part.as_bytes());
        }
        let digest = mac.finalize().into_bytes();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        Self(u128::from_be_bytes(bytes))
    }

    /// Stands for no run where an id must be given: whatever it says was not done by one.
    pub const NIL: Self = Self(0);

    /// The run; none if this stands for none.
    pub fn some(self) -> Option<Self> {
        (self != Self::NIL).then_some(self)
    }

    /// The 16 bytes of the id, first byte highest.
    pub const fn to_u128(self) -> u128 {
        self.0
    }

    /// The id with these 16 bytes.
    pub const fn from_u128(value: u128) -> Self {
        Self(value)
    }

    fn write_text(self, buffer: &mut [u8; LEN]) -> &str {
        buffer[..PREFIX.len()].copy_from_slice(PREFIX.as_bytes());
        base32::write_prefix(&self.0.to_be_bytes(), &mut buffer[PREFIX.len()..]);
        std::str::from_utf8(buffer).expect("a run id is written in ASCII")
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.write_text(&mut [0; LEN]))
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunId({self})")
    }
}

/// The id, if the digits are right. A million of them are read when a workspace is opened: 60 bits at a time.
fn read_digits(digits: &[u8]) -> Option<RunId> {
    let [digits @ .., second_last, last] = digits else { return None };
    let (high, low) = digits.split_at_checked(12)?;
    let sixty_bits = |part: &[u8]| {
        part.iter().try_fold(0u64, |value, digit| Some(value << 5 | u64::from(base32::digit_value(*digit)?)))
    };
    let (second_last, last) = (base32::digit_value(*second_last)?, base32::digit_value(*last)?);
    if low.len() != 12 || last & 0b11 != 0 {
        return None;
    }
    let tail = u128::from(second_last) << 3 | u128::from(last >> 2);
    Some(RunId(u128::from(sixty_bits(high)?) << 68 | u128::from(sixty_bits(low)?) << 8 | tail))
}

impl FromStr for RunId {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refuse = |at, problem| Err(ParseError::at_byte("run id", text, at, problem));
        let Some(digits) = text.strip_prefix(PREFIX) else {
            return refuse(0, "a run id starts with \"run_\"".to_owned());
        };
        if let Some(id) = read_digits(digits.as_bytes()) {
            return Ok(id);
        }
        // Not an id: find out where it goes wrong.
        let mut value = 0u128;
        for at in 0..DIGITS {
            let position = PREFIX.len() + at;
            let Some(digit) = digits.as_bytes().get(at) else {
                return refuse(position, format!("has {at} characters after \"run_\", expected {DIGITS}"));
            };
            let Some(digit) = base32::digit_value(*digit) else {
                return refuse(position, unexpected(text, position, "a letter a-z or a digit 2-7"));
            };
            // 26 digits carry 130 bits: the last digit has 3 bits of the id and 2 that must be zero, or two
            // texts would name one run.
            value = if at < DIGITS - 1 {
                value << 5 | u128::from(digit)
            } else if digit & 0b11 == 0 {
                value << 3 | u128::from(digit >> 2)
            } else {
                return refuse(position, unexpected(text, position, "one of a, e, i, m, q, u, y, 4"));
            };
        }
        if text.len() > LEN {
            let count = digits.chars().count();
            return refuse(LEN, format!("has {count} characters after \"run_\", expected {DIGITS}"));
        }
        Ok(Self(value))
    }
}

impl serde::Serialize for RunId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.write_text(&mut [0; LEN]))
    }
}

deserialize_from_text!(RunId, "a run id: run_ and 26 characters of lower-case base32", str::parse::<RunId>);
