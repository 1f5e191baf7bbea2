//! Lowercase RFC 4648 base32 without padding, for ids that end up in names of queues and files.

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Writes the first `out.len()` base32 digits of `bytes` (followed by zero bits) into `out`.
pub(crate) fn write_prefix<'a>(bytes: &[u8], out: &'a mut [u8]) -> &'a str {
    let byte = |at: usize| u16::from(bytes.get(at).copied().unwrap_or(0));
    for (digit, slot) in out.iter_mut().enumerate() {
        let bit = digit * 5;
        let window = byte(bit / 8) << 8 | byte(bit / 8 + 1);
        *slot = ALPHABET[usize::from(window >> (11 - bit % 8) & 31)];
    }
    std::str::from_utf8(out).expect("base32 digits are ASCII")
}

/// The value of one digit.
pub(crate) fn digit_value(digit: u8) -> Option<u8> {
    match digit {
        b'a'..=b'z' => Some(digit - b'a'),
        b'2'..=b'7' => Some(digit - b'2' + 26),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_match_the_test_vectors_of_rfc_4648() {
        for (bytes, text) in
            [("f", "my"), ("fo", "mzxq"), ("foo", "mzxw6"), ("foob", "mzxw6yq"), ("fooba", "mzxw6ytb")]
        {
            let mut out = vec![0; text.len()];
            assert_eq!(write_prefix(bytes.as_bytes(), &mut out), text);
        }
    }

    #[test]
    fn every_digit_reads_back_as_its_value() {
        for (value, digit) in ALPHABET.iter().enumerate() {
            assert_eq!(digit_value(*digit), Some(value as u8));
        }
        assert_eq!(digit_value(b'A'), None);
        assert_eq!(digit_value(b'1'), None);
    }
}
