//! Errors for batches that cannot be read.

use std::path::Path;

use servo_engine::event::{DecodeError, decode_batch};

fn read(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/v1").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn a_first_event_without_a_tenant_is_refused_by_name() {
    let error = decode_batch(&read("no_tenant.json")).expect_err("there is nothing to inherit");
    assert!(matches!(error, DecodeError::Missing { index: 0, field: "tenant_id" }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "event 0 lacks `tenant_id` and there is no event before it to take it from"
    );
}

#[test]
fn a_payload_that_does_not_fit_is_refused_with_index_type_and_id() {
    let error = decode_batch(&read("bad_payload.json")).expect_err("attempt is not a number");
    let DecodeError::Payload { index, event_type, event_id, .. } = &error else { panic!("{error:?}") };
    assert_eq!((*index, event_type.as_str()), (1, "TaskStarted"));
    assert_eq!(event_id.to_string(), "01JHKM51420000000000000001");
    let text = error.to_string();
    assert!(
        text.starts_with("event 1 (TaskStarted 01JHKM51420000000000000001) has a payload that does not fit"),
        "{text}"
    );
    assert!(text.contains("invalid type: string \"one\", expected u32"), "{text}");
}

#[test]
fn a_plan_that_the_fold_could_not_follow_is_refused_when_it_is_read() {
    let edge = decode_batch(&read("bad_plan_edge.json")).expect_err("an edge to nowhere");
    assert!(edge.to_string().contains("task t/b:materialize waits for position 7 of 2"), "{edge}");
    let order = decode_batch(&read("bad_plan_order.json")).expect_err("not sorted");
    let text = order.to_string();
    assert!(text.contains("task t/a:materialize is not in order after t/b:materialize"), "{text}");
}

#[test]
fn what_is_no_batch_at_all_is_refused_and_never_panics() {
    let whole = read("TaskFinished.json");
    for cut in 0..whole.len() - 2 {
        let error = decode_batch(&whole[..cut]).expect_err("half a batch");
        assert!(matches!(error, DecodeError::Batch(_)), "{error:?}");
    }
    for text in ["", "{}", "null", "[1]", "[{}]", "[[]]", "\u{feff}[]", "[{\"event_id\":\"x\"}]"] {
        assert!(matches!(decode_batch(text.as_bytes()), Err(DecodeError::Batch(_))), "{text}");
    }
    assert!(decode_batch(&[0xff, 0xfe]).is_err());
    assert!(decode_batch(b"[]").expect("an empty batch").is_empty());
}
