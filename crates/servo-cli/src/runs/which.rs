//! The run that is meant: by its id, by the beginning of it, or the latest.

use std::str::FromStr;

use servo_api::client::{Client, ListOptions};
use servo_api::{Code, Problem};
use servo_core::RunId;

const PREFIX: &str = "run_";
const LATEST: &str = "latest";

/// A run, as it is typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Which {
    /// The whole id.
    Id(RunId),
    /// The beginning of an id.
    Beginning(String),
    /// The run that was asked for last.
    Latest,
}

impl FromStr for Which {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == LATEST {
            return Ok(Self::Latest);
        }
        if let Ok(id) = text.parse() {
            return Ok(Self::Id(id));
        }
        let digits = text.strip_prefix(PREFIX).unwrap_or(text);
        let is_digit = |digit: char| matches!(digit, 'a'..='z' | '2'..='7');
        if digits.is_empty() || digits.len() >= 26 || !digits.chars().all(is_digit) {
            return Err("write the id of a run, the beginning of it such as run_yqlw, or latest".to_owned());
        }
        Ok(Self::Beginning(format!("{PREFIX}{digits}")))
    }
}

impl Which {
    /// Finds the run.
    pub(crate) async fn find(&self, client: &Client) -> anyhow::Result<RunId> {
        let (filters, missing) = match self {
            Self::Id(id) => return Ok(*id),
            Self::Beginning(prefix) => {
                (vec![("id_prefix", prefix.clone())], format!("there is no run {prefix}…"))
            }
            Self::Latest => (Vec::new(), "there is no run yet".to_owned()),
        };
        let options = ListOptions { limit: Some(2), filters, ..ListOptions::default() };
        let found = client.runs(&options).await?.items;
        let problem = match (found.as_slice(), self) {
            ([], _) => {
                Problem::new(Code::UnknownRun, format!("{missing}; `servo run list` shows what there is"))
            }
            ([first, second, ..], Self::Beginning(prefix)) => {
                let detail = format!(
                    "{prefix} may be {} or {}, and perhaps others; write more of it",
                    first.run_id, second.run_id
                );
                Problem::new(Code::InvalidRequest, detail)
            }
            ([first, ..], _) => return Ok(first.run_id),
        };
        Err(problem.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_named_by_id_by_its_beginning_and_as_latest() {
        let id = RunId::from_u128(7);
        assert_eq!(id.to_string().parse(), Ok(Which::Id(id)));
        assert_eq!("run_ab2".parse(), Ok(Which::Beginning("run_ab2".to_owned())));
        assert_eq!("ab2".parse(), Ok(Which::Beginning("run_ab2".to_owned())));
        assert_eq!("latest".parse(), Ok(Which::Latest));
        for wrong in ["", "run_", "RUN_AB", "ab1", "run_abcdefghijklmnopqrstuvwxyzab", "a b"] {
            assert!(wrong.parse::<Which>().is_err(), "{wrong:?}");
        }
    }
}
