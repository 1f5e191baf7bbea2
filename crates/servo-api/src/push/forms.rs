//! The forms of messages: Pub/Sub, CloudEvents, notifications of S3 and SNS, plain JSON.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, header};
use data_encoding::{BASE64, BASE64URL_NOPAD, HEXLOWER};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::problem::{Code, Problem};

/// Headers in which senders name a message.
const ID_HEADERS: [&str; 4] = ["x-message-id", "x-github-delivery", "webhook-id", "idempotency-key"];

/// A message, as a sensor is given it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PushedMessage {
    /// The id that its sender gave it.
    pub(crate) id: String,
    /// The message, a JSON object.
    pub(crate) text: String,
}

/// Reads a message in whichever form it comes.
pub(crate) fn read(headers: &HeaderMap, body: &[u8]) -> Result<PushedMessage, Problem> {
    if let Some(id) = text_of(headers, "ce-id") {
        return binary_event(headers, id, body);
    }
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| Problem::new(Code::MalformedJson, format!("the message is not JSON: {error}")))?;
    let Value::Object(object) = value else {
        return Err(Problem::invalid(".", "a message is a JSON object"));
    };
    if object.contains_key("specversion") {
        structured_event(object)
    } else if let Some(Value::Object(message)) = object.get("message").filter(|_| is_pubsub(&object)) {
        pubsub(message, object.get("subscription"))
    } else if object.get("Type").is_some_and(|kind| kind == "Notification") {
        sns(&object)
    } else if let Some(Value::Array(records)) = object.get("Records").filter(|records| is_s3(records)) {
        s3(records, &object)
    } else {
        plain(headers, object)
    }
}

/// A CloudEvent whose attributes are headers.
fn binary_event(headers: &HeaderMap, id: &str, body: &[u8]) -> Result<PushedMessage, Problem> {
    let named = headers.iter().filter_map(|(name, value)| {
        let name = name.as_str().strip_prefix("ce-")?;
        Some((name.to_owned(), value.to_str().ok()?.to_owned()))
    });
    let attributes: BTreeMap<String, String> = named.collect();
    let is_json = text_of(headers, header::CONTENT_TYPE.as_str()).is_none_or(|kind| kind.contains("json"));
    let data = if body.is_empty() {
        Value::Null
    } else if is_json {
        serde_json::from_slice(body).map_err(|error| {
            Problem::new(Code::MalformedJson, format!("the event's data is not JSON: {error}"))
        })?
    } else {
        value_of(body)
    };
    let id = event_id(attributes.get("source").map(String::as_str), id);
    let published_at = attributes.get("time").cloned();
    message(id, data, attributes, published_at)
}

/// A CloudEvent that is one JSON object.
fn structured_event(mut object: Map<String, Value>) -> Result<PushedMessage, Problem> {
    let id = object.get("id").and_then(Value::as_str).filter(|id| !id.is_empty()).map(str::to_owned);
    let id = id.ok_or_else(|| without_id("a CloudEvent has it in its field id"))?;
    let data = match (object.remove("data"), object.remove("data_base64")) {
        (Some(data), _) => data,
        (None, Some(Value::String(text))) => value_of(&decoded(&text)?),
        (None, _) => Value::Null,
    };
    let attributes = texts(&object);
    let published_at = attributes.get("time").cloned();
    message(event_id(attributes.get("source").map(String::as_str), &id), data, attributes, published_at)
}

/// Ids of CloudEvents are those of their source.
fn event_id(source: Option<&str>, id: &str) -> String {
    source.map_or_else(|| id.to_owned(), |source| format!("{source}#{id}"))
}

fn is_pubsub(object: &Map<String, Value>) -> bool {
    let message = object.get("message").and_then(Value::as_object);
    message.is_some_and(|message| message.contains_key("messageId") || message.contains_key("message_id"))
}

/// A push of Pub/Sub; notifications of Cloud Storage come so too.
fn pubsub(wire: &Map<String, Value>, subscription: Option<&Value>) -> Result<PushedMessage, Problem> {
    let id = wire.get("messageId").or_else(|| wire.get("message_id")).map(id_text).unwrap_or_default();
    if id.is_empty() {
        return Err(without_id("Pub/Sub has it in message.messageId"));
    }
    let data = match wire.get("data") {
        Some(Value::String(text)) => value_of(&decoded(text)?),
        Some(_) => return Err(Problem::invalid("message.data", "is a text in base64")),
        None => Value::Null,
    };
    let mut attributes = wire.get("attributes").and_then(Value::as_object).map(texts).unwrap_or_default();
    if let Some(Value::String(subscription)) = subscription {
        attributes.insert("subscription".to_owned(), subscription.clone());
    }
    let published_at = wire.get("publishTime").or_else(|| wire.get("publish_time"));
    message(id, data, attributes, published_at.and_then(Value::as_str).map(str::to_owned))
}

