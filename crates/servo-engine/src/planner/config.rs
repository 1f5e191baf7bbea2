//! Values of configuration that a request gives, checked against the fields of the assets that take them.
//!
//! A value is JSON, or what was typed on a command line: a text for a field of text stays a text even if it looks like a
//! number, and a number for a field of numbers may be written as a text.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{PlannedAsset, PlanningError};
use crate::definitions::{Asset, ConfigField, Definitions};

/// Every value must be meant for something that is planned.
pub(super) fn check(
    definitions: &Definitions,
    planned: &[PlannedAsset],
    config: &BTreeMap<String, String>,
) -> Result<(), PlanningError> {
    let assets = || planned.iter().map(|planned| definitions.asset(planned.asset));
    for name in config.keys() {
        if !assets().any(|asset| fields(asset).any(|field| is_meant(asset, &field.name, name))) {
            let known: BTreeSet<String> = assets().flat_map(fields).map(|field| field.name.clone()).collect();
            return Err(PlanningError::UnknownConfig {
                name: name.clone(),
                known: known.into_iter().collect(),
            });
        }
    }
    Ok(())
}

/// The values for a function that makes these assets, as its fields want them, or what is wrong with them. What is
/// meant for one asset alone counts more than what is meant for all.
pub(super) fn of(
    assets: &[&Asset],
    config: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Vec<String>> {
    let (mut values, mut problems) = (BTreeMap::new(), Vec::new());
    let all: BTreeMap<&str, &ConfigField> =
        assets.iter().flat_map(|asset| fields(asset)).map(|field| (field.name.as_str(), field)).collect();
    for (name, field) in all {
        let own = assets.iter().find_map(|asset| config.get(&format!("{}:{name}", asset.key)));
        match own.or_else(|| config.get(name)) {
            Some(given) => match Kind::of(field).read(given) {
                Ok(value) => drop(values.insert(name.to_owned(), value)),
                Err(wanted) => problems.push(format!("{name} takes {wanted}, not {given}")),
            },
            None if field.required => {
                problems.push(format!("{name} is missing; give it with --config {name}=…"))
            }
            None => {}
        }
    }
    if problems.is_empty() { Ok(values) } else { Err(problems) }
}

/// The JSON that a field takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Text,
    Integer,
    Number,
    Boolean,
    List,
    Object,
    /// Only the class that the user wrote can tell.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kind {
    shape: Shape,
    is_optional: bool,
}

impl Kind {
    fn of(field: &ConfigField) -> Self {
        let text = field.annotation.as_deref().unwrap_or_default().trim();
        let inner = text.rsplit_once("Optional[").filter(|(before, _)| !before.contains('['));
        let (text, wrapped) =
            inner.map_or((text, false), |(_, inner)| (inner.strip_suffix(']').unwrap_or(inner), true));
        let options: Vec<&str> = options(text).into_iter().map(str::trim).collect();
        let (none, others): (Vec<&str>, Vec<&str>) = options.iter().partition(|option| **option == "None");
        let shape = if let [only] = others[..] { Shape::of(only) } else { Shape::Unknown };
        Self { shape, is_optional: wrapped || !none.is_empty() }
    }

