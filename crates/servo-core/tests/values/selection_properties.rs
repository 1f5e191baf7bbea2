//! Properties of selections, over generated ones: the text reads back, and evaluation agrees with a naive model.

use std::collections::BTreeSet;

use proptest::prelude::*;
use servo_core::AssetKey;
use servo_core::selection::{AssetGraph, AssetInfo, Attribute, Depth, Expr, NamePattern, Pattern, Selection};

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        12 => "[ab]?\\*[./][xy]?\\*",
        6 => "[ab*?]{1,2}[./][xy*?]{1,2}",
        2 => "[ab]\\.[xy]",
        2 => Just("*".to_owned()),
        1 => "[abxy*?]{1,2}",
    ]
}

fn value() -> impl Strategy<Value = String> {
    let quoted =
        prop::collection::vec(prop_oneof!["[a-c *?+é]", Just("\\\"".to_owned()), "\\\\[*?\\\\]"], 0..4)
            .prop_map(|pieces| format!("\"{}\"", pieces.concat()));
    prop_oneof!["[a-c*?]{1,2}", quoted]
}

fn attribute() -> impl Strategy<Value = String> {
    prop_oneof![
        value().prop_map(|key| format!("tag:{key}")),
        (value(), value()).prop_map(|(key, value)| format!("tag:{key}={value}")),
        (prop::sample::select(vec!["group", "owner", "kind"]), value())
            .prop_map(|(attribute, value)| format!("{attribute}:{value}")),
    ]
}

/// Texts with superfluous parentheses, all spellings of the operators, and odd spaces.
fn text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![3 => name(), 1 => attribute()];
    leaf.prop_recursive(5, 24, 3, |inner| {
        let operator = prop::sample::select(vec![" or ", "|", ",", " , ", " and ", "&", " AND\t"]);
        prop_oneof![
            (inner.clone(), operator, inner.clone())
                .prop_map(|(left, operator, right)| format!("{left}{operator}{right}")),
            (prop::sample::select(vec!["not ", "!", "NOT  "]), inner.clone())
                .prop_map(|(not, part)| format!("{not}({part})")),
            inner.clone().prop_map(|part| format!("( {part})")),
            ("([1-3]?\\+)?", inner, "(\\+[1-3]?)?")
                .prop_map(|(up, part, down)| format!("{up}({part}){down}")),
        ]
    })
}

/// Up to 12 assets with attributes from few letters, and any edges, also cycles.
fn graph() -> impl Strategy<Value = (Vec<AssetInfo>, Vec<Vec<u32>>)> {
    let info = (
        prop::collection::btree_map("[abc]", "[abc ]", 0..3),
        prop::option::of("[abc]{1,2}"),
        prop::collection::vec("[abc]{1,2}", 0..3),
        prop::collection::vec("[abc*]", 0..2),
    );
    prop::collection::btree_map(("[ab]{1,2}", "[xy]{1,2}"), info, 1..12).prop_flat_map(|assets| {
        let mut assets: Vec<_> = assets
            .into_iter()
            .map(|((namespace, name), (tags, group, owners, kinds))| AssetInfo {
                key: AssetKey::new(&namespace, &name).unwrap(),
                tags,
                group,
                owners,
                kinds,
            })
            .collect();
        assets.sort_by(|a, b| a.key.cmp(&b.key));
        let len = assets.len();
        let edges = prop::collection::vec(prop::collection::vec(0..len as u32, 0..3), len);
        (Just(assets), edges)
    })
}

/// The model: sets of positions, steps taken one by one, everything by search through all assets.
struct Model<'m> {
    assets: &'m [AssetInfo],
    upstream: &'m [Vec<u32>],
}

impl Model<'_> {
    /// The assets that are meant, and whether a name matches nothing.
    fn set(&self, expr: &Expr, is_error: &mut bool) -> BTreeSet<usize> {
        let all = 0..self.assets.len();
        match expr {
            Expr::Name(name) => {
                let set: BTreeSet<_> = all.filter(|&at| is_named(&self.assets[at], name)).collect();
                *is_error |= set.is_empty();
                set
            }
            Expr::Attribute(attribute) => all.filter(|&at| has(&self.assets[at], attribute)).collect(),
            Expr::Neighbours { upstream, downstream, of } => {
                let start = self.set(of, is_error);
                let up = self.walk(&start, *upstream, |from, to| self.upstream[from].contains(&(to as u32)));
                let down =
                    self.walk(&start, *downstream, |from, to| self.upstream[to].contains(&(from as u32)));
                &up | &down
            }
            Expr::Not(part) => {
                let part = self.set(part, is_error);
                all.filter(|at| !part.contains(at)).collect()
            }
            Expr::And(parts) => parts
                .iter()
                .map(|part| self.set(part, is_error))
                .reduce(|left, right| &left & &right)
                .unwrap(),
            Expr::Or(parts) => parts.iter().flat_map(|part| self.set(part, is_error)).collect(),
        }
    }

    fn walk(
        &self,
        start: &BTreeSet<usize>,
        reach: Option<Depth>,
        leads: impl Fn(usize, usize) -> bool,
    ) -> BTreeSet<usize> {
        let steps = match reach {
            None => 0,
            Some(Depth::All) => self.assets.len(),
            Some(Depth::Steps(steps)) => steps.get() as usize,
        };
        let mut set = start.clone();
        for _ in 0..steps {
            let next = (0..self.assets.len()).filter(|&to| set.iter().any(|&from| leads(from, to)));
            let next: Vec<_> = next.collect();
            set.extend(next);
        }
        set
    }
}

