//! How each type of field is stored in a column, and read back.
//!
//! Ids, keys and states are text, so that any SQL engine can join and filter on them without knowing Servo.

use std::fmt::Write;
use std::sync::Arc;

use arrow_array::builder::{FixedSizeBinaryBuilder, StringBuilder};
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeBinaryArray, Int32Array, Int64Array, StringArray,
    TimestampMillisecondArray, UInt64Array,
};
use arrow_schema::{DataType, TimeUnit};
use serde::Serialize;
use serde::de::DeserializeOwned;
use servo_core::{
    AssetId, AssetKey, AttemptId, BackfillId, EvaluationId, EventId, Fingerprint, MaterializationId,
    MicroUsd, Millis, PartitionKey, PlanId, RuleId, RunId, ScheduleId, SensorId, TaskKey, Timestamp,
};
use servo_engine::rows::{Json, Name};
use servo_engine::{
    AttemptOutcome, AuditOutcome, AutomationStatus, BackfillState, Channel, ChunkState, DataFormat,
    DataStatus, FreshnessStatus, GatingDecision, NotificationStatus, NotificationTrigger, Origin,
    OutboxStatus, Principal, Resolution, RunState, RunTransitionReason, SensorKind, SensorStatus,
    SettingOrigin, TaskState, TickStatus, TimerState, TransitionReason, WorkerState,
};

/// A type that a column can hold.
pub(crate) trait Value: Sized + Clone {
    /// The column in memory.
    type Array: Array + 'static;

    /// The column's type.
    fn data_type() -> DataType;

    /// A column of these values; `None` becomes null.
    fn build<'a>(values: impl Iterator<Item = Option<&'a Self>>) -> ArrayRef
    where
        Self: 'a;

    /// The value at `row`, which is not null.
    fn read(array: &Self::Array, row: usize) -> Result<Self, String>;

    /// Whether comparing two texts costs less than parsing one.
    const IS_PARSED: bool = false;

    /// Whether the column holds the same at both rows. Asked only of what is parsed.
    fn is_same(_array: &Self::Array, _a: usize, _b: usize) -> bool {
        false
    }
}

/// A field of a row: a value, or one that may be absent.
pub(crate) trait Field: Sized {
    /// The type of its column.
    type Value: Value;

    /// The value, if there is one.
    fn as_value(&self) -> Option<&Self::Value>;

    /// The field from its column's value; `None` if it must not be absent.
    fn from_value(value: Option<Self::Value>) -> Option<Self>;
}

impl<T: Value> Field for T {
    type Value = T;

    fn as_value(&self) -> Option<&T> {
        Some(self)
    }

    fn from_value(value: Option<T>) -> Option<Self> {
        value
    }
}

impl<T: Value> Field for Option<T> {
    type Value = T;

    fn as_value(&self) -> Option<&T> {
        self.as_ref()
    }

    fn from_value(value: Option<T>) -> Option<Self> {
        Some(value)
    }
}

/// Values that print and parse: written without an allocation per value.
macro_rules! text_values {
    ($($type:ty),* $(,)?) => {$(
        impl Value for $type {
            type Array = StringArray;

            fn data_type() -> DataType {
                DataType::Utf8
            }

            fn build<'a>(values: impl Iterator<Item = Option<&'a Self>>) -> ArrayRef {
                let mut builder = StringBuilder::new();
                for value in values {
                    match value {
                        Some(value) => {
                            write!(builder, "{value}").expect("a column in memory takes any text");
                            builder.append_value("");
                        }
                        None => builder.append_null(),
                    }
                }
                Arc::new(builder.finish())
            }

            fn read(array: &StringArray, row: usize) -> Result<Self, String> {
                array.value(row).parse().map_err(|error| format!("{error}"))
            }

            const IS_PARSED: bool = true;

            fn is_same(array: &StringArray, a: usize, b: usize) -> bool {
                array.value(a) == array.value(b)
            }
        }
    )*};
}

