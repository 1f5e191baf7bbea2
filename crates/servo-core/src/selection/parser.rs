//! Builds the tree of a selection from its tokens. The grammar stands in the documentation of the module.

use std::num::NonZeroU32;

use super::ast::{Attribute, Depth, Expr, NamePattern};
use super::error::SyntaxError;
use super::lexer::{Kind, Token, tokens};
use super::pattern::Pattern;
use super::suggest;

/// The longest selection, in characters; its canonical text may not be longer either.
pub const MAX_CHARS: usize = 10_000;

/// How deep parentheses and `not` may be nested.
pub const MAX_NESTING: usize = 100;

const OPERAND: &str = "a name such as raw.flights, an attribute such as tag:team, \"not\" or \"(\"";
const ATTRIBUTES: [&str; 4] = ["tag", "group", "owner", "kind"];

pub(super) fn parse(text: &str) -> Result<Expr, SyntaxError> {
    let too_long = |chars: usize, form: &str| SyntaxError {
        text: text.to_owned(),
        at: MAX_CHARS.min(text.chars().count()),
        len: 0,
        problem: format!("it has {chars} characters{form}, at most {MAX_CHARS} are allowed"),
    };
    let chars = text.chars().count();
    if chars > MAX_CHARS {
        return Err(too_long(chars, ""));
    }
    let mut parser = Parser { text, tokens: tokens(text)?, next: 0, nesting: 0 };
    let expr = parser.or()?;
    if parser.peek().kind != Kind::End {
        return Err(parser.refuse_after_operand("the end"));
    }
    // Otherwise the canonical text of a long list of "a,b" could not be read back.
    let canonical = expr.to_string().chars().count();
    if canonical > MAX_CHARS {
        return Err(too_long(canonical, " when written with \"and\", \"or\" and \"not\""));
    }
    Ok(expr)
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<Token<'t>>,
    next: usize,
    nesting: usize,
}

impl<'t> Parser<'t> {
    fn or(&mut self) -> Result<Expr, SyntaxError> {
        let mut parts = vec![self.and()?];
        while matches!(self.peek().kind, Kind::Comma | Kind::Bar) || self.at_word("or") {
            self.take();
            parts.push(self.and()?);
        }
        Ok(Expr::or(parts))
    }

    fn and(&mut self) -> Result<Expr, SyntaxError> {
        let mut parts = vec![self.not()?];
        while self.peek().kind == Kind::Ampersand || self.at_word("and") {
            self.take();
            parts.push(self.not()?);
        }
        Ok(Expr::and(parts))
    }

    fn not(&mut self) -> Result<Expr, SyntaxError> {
        if self.peek().kind != Kind::Bang && !self.at_word("not") {
            return self.reach();
        }
        let part = self.nested(Self::not)?;
        Ok(Expr::Not(Box::new(part)))
    }

    fn reach(&mut self) -> Result<Expr, SyntaxError> {
        let upstream = self.upstream()?;
        let of = self.operand(upstream.is_some())?;
        let downstream = self.downstream()?;
        if upstream.is_none() && downstream.is_none() {
            return Ok(of);
        }
        Ok(Expr::Neighbours { upstream, downstream, of: Box::new(of) })
    }

    /// `+` or `2+`, which must touch what follows.
    fn upstream(&mut self) -> Result<Option<Depth>, SyntaxError> {
        let first = self.peek();
        let reach = if first.kind == Kind::Plus {
            Depth::All
        } else if is_number(&first) && self.touching(1, Kind::Plus) {
            self.take();
            self.steps(first)?
        } else {
            return Ok(None);
        };
        let plus = self.take();
        let next = self.peek();
        if next.kind != Kind::End && !plus.touches(&next) {
            let problem = "found a space after \"+\", expected what it belongs to right after it";
            return Err(self.refuse_at(plus.end, 1, problem.to_owned()));
        }
        Ok(Some(reach))
    }

    /// `+` or `+2`, which must touch what stands before.
    fn downstream(&mut self) -> Result<Option<Depth>, SyntaxError> {
        let plus = self.peek();
        if plus.kind != Kind::Plus || !self.previous().touches(&plus) {
            return Ok(None);
        }
        self.take();
        let next = self.peek();
        if next.kind != Kind::Word || !plus.touches(&next) {
            return Ok(Some(Depth::All));
        }
        if !is_number(&next) {
            let hint = "put a value that contains \"+\" in quotes";
            return Err(self.refuse(next, &format!("a number of steps, or a space after \"+\"; {hint}")));
        }
        self.take();
        self.steps(next).map(Some)
    }

