//! One of a list: a thing by its id, by the beginning of its id, or the latest.

use std::fmt::Display;
use std::str::FromStr;

use servo_api::client::{Client, ClientError, ListOptions};
use servo_api::{Code, Page, Problem};
use servo_core::{AssetKey, BackfillId, EventId, MaterializationId, RunId};

const LATEST: &str = "latest";
/// Digits of an id, without what stands before them.
const DIGITS: usize = 26;

/// An id that people may begin and leave off.
pub(crate) trait Abbreviated: FromStr + Display + Copy + PartialEq {
    /// The kind of thing that such an id names.
    const KIND: &'static str;
    /// Advice for those who wrote something else.
    const EXPECTED: &'static str;

    /// The beginning of an id, as ids are printed; none if no id begins so.
    fn beginning(text: &str) -> Option<String>;
}

impl Abbreviated for RunId {
    const KIND: &'static str = "run";
    const EXPECTED: &'static str = "write the id of a run, the beginning of it such as run_yqlw, or latest";

    fn beginning(text: &str) -> Option<String> {
        let digits = text.strip_prefix("run_").unwrap_or(text);
        digits_of(digits, |digit| matches!(digit, 'a'..='z' | '2'..='7')).then(|| format!("run_{digits}"))
    }
}

impl Abbreviated for BackfillId {
    const KIND: &'static str = "backfill";
    const EXPECTED: &'static str =
        "write the id of a backfill, the beginning of it such as 01JHKM51, or latest";

    fn beginning(text: &str) -> Option<String> {
        beginning_of_a_ulid(text)
    }
}

impl Abbreviated for MaterializationId {
    const KIND: &'static str = "materialization";
    const EXPECTED: &'static str =
        "write the id of a materialization, the beginning of it such as 01JB2X, or latest";

    fn beginning(text: &str) -> Option<String> {
        beginning_of_a_ulid(text)
    }
}

impl Abbreviated for EventId {
    const KIND: &'static str = "change";
    const EXPECTED: &'static str = "write the id of a change, the beginning of it such as 01JB2X, or latest";

    fn beginning(text: &str) -> Option<String> {
        beginning_of_a_ulid(text)
    }
}

fn beginning_of_a_ulid(text: &str) -> Option<String> {
    let digits = text.to_ascii_uppercase();
    let is_digit = |digit: char| digit.is_ascii_alphanumeric() && !matches!(digit, 'I' | 'L' | 'O' | 'U');
    digits_of(&digits, is_digit).then_some(digits)
}

fn digits_of(text: &str, is_digit: impl Fn(char) -> bool) -> bool {
    !text.is_empty() && text.len() < DIGITS && text.chars().all(is_digit)
}

/// A thing with an id, as it is typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Which<Id> {
    /// The whole id.
    Id(Id),
    /// The beginning of an id.
    Beginning(String),
    /// The one that came last.
    Latest,
}

impl<Id: Abbreviated> FromStr for Which<Id> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == LATEST {
            return Ok(Self::Latest);
        }
        if let Ok(id) = text.parse() {
            return Ok(Self::Id(id));
        }
        Id::beginning(text).map(Self::Beginning).ok_or_else(|| Id::EXPECTED.to_owned())
    }
}

impl<Id: Abbreviated> Which<Id> {
    /// Whether this id may be the one that is meant.
    pub(crate) fn is(&self, id: Id) -> bool {
        match self {
            Self::Id(which) => *which == id,
            Self::Beginning(beginning) => id.to_string().starts_with(beginning),
            Self::Latest => true,
        }
    }

    /// The one that is meant of those that may be, the latest first. One that was written whole is believed to exist:
    /// whoever is asked about it says so otherwise.
    pub(crate) fn of(&self, found: &[Id], missing: impl FnOnce(&str) -> Problem) -> Result<Id, Problem> {
        match (self, found) {
            (Self::Id(id), _) => Ok(*id),
            (Self::Latest, []) => Err(missing(&format!("there is no {} yet", Id::KIND))),
            (Self::Beginning(beginning), []) => {
                Err(missing(&format!("there is no {} {beginning}…", Id::KIND)))
            }
            (Self::Latest, [first, ..]) | (Self::Beginning(_), [first]) => Ok(*first),
            (Self::Beginning(beginning), [first, second, ..]) => {
                let detail =
                    format!("{beginning} may be {first} or {second}, and perhaps others; write more of it");
                Err(Problem::new(Code::InvalidRequest, detail))
            }
        }
    }
}

impl Which<RunId> {
    /// Finds the run.
    pub(crate) async fn find(&self, client: &Client) -> anyhow::Result<RunId> {
        let filters = match self {
            Self::Id(id) => return Ok(*id),
            Self::Beginning(prefix) => vec![("id_prefix", prefix.clone())],
            Self::Latest => Vec::new(),
        };
        let options = ListOptions { limit: Some(2), filters, ..ListOptions::default() };
        let found: Vec<RunId> = client.runs(&options).await?.items.iter().map(|run| run.run_id).collect();
        let missing = |what: &str| {
            Problem::new(Code::UnknownRun, format!("{what}; `servo run list` shows what there is"))
        };
        Ok(self.of(&found, missing)?)
    }
}

