//! Notification rules.

use super::{Client, ClientError, ListOptions};
use crate::pages::Page;
use crate::views::{Accepted, NotificationBody, NotificationRecord, NotificationRule, VersionBody};

const NOTIFICATIONS: [&str; 1] = ["notifications"];

fn of<'a>(rule: &'a str, what: &'a [&'a str]) -> Vec<&'a str> {
    NOTIFICATIONS.into_iter().chain([rule]).chain(what.iter().copied()).collect()
}

impl Client {
    /// The notification rules, by name.
    pub async fn notifications(&self, options: &ListOptions) -> Result<Page<NotificationRule>, ClientError> {
        self.get(&NOTIFICATIONS, &options.query("status")).await
    }

    /// A notification rule, by its name or its id.
    pub async fn notification(&self, rule: &str) -> Result<NotificationRule, ClientError> {
        self.get(&of(rule, &[]), &[]).await
    }

    /// The notifications of a rule, the newest first.
    pub async fn notification_history(
        &self,
        rule: &str,
        options: &ListOptions,
    ) -> Result<Page<NotificationRecord>, ClientError> {
        self.get(&of(rule, &["history"]), &options.query("status")).await
    }

    /// Creates a notification rule.
    pub async fn create_notification(&self, body: &NotificationBody) -> Result<Accepted, ClientError> {
        self.change(&NOTIFICATIONS, body).await
    }

    /// Gives a notification rule that was created over the API another definition.
    pub async fn change_notification(
        &self,
        rule: &str,
        body: &NotificationBody,
    ) -> Result<Accepted, ClientError> {
        self.replace(&of(rule, &[]), body).await
    }

    /// Deletes a notification rule that was created over the API.
    pub async fn delete_notification(&self, rule: &str, body: &VersionBody) -> Result<Accepted, ClientError> {
        self.delete(&of(rule, &[]), body).await
    }

    /// Pauses a notification rule.
    pub async fn pause_notification(&self, rule: &str, body: &VersionBody) -> Result<Accepted, ClientError> {
        self.change(&of(rule, &["pause"]), body).await
    }

    /// Resumes a notification rule.
    pub async fn resume_notification(&self, rule: &str, body: &VersionBody) -> Result<Accepted, ClientError> {
        self.change(&of(rule, &["resume"]), body).await
    }

    /// Sends a test to each destination of a notification rule.
    pub async fn test_notification(&self, rule: &str, body: &VersionBody) -> Result<Accepted, ClientError> {
        self.change(&of(rule, &["test"]), body).await
    }
}