/// A notification of SNS, which may carry one of S3.
fn sns(object: &Map<String, Value>) -> Result<PushedMessage, Problem> {
    let id = object.get("MessageId").and_then(Value::as_str).filter(|id| !id.is_empty());
    let id = id.ok_or_else(|| without_id("SNS has it in MessageId"))?;
    let said = object.get("Message").and_then(Value::as_str).unwrap_or_default();
    let data = value_of(said.as_bytes());
    let mut attributes = object_attributes(&data);
    if let Some(topic) = object.get("TopicArn").and_then(Value::as_str) {
        attributes.insert("topic".to_owned(), topic.to_owned());
    }
    let published_at = object.get("Timestamp").and_then(Value::as_str).map(str::to_owned);
    message(id.to_owned(), data, attributes, published_at)
}

fn is_s3(records: &Value) -> bool {
    let first = records.as_array().and_then(|records| records.first());
    first.is_some_and(|record| record.get("s3").is_some())
}

/// A notification of S3. It has no id; the object, its version and what happened to it make one.
fn s3(records: &[Value], object: &Map<String, Value>) -> Result<PushedMessage, Problem> {
    let mut hash = Sha256::new();
    for record in records {
        let fields =
            ["/s3/bucket/name", "/s3/object/key", "/s3/object/sequencer", "/eventName", "/eventTime"];
        for field in fields {
            hash.update(record.pointer(field).and_then(Value::as_str).unwrap_or_default());
            hash.update([0]);
        }
    }
    let id = format!("s3:{}", &HEXLOWER.encode(&hash.finalize())[..32]);
    let data = Value::Object(object.clone());
    let attributes = object_attributes(&data);
    let time = records.first().and_then(|record| record.get("eventTime")).and_then(Value::as_str);
    message(id, data, attributes, time.map(str::to_owned))
}

/// Bucket, key and event of the first object that a notification of S3 is about.
fn object_attributes(data: &Value) -> BTreeMap<String, String> {
    let fields = [
        ("bucket", "/Records/0/s3/bucket/name"),
        ("key", "/Records/0/s3/object/key"),
        ("event", "/Records/0/eventName"),
    ];
    let named = fields.into_iter().filter_map(|(name, at)| {
        let text = data.pointer(at)?.as_str()?;
        // Keys are written as in the query of an address.
        let text = if name == "key" { unquoted(text) } else { text.to_owned() };
        Some((name.to_owned(), text))
    });
    named.collect()
}

fn unquoted(text: &str) -> String {
    let read = url::form_urlencoded::parse(text.as_bytes()).next();
    read.map_or_else(
        || text.to_owned(),
        |(key, value)| match value.is_empty() {
            true => key.into_owned(),
            false => format!("{key}={value}"),
        },
    )
}

/// Any other object, with its id in a header, in `message_id` or in `id`.
fn plain(headers: &HeaderMap, mut object: Map<String, Value>) -> Result<PushedMessage, Problem> {
    let of_header = ID_HEADERS.iter().find_map(|name| text_of(headers, name)).map(str::to_owned);
    let of_field = object.get("message_id").map(id_text);
    let of_id = || object.get("id").map(id_text);
    let id = of_field.clone().or(of_header).or_else(of_id).filter(|id| !id.is_empty());
    let id =
        id.ok_or_else(|| without_id("give it in the field message_id or id, or in the header X-Message-Id"))?;
    let published_at = object.get("published_at").and_then(Value::as_str).map(str::to_owned);
    if of_field.is_some() && object.contains_key("data") {
        let attributes = object.get("attributes").and_then(Value::as_object).map(texts).unwrap_or_default();
        let data = object.remove("data").unwrap_or_default();
        return message(id, data, attributes, published_at);
    }
    let event = ["x-github-event", "x-event-type"].iter().find_map(|name| text_of(headers, name));
    let attributes = event.map(|event| ("event".to_owned(), event.to_owned())).into_iter().collect();
    message(id, Value::Object(object), attributes, published_at)
}

fn message(
    id: String,
    data: Value,
    attributes: BTreeMap<String, String>,
    published_at: Option<String>,
) -> Result<PushedMessage, Problem> {
    let text = json!({"id": id, "data": data, "attributes": attributes, "published_at": published_at});
    Ok(PushedMessage { id, text: text.to_string() })
}

fn without_id(place: &str) -> Problem {
    let detail = format!("the message has no id, so it cannot be known when it comes again; {place}");
    Problem::invalid("message_id", detail)
}

/// The text of an id. A whole number stands for its digits; others may be written in several ways.
fn id_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => String::new(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => String::new(),
    }
}

fn texts(object: &Map<String, Value>) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    };
    object.iter().map(|(name, value)| (name.clone(), text(value))).collect()
}

