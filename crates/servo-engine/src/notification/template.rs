//! The words of a notification: texts with names in braces.
//!
//! `{asset} of {owner} failed` is filled from the facts. A name that is about nothing here is left empty. `{{` and `}}`
//! are braces.

use std::borrow::Cow;

use super::{Delivery, Facts};
use crate::lifecycle::NotificationTrigger;

/// The names that a text may have in braces.
const NAMES: [&str; 18] = [
    "action",
    "notification_id",
    "summary",
    "rule",
    "trigger",
    "workspace",
    "asset",
    "assets",
    "partition",
    "owner",
    "error",
    "link",
    "run_id",
    "check",
    "schedule",
    "sensor",
    "queue",
    "at",
];

const TITLE: &str = "Servo {workspace}: {summary}";
const BODY: &str = "{summary}{details}";

/// The names, for people.
pub(crate) fn names() -> String {
    NAMES.map(|name| format!("{{{name}}}")).join(", ")
}

/// A piece of a text.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    Text(Cow<'a, str>),
    Name(&'a str),
}

/// Why a text is no template; nothing if it is one.
pub(crate) fn check(text: &str) -> Result<(), String> {
    for piece in pieces(text)? {
        if let Piece::Name(name) = piece
            && !NAMES.contains(&name)
        {
            return Err(format!("names {{{name}}}, which is nothing that can be told"));
        }
    }
    Ok(())
}

fn pieces(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find(['{', '}']) {
        found.push(Piece::Text(rest[..at].into()));
        let brace = &rest[at..];
        if brace.starts_with("{{") || brace.starts_with("}}") {
            found.push(Piece::Text(brace[..1].into()));
            rest = &brace[2..];
        } else if brace.starts_with('}') {
            return Err("has a } without its {; write }} for a brace".to_owned());
        } else {
            let end = brace.find('}').ok_or("has a { without its }; write {{ for a brace")?;
            found.push(Piece::Name(&brace[1..end]));
            rest = &brace[end + 1..];
        }
    }
    found.push(Piece::Text(rest.into()));
    Ok(found)
}

/// The words of one notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    /// One line.
    pub title: String,
    /// The text.
    pub body: String,
    /// Where to look, if it is known where people do.
    pub link: Option<String>,
}

/// The words of a notification, for people who look at `base`.
pub fn words(delivery: &Delivery, workspace: &str, base: Option<&str>) -> Words {
    let link = base.map(|base| link(base, &delivery.facts));
    let fill = |template: &str| filled(template, delivery, workspace, link.as_deref());
    let title = fill(delivery.rule.title.as_deref().unwrap_or(TITLE));
    let title: String = title.chars().map(|each| if each.is_control() { ' ' } else { each }).collect();
    let mut body = fill(delivery.rule.body.as_deref().unwrap_or(BODY));
    let left_out = delivery.facts.left_out;
    if left_out > 0 {
        let rule = &delivery.rule.name;
        body.push_str(&format!("\n{left_out} more of rule {rule} were left out since the last one."));
    }
    Words { title, body, link }
}

/// A template with its names replaced.
pub fn fill(template: &str, delivery: &Delivery, workspace: &str, base: Option<&str>) -> String {
    let link = base.map(|base| link(base, &delivery.facts));
    filled(template, delivery, workspace, link.as_deref())
}

fn filled(template: &str, delivery: &Delivery, workspace: &str, link: Option<&str>) -> String {
    let Ok(pieces) = pieces(template) else { return template.to_owned() };
    let piece = |piece: Piece<'_>| match piece {
        Piece::Text(text) => text.into_owned(),
        Piece::Name(name) => value(name, delivery, workspace, link),
    };
    pieces.into_iter().map(piece).collect()
}

/// The action for a system that keeps incidents.
fn action(trigger: NotificationTrigger) -> &'static str {
    if trigger == NotificationTrigger::Recovered { "resolve" } else { "trigger" }
}

fn value(name: &str, delivery: &Delivery, workspace: &str, link: Option<&str>) -> String {
    let facts = &*delivery.facts;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    match name {
        "action" => action(delivery.trigger).to_owned(),
        "notification_id" => delivery.notification_id.to_string(),
        "summary" => facts.summary.clone(),
        "details" => details(facts, link),
        "rule" => delivery.rule.name.to_string(),
        "trigger" => delivery.trigger.name().to_owned(),
        "workspace" => workspace.to_owned(),
        "asset" => facts.assets.first().cloned().unwrap_or_default(),
        "assets" => assets(facts),
        "partition" => text(&facts.partition),
        "owner" => facts.owners.join(", "),
        "error" => text(&facts.error),
        "link" => link.unwrap_or_default().to_owned(),
        "run_id" => facts.run_id.map(|run| run.to_string()).unwrap_or_default(),
        "check" => text(&facts.check),
        "schedule" => text(&facts.schedule),
        "sensor" => text(&facts.sensor),
        "queue" => text(&facts.queue),
        "at" => facts.at.to_string(),
        _ => String::new(),
    }
}

/// Everything that is known, a line each.
fn details(facts: &Facts, link: Option<&str>) -> String {
    let assets = (!facts.assets.is_empty()).then(|| assets(facts));
    let owners = (!facts.owners.is_empty()).then(|| facts.owners.join(", "));
    let lines = [
        ("assets", assets),
        ("partition", facts.partition.clone()),
        ("owner", owners),
        ("error", facts.error.clone()),
        ("run", facts.run_id.map(|run| run.to_string())),
        ("at", Some(facts.at.to_string())),
        ("link", link.map(str::to_owned)),
    ];
    lines.into_iter().filter_map(|(name, value)| Some(format!("\n{name}: {}", value?))).collect()
}

fn assets(facts: &Facts) -> String {
    let named = facts.assets.join(", ");
    if facts.more_assets > 0 { format!("{named} and {} more", facts.more_assets) } else { named }
}

fn link(base: &str, facts: &Facts) -> String {
    let base = base.trim_end_matches('/');
    let page = if let Some(run) = facts.run_id {
        format!("/runs/{run}")
    } else if facts.schedule.is_some() || facts.sensor.is_some() {
        "/automation".to_owned()
    } else if facts.queue.is_some() {
        "/settings/admission".to_owned()
    } else if let Some(asset) = facts.assets.first() {
        format!("/assets/{}", asset.replacen('.', "/", 1))
    } else {
        String::new()
    };
    format!("{base}{page}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cannot_be_told_and_lone_braces_are_refused() {
        assert_eq!(check("{asset} of {owner}: {{not a name}}"), Ok(()));
        assert!(check("{password}").unwrap_err().contains("{password}"));
        assert!(check("{asset").unwrap_err().contains('{'));
        assert!(check("asset}").unwrap_err().contains('}'));
    }

    #[test]
    fn doubled_braces_are_braces() {
        let text = |pieces: Vec<Piece<'_>>| {
            pieces
                .into_iter()
                .map(|piece| match piece {
                    Piece::Text(text) => text.into_owned(),
                    Piece::Name(name) => format!("<{name}>"),
                })
                .collect::<String>()
        };
        assert_eq!(text(pieces("{{\"a\": {asset}}}}}").unwrap()), "{\"a\": <asset>}}");
    }
}
