//! Fields that are more than one value, or that serde knows the name of.

use std::ops::Deref;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde::de::value::{Error as NameError, StrDeserializer};

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
    fn text_that_is_no_such_value_is_refused() {
        assert_eq!(Json(vec![1, 2]).to_text(), "[1,2]");
        assert_eq!(Json::parse("[1,2]").unwrap(), Json(vec![1, 2]));
        assert!(Json::<Vec<u32>>::parse("{}").is_err());
    }
}
