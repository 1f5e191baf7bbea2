//! Canonical JSON of Rust values: what serde hands over, not what a text says.

use std::collections::BTreeMap;

use serde::Serialize;
use servo_core::canonical::{Problem, to_canonical_string};

#[derive(Serialize)]
struct Plan {
    version: u32,
    assets: Vec<&'static str>,
    comment: Option<String>,
    by_size: BTreeMap<u32, bool>,
}

#[derive(Serialize)]
enum Shape {
    Point,
    Circle(i64),
    Line(i64, i64),
    Box { width: i64, height: i64 },
}

#[test]
fn fields_are_sorted_and_keys_are_text() {
    let plan = Plan {
        version: 1,
        assets: vec!["raw/flights"],
        comment: None,
        by_size: BTreeMap::from([(9, true), (10, false)]),
    };
    assert_eq!(
        to_canonical_string(&plan).unwrap(),
        r#"{"assets":["raw/flights"],"by_size":{"10":false,"9":true},"comment":null,"version":1}"#
    );
}

#[test]
fn enums_are_tagged_like_serde_json_does() {
    let shapes = [Shape::Point, Shape::Circle(1), Shape::Line(2, 3), Shape::Box { width: 4, height: 5 }];
    assert_eq!(
        to_canonical_string(&shapes).unwrap(),
        r#"["Point",{"Circle":1},{"Line":[2,3]},{"Box":{"height":5,"width":4}}]"#
    );
}

#[test]
fn floats_are_refused_with_their_path() {
    let value = BTreeMap::from([("a", vec![BTreeMap::from([("b", 1.0_f64)])])]);
    let error = to_canonical_string(&value).unwrap_err();
    assert_eq!(error.path(), "$.a[0].b");
    assert_eq!(
        error.to_string(),
        "no canonical JSON: at $.a[0].b: 1.0 is a float, which canonical JSON refuses: \
         use integer milliseconds, micro-units or parts per million"
    );
    for float in [f64::NAN, f64::INFINITY, -0.0] {
        assert!(matches!(to_canonical_string(&float).unwrap_err().problem(), Problem::Float(_)));
    }
}

#[test]
fn the_path_goes_through_enum_variants() {
    #[derive(Serialize)]
    enum Outer {
        Tuple(i64, f32),
        Fields { inner: f32 },
    }
    assert_eq!(to_canonical_string(&Outer::Tuple(1, 0.5)).unwrap_err().path(), "$.Tuple[1]");
    assert_eq!(to_canonical_string(&Outer::Fields { inner: 0.5 }).unwrap_err().path(), "$.Fields.inner");
}

#[test]
fn wide_integers_are_accepted_only_within_64_bits() {
    assert_eq!(to_canonical_string(&i128::from(i64::MIN)).unwrap(), "-9223372036854775808");
    assert_eq!(to_canonical_string(&u128::from(u64::MAX)).unwrap(), "18446744073709551615");
    for error in [to_canonical_string(&(i128::from(i64::MIN) - 1)), to_canonical_string(&i128::MAX)] {
        assert!(matches!(error.unwrap_err().problem(), Problem::IntegerRange(_)));
    }
}

#[test]
fn values_nest_to_128_levels_and_no_further() {
    fn nested(levels: usize) -> serde_json::Value {
        (0..levels).fold(serde_json::Value::Null, |inner, _| serde_json::Value::Array(vec![inner]))
    }
    assert!(to_canonical_string(&nested(128)).is_ok());
    assert_eq!(to_canonical_string(&nested(129)).unwrap_err().problem(), &Problem::Depth);
}

#[test]
fn raw_json_text_is_canonicalized_in_its_place() {
    let raw: Box<serde_json::value::RawValue> = serde_json::from_str(r#"{ "z": 1, "a": "\u00e9" }"#).unwrap();
    let value = BTreeMap::from([("payload", &raw)]);
    assert_eq!(to_canonical_string(&value).unwrap(), r#"{"payload":{"a":"é","z":1}}"#);

    let raw: Box<serde_json::value::RawValue> = serde_json::from_str("[0, 1e3]").unwrap();
    let error = to_canonical_string(&BTreeMap::from([("payload", raw)])).unwrap_err();
    assert_eq!(error.path(), "$.payload[1]");
}

#[test]
fn keys_that_collide_as_text_are_refused() {
    struct Twice;
    impl Serialize for Twice {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map([("1", 1), ("0", 0), ("1", 2)])
        }
    }
    let error = to_canonical_string(&Twice).unwrap_err();
    assert_eq!(error.problem(), &Problem::DuplicateKey("1".to_owned()));
    assert!(matches!(
        to_canonical_string(&BTreeMap::from([((1, 2), 3)])).unwrap_err().problem(),
        Problem::Key("an array")
    ));
}