text_values!(
    AssetId,
    Fingerprint,
    RunId,
    EventId,
    PlanId,
    AttemptId,
    MaterializationId,
    EvaluationId,
    RuleId,
    Principal,
    BackfillId,
    ScheduleId,
    SensorId,
    TaskKey,
);

macro_rules! named_values {
    ($($type:ty),* $(,)?) => {$(
        impl Value for $type {
            type Array = StringArray;

            fn data_type() -> DataType {
                DataType::Utf8
            }

            fn build<'a>(values: impl Iterator<Item = Option<&'a Self>>) -> ArrayRef {
                Arc::new(values.map(|value| value.map(|value| value.name())).collect::<StringArray>())
            }

            fn read(array: &StringArray, row: usize) -> Result<Self, String> {
                let name = array.value(row);
                <$type>::from_name(name).ok_or_else(|| format!("{name:?} is no {}", stringify!($type)))
            }
        }
    )*};
}

named_values!(
    RunState,
    SettingOrigin,
    RunTransitionReason,
    TaskState,
    TransitionReason,
    Resolution,
    TimerState,
    OutboxStatus,
    AttemptOutcome,
    DataStatus,
    FreshnessStatus,
    DataFormat,
    GatingDecision,
    AuditOutcome,
    AutomationStatus,
    Origin,
    SensorKind,
    SensorStatus,
    TickStatus,
    BackfillState,
    ChunkState,
    WorkerState,
    NotificationTrigger,
    NotificationStatus,
    Channel,
);

/// Keys that are shown in another form than they are stored in.
macro_rules! canonical_values {
    ($($type:ty, $parse:path;)*) => {$(
        impl Value for $type {
            type Array = StringArray;

            fn data_type() -> DataType {
                DataType::Utf8
            }

            fn build<'a>(values: impl Iterator<Item = Option<&'a Self>>) -> ArrayRef {
                Arc::new(values.map(|value| value.map(|value| value.canonical())).collect::<StringArray>())
            }

            fn read(array: &StringArray, row: usize) -> Result<Self, String> {
                $parse(array.value(row)).map_err(|error| error.to_string())
            }

            const IS_PARSED: bool = true;

            fn is_same(array: &StringArray, a: usize, b: usize) -> bool {
                array.value(a) == array.value(b)
            }
        }
    )*};
}

canonical_values! {
    AssetKey, AssetKey::parse_canonical;
    PartitionKey, PartitionKey::parse;
}

/// Values that serde knows the text of.
macro_rules! serde_values {
    ($($wrapper:ident),*) => {$(
        impl<T: Serialize + DeserializeOwned + Clone> Value for $wrapper<T> {
            type Array = StringArray;

            fn data_type() -> DataType {
                DataType::Utf8
            }

            fn build<'a>(values: impl Iterator<Item = Option<&'a Self>>) -> ArrayRef
            where
                T: 'a,
            {
                Arc::new(values.map(|value| value.map(|value| value.to_text())).collect::<StringArray>())
            }

            fn read(array: &StringArray, row: usize) -> Result<Self, String> {
                $wrapper::parse(array.value(row)).map_err(|error| error.to_string())
            }

            const IS_PARSED: bool = true;

            fn is_same(array: &StringArray, a: usize, b: usize) -> bool {
                array.value(a) == array.value(b)
            }
        }
    )*};
}

serde_values!(Json, Name);

impl Value for String {
    type Array = StringArray;

    fn data_type() -> DataType {
        DataType::Utf8
    }

    fn build<'a>(values: impl Iterator<Item = Option<&'a Self>>) -> ArrayRef {
        Arc::new(values.collect::<StringArray>())
    }

    fn read(array: &StringArray, row: usize) -> Result<Self, String> {
        Ok(array.value(row).to_owned())
    }
}

