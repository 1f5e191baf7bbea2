//! Notifications as whoever sends them is given them.

use std::sync::Arc;

use crate::lifecycle::NotificationStatus;
use crate::notification::Delivery;
use crate::rows::NotificationRow;
use crate::state::State;

/// The try of a notification that is under way; none if it is not to be sent now.
pub(crate) fn delivery(state: &State, row: &NotificationRow) -> Option<Delivery> {
    if row.status != NotificationStatus::Sending {
        return None;
    }
    let rule = state.notifications.get(row.rule_id)?;
    Some(Delivery {
        notification_id: row.notification_id.as_str().into(),
        attempt: row.attempts,
        rule_id: row.rule_id,
        rule: rule.definition.clone(),
        destination: row.destination,
        trigger: row.trigger,
        facts: Arc::clone(&row.facts),
        private_addresses: state.settings().notify_private_addresses > 0,
    })
}
