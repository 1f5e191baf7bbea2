//! Log lines as JSON on stderr: one object with the fields of the event and of all spans around it.

use std::fmt;
use std::io::Write;

use serde_json::{Map, Value};
use servo_core::Clock;
use servo_runtime::SystemClock;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// Writes every event as a line of JSON.
pub(crate) struct JsonLines;

/// The fields of a span or an event.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for JsonLines {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        let mut line = Map::new();
        line.insert("timestamp".to_owned(), SystemClock.now().to_string().into());
        line.insert("level".to_owned(), metadata.level().as_str().into());
        line.insert("target".to_owned(), metadata.target().into());
        // What is said nearer to the event wins.
        for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
            if let Some(Fields(fields)) = span.extensions().get::<Fields>() {
                line.extend(fields.clone());
            }
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        line.extend(fields.0);
        // One write, so that lines of two threads do not mix. Nobody can be told that stderr is gone.
        let _gone = std::io::stderr().lock().write_all(format!("{}\n", Value::Object(line)).as_bytes());
    }
}
