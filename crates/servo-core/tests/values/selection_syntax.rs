//! How selections are read: what is valid, how operators bind, and what is said about the rest.

use servo_core::ParseError;
use servo_core::selection::{MAX_CHARS, MAX_NESTING, Selection};

fn canonical(text: &str) -> String {
    Selection::parse(text).unwrap_or_else(|error| panic!("{text}: {}", error.caret())).to_string()
}

#[test]
fn valid_texts_have_one_canonical_text() {
    for (text, expected) in [
        ("analytics.delays", "analytics.delays"),
        ("analytics/delays", "analytics.delays"),
        ("  analytics.delays\t", "analytics.delays"),
        ("delays", "delays"),
        ("*", "*"),
        ("*.*", "*"),
        ("**", "*"),
        ("*/*", "*"),
        ("analytics.*", "analytics.*"),
        ("raw.fl?ghts", "raw.fl?ghts"),
        ("*.delays-2", "*.delays-2"),
        ("_a._b", "_a._b"),
        ("+raw.a", "+raw.a"),
        ("raw.a+", "raw.a+"),
        ("+raw.a+", "+raw.a+"),
        ("2+raw.a+1", "2+raw.a+1"),
        ("002+raw.a", "2+raw.a"),
        ("+tag:team+2", "+tag:team+2"),
        ("1+(raw.a or raw.b)+", "1+(raw.a or raw.b)+"),
        ("+(+raw.a)", "+(+raw.a)"),
        ("(raw.a+)+1", "(raw.a+)+1"),
        ("+(raw.a)", "+raw.a"),
        ("tag:team=ops", "tag:team=ops"),
        ("tag:team", "tag:team"),
        ("tag:\"team\"=\"ops\"", "tag:team=ops"),
        ("tag:team=\"ops team\"", "tag:team=\"ops team\""),
        ("tag:team=\"\"", "tag:team=\"\""),
        ("tag:team=o*s?", "tag:team=o*s?"),
        ("tag:team=\"o*\"", "tag:team=o*"),
        ("tag:team=\"o\\*\"", "tag:team=\"o\\*\""),
        ("tag:te*=ops", "tag:te*=ops"),
        ("group:x", "group:x"),
        ("group:and", "group:and"),
        ("owner:ops@example.org", "owner:ops@example.org"),
        ("owner:\"a+b@example.org\"+", "owner:\"a+b@example.org\"+"),
        ("kind:größe", "kind:größe"),
        ("kind:2", "kind:2"),
        ("a.a,b.b,c.c", "a.a or b.b or c.c"),
        ("a.a|b.b & !c.c", "a.a or b.b and not c.c"),
        ("a.a AND Not b.b OR c.c", "a.a and not b.b or c.c"),
        ("a.a, b.b", "a.a or b.b"),
        ("+a.a,b.b+", "+a.a or b.b+"),
        ("((((a.a))))", "a.a"),
        ("not not a.a", "not not a.a"),
        ("!!a.a", "not not a.a"),
        ("(a.a and b.b) and c.c", "a.a and b.b and c.c"),
        ("a.a or (b.b or c.c)", "a.a or b.b or c.c"),
        ("not(a.a)", "not a.a"),
    ] {
        assert_eq!(canonical(text), expected, "{text}");
        assert_eq!(canonical(expected), expected);
    }
}

#[test]
fn graph_operators_bind_before_not_before_and_before_or() {
    for (text, grouped) in [
        ("a.a or b.b and c.c", "a.a or (b.b and c.c)"),
        ("a.a and b.b or c.c", "(a.a and b.b) or c.c"),
        ("a.a,b.b and c.c", "a.a,(b.b and c.c)"),
        ("not a.a and b.b", "(not a.a) and b.b"),
        ("not a.a or b.b", "(not a.a) or b.b"),
        ("not +a.a", "not (+a.a)"),
        ("!a.a+", "!(a.a+)"),
        ("+a.a and b.b+", "(+a.a) and (b.b+)"),
        ("not a.a and not b.b or not c.c", "((not a.a) and (not b.b)) or (not c.c)"),
    ] {
        assert_eq!(Selection::parse(text).unwrap(), Selection::parse(grouped).unwrap(), "{text}");
    }
    for (text, other) in [
        ("(a.a or b.b) and c.c", "a.a or b.b and c.c"),
        ("not (a.a and b.b)", "not a.a and b.b"),
        ("(not a.a)+", "not a.a+"),
    ] {
        assert_eq!(canonical(text), text);
        assert_ne!(Selection::parse(text).unwrap(), Selection::parse(other).unwrap(), "{text}");
    }
}

