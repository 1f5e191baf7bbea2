//! Differences between definitions, field by field.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Fields of one definition that are listed; others are counted.
const MOST_FIELDS: usize = 50;
/// Longest JSON text of a field.
const MOST_TEXT: usize = 4_000;
/// The place of a declaration in the code.
const LOCATION: &str = "location";
/// Fields that name the items of a list, so that an item is compared with itself.
const NAMES: [&str; 3] = ["name", "key", "asset"];

/// A field of a definition that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldChange {
    /// The field, as `freshness.max_lag_ms` or `checks[row_count].severity`.
    pub path: String,
    /// Its JSON before; absent if it was not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Its JSON after; absent if it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// The fields of two definitions that differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fields {
    pub(crate) listed: Vec<FieldChange>,
    /// How many more there are.
    pub(crate) more: u64,
    /// Whether anything but the place in the code differs.
    pub(crate) is_more_than_moved: bool,
}

/// Compares two definitions of the same thing.
pub(crate) fn fields(before: &Value, after: &Value) -> Fields {
    let mut found = Fields::default();
    compare("", Some(before), Some(after), &mut found);
    found
}

fn compare(path: &str, before: Option<&Value>, after: Option<&Value>, found: &mut Fields) {
    if before == after {
        return;
    }
    if let (Some(Value::Object(old)), Some(Value::Object(new))) = (before, after) {
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            let at = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            compare(&at, old.get(name), new.get(name), found);
        }
        return;
    }
    if let (Some(Value::Array(old)), Some(Value::Array(new))) = (before, after)
        && let (Some(old), Some(new)) = (named(old), named(new))
    {
        let names: BTreeSet<&str> = old.iter().chain(&new).map(|(name, _)| *name).collect();
        for name in names {
            let item = |of: &[(&str, &'_ Value)]| of.iter().position(|(each, _)| *each == name);
            let (was, is) = (item(&old).map(|at| old[at].1), item(&new).map(|at| new[at].1));
            compare(&format!("{path}[{name}]"), was, is, found);
        }
        return;
    }
    found.is_more_than_moved |= !path.split('.').any(|part| part == LOCATION);
    if found.listed.len() >= MOST_FIELDS {
        found.more += 1;
        return;
    }
    found.listed.push(FieldChange {
        path: path.to_owned(),
        before: before.map(text),
        after: after.map(text),
    });
}

/// The items of a list by their names; none if some have none, or two have the same.
fn named(items: &[Value]) -> Option<Vec<(&str, &Value)>> {
    let by = |field: &str| {
        let names: Option<Vec<(&str, &Value)>> =
            items.iter().map(|item| Some((item.get(field)?.as_str()?, item))).collect();
        let distinct = |names: &Vec<(&str, &Value)>| {
            names.iter().map(|(name, _)| name).collect::<BTreeSet<_>>().len() == names.len()
        };
        names.filter(distinct)
    };
    NAMES.iter().find_map(|field| by(field))
}

fn text(value: &Value) -> String {
    let whole = value.to_string();
    match whole.char_indices().nth(MOST_TEXT) {
        Some((at, _)) => format!("{}…", &whole[..at]),
        None => whole,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(before: &Value, after: &Value) -> Vec<String> {
        fields(before, after).listed.into_iter().map(|field| field.path).collect()
    }

    #[test]
    fn fields_are_named_and_items_of_lists_are_compared_by_name() {
        let before = json!({
            "key": "raw/flights", "tags": {"team": "a"}, "retry": {"max_attempts": 1},
            "checks": [{"name": "a", "severity": "warn"}, {"name": "b"}],
        });
        let after = json!({
            "key": "raw/flights", "tags": {"team": "b"}, "owners": ["me"],
            "checks": [{"name": "b"}, {"name": "a", "severity": "error"}],
        });
        assert_eq!(paths(&before, &after), ["checks[a].severity", "owners", "retry", "tags.team"]);
        let owners = fields(&before, &after).listed.remove(1);
        assert_eq!((owners.before, owners.after.as_deref()), (None, Some(r#"["me"]"#)));
    }

    #[test]
    fn a_declaration_that_only_moved_is_told_from_one_that_changed() {
        let at = |line: u32, group: &str| json!({"location": {"file": "a.py", "line": line}, "group": group});
        assert!(!fields(&at(1, "x"), &at(2, "x")).is_more_than_moved);
        assert!(fields(&at(1, "x"), &at(2, "y")).is_more_than_moved);
        assert_eq!(fields(&at(1, "x"), &at(1, "x")), Fields::default());
    }

    #[test]
    fn lists_whose_items_have_no_names_or_equal_ones_are_compared_as_a_whole() {
        let twice = json!([{"name": "a"}, {"name": "a"}]);
        assert_eq!(paths(&json!({"deps": [1, 2]}), &json!({"deps": [2]})), ["deps"]);
        assert_eq!(paths(&json!({"checks": twice}), &json!({"checks": [{"name": "a"}]})), ["checks"]);
    }

    #[test]
    fn very_many_fields_are_counted_and_long_texts_are_cut() {
        let many = |value: u32| {
            (0..80).map(|at| (format!("f{at:02}"), value.into())).collect::<serde_json::Map<_, _>>()
        };
        let found = fields(&Value::Object(many(1)), &Value::Object(many(2)));
        assert_eq!((found.listed.len(), found.more), (50, 30));
        let long = fields(&json!({"a": "é".repeat(9_000)}), &json!({}));
        assert_eq!(long.listed[0].before.as_ref().map(|text| text.chars().count()), Some(4_001));
    }
}
