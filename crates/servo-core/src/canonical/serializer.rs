//! A serde serializer that writes canonical JSON in one pass.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::ser::{self, Serialize};

use super::error::{Error, Problem};
use super::key::KeySerializer;
use super::object::Object;
use super::text::write_string;
use super::{MAX_DEPTH, reader};

/// The name under which `serde_json::value::RawValue` hands over a piece of JSON text.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// Writes one value.
pub(crate) struct Serializer<'o> {
    out: &'o mut String,
    depth: usize,
}

impl<'o> Serializer<'o> {
    pub(crate) fn new(out: &'o mut String) -> Self {
        Self { out, depth: 0 }
    }

    fn number(self, value: impl std::fmt::Display) -> Result<(), Error> {
        write!(self.out, "{value}").map_err(ser::Error::custom)
    }

    /// One level further in.
    fn enter(self) -> Result<Self, Error> {
        if self.depth == MAX_DEPTH {
            return Err(Error::new(Problem::Depth));
        }
        Ok(Self { out: self.out, depth: self.depth + 1 })
    }

    fn array(self) -> Result<Array<'o>, Error> {
        let Self { out, depth } = self.enter()?;
        out.push('[');
        Ok(Array { out, depth, len: 0, variant: None })
    }

    fn map(self) -> Result<Map<'o>, Error> {
        let Self { out, depth } = self.enter()?;
        let object = Object::open(out);
        Ok(Map { out, depth, object, key: None, variant: None })
    }

    /// Opens `{"variant":` for an enum variant that carries data.
    fn variant(self, variant: &'static str) -> Result<Self, Error> {
        let inner = self.enter()?;
        inner.out.push('{');
        write_string(inner.out, variant);
        inner.out.push(':');
        Ok(inner)
    }
}

/// An array being written; for a tuple variant it closes the variant's object too.
pub(crate) struct Array<'o> {
    out: &'o mut String,
    depth: usize,
    len: usize,
    variant: Option<&'static str>,
}

impl Array<'_> {
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let index = self.len;
        if index > 0 {
            self.out.push(',');
        }
        self.len += 1;
        let written = value.serialize(Serializer { out: self.out, depth: self.depth });
        written.map_err(|error| in_variant(self.variant, error.under_index(index)))
    }

    fn close(self) -> Result<(), Error> {
        self.out.push_str(if self.variant.is_some() { "]}" } else { "]" });
        Ok(())
    }
}

/// An object being written; for a struct variant it closes the variant's object too.
pub(crate) struct Map<'o> {
    out: &'o mut String,
    depth: usize,
    object: Object<'static>,
    /// The key whose value comes next, when keys and values arrive apart.
    key: Option<String>,
    variant: Option<&'static str>,
}

impl Map<'_> {
    fn member<T: Serialize + ?Sized>(&mut self, key: Cow<'static, str>, value: &T) -> Result<(), Error> {
        let depth = self.depth;
        let written = self.object.member(self.out, key, |out| value.serialize(Serializer { out, depth }));
        written.map_err(|error| in_variant(self.variant, error))
    }

    fn close(self) -> Result<(), Error> {
        self.object.close(self.out).map_err(|error| in_variant(self.variant, error))?;
        if self.variant.is_some() {
            self.out.push('}');
        }
        Ok(())
    }
}

fn in_variant(variant: Option<&'static str>, error: Error) -> Error {
    match variant {
        Some(variant) => error.under_key(variant),
        None => error,
    }
}

/// A struct, or a piece of JSON text that passes itself off as one.
pub(crate) enum Struct<'o> {
    Fields(Map<'o>),
    RawText(Serializer<'o>),
}

macro_rules! integers {
    ($($method:ident: $type:ty,)*) => {$(
        fn $method(self, value: $type) -> Result<(), Error> {
            self.number(value)
        }
    )*};
}

impl<'o> serde::Serializer for Serializer<'o> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Array<'o>;
    type SerializeTuple = Array<'o>;
    type SerializeTupleStruct = Array<'o>;
    type SerializeTupleVariant = Array<'o>;
    type SerializeMap = Map<'o>;
    type SerializeStruct = Struct<'o>;
    type SerializeStructVariant = Map<'o>;

    integers! {
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
    }

    fn serialize_i128(self, value: i128) -> Result<(), Error> {
        if value < i128::from(i64::MIN) || value > i128::from(u64::MAX) {
            return Err(Error::new(Problem::IntegerRange(value.to_string())));
        }
        self.number(value)
    }

    fn serialize_u128(self, value: u128) -> Result<(), Error> {
        if value > u128::from(u64::MAX) {
            return Err(Error::new(Problem::IntegerRange(value.to_string())));
        }
        self.number(value)
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        Err(Error::new(Problem::Float(format!("{value:?}"))))
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        write_string(self.out, value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.out.push_str("null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let Serializer { out, depth } = self.variant(variant)?;
        value.serialize(Serializer { out, depth }).map_err(|error| error.under_key(variant))?;
        out.push('}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Array<'o>, Error> {
        self.array()
    }

    fn serialize_tuple(self, _: usize) -> Result<Array<'o>, Error> {
        self.array()
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Array<'o>, Error> {
        self.array()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Array<'o>, Error> {
        Ok(Array { variant: Some(variant), ..self.variant(variant)?.array()? })
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Map<'o>, Error> {
        self.map()
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Struct<'o>, Error> {
        if name == RAW_VALUE { Ok(Struct::RawText(self)) } else { self.map().map(Struct::Fields) }
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Map<'o>, Error> {
        Ok(Map { variant: Some(variant), ..self.variant(variant)?.map()? })
    }
}

macro_rules! array_like {
    ($($trait:ident::$method:ident,)*) => {$(
        impl ser::$trait for Array<'_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.element(value)
            }

            fn end(self) -> Result<(), Error> {
                self.close()
            }
        }
    )*};
}

array_like! {
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field,
}

impl ser::SerializeMap for Map<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.key = Some(key.serialize(KeySerializer)?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let key = self.key.take().expect("serde gives a key before its value");
        self.member(Cow::Owned(key), value)
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}

impl ser::SerializeStruct for Struct<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Error> {
        match self {
            Struct::Fields(map) => map.member(Cow::Borrowed(key), value),
            Struct::RawText(serializer) => {
                let json_text = value.serialize(KeySerializer)?;
                reader::canonicalize(&json_text, serializer.depth, serializer.out)
            }
        }
    }

    fn end(self) -> Result<(), Error> {
        match self {
            Struct::Fields(map) => map.close(),
            Struct::RawText(_) => Ok(()),
        }
    }
}

impl ser::SerializeStructVariant for Map<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Error> {
        self.member(Cow::Borrowed(key), value)
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}