fn is_named(asset: &AssetInfo, pattern: &NamePattern) -> bool {
    let Some(namespace) = &pattern.namespace else { return false };
    fits(namespace, asset.key.namespace()) && fits(&pattern.name, asset.key.name())
}

fn has(asset: &AssetInfo, attribute: &Attribute) -> bool {
    match attribute {
        Attribute::Tag(key, None) => asset.tags.keys().any(|tag| fits(key, tag)),
        Attribute::Tag(key, Some(value)) => {
            asset.tags.iter().any(|(tag, tagged)| fits(key, tag) && fits(value, tagged))
        }
        Attribute::Group(group) => asset.group.iter().any(|text| fits(group, text)),
        Attribute::Owner(owner) => asset.owners.iter().any(|text| fits(owner, text)),
        Attribute::Kind(kind) => asset.kinds.iter().any(|text| fits(kind, text)),
    }
}

/// Matches the canonical text of a pattern by plain recursion.
fn fits(pattern: &Pattern, text: &str) -> bool {
    fn go(pattern: &[char], text: &[char]) -> bool {
        match (pattern, text) {
            ([], []) => true,
            (['*', rest @ ..], _) => (0..=text.len()).any(|skip| go(rest, &text[skip..])),
            (['?', rest @ ..], [_, text @ ..]) => go(rest, text),
            (['\\', expected, rest @ ..], [found, text @ ..]) => expected == found && go(rest, text),
            ([expected, rest @ ..], [found, text @ ..]) => expected == found && go(rest, text),
            ([], [_, ..]) | ([_, ..], []) => false,
        }
    }
    let shown = pattern.to_string();
    let inner = shown.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or(&shown);
    go(&inner.chars().collect::<Vec<_>>(), &text.chars().collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn the_canonical_text_of_a_selection_reads_back_as_the_same(text in text()) {
        let selection = Selection::parse(&text).map_err(|error| TestCaseError::fail(error.caret()))?;
        let canonical = selection.to_string();
        prop_assert_eq!(&Selection::parse(&canonical).unwrap(), &selection, "{} became {}", text, canonical);
        prop_assert_eq!(Selection::parse(&canonical).unwrap().to_string(), canonical);
    }

    #[test]
    fn a_selection_means_what_the_naive_model_says(text in text(), (assets, upstream) in graph()) {
        let selection = Selection::parse(&text).unwrap();
        let mut is_error = false;
        let expected = Model { assets: &assets, upstream: &upstream }.set(selection.expr(), &mut is_error);
        let graph = AssetGraph::new(assets.clone(), upstream.clone()).unwrap();
        match selection.evaluate(&graph) {
            Ok(set) => {
                prop_assert!(!is_error, "{} should be an error", text);
                prop_assert_eq!(set.positions().collect::<BTreeSet<_>>(), expected, "{}", text);
            }
            Err(error) => {
                prop_assert!(is_error, "{}: {}", text, error);
                prop_assert!(!error.unmatched.is_empty());
                for near in error.unmatched.iter().flat_map(|unmatched| &unmatched.near_misses) {
                    prop_assert!(Selection::parse(near).unwrap().evaluate(&graph).is_ok(), "{} of {}", near, text);
                }
            }
        }
    }

    #[test]
    fn any_text_is_read_or_refused_at_a_place_inside_a_selection(text in "[ab.*?+:=,&|!()\"\\\\ 1é]{0,20}|\\PC{0,20}") {
        match Selection::parse(&text) {
            Ok(selection) => {
                prop_assert_eq!(Selection::parse(&selection.to_string()).unwrap(), selection);
            }
            Err(error) => {
                prop_assert!(error.at + error.len <= text.chars().count(), "{:?}", error);
                prop_assert_eq!(error.caret().lines().count(), 2);
            }
        }
    }
}
