//! Fields that are more than one value, or that serde knows the name of.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

use serde::de::DeserializeOwned;
use serde::de::value::{Error as NameError, StrDeserializer};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A value that its column holds as JSON text. Text that is no such value is an error of the reader.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: Serialize + DeserializeOwned> Json<T> {
    /// The text of the column.
    pub fn to_text(&self) -> String {
        serde_json::to_string(&self.0).expect("plain data serializes to JSON")
    }

    /// Reads [`Self::to_text`] back.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text).map(Self)
    }
}

impl<T> Deref for Json<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// JSON values by name, each kept as its text.
///
/// Events carry such maps as texts of JSON. A column holds one object with the values themselves, so that
/// `metadata->'rows'` finds a number; reading it back gives the same texts.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct JsonTexts(BTreeMap<String, String>);

impl JsonTexts {
    /// Values from their texts. What is no JSON becomes a JSON text.
    pub fn new(texts: BTreeMap<String, String>) -> Self {
        let value = |text: String| match serde_json::from_str::<&RawValue>(&text) {
            Ok(value) if value.get().len() == text.len() => text,
            Ok(value) => value.get().to_owned(),
            Err(_) => serde_json::Value::String(text).to_string(),
        };
        Self(texts.into_iter().map(|(name, text)| (name, value(text))).collect())
    }

    /// The texts by name.
    pub fn into_texts(self) -> BTreeMap<String, String> {
        self.0
    }
}

impl fmt::Debug for JsonTexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Deref for JsonTexts {
    type Target = BTreeMap<String, String>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Serialize for JsonTexts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = |text| serde_json::from_str::<&RawValue>(text).map_err(serde::ser::Error::custom);
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, text) in &self.0 {
            map.serialize_entry(name, value(text)?)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for JsonTexts {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let values = BTreeMap::<String, Box<RawValue>>::deserialize(deserializer)?;
        Ok(Self(values.into_iter().map(|(name, value)| (name, value.get().to_owned())).collect()))
    }
}

/// An enum without fields. Its column holds the name that serde gives it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name<T>(pub T);

impl<T: Serialize + DeserializeOwned> Name<T> {
    /// The name.
    pub fn to_text(&self) -> String {
        match serde_json::to_value(&self.0) {
            Ok(serde_json::Value::String(name)) => name,
            other => unreachable!("an enum without fields serializes to its name, not to {other:?}"),
        }
    }

    /// Reads [`Self::to_text`] back.
    pub fn parse(name: &str) -> Result<Self, NameError> {
        T::deserialize(StrDeserializer::new(name)).map(Self)
    }
}

impl<T> Deref for Name<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Outcome;

    #[test]
    fn names_come_back_and_others_are_refused() {
        let name = Name(Outcome::TimedOut);
        assert_eq!(name.to_text(), "TIMED_OUT");
        assert_eq!(Name::parse("TIMED_OUT").unwrap(), name);
        let error = Name::<Outcome>::parse("LATE").unwrap_err().to_string();
        assert!(error.contains("unknown variant `LATE`"), "{error}");
    }

    #[test]
    fn texts_of_json_are_stored_as_the_values_that_they_are_and_come_back_as_they_were() {
        let texts = [("rows", "3"), ("note", "\"a \\\"good\\\" day\""), ("kept", "{\"b\": 1, \"a\": 1.0}")];
        let texts = BTreeMap::from(texts.map(|(name, text)| (name.to_owned(), text.to_owned())));
        let column = Json(JsonTexts::new(texts.clone()));
        let expected = "{\"kept\":{\"b\": 1, \"a\": 1.0},\"note\":\"a \\\"good\\\" day\",\"rows\":3}";
        assert_eq!(column.to_text(), expected);
        let read = Json::<JsonTexts>::parse(expected).unwrap();
        assert_eq!(read, column);
        assert_eq!(read.0.into_texts(), texts);
    }

    #[test]
    fn text_that_is_no_json_is_stored_as_a_text_and_space_around_it_does_not_matter() {
        let texts =
            BTreeMap::from([("a".to_owned(), "not json".to_owned()), ("b".to_owned(), " 5\n".to_owned())]);
        let column = Json(JsonTexts::new(texts));
        assert_eq!(column.to_text(), "{\"a\":\"not json\",\"b\":5}");
        assert_eq!(Json::parse(&column.to_text()).unwrap(), column);
    }

    #[test]
    fn text_that_is_no_such_value_is_refused() {
        assert_eq!(Json(vec![1, 2]).to_text(), "[1,2]");
        assert_eq!(Json::parse("[1,2]").unwrap(), Json(vec![1, 2]));
        assert!(Json::<Vec<u32>>::parse("{}").is_err());
    }
}
