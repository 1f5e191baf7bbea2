//! One batch as one line of text: `{"crc":"9ae0daaf","seq":7,"epoch":1,"put_id":"…","events":[…]}`.
//!
//! The checksum covers every byte between the comma after it and the closing brace, so that a line is valid
//! JSON for people and tools, and is verified without parsing or serializing anything.

use bytes::Bytes;
use servo_core::PutId;

use crate::{Damage, Record, Seq};

const OPENING: &[u8] = br#"{"crc":""#;
const CRC_DIGITS: usize = 8;
const BODY_AT: usize = OPENING.len() + CRC_DIGITS + 2;

/// A verified line, still in the buffer it was read into.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    pub(crate) seq: Seq,
    pub(crate) epoch: u64,
    put_id: &'a str,
    pub(crate) payload: &'a [u8],
}

impl Line<'_> {
    /// Copies it out of the buffer.
    pub(crate) fn to_record(self) -> Result<Record, Damage> {
        let put_id: PutId =
            self.put_id.parse().map_err(|_| Damage::Malformed { reason: "the put id is not a ULID" })?;
        Ok(Record { seq: self.seq, epoch: self.epoch, put_id, payload: Bytes::copy_from_slice(self.payload) })
    }
}

/// The line for a record, with its line break.
pub(crate) fn encode(record: &Record) -> Vec<u8> {
    let mut line = Vec::with_capacity(record.payload.len() + 128);
    line.extend_from_slice(OPENING);
    line.extend_from_slice(b"00000000\",");
    line.extend_from_slice(
        format!(r#""seq":{},"epoch":{},"put_id":"{}","events":"#, record.seq, record.epoch, record.put_id)
            .as_bytes(),
    );
    line.extend_from_slice(&record.payload);
    let crc = crc32fast::hash(&line[BODY_AT..]);
    line[OPENING.len()..OPENING.len() + CRC_DIGITS].copy_from_slice(format!("{crc:08x}").as_bytes());
    line.extend_from_slice(b"}\n");
    line
}

/// Why a payload cannot be stored, if it cannot.
pub(crate) fn refuse_payload(payload: &[u8]) -> Option<&'static str> {
    if !payload.starts_with(b"[") || !payload.ends_with(b"]") {
        Some("the payload must be one JSON array")
    } else if find_newline(payload).is_some() {
        Some("the payload must not contain a line break")
    } else {
        None
    }
}

/// Position of the first line break. (`skip_until` is the standard library's fast byte search.)
pub(crate) fn find_newline(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    let skipped = std::io::BufRead::skip_until(&mut rest, b'\n').unwrap_or(0);
    (skipped > 0 && bytes[skipped - 1] == b'\n').then(|| skipped - 1)
}

/// Verifies one line, given without its line break.
pub(crate) fn parse(bytes: &[u8]) -> Result<Line<'_>, Damage> {
    let malformed = |reason| Damage::Malformed { reason };
    let expected = bytes
        .strip_prefix(OPENING)
        .and_then(|rest| rest.get(..CRC_DIGITS))
        .and_then(parse_crc)
        .ok_or(malformed("it does not begin with a checksum"))?;
    if bytes.get(BODY_AT - 2..BODY_AT) != Some(b"\",") || bytes.len() <= BODY_AT || !bytes.ends_with(b"}") {
        return Err(malformed("it is not one JSON object"));
    }
    let body = &bytes[BODY_AT..bytes.len() - 1];
    let actual = crc32fast::hash(body);
    if actual != expected {
        return Err(Damage::Checksum { expected, actual });
    }
    let (seq, rest) = number(body, b"\"seq\":").ok_or(malformed("it has no seq"))?;
    let (epoch, rest) = number(rest, b",\"epoch\":").ok_or(malformed("it has no epoch"))?;
    let rest = rest.strip_prefix(b",\"put_id\":\"").ok_or(malformed("it has no put id"))?;
    let quote =
        rest.iter().take(64).position(|byte| *byte == b'"').ok_or(malformed("its put id does not end"))?;
    let put_id = std::str::from_utf8(&rest[..quote]).map_err(|_| malformed("its put id is not text"))?;
    let payload = rest[quote..].strip_prefix(b"\",\"events\":").ok_or(malformed("it has no events"))?;
    Ok(Line { seq, epoch, put_id, payload })
}