    fn steps(&self, number: Token<'t>) -> Result<Depth, SyntaxError> {
        match number.text.parse::<u32>().map(NonZeroU32::new) {
            Ok(Some(steps)) => Ok(Depth::Steps(steps)),
            Ok(None) => Err(self.refuse(number, "at least 1 step; leave \"0+\" out")),
            Err(_) => Err(self.refuse(number, &format!("at most {} steps", u32::MAX))),
        }
    }

    fn operand(&mut self, after_plus: bool) -> Result<Expr, SyntaxError> {
        let token = self.peek();
        let expected = if after_plus { "a name, an attribute or \"(\" after \"+\"" } else { OPERAND };
        match token.kind {
            Kind::Open => self.parentheses(),
            Kind::Word if self.touching(1, Kind::Colon) => self.attribute().map(Expr::Attribute),
            Kind::Word if is_keyword(&token) => Err(self.refuse(token, expected)),
            Kind::Word => {
                self.take();
                self.name(token).map(Expr::Name)
            }
            Kind::End if self.next == 0 => {
                Err(self.refuse(token, &format!("{OPERAND}; \"*\" selects every asset")))
            }
            Kind::Quoted => {
                Err(self.refuse(token, &format!("{expected}; only values of attributes are quoted")))
            }
            Kind::Plus
            | Kind::Colon
            | Kind::Equals
            | Kind::Comma
            | Kind::Ampersand
            | Kind::Bar
            | Kind::Bang
            | Kind::Close
            | Kind::End => Err(self.refuse(token, expected)),
        }
    }

    fn parentheses(&mut self) -> Result<Expr, SyntaxError> {
        let open = self.peek();
        let inner = self.nested(Self::or)?;
        if self.peek().kind != Kind::Close {
            return Err(self.refuse_after_operand(&format!("\")\" for the \"(\" at character {}", open.at)));
        }
        self.take();
        Ok(inner)
    }

    fn attribute(&mut self) -> Result<Attribute, SyntaxError> {
        let word = self.take();
        if !ATTRIBUTES.contains(&word.text) {
            let near = suggest::nearest_word(word.text, &ATTRIBUTES);
            let hint = near.map_or(String::new(), |near| format!("; did you mean {near}:?"));
            return Err(self.refuse(word, &format!("tag:, group:, owner: or kind:{hint}")));
        }
        self.take();
        let value = self.value(word.text)?;
        Ok(match word.text {
            "tag" if self.previous().touches(&self.peek()) && self.peek().kind == Kind::Equals => {
                self.take();
                Attribute::Tag(value, Some(self.value("value")?))
            }
            "tag" => Attribute::Tag(value, None),
            "group" => Attribute::Group(value),
            "owner" => Attribute::Owner(value),
            _ => Attribute::Kind(value),
        })
    }

    /// The value that must touch the `:` or `=` before it.
    fn value(&mut self, what: &str) -> Result<Pattern, SyntaxError> {
        let (before, token) = (self.previous(), self.peek());
        let expected = format!("the {what} right after \"{}\"", before.text);
        if token.kind != Kind::End && !before.touches(&token) {
            return Err(self.refuse_at(before.end, 1, format!("found a space, expected {expected}")));
        }
        if token.kind != Kind::Word && token.kind != Kind::Quoted {
            return Err(self.refuse(token, &expected));
        }
        self.take();
        Ok(if token.kind == Kind::Quoted {
            Pattern::quoted(&token.text[1..token.text.len() - 1])
        } else {
            Pattern::bare(token.text)
        })
    }

    fn name(&self, word: Token<'t>) -> Result<NamePattern, SyntaxError> {
        let Some((namespace, name)) = word.text.split_once(['.', '/']) else {
            self.check_segment(word, 0, word.text)?;
            let name = Pattern::bare(word.text);
            return Ok(NamePattern { namespace: name.is_everything().then(|| name.clone()), name });
        };
        self.check_segment(word, 0, namespace)?;
        self.check_segment(word, namespace.chars().count() + 1, name)?;
        Ok(NamePattern { namespace: Some(Pattern::bare(namespace)), name: Pattern::bare(name) })
    }

