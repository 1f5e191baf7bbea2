//! Paged lists with signed page tokens.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use servo_queue::Keyring;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{IntoParams, PartialSchema, ToSchema};

use crate::problem::{Code, Problem};

const PURPOSE: &str = "page cursor";
/// Digits that tell lists apart; the seal is what nobody can make up.
const OF_DIGITS: usize = 16;
const DEFAULT_LIMIT: usize = 25;
/// The most that a page may have.
pub(crate) const MAX_LIMIT: usize = 100;

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page<T> {
    /// The items of this page.
    pub items: Vec<T>,
    /// Cursor of the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Schema `RunPage` for runs, with a reference to the item.
impl<T: ToSchema> PartialSchema for Page<T> {
    fn schema() -> RefOr<Schema> {
        let items = ArrayBuilder::new().items(Ref::from_schema_name(T::name()));
        let next = ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("Where the next page begins; absent on the last one."));
        let page = ObjectBuilder::new().description(Some("A page of a list."));
        page.property("items", items).required("items").property("next_cursor", next).into()
    }
}

impl<T: ToSchema> ToSchema for Page<T> {
    fn name() -> Cow<'static, str> {
        Cow::Owned(format!("{}Page", T::name()))
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(schemas);
    }
}

impl<T> Page<T> {
    /// The page of the found items, which are one more than the limit if there is another page.
    pub(crate) fn of(mut found: Vec<T>, list: &List<'_>, place: impl FnOnce(&T) -> String) -> Self {
        let more = found.len() > list.limit;
        found.truncate(list.limit);
        let next_cursor = found.last().filter(|_| more).map(|last| list.cursor(&place(last)));
        Self { items: found, next_cursor }
    }

    /// Maps the items of the page.
    pub fn map<U>(self, show: impl FnMut(T) -> U) -> Page<U> {
        Page { items: self.items.into_iter().map(show).collect(), next_cursor: self.next_cursor }
    }
}

/// Query of a list without filters.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// Page size, at most 100; 25 by default.
    limit: Option<usize>,
    /// Cursor, as the page before returned it.
    cursor: Option<String>,
}

impl PageQuery {
    /// The list of this name, from where the page begins.
    pub(crate) fn open<'a>(&self, keys: &'a Keyring, name: String) -> Result<List<'a>, Problem> {
        List::open(keys, name, self.limit, self.cursor.as_deref())
    }
}

/// A list request.
pub(crate) struct List<'a> {
    keys: &'a Keyring,
    /// Digest of the name of the list with every filter: a page token of another list is refused.
    of: String,
    /// Page size.
    pub(crate) limit: usize,
    /// The key after which the page starts.
    pub(crate) after: Option<String>,
}

impl<'a> List<'a> {
    pub(crate) fn open(
        keys: &'a Keyring,
        name: String,
        limit: Option<usize>,
        cursor: Option<&str>,
    ) -> Result<Self, Problem> {
        let limit = limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_LIMIT).contains(&limit) {
            return Err(Problem::invalid("limit", format!("{limit} is not between 1 and {MAX_LIMIT}")));
        }
        // People copy tokens: a digest is short, however many filters there are.
        let mut of = servo_core::sha256_hex(name);
        of.truncate(OF_DIGITS);
        let after = cursor.map(|cursor| read(keys, &of, cursor)).transpose()?;
        Ok(Self { keys, of, limit, after })
    }

    /// Number of items to fetch: one more than the limit, to know whether there is another page.
    pub(crate) fn wanted(&self) -> usize {
        self.limit + 1
    }

    /// The parsed key after which the page starts.
    pub(crate) fn place<T: std::str::FromStr>(&self) -> Result<Option<T>, Problem> {
        self.after.as_deref().map(str::parse).transpose().map_err(|_| wrong())
    }

    pub(crate) fn cursor(&self, place: &str) -> String {
        self.keys.seal_text(PURPOSE, format!("{}\n{place}", self.of).as_bytes())
    }
}

fn read(keys: &Keyring, wanted: &str, cursor: &str) -> Result<String, Problem> {
    let content = keys.open_text(PURPOSE, cursor).map_err(|_| wrong())?;
    let text = String::from_utf8(content).map_err(|_| wrong())?;
    match text.split_once('\n') {
        Some((of, place)) if of == wanted => Ok(place.to_owned()),
        Some(_) | None => Err(wrong()),
    }
}

fn wrong() -> Problem {
    Problem::new(
        Code::InvalidCursor,
        "the cursor was not given out for this list with these filters; begin again without one",
    )
}