/// JSON if it is, else a text, else base64.
fn value_of(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|_| match std::str::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(_) => Value::from(BASE64.encode(bytes)),
    })
}

fn decoded(text: &str) -> Result<Vec<u8>, Problem> {
    let plain = BASE64.decode(text.as_bytes());
    let found = plain.or_else(|_| BASE64URL_NOPAD.decode(text.trim_end_matches('=').as_bytes()));
    found.map_err(|error| Problem::invalid("data", format!("is not base64: {error}")))
}

fn text_of<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(given: &[(&'static str, &str)]) -> HeaderMap {
        given.iter().map(|(name, value)| ((*name).parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn found(given: &[(&'static str, &str)], body: &str) -> (String, Value) {
        let message = read(&headers(given), body.as_bytes()).unwrap_or_else(|problem| panic!("{problem:?}"));
        (message.id, serde_json::from_str(&message.text).unwrap())
    }

    #[test]
    fn pubsub_pushes_are_decoded() {
        let data = BASE64.encode(br#"{"file":"a.csv"}"#);
        let body = json!({"message": {"data": data, "messageId": "136969346945", "publishTime": "2026-01-01T00:00:00Z",
            "attributes": {"bucketId": "inbox", "objectId": "a.csv", "eventType": "OBJECT_FINALIZE"}},
            "subscription": "projects/p/subscriptions/s"});
        let (id, message) = found(&[], &body.to_string());
        assert_eq!(id, "136969346945");
        assert_eq!(message["data"], json!({"file": "a.csv"}));
        assert_eq!(message["attributes"]["objectId"], "a.csv");
        assert_eq!(message["published_at"], "2026-01-01T00:00:00Z");
    }

    #[test]
    fn cloud_events_come_in_headers_or_in_one_object() {
        let binary = [
            ("ce-id", "7"),
            ("ce-source", "/shop"),
            ("ce-type", "sold"),
            ("content-type", "application/json"),
        ];
        let (id, message) = found(&binary, r#"{"sku":1}"#);
        assert_eq!((id.as_str(), &message["data"]), ("/shop#7", &json!({"sku": 1})));
        assert_eq!(message["attributes"]["type"], "sold");
        let structured = r#"{"specversion":"1.0","id":"7","source":"/shop","type":"sold","data":{"sku":1}}"#;
        let (id, same) = found(&[("content-type", "application/cloudevents+json")], structured);
        assert_eq!((id.as_str(), &same["data"]), ("/shop#7", &json!({"sku": 1})));
    }

    #[test]
    fn notifications_of_s3_are_named_by_what_happened() {
        let body = r#"{"Records":[{"eventName":"ObjectCreated:Put","eventTime":"2026-01-01T00:00:00Z",
            "s3":{"bucket":{"name":"inbox"},"object":{"key":"day+one/a.csv","sequencer":"0055"}}}]}"#;
        let (id, message) = found(&[], body);
        assert!(id.starts_with("s3:"), "{id}");
        assert_eq!(found(&[], body).0, id, "the same again");
        assert_ne!(found(&[], &body.replace("0055", "0056")).0, id);
        assert_eq!(message["attributes"]["key"], "day one/a.csv");
        let sns =
            json!({"Type": "Notification", "MessageId": "m-1", "Message": body, "TopicArn": "arn:topic"});
        let (id, message) = found(&[], &sns.to_string());
        assert_eq!((id.as_str(), &message["attributes"]["bucket"]), ("m-1", &json!("inbox")));
    }

    #[test]
    fn plain_json_needs_an_id_somewhere() {
        assert_eq!(found(&[], r#"{"message_id":"m","data":{"a":1}}"#).1["data"], json!({"a": 1}));
        let (id, message) = found(&[], r#"{"id":"evt_1","type":"charge"}"#);
        assert_eq!((id.as_str(), &message["data"]["type"]), ("evt_1", &json!("charge")));
        let github = [("x-github-delivery", "d-1"), ("x-github-event", "push")];
        let (id, message) = found(&github, r#"{"ref":"main"}"#);
        assert_eq!((id.as_str(), &message["attributes"]["event"]), ("d-1", &json!("push")));
        for body in [
            "{}",
            r#"{"id":null}"#,
            r#"{"id":{}}"#,
            r#"{"message_id":""}"#,
            r#"{"message_id":1.5}"#,
            "[1]",
            "3",
        ] {
            let problem = read(&HeaderMap::new(), body.as_bytes()).unwrap_err();
            assert_eq!(problem.code, Code::InvalidRequest, "{body}");
        }
        let problem = read(&HeaderMap::new(), b"{").unwrap_err();
        assert_eq!(problem.code, Code::MalformedJson);
        let bad = r#"{"message":{"messageId":"1","data":"%%%"}}"#;
        assert_eq!(read(&HeaderMap::new(), bad.as_bytes()).unwrap_err().code, Code::InvalidRequest);
    }
}
