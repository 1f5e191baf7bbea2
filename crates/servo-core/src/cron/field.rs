//! One field of a cron expression: a list of values, ranges and steps.
//!
//! An item of the list is `*`, a value, or a range `1-5`; with `/n` it is every n-th of those. A value with a step,
//! `5/15`, goes on to the end of the field. Months and weekdays have names. `?` is `*` for the day and the weekday, `L`
//! the last day of the month. Weekday 7 is Sunday, as 0 is, so that ranges may end with it.

use crate::parse_error::{Refused, unexpected};

/// The unit and the bounds of a cron field.
pub(super) struct Unit {
    pub(super) name: &'static str,
    min: u32,
    /// The greatest value that `*` includes.
    max: u32,
    /// Names of the values from `min` on.
    names: &'static [&'static str],
    /// Description of the allowed values, for messages.
    allowed: &'static str,
}

pub(super) const SECOND: Unit =
    Unit { name: "second", min: 0, max: 59, names: &[], allowed: "0 to 59 or \"*\"" };
pub(super) const MINUTE: Unit =
    Unit { name: "minute", min: 0, max: 59, names: &[], allowed: "0 to 59 or \"*\"" };
pub(super) const HOUR: Unit = Unit { name: "hour", min: 0, max: 23, names: &[], allowed: "0 to 23 or \"*\"" };
pub(super) const DAY: Unit =
    Unit { name: "day", min: 1, max: 31, names: &[], allowed: "1 to 31, \"L\", \"*\" or \"?\"" };
pub(super) const MONTH: Unit = Unit {
    name: "month",
    min: 1,
    max: 12,
    names: &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
    allowed: "1 to 12, JAN to DEC or \"*\"",
};
pub(super) const WEEKDAY: Unit = Unit {
    name: "weekday",
    min: 0,
    max: 6,
    names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
    allowed: "0 to 7, SUN to SAT, \"*\" or \"?\"",
};

/// The values of a field.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Field {
    /// Bit n is set if n is one of the values; Sunday is bit 0.
    pub(super) values: u64,
    /// Whether the field begins with `*` or `?`, with or without a step.
    pub(super) begins_with_star: bool,
    /// Whether an item is `*` or `?`, with or without a step.
    pub(super) star: bool,
    /// Whether the last day of the month is one of the values.
    pub(super) last: bool,
}

impl Unit {
    fn is(&self, other: &Self) -> bool {
        self.name == other.name
    }

    /// The greatest number that may be written.
    fn greatest(&self) -> u32 {
        if self.is(&WEEKDAY) { 7 } else { self.max }
    }

    /// Reads the field that is `start` to `end` of `text`.
    pub(super) fn read(&self, text: &str, start: usize, end: usize) -> Result<Field, Refused> {
        let mut reader = Reader { unit: self, text, at: start, end };
        let begins_with_star = matches!(reader.peek(), Some(b'*' | b'?'));
        let mut field = Field { begins_with_star, ..Field::default() };
        loop {
            let expected = reader.item(&mut field)?;
            if reader.at == end {
                break;
            }
            if !reader.take(b',') {
                return Err((reader.at, unexpected(text, reader.at, expected)));
            }
        }
        if self.is(&WEEKDAY) {
            field.values = field.values & 0x7f | field.values >> 7;
        }
        Ok(field)
    }
}

/// Reads one field.
struct Reader<'a> {
    unit: &'a Unit,
    text: &'a str,
    at: usize,
    end: usize,
}

impl Reader<'_> {
    /// Adds an item to the field; what may follow it.
    fn item(&mut self, field: &mut Field) -> Result<&'static str, Refused> {
        const END: &str = "\",\" or the end of the field";
        let (start, unit) = (self.at, self.unit);
        if self.take(b'L') || self.take(b'l') {
            if !unit.is(&DAY) {
                let problem = format!("L, the last day of the month, is a day and not a {}", unit.name);
                return Err((start, problem));
            }
            field.last = true;
            return Ok(END);
        }
        let star = self.star()?;
        let (first, mut last) = if star { (unit.min, unit.max) } else { self.range()? };
        let single = !star && !self.text[start..self.at].contains('-');
        field.star |= star;
        let mut step = 1;
        let mut expected = if single {
            "\"-\", \"/\", \",\" or the end of the field"
        } else {
            "\"/\", \",\" or the end of the field"
        };
        if self.take(b'/') {
            step = self.step()?;
            last = if single { unit.max.max(first) } else { last };
            expected = END;
        }
        for value in (first..=last).step_by(step) {
            field.values |= 1 << value;
        }
        Ok(expected)
    }

    /// Takes `*`, or `?` where it means the same.
    fn star(&mut self) -> Result<bool, Refused> {
        if self.peek() == Some(b'?') && !self.unit.is(&DAY) && !self.unit.is(&WEEKDAY) {
            return Err((
                self.at,
                format!("\"?\" is for the day or the weekday; any {} is \"*\"", self.unit.name),
            ));
        }
        Ok(self.take(b'*') || self.take(b'?'))
    }

    /// A value, or two with a dash between them.
    fn range(&mut self) -> Result<(u32, u32), Refused> {
        let start = self.at;
        let first = self.value()?;
        if !self.take(b'-') {
            return Ok((first, first));
        }
        let mut last = self.value()?;
        // A week may be said to end with Sunday, by any of its numbers and its name.
        if self.unit.is(&WEEKDAY) && last == 0 && first > 0 {
            last = 7;
        }
        if first > last {
            let (name, max, min) = (self.unit.name, self.unit.max, self.unit.min);
            let instead = format!("write {first}-{max},{min}-{last}");
            return Err((start, format!("the {name}s {first}-{last} run backwards; {instead}")));
        }
        Ok((first, last))
    }

    fn value(&mut self) -> Result<u32, Refused> {
        let (start, unit) = (self.at, self.unit);
        match self.peek() {
            Some(b'0'..=b'9') => {
                let value = self.number();
                if (unit.min..=unit.greatest()).contains(&value) {
                    return Ok(value);
                }
                let (name, min, max) = (unit.name, unit.min, unit.greatest());
                Err((start, format!("{name} {value} is not between {min} and {max}")))
            }
            Some(byte) if byte.is_ascii_alphabetic() && !unit.names.is_empty() => {
                let length = self.text[start..self.end].bytes().take_while(u8::is_ascii_alphabetic).count();
                self.at += length;
                let name = &self.text[start..self.at];
                let position = unit.names.iter().position(|known| known.eq_ignore_ascii_case(name));
                let problem = || (start, format!("{name} is not a {}, expected {}", unit.name, unit.allowed));
                position.map(|position| unit.min + position as u32).ok_or_else(problem)
            }
            Some(_) | None => {
                let expected = format!("the {}, {}", unit.name, unit.allowed);
                Err((start, unexpected(self.text, start, &expected)))
            }
        }
    }

    /// The number after a slash.
    fn step(&mut self) -> Result<usize, Refused> {
        let start = self.at;
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err((start, unexpected(self.text, start, "a number after \"/\", as in */5")));
        }
        let (step, most) = (self.number(), self.unit.max - self.unit.min + 1);
        if (1..=most).contains(&step) {
            return Ok(step as usize);
        }
        Err((
            start,
            format!("a step of {step} is not between 1 and {most}, the number of {}s", self.unit.name),
        ))
    }

    fn number(&mut self) -> u32 {
        let mut value: u32 = 0;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            value = value.saturating_mul(10).saturating_add(u32::from(digit - b'0'));
            self.at += 1;
        }
        value
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes()[..self.end].get(self.at).copied()
    }

    fn take(&mut self, wanted: u8) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }
}