    /// Refuses a segment that no namespace and no name can match; `start` counts characters of the word.
    fn check_segment(&self, word: Token<'t>, start: usize, segment: &str) -> Result<(), SyntaxError> {
        let is_first = |char: char| char.is_ascii_alphabetic() || matches!(char, '_' | '*' | '?');
        let is_inside = |char: char| is_first(char) || char.is_ascii_digit() || char == '-';
        let fault = match segment.chars().next() {
            Some(first) if is_first(first) => segment.chars().position(|char| !is_inside(char)),
            _ => Some(0),
        };
        let Some(fault) = fault else { return Ok(()) };
        let found = match word.text.chars().nth(start + fault) {
            Some(char) => format!("\"{char}\""),
            None => format!("the end of \"{}\"", word.text),
        };
        let expected = match fault {
            0 => "a letter, \"_\", \"*\" or \"?\": names look like raw.flights",
            _ => "a letter, a digit, \"_\", \"-\", \"*\" or \"?\": names look like raw.flights",
        };
        let len = usize::from(start + fault < word.end - word.at);
        Err(self.refuse_at(word.at + start + fault, len, format!("found {found}, expected {expected}")))
    }

    /// Takes the token that opens a level, and reads what is in it.
    fn nested(&mut self, read: fn(&mut Self) -> Result<Expr, SyntaxError>) -> Result<Expr, SyntaxError> {
        let token = self.take();
        if self.nesting == MAX_NESTING {
            let problem = format!(
                "found {}, expected at most {MAX_NESTING} levels of \"(\" and \"not\"",
                token.shown()
            );
            return Err(self.refuse_at(token.at, token.end - token.at, problem));
        }
        self.nesting += 1;
        let expr = read(self)?;
        self.nesting -= 1;
        Ok(expr)
    }

    /// An operand is complete, and what follows does not continue it.
    fn refuse_after_operand(&self, end: &str) -> SyntaxError {
        let token = self.peek();
        let hint = match token.kind {
            Kind::Plus => "; \"+\" touches what it belongs to",
            Kind::Word | Kind::Quoted | Kind::Open | Kind::Bang => {
                "; write \"or\" between two names to select both"
            }
            Kind::Close => "; it closes no \"(\"",
            Kind::Colon | Kind::Equals | Kind::Comma | Kind::Ampersand | Kind::Bar | Kind::End => "",
        };
        self.refuse(token, &format!("\"and\", \"or\", \",\" or {end}{hint}"))
    }

    fn refuse(&self, token: Token<'t>, expected: &str) -> SyntaxError {
        let problem = format!("found {}, expected {expected}", token.shown());
        self.refuse_at(token.at, token.end - token.at, problem)
    }

    fn refuse_at(&self, at: usize, len: usize, problem: String) -> SyntaxError {
        SyntaxError { text: self.text.to_owned(), at, len, problem }
    }

    fn peek(&self) -> Token<'t> {
        self.tokens[self.next]
    }

    /// The token taken last; only asked for after one was taken.
    fn previous(&self) -> Token<'t> {
        self.tokens[self.next - 1]
    }

    /// Takes a token; the end is never taken, so there is always one to look at.
    fn take(&mut self) -> Token<'t> {
        let token = self.peek();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn at_word(&self, keyword: &str) -> bool {
        let token = self.peek();
        token.kind == Kind::Word && token.text.eq_ignore_ascii_case(keyword) && !self.touching(1, Kind::Colon)
    }

    /// Whether the token `ahead` of the next one is of a kind and touches the one before it.
    fn touching(&self, ahead: usize, kind: Kind) -> bool {
        let index = self.next + ahead;
        self.tokens
            .get(index)
            .is_some_and(|token| token.kind == kind && self.tokens[index - 1].touches(token))
    }
}

fn is_number(token: &Token<'_>) -> bool {
    token.kind == Kind::Word && token.text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_keyword(token: &Token<'_>) -> bool {
    ["and", "or", "not"].iter().any(|keyword| token.text.eq_ignore_ascii_case(keyword))
}