const OPERAND: &str = "a name such as raw.flights, an attribute such as tag:team, \"not\" or \"(\"";
const FIRST: &str = "a letter, \"_\", \"*\" or \"?\": names look like raw.flights";
const INSIDE: &str = "a letter, a digit, \"_\", \"-\", \"*\" or \"?\": names look like raw.flights";
const MORE: &str = "\"and\", \"or\", \",\" or the end";
const BOTH: &str = "; write \"or\" between two names to select both";

#[test]
fn invalid_texts_say_what_was_found_and_expected_and_where() {
    for (text, at, problem) in [
        ("", 0, format!("found the end, expected {OPERAND}; \"*\" selects every asset")),
        ("   ", 3, format!("found the end, expected {OPERAND}; \"*\" selects every asset")),
        ("a.a and", 7, format!("found the end, expected {OPERAND}")),
        ("a.a,", 4, format!("found the end, expected {OPERAND}")),
        ("a.a or or b.b", 7, format!("found \"or\", expected {OPERAND}")),
        ("and a.a", 0, format!("found \"and\", expected {OPERAND}")),
        ("a.a && b.b", 5, format!("found \"&\", expected {OPERAND}")),
        ("()", 1, format!("found \")\", expected {OPERAND}")),
        ("a.a b.b", 4, format!("found \"b.b\", expected {MORE}{BOTH}")),
        ("a.a not b.b", 4, format!("found \"not\", expected {MORE}{BOTH}")),
        ("a.a)", 3, format!("found \")\", expected {MORE}; it closes no \"(\"")),
        (
            "(a.a or b.b",
            11,
            "found the end, expected \"and\", \"or\", \",\" or \")\" for the \"(\" at character 0".to_owned(),
        ),
        (
            "(a.a b.b)",
            5,
            format!("found \"b.b\", expected \"and\", \"or\", \",\" or \")\" for the \"(\" at character 0{BOTH}"),
        ),
        ("a.b.c", 3, format!("found \".\", expected {INSIDE}")),
        ("a.", 2, format!("found the end of \"a.\", expected {FIRST}")),
        ("a.a or .b", 7, format!("found \".\", expected {FIRST}")),
        ("a.2", 2, format!("found \"2\", expected {FIRST}")),
        ("2", 0, format!("found \"2\", expected {FIRST}")),
        ("é.a", 0, format!("found \"é\", expected {FIRST}")),
        ("a.aé", 3, format!("found \"é\", expected {INSIDE}")),
        ("ops@example.org", 3, format!("found \"@\", expected {INSIDE}")),
        ("+", 1, "found the end, expected a name, an attribute or \"(\" after \"+\"".to_owned()),
        ("++a.a", 1, "found \"+\", expected a name, an attribute or \"(\" after \"+\"".to_owned()),
        ("+not a.a", 1, "found \"not\", expected a name, an attribute or \"(\" after \"+\"".to_owned()),
        ("+ a.a", 1, "found a space after \"+\", expected what it belongs to right after it".to_owned()),
        ("a.a + b.b", 4, format!("found \"+\", expected {MORE}; \"+\" touches what it belongs to")),
        ("a.a+1+b.b", 5, format!("found \"+\", expected {MORE}; \"+\" touches what it belongs to")),
        (
            "a.a+b.b",
            4,
            "found \"b.b\", expected a number of steps, or a space after \"+\"; put a value that contains \"+\" in quotes"
                .to_owned(),
        ),
        ("0+a.a", 0, "found \"0\", expected at least 1 step; leave \"0+\" out".to_owned()),
        ("a.a+4294967296", 4, "found \"4294967296\", expected at most 4294967295 steps".to_owned()),
        ("tags:x", 0, "found \"tags\", expected tag:, group:, owner: or kind:; did you mean tag:?".to_owned()),
        ("color:x", 0, "found \"color\", expected tag:, group:, owner: or kind:".to_owned()),
        ("tag:", 4, "found the end, expected the tag right after \":\"".to_owned()),
        ("tag: x", 4, "found a space, expected the tag right after \":\"".to_owned()),
        ("tag:team= x", 9, "found a space, expected the value right after \"=\"".to_owned()),
        ("owner:(x)", 6, "found \"(\", expected the owner right after \":\"".to_owned()),
        ("group:a=b", 7, format!("found \"=\", expected {MORE}")),
        ("\"a.a\"", 0, format!("found \"a.a\", expected {OPERAND}; only values of attributes are quoted")),
        ("é:1 \"x", 6, "found the end, expected '\"' to close the one at character 4".to_owned()),
        ("tag:\"a\\n\"", 6, "found \"\\n\", expected \"\\\"\", \"\\\\\", \"\\*\" or \"\\?\"".to_owned()),
        ("tag:\"a\\", 6, "found \"\\\" at the end, expected \"\\\"\", \"\\\\\", \"\\*\" or \"\\?\"".to_owned()),
        (
            "tag:\"a\nb\"",
            6,
            "found \"\\n\" in a quoted value, expected no control characters".to_owned(),
        ),
        ("tag:'a'", 4, "found \"'\", expected '\"': values are put in double quotes".to_owned()),
        (
            "a.a; b.b",
            3,
            "found \";\", expected a name, an attribute or an operator; put a value with other characters in quotes"
                .to_owned(),
        ),
    ] {
        let error = Selection::parse(text).expect_err(text);
        assert_eq!((error.at, error.problem.as_str()), (at, problem.as_str()), "{text}");
        assert_eq!(error.text, text);
        assert_eq!(error.to_string(), format!("invalid selection at character {at}: {problem}"));
    }
}

