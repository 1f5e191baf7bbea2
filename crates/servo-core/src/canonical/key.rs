//! Object keys: strings, or what has one obvious text.

use serde::ser::{Impossible, Serialize};

use super::error::{Error, Problem};

/// Serializes a map key into its text. Integers and booleans are written as in JSON, and then sort as text.
pub(crate) struct KeySerializer;

macro_rules! keys_by_display {
    ($($method:ident: $type:ty,)*) => {$(
        fn $method(self, value: $type) -> Result<String, Error> {
            Ok(value.to_string())
        }
    )*};
}

fn refuse<T>(what: &'static str) -> Result<T, Error> {
    Err(Error::new(Problem::Key(what)))
}

impl serde::Serializer for KeySerializer {
    type Ok = String;
    type Error = Error;
    type SerializeSeq = Impossible<String, Error>;
    type SerializeTuple = Impossible<String, Error>;
    type SerializeTupleStruct = Impossible<String, Error>;
    type SerializeTupleVariant = Impossible<String, Error>;
    type SerializeMap = Impossible<String, Error>;
    type SerializeStruct = Impossible<String, Error>;
    type SerializeStructVariant = Impossible<String, Error>;

    keys_by_display! {
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_char: char,
        serialize_str: &str,
    }

    fn serialize_f32(self, value: f32) -> Result<String, Error> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<String, Error> {
        Err(Error::new(Problem::Float(format!("{value:?}"))))
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<String, Error> {
        refuse("a byte string")
    }

    fn serialize_none(self) -> Result<String, Error> {
        refuse("null")
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<String, Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<String, Error> {
        refuse("null")
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<String, Error> {
        refuse("null")
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<String, Error> {
        Ok(variant.to_owned())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<String, Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<String, Error> {
        refuse("an object")
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, Error> {
        refuse("an array")
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Error> {
        refuse("an array")
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, Error> {
        refuse("an array")
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Error> {
        refuse("an object")
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Error> {
        refuse("an object")
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct, Error> {
        refuse("an object")
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Error> {
        refuse("an object")
    }
}
