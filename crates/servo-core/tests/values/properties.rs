//! Properties of the encodings, over generated values.

use std::collections::BTreeMap;

use jiff::civil::Date;
use proptest::prelude::*;
use serde_json::Value;
use servo_core::{
    AssetId, AssetKey, EventId, Millis, Operation, PartitionKey, PartitionValue, RunId, TaskKey, Timestamp,
    canonicalize_str, to_canonical_string,
};

fn partition_value() -> impl Strategy<Value = PartitionValue> {
    prop_oneof![
        any::<String>().prop_map(PartitionValue::Str),
        any::<i64>().prop_map(PartitionValue::Int),
        any::<bool>().prop_map(PartitionValue::Bool),
        (1i16..=9999, 1i8..=12, 1i8..=28)
            .prop_map(|(year, month, day)| PartitionValue::Date(Date::constant(year, month, day))),
        (-62_135_596_800_000_000i64..=253_402_300_799_999_999).prop_map(PartitionValue::Time),
        Just(PartitionValue::Null),
    ]
}

fn partition_key() -> impl Strategy<Value = PartitionKey> {
    prop::collection::btree_map("[a-z][a-z0-9_]{0,4}", partition_value(), 1..4)
        .prop_map(|dims: BTreeMap<_, _>| PartitionKey::new(&dims).unwrap())
}

/// Few letters, so that keys share prefixes and ordering has something to decide.
fn asset_key() -> impl Strategy<Value = AssetKey> {
    ("[ab_][ab_-]{0,2}", "[ab_][ab_-]{0,2}")
        .prop_map(|(namespace, name)| AssetKey::new(&namespace, &name).unwrap())
}

fn operation() -> impl Strategy<Value = Operation> {
    prop::sample::select(Operation::ALL.to_vec())
}

fn task_parts() -> impl Strategy<Value = (AssetKey, Option<PartitionKey>, Operation)> {
    (asset_key(), prop::option::of(partition_key()), operation())
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn partition_keys_read_back_from_their_canonical_text(key in partition_key()) {
        prop_assert_eq!(&PartitionKey::parse(key.canonical()).unwrap(), &key);
        prop_assert_eq!(&PartitionKey::new(&key.dims()).unwrap(), &key);
    }

    #[test]
    fn asset_keys_read_back_from_both_forms(key in asset_key()) {
        prop_assert_eq!(&AssetKey::parse(key.canonical()).unwrap(), &key);
        prop_assert_eq!(&AssetKey::parse(&key.to_string()).unwrap(), &key);
    }

    #[test]
    fn task_keys_read_back_and_give_up_their_parts((asset, partition, operation) in task_parts()) {
        let key = TaskKey::new(&asset, partition.as_ref(), operation);
        prop_assert_eq!(&TaskKey::parse(key.as_str()).unwrap(), &key);
        prop_assert_eq!(key.asset(), asset);
        prop_assert_eq!(key.partition(), partition);
        prop_assert_eq!(key.operation(), operation);
    }

    #[test]
    fn task_keys_order_like_asset_then_partition_then_operation(left in task_parts(), right in task_parts()) {
        let left_key = TaskKey::new(&left.0, left.1.as_ref(), left.2);
        let right_key = TaskKey::new(&right.0, right.1.as_ref(), right.2);
        prop_assert_eq!(left_key.cmp(&right_key), left.cmp(&right));
        prop_assert_eq!(left_key == right_key, left == right);
    }

    #[test]
    fn no_text_makes_a_parser_panic_and_what_parses_is_canonical(text in "\\PC{0,40}|[a-z0-9=:,._/\\[\\]TZ-]{0,40}") {
        if let Ok(key) = PartitionKey::parse(&text) {
            prop_assert_eq!(key.canonical(), &text);
        }
        if let Ok(key) = TaskKey::parse(&text) {
            prop_assert_eq!(key.as_str(), &text);
        }
        let _ = AssetKey::parse(&text);
        let _ = canonicalize_str(&text);
        let _ = text.parse::<Timestamp>();
        let _ = text.parse::<EventId>();
        let _ = text.parse::<RunId>();
        let _ = text.parse::<AssetId>();
    }

    #[test]
    fn a_changed_character_never_gives_the_same_partition_key(key in partition_key(), at: prop::sample::Index, to: char) {
        let mut characters: Vec<char> = key.canonical().chars().collect();
        let at = at.index(characters.len());
        prop_assume!(characters[at] != to);
        characters[at] = to;
        let changed: String = characters.into_iter().collect();
        if let Ok(other) = PartitionKey::parse(&changed) {
            prop_assert_ne!(other.dims(), key.dims());
        }
    }

    #[test]
    fn ids_read_back_from_their_text(value: u128) {
        let event = EventId::from_u128(value);
        prop_assert_eq!(event.to_string().parse::<EventId>().unwrap(), event);
        prop_assert_eq!(event.to_u128(), value);
        let run = RunId::from_u128(value);
        prop_assert_eq!(run.to_string().parse::<RunId>().unwrap(), run);
        let asset = AssetId::from_parts((value >> 80) as u64, value);
        prop_assert_eq!(asset.to_string().parse::<AssetId>().unwrap(), asset);
    }

    #[test]
    fn timestamps_read_back_and_order_like_their_text(left: i64, right in -62_167_219_200_000i64..=253_402_300_799_999) {
        let (left, right) = (Timestamp::from_millis(left), Timestamp::from_millis(right));
        prop_assert_eq!(left.to_string().parse::<Timestamp>().unwrap(), left);
        prop_assert_eq!(right.to_string().parse::<Timestamp>().unwrap(), right);
        prop_assert_eq!(left.cmp(&right), left.to_string().cmp(&right.to_string()));
        prop_assert_eq!(left.saturating_add(right.since(left)), left.max(right));
        prop_assert!(left.saturating_sub(Millis::new(1)) <= left);
    }

    #[test]
    fn canonicalizing_is_idempotent_and_keeps_the_value(value in json_value()) {
        let canonical = to_canonical_string(&value).unwrap();
        prop_assert_eq!(&canonicalize_str(&canonical).unwrap(), &canonical);
        prop_assert_eq!(&canonicalize_str(&serde_json::to_string_pretty(&value).unwrap()).unwrap(), &canonical);
        prop_assert_eq!(&serde_json::from_str::<Value>(&canonical).unwrap(), &value);
    }
}