impl Value for Timestamp {
    type Array = TimestampMillisecondArray;

    fn data_type() -> DataType {
        DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))
    }

    fn build<'a>(values: impl Iterator<Item = Option<&'a Self>>) -> ArrayRef {
        let array: TimestampMillisecondArray = values.map(|value| value.map(|at| at.as_millis())).collect();
        Arc::new(array.with_timezone("UTC"))
    }

    fn read(array: &TimestampMillisecondArray, row: usize) -> Result<Self, String> {
        let millis = array.value(row);
        let at = Timestamp::from_millis(millis);
        if at.as_millis() == millis {
            Ok(at)
        } else {
            Err(format!("{millis} ms is outside the years 0000 to 9999"))
        }
    }
}

macro_rules! number_values {
    ($($type:ty, $array:ty, $data_type:expr, $write:expr, $read:expr;)*) => {$(
        impl Value for $type {
            type Array = $array;

            fn data_type() -> DataType {
                $data_type
            }

            fn build<'a>(values: impl Iterator<Item = Option<&'a Self>>) -> ArrayRef {
                Arc::new(values.map(|value| value.copied().map($write)).collect::<$array>())
            }

            fn read(array: &$array, row: usize) -> Result<Self, String> {
                $read(array.value(row))
            }
        }
    )*};
}

number_values! {
    bool, BooleanArray, DataType::Boolean, |value| value, Ok;
    i32, Int32Array, DataType::Int32, |value| value, Ok;
    u32, Int64Array, DataType::Int64, i64::from, |value: i64| {
        u32::try_from(value).map_err(|_| format!("{value} does not fit in 32 bits without a sign"))
    };
    u64, UInt64Array, DataType::UInt64, |value| value, Ok;
    // Amounts past nine trillion dollars turn negative for SQL and come back whole.
    MicroUsd, Int64Array, DataType::Int64, |value: MicroUsd| value.get().cast_signed(), |value: i64| {
        Ok::<_, String>(MicroUsd::new(value.cast_unsigned()))
    };
    // Lengths past 292 million years turn negative for SQL and come back whole.
    Millis, Int64Array, DataType::Int64, |value: Millis| value.get().cast_signed(), |value: i64| {
        Ok::<_, String>(Millis::new(value.cast_unsigned()))
    };
}

impl Value for u128 {
    type Array = FixedSizeBinaryArray;

    fn data_type() -> DataType {
        DataType::FixedSizeBinary(16)
    }

    fn build<'a>(values: impl Iterator<Item = Option<&'a Self>>) -> ArrayRef {
        let mut builder = FixedSizeBinaryBuilder::new(16);
        for value in values {
            match value {
                Some(value) => builder.append_value(value.to_be_bytes()).expect("16 bytes were promised"),
                None => builder.append_null(),
            }
        }
        Arc::new(builder.finish())
    }

    fn read(array: &FixedSizeBinaryArray, row: usize) -> Result<Self, String> {
        let bytes = array.value(row);
        bytes
            .try_into()
            .map(u128::from_be_bytes)
            .map_err(|_| format!("has {} bytes, expected 16", bytes.len()))
    }
}

impl Value for [u8; 32] {
    type Array = FixedSizeBinaryArray;

    fn data_type() -> DataType {
        DataType::FixedSizeBinary(32)
    }

    fn build<'a>(values: impl Iterator<Item = Option<&'a Self>>) -> ArrayRef {
        let mut builder = FixedSizeBinaryBuilder::new(32);
        for value in values {
            match value {
                Some(value) => builder.append_value(value).expect("32 bytes were promised"),
                None => builder.append_null(),
            }
        }
        Arc::new(builder.finish())
    }

    fn read(array: &FixedSizeBinaryArray, row: usize) -> Result<Self, String> {
        let bytes = array.value(row);
        bytes.try_into().map_err(|_| format!("has {} bytes, expected 32", bytes.len()))
    }
}