/// True if a whole line hides inside this bad one: then a line break was damaged, and lines that were
/// acknowledged would be lost by treating it as a torn tail.
pub(crate) fn hides_a_whole_line(bytes: &[u8]) -> bool {
    let mut at = 1;
    while at < bytes.len() {
        let Some(step) = bytes[at..].windows(OPENING.len()).position(|window| window == OPENING) else {
            return false;
        };
        at += step;
        if parse(&bytes[at..]).is_ok() || parse(&bytes[..at - 1]).is_ok() {
            return true;
        }
        at += OPENING.len();
    }
    false
}

/// Exactly eight lowercase hex digits: there is one way to write a line.
fn parse_crc(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0_u32, |crc, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(crc << 4 | u32::from(value))
    })
}

fn number<'a>(bytes: &'a [u8], label: &[u8]) -> Option<(u64, &'a [u8])> {
    let bytes = bytes.strip_prefix(label)?;
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    // As with the checksum, there is one way to write a number.
    if digits > 1 && bytes[0] == b'0' {
        return None;
    }
    let value = std::str::from_utf8(&bytes[..digits]).ok()?.parse().ok()?;
    Some((value, &bytes[digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(seq: Seq, payload: &str) -> Record {
        Record {
            seq,
            epoch: 3,
            put_id: PutId::from_parts(1, 2),
            payload: Bytes::copy_from_slice(payload.as_bytes()),
        }
    }

    #[test]
    fn a_line_is_valid_json() {
        let line = encode(&record(7, r#"[{"a":"ü"}]"#));
        let value: serde_json::Value = serde_json::from_slice(&line).expect("valid JSON");
        assert_eq!(value["seq"], 7);
        assert_eq!(value["events"][0]["a"], "ü");
        assert_eq!(value["crc"].as_str().map(str::len), Some(8));
    }

    #[test]
    fn an_upper_case_checksum_is_refused() {
        let mut line = encode(&record(1, "[1]"));
        line[8..16].make_ascii_uppercase();
        line[8] = b'A';
        line.pop();
        assert!(matches!(parse(&line), Err(Damage::Malformed { .. })));
    }

    #[test]
    fn a_number_with_leading_zeros_is_refused() {
        let body = br#""seq":007,"epoch":1,"put_id":"00000000010000000000000002","events":[]"#;
        let line = [OPENING, format!("{:08x}\",", crc32fast::hash(body)).as_bytes(), body, b"}"].concat();
        assert_eq!(parse(&line).err(), Some(Damage::Malformed { reason: "it has no seq" }));
    }

    #[test]
    fn a_line_hidden_behind_a_damaged_line_break_is_noticed() {
        let mut both = encode(&record(1, "[1]"));
        let first = both.len();
        both.extend(encode(&record(2, "[2]")));
        both[first - 1] = b' ';
        assert!(hides_a_whole_line(&both[..both.len() - 1]), "the later line is whole");
        assert!(hides_a_whole_line(&both[..both.len() - 4]), "the earlier line is whole");
        assert!(!hides_a_whole_line(&both[..first - 3]), "one torn line hides nothing");
    }

    proptest! {
        #[test]
        fn every_record_survives_its_line(seq: u64, epoch: u64, ms in 0u64..1 << 48, entropy in 0u128..1 << 80, text in "[^\n]*") {
            let payload = format!("[{}]", serde_json::to_string(&text).expect("strings are JSON"));
            let record = Record { seq, epoch, put_id: PutId::from_parts(ms, entropy), payload: payload.into() };
            let line = encode(&record);
            prop_assert_eq!(find_newline(&line), Some(line.len() - 1));
            let parsed = parse(&line[..line.len() - 1]).and_then(Line::to_record);
            prop_assert_eq!(parsed, Ok(record));
        }

        #[test]
        fn any_changed_byte_is_noticed(at in 0usize..90, change in 1u8..=255) {
            let mut line = encode(&record(12, r#"[{"x":1},{"y":2}]"#));
            line.pop();
            let at = at % line.len();
            line[at] ^= change;
            prop_assert!(parse(&line).is_err());
        }

        #[test]
        fn garbage_never_panics(bytes: Vec<u8>) {
            let _ = parse(&bytes);
            let _ = hides_a_whole_line(&bytes);
        }
    }
}
