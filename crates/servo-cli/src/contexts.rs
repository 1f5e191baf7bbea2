//! Contexts: servers that the user has logged in to, each with a name, in a file that only its owner may read.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use crate::location::write_private;

/// The name that stands for the workspace on this machine.
pub(crate) const LOCAL: &str = "local";

/// The content of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contexts {
    /// The context in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    /// Contexts by name.
    #[serde(default)]
    pub(crate) contexts: BTreeMap<String, Context>,
}

/// A server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Context {
    /// Its address.
    pub(crate) url: String,
    /// The key that it is shown: an API key, or a token of its identity provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// Gets a new token when that has expired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refresh_token: Option<String>,
}

/// Secrets are never shown.
impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Contexts {
    /// `SERVO_CONFIG`, or `servo/config.toml` where the user keeps configuration.
    pub(crate) fn path() -> Option<PathBuf> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        variable("SERVO_CONFIG").or_else(|| {
            let home = variable("XDG_CONFIG_HOME").or_else(|| Some(variable("HOME")?.join(".config")))?;
            Some(home.join("servo").join("config.toml"))
        })
    }

    /// Those of the file; none if there is no file.
    pub(crate) fn read() -> anyhow::Result<Self> {
        let Some(path) = Self::path() else { return Ok(Self::default()) };
        match std::fs::read_to_string(&path) {
            Ok(text) => toml::from_str(&text).with_context(|| format!("{} cannot be read", path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
        }
    }

    /// Writes the file, whole or not at all.
    pub(crate) fn write(&self) -> anyhow::Result<()> {
        let Some(path) = Self::path() else { bail!("there is no HOME; name a file with SERVO_CONFIG") };
        write_private(&path, self.text().as_bytes()).with_context(|| format!("writing {}", path.display()))
    }

    /// TOML. Texts of JSON are texts of TOML.
    fn text(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let mut out = String::new();
        if let Some(current) = &self.current {
            out.push_str(&format!("current = {}\n", quoted(current)));
        }
        for (name, context) in &self.contexts {
            out.push_str(&format!("\n[contexts.{}]\nurl = {}\n", quoted(name), quoted(&context.url)));
            let others = [("key", &context.key), ("refresh_token", &context.refresh_token)];
            for (field, value) in others {
                if let Some(value) = value {
                    out.push_str(&format!("{field} = {}\n", quoted(value)));
                }
            }
        }
        out
    }

    /// The context of a name, or what to do.
    pub(crate) fn named(&self, name: &str) -> anyhow::Result<&Context> {
        match self.contexts.get(name) {
            Some(context) => Ok(context),
            None if self.contexts.is_empty() => {
                bail!("there is no context {name:?}; servo login URL makes one")
            }
            None => {
                let known: Vec<&str> = self.contexts.keys().map(String::as_str).collect();
                bail!("there is no context {name:?}; there are {}, and {LOCAL}", known.join(", "))
            }
        }
    }

    /// The key that is kept for a server.
    pub(crate) fn key_of(&self, url: &str) -> Option<&str> {
        let is_it = |context: &&Context| context.url.trim_end_matches('/') == url.trim_end_matches('/');
        self.contexts.values().filter(is_it).find_map(|context| context.key.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let context = Context {
            url: "https://servo.example.org".to_owned(),
            key: Some("a \"quoted\" key\\ \u{1}é".to_owned()),
            refresh_token: None,
        };
        let contexts = Contexts {
            current: Some("prod.eu".to_owned()),
            contexts: BTreeMap::from([("prod.eu".to_owned(), context.clone()), ("b\n".to_owned(), context)]),
        };
        assert_eq!(toml::from_str::<Contexts>(&contexts.text()).unwrap(), contexts);
        assert!(!format!("{contexts:?}").contains("quoted"));
        assert_eq!(toml::from_str::<Contexts>("").unwrap(), Contexts::default());
    }
}