impl Which<BackfillId> {
    /// Finds the backfill. Their list is in the order of their ids.
    pub(crate) async fn find(&self, client: &Client) -> anyhow::Result<BackfillId> {
        let beginning = match self {
            Self::Id(id) => return Ok(*id),
            Self::Beginning(beginning) => Some(beginning),
            Self::Latest => None,
        };
        let mut options = ListOptions::default();
        let mut found = Vec::new();
        loop {
            let Page { items, next_cursor } = client.backfills(&options).await?;
            found.extend(items.iter().map(|it| it.backfill_id).filter(|id| self.is(*id)));
            let is_past = beginning.is_none_or(|beginning| {
                items.last().is_none_or(|last| last.backfill_id.to_string() < *beginning)
            });
            if found.len() > 1 || is_past || next_cursor.is_none() {
                break;
            }
            options.cursor = next_cursor;
        }
        let missing = |what: &str| {
            Problem::new(Code::UnknownBackfill, format!("{what}; `servo backfill list` shows what there is"))
        };
        Ok(self.of(&found, missing)?)
    }
}

impl<Id: Abbreviated> Which<Id> {
    /// Finds what begins so in a list, whatever it is sorted by; none if the latest is meant.
    async fn in_list(
        &self,
        mut options: ListOptions,
        pages: impl AsyncFn(&ListOptions) -> Result<Page<Id>, ClientError>,
        missing: impl FnOnce(&str) -> Problem,
    ) -> anyhow::Result<Option<Id>> {
        match self {
            Self::Id(id) => return Ok(Some(*id)),
            Self::Latest => return Ok(None),
            Self::Beginning(_) => {}
        }
        let mut found = Vec::new();
        loop {
            let Page { items, next_cursor } = pages(&options).await?;
            found.extend(items.into_iter().filter(|id| self.is(*id)));
            if found.len() > 1 || next_cursor.is_none() {
                break;
            }
            options.cursor = next_cursor;
        }
        Ok(Some(self.of(&found, missing)?))
    }
}

impl Which<MaterializationId> {
    /// Finds the materialization of an asset; none if its newest is meant.
    pub(crate) async fn find(
        &self,
        client: &Client,
        asset: &AssetKey,
    ) -> anyhow::Result<Option<MaterializationId>> {
        let pages = async |options: &ListOptions| {
            Ok(client.materializations(asset, options).await?.map(|record| record.materialization_id))
        };
        let missing = |what: &str| {
            let advice = format!("{what} of {asset}; `servo asset show {asset}` shows the newest");
            Problem::new(Code::NeverMaterialized, advice)
        };
        self.in_list(ListOptions::default(), pages, missing).await
    }
}

impl Which<EventId> {
    /// Finds the change of partitions of an asset; none if the last one is meant.
    pub(crate) async fn find(&self, client: &Client, asset: &AssetKey) -> anyhow::Result<Option<EventId>> {
        let filters = vec![("action", "partitions".to_owned()), ("subject", asset.to_string())];
        let pages = async |options: &ListOptions| Ok(client.audit(options).await?.map(|act| act.event_id));
        let missing = |what: &str| {
            let advice =
                format!("{what} of partitions of {asset}; `servo audit --action partitions` shows them");
            Problem::new(Code::NothingToUndo, advice)
        };
        self.in_list(ListOptions { filters, ..ListOptions::default() }, pages, missing).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_named_by_id_by_its_beginning_and_as_latest() {
        let id = RunId::from_u128(7);
        assert_eq!(id.to_string().parse(), Ok(Which::Id(id)));
        assert_eq!("run_ab2".parse::<Which<RunId>>(), Ok(Which::Beginning("run_ab2".to_owned())));
        assert_eq!("ab2".parse::<Which<RunId>>(), Ok(Which::Beginning("run_ab2".to_owned())));
        assert_eq!("latest".parse::<Which<RunId>>(), Ok(Which::Latest));
        for wrong in ["", "run_", "RUN_AB", "ab1", "run_abcdefghijklmnopqrstuvwxyzab", "a b"] {
            assert!(wrong.parse::<Which<RunId>>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn other_ids_may_be_left_off_and_written_small() {
        let id = BackfillId::from_parts(1_736_937_000_123, 7);
        assert_eq!(id.to_string().parse(), Ok(Which::Id(id)));
        assert_eq!("01jhm".parse::<Which<BackfillId>>(), Ok(Which::Beginning("01JHM".to_owned())));
        assert_eq!("latest".parse::<Which<MaterializationId>>(), Ok(Which::Latest));
        for wrong in ["", "01JB2X…", "01L", "run_ab2", "01JHMR6K5V00000000000000071"] {
            assert!(wrong.parse::<Which<BackfillId>>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_beginning_that_two_ids_have_is_refused() {
        let ids = [9, 8].map(|entropy| BackfillId::from_parts(1_736_937_000_123, entropy));
        let missing = |what: &str| Problem::new(Code::UnknownBackfill, what);
        let which = |text: &str| text.parse::<Which<BackfillId>>().unwrap();
        assert_eq!(which("latest").of(&ids, missing), Ok(ids[0]));
        assert_eq!(which("01JH").of(&ids[1..], missing), Ok(ids[1]));
        let refused = which("01JH").of(&ids, missing).unwrap_err();
        assert!(refused.detail.contains("write more of it"), "{}", refused.detail);
        assert_eq!(which("01JH").of(&[], missing).unwrap_err().code, Code::UnknownBackfill);
    }
}
