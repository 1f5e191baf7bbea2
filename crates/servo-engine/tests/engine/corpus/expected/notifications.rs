//! The events of notifications that the corpus has.

use std::sync::Arc;

use servo_core::{EventId, RuleId, Timestamp};
use servo_engine::definitions::NotificationDef;
use servo_engine::event::{
    NotificationAttempted, NotificationRequested, NotificationRuleChanged, NotificationRuleDefined,
    NotificationTested, QueueServiceChanged, RuleChange,
};
use servo_engine::{EventData, EventKind, NotificationStatus, Origin};

const FULL: &str = r#"{"name":"oncall","location":{"file":"jobs.py","line":7},"when":["run_failed","recovered"],
    "to":[{"type":"webhook","url":"https://example.org/hook","headers":{"X-Team":"größe"},
        "json":{"summary":"{summary}"},"secret":{"name":"secret","provider":"env","path":"HOOK"}},
        {"type":"slack","url":{"name":"url","provider":"env","path":"SLACK"}},
        {"type":"email","host":"smtp.example.org","port":2525,"security":"none","username":"servo",
        "password":{"name":"password","provider":"file","path":"smtp"},"from":"servo@example.org",
        "to":["ops@example.org"]},
        {"type":"command","command":["logger"],"timeout_ms":5000}],
    "selection":"raw.*","description":"who is on call","title":"{asset}","body":"{error}","enabled":false,
    "max_per_hour":5}"#;
const PLAIN: &str = r#"{"name":"oncall","location":{"file":"jobs.py","line":7},"when":["run_failed"],
    "to":[{"type":"command","command":["logger"]}]}"#;

/// The events of a kind.
pub(super) fn expected(kind: EventKind) -> Vec<EventData> {
    let rule_id = RuleId::from_parts(1_736_899_200_000, 12);
    let notification_id: Arc<str> = format!("{rule_id}:run_failed:größe:0").into();
    if kind == EventKind::NotificationRuleDefined {
        return vec![defined(rule_id, 1, PLAIN), defined(rule_id, 2, FULL)];
    }
    if kind == EventKind::NotificationRuleChanged {
        let changes = [RuleChange::Paused, RuleChange::Resumed, RuleChange::Removed];
        let changed = |(state_version, change)| {
            EventData::NotificationRuleChanged(NotificationRuleChanged { rule_id, state_version, change })
        };
        return (3..).zip(changes).map(changed).collect();
    }
    if kind == EventKind::NotificationAttempted {
        let sent = NotificationAttempted {
            notification_id,
            attempt: 2,
            status: NotificationStatus::Sent,
            error: None,
            retry_at: None,
        };
        let again = NotificationAttempted {
            attempt: 1,
            status: NotificationStatus::Pending,
            error: Some("größe".to_owned()),
            retry_at: Some(Timestamp::from_millis(1_736_920_805_000)),
            ..sent.clone()
        };
        return vec![EventData::NotificationAttempted(again), EventData::NotificationAttempted(sent)];
    }
    vec![if kind == EventKind::NotificationTested {
        let after = EventId::from_parts(1_736_899_200_000, 4);
        EventData::NotificationTested(NotificationTested { rule_id, after })
    } else if kind == EventKind::NotificationRequested {
        EventData::NotificationRequested(NotificationRequested { notification_id, attempt: 1 })
    } else {
        let since = Timestamp::from_millis(1_736_920_800_000);
        EventData::QueueServiceChanged(QueueServiceChanged { queue: "größe".into(), served: false, since })
    }]
}

fn defined(rule_id: RuleId, state_version: u64, text: &str) -> EventData {
    let definition: NotificationDef = serde_json::from_str(text).expect("a notification rule");
    let (origin, definition) = (Origin::Code, Arc::new(definition));
    EventData::NotificationRuleDefined(NotificationRuleDefined { rule_id, origin, state_version, definition })
}