    /// The value as the field takes it, as a text of JSON, or what it takes in words.
    fn read(self, given: &str) -> Result<String, &'static str> {
        let value: Value = serde_json::from_str(given).unwrap_or_else(|_| given.into());
        if self.is_optional && value.is_null() {
            return Ok(value.to_string());
        }
        let typed = value.as_str().and_then(|text| serde_json::from_str::<Value>(text.trim()).ok());
        let is_or_reads = |fits: fn(&Value) -> bool, wanted| {
            let found = if fits(&value) { Some(&value) } else { typed.as_ref().filter(|typed| fits(typed)) };
            found.map(ToString::to_string).ok_or(wanted)
        };
        match self.shape {
            Shape::Text if value.is_string() => Ok(value.to_string()),
            Shape::Text if value.is_array() || value.is_object() => Err("a text"),
            Shape::Text => Ok(Value::from(value.to_string()).to_string()),
            Shape::Integer => is_or_reads(|value| value.is_i64() || value.is_u64(), "an integer"),
            Shape::Number => is_or_reads(Value::is_number, "a number"),
            Shape::Boolean => is_or_reads(Value::is_boolean, "true or false"),
            Shape::List => is_or_reads(Value::is_array, "a list, such as [1, 2]"),
            Shape::Object => is_or_reads(Value::is_object, "an object, such as {\"name\": 1}"),
            Shape::Unknown => Ok(value.to_string()),
        }
    }
}

impl Shape {
    fn of(annotation: &str) -> Self {
        let head = annotation.split_once('[').map_or(annotation, |(head, _)| head);
        match head.rsplit_once('.').map_or(head, |(_, name)| name) {
            "str" | "Path" | "date" | "datetime" | "time" | "Decimal" | "UUID" | "Secret" => Self::Text,
            "int" => Self::Integer,
            "float" => Self::Number,
            "bool" => Self::Boolean,
            "list" | "List" | "tuple" | "Tuple" | "set" | "frozenset" | "Sequence" => Self::List,
            "dict" | "Dict" | "Mapping" => Self::Object,
            _ => Self::Unknown,
        }
    }
}

/// The parts of a union, `str | None`, without looking into brackets.
fn options(annotation: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_i32, 0);
    for (at, letter) in annotation.char_indices() {
        match letter {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            '|' if depth == 0 => {
                parts.push(&annotation[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&annotation[start..]);
    parts
}

fn is_meant(asset: &Asset, field: &str, name: &str) -> bool {
    match name.split_once(':') {
        Some((of, name)) => name == field && of == asset.key.to_string(),
        None => name == field,
    }
}

fn fields(asset: &Asset) -> impl Iterator<Item = &ConfigField> {
    asset.def.config.iter().flat_map(|config| &config.fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(annotation: &str, given: &str) -> Result<String, &'static str> {
        Kind::of(&ConfigField { annotation: Some(annotation.to_owned()), ..ConfigField::default() })
            .read(given)
    }

    #[test]
    fn what_looks_like_a_number_is_a_text_for_a_field_of_text() {
        for (annotation, given, value) in [
            ("str", "20180201", "\"20180201\""),
            ("str", "\"20180201\"", "\"20180201\""),
            ("str", "true", "\"true\""),
            ("str | None", "null", "null"),
            ("Optional[str]", "5", "\"5\""),
            ("datetime.date", "\"2018-02-01\"", "\"2018-02-01\""),
            ("int", "5", "5"),
            ("int", "\"5\"", "5"),
            ("float", "\"1.50\"", "1.5"),
            ("int | None", "null", "null"),
            ("bool", "true", "true"),
            ("list[str]", "[\"a\"]", "[\"a\"]"),
            ("dict[str, int]", "{\"a\":1}", "{\"a\":1}"),
            ("object", "5", "5"),
            ("int | str", "5", "5"),
            ("demo.Limits", "{\"most\":1}", "{\"most\":1}"),
        ] {
            assert_eq!(read(annotation, given), Ok(value.to_owned()), "{annotation} {given}");
        }
    }

    #[test]
    fn a_value_of_another_kind_is_refused() {
        for (annotation, given, wanted) in [
            ("int", "\"many\"", "an integer"),
            ("int", "1.5", "an integer"),
            ("int", "null", "an integer"),
            ("float", "true", "a number"),
            ("bool", "1", "true or false"),
            ("str", "[1]", "a text"),
            ("list[int]", "{}", "a list, such as [1, 2]"),
        ] {
            assert_eq!(read(annotation, given), Err(wanted), "{annotation} {given}");
        }
    }
}
