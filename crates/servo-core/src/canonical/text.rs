//! Strings as canonical JSON writes them.

/// Appends `text` quoted. Escaped are only `"`, `\` and control characters below 0x20, as Python does without
/// `ensure_ascii`; everything else, 0x7f included, stands for itself.
pub(crate) fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut written = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0x00..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[written..at]);
        written = at + 1;
        if escape.is_empty() {
            out.push_str("\\u00");
            out.push(hex_digit(byte >> 4));
            out.push(hex_digit(byte & 15));
        } else {
            out.push_str(escape);
        }
    }
    out.push_str(&text[written..]);
    out.push('"');
}

fn hex_digit(value: u8) -> char {
    char::from(if value < 10 { b'0' + value } else { b'a' + value - 10 })
}
