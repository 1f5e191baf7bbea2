//! Parser of server-sent events.

/// One message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SseEvent {
    pub(super) event: String,
    pub(super) data: String,
    /// Id to resume after, if it has one.
    pub(super) id: Option<String>,
}

/// Parses events from bytes as they arrive.
#[derive(Debug, Default)]
pub(super) struct SseParser {
    waiting: Vec<u8>,
    building: SseEvent,
}

impl SseParser {
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<SseEvent> {
        self.waiting.extend_from_slice(bytes);
        let mut complete = Vec::new();
        let mut from = 0;
        while let Some(length) = self.waiting[from..].iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&self.waiting[from..from + length]).into_owned();
            from += length + 1;
            complete.extend(self.line(line.strip_suffix('\r').unwrap_or(&line)));
        }
        self.waiting.drain(..from);
        complete
    }

    fn line(&mut self, line: &str) -> Option<SseEvent> {
        if line.is_empty() {
            let message = std::mem::take(&mut self.building);
            return (!message.data.is_empty()).then_some(message);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.building.event),
            "id" => self.building.id = Some(value.to_owned()),
            "data" => {
                if !self.building.data.is_empty() {
                    self.building.data.push('\n');
                }
                self.building.data.push_str(value);
            }
            // Comments, and how long to wait before coming back, which is up to us.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_wherever_the_bytes_break() {
        let text = "retry: 1000\n\n: still here\n\nevent: run\nid: 7\ndata: {\"é\":1}\n\nevent: task\r\ndata: a\r\ndata:b\r\n\r\n\
                    data: only data\n\nevent: half";
        let message = |event: &str, data: &str, id: Option<&str>| SseEvent {
            event: event.to_owned(),
            data: data.to_owned(),
            id: id.map(str::to_owned),
        };
        let expected = [
            message("run", "{\"é\":1}", Some("7")),
            message("task", "a\nb", None),
            message("", "only data", None),
        ];
        for size in 1..=text.len() {
            let mut messages = SseParser::default();
            let read: Vec<SseEvent> =
                text.as_bytes().chunks(size).flat_map(|bytes| messages.push(bytes)).collect();
            assert_eq!(read, expected, "in pieces of {size}");
        }
    }
}