#[test]
fn carets_point_at_the_fault() {
    let caret = |text: &str| Selection::parse(text).unwrap_err().caret();
    assert_eq!(
        caret("größe:x or a.a"),
        "größe:x or a.a\n^^^^^ found \"größe\", expected tag:, group:, owner: or kind:"
    );
    assert_eq!(caret("a.a\tor\nb..b"), format!("a.a or b..b\n         ^ found \".\", expected {FIRST}"),);
    let long = format!("{}x.x y.y{}", "a.a or ".repeat(100), " or b.b".repeat(100));
    let shown = caret(&long);
    let (line, carets) = shown.split_once('\n').unwrap();
    let at = carets.chars().position(|char| char == '^').unwrap();
    assert_eq!(line.chars().skip(at).take(3).collect::<String>(), "y.y");
    assert!(carets.trim_start().starts_with("^^^ found \"y.y\""), "{carets}");
    assert!(line.starts_with('…') && line.ends_with('…') && line.chars().count() < 100, "{line}");
}

#[test]
fn length_is_limited_in_characters() {
    let fits = format!("kind:{}", "é".repeat(MAX_CHARS - 5));
    assert_eq!(canonical(&fits), fits);
    let error = Selection::parse(&format!("{fits}é")).unwrap_err();
    assert_eq!(
        (error.at, error.problem.as_str()),
        (10_000, "it has 10001 characters, at most 10000 are allowed")
    );
    assert!(error.caret().lines().count() == 2);

    let list = vec!["a.a"; 2_000].join(",");
    assert_eq!(
        Selection::parse(&list).unwrap_err().problem,
        "it has 13996 characters when written with \"and\", \"or\" and \"not\", at most 10000 are allowed"
    );
}

#[test]
fn nesting_is_limited() {
    let parentheses = |levels: usize| format!("{}a.a{}", "(".repeat(levels), ")".repeat(levels));
    assert_eq!(canonical(&parentheses(MAX_NESTING)), "a.a");
    assert_eq!(
        Selection::parse(&parentheses(MAX_NESTING + 1)).unwrap_err().to_string(),
        "invalid selection at character 100: found \"(\", expected at most 100 levels of \"(\" and \"not\""
    );
    let nots = |levels: usize| format!("{}a.a", "!".repeat(levels));
    assert_eq!(canonical(&nots(MAX_NESTING)), format!("{}a.a", "not ".repeat(100)));
    assert_eq!(Selection::parse(&nots(MAX_NESTING + 1)).unwrap_err().at, 100);
    let mixed = format!("{}a.a{}", "+(!".repeat(51), ")".repeat(51));
    assert_eq!(Selection::parse(&mixed).unwrap_err().at, 151);
    let beside = vec![parentheses(90); 5].join("|");
    assert_eq!(canonical(&beside), "a.a or a.a or a.a or a.a or a.a");
}

#[test]
fn serde_writes_the_canonical_text_and_reads_any() {
    let selection: Selection = serde_json::from_str("\"a/a,b.b\"").unwrap();
    assert_eq!(serde_json::to_string(&selection).unwrap(), "\"a.a or b.b\"");
    let error = serde_json::from_str::<Selection>("\"a.a b.b\"").unwrap_err().to_string();
    assert!(error.starts_with("invalid selection at character 4: found \"b.b\""), "{error}");
}

#[test]
fn syntax_errors_become_parse_errors() {
    let error = ParseError::from(Selection::parse("é+").unwrap_err());
    assert_eq!((error.what, error.text.as_str(), error.at), ("selection", "é+", 0));
}
