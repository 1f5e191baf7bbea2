//! Schedules.

use super::{Client, ClientError, ListOptions};
use crate::pages::Page;
use crate::views::{
    Accepted, AcceptedRun, NextTicks, Schedule, ScheduleBody, Tick, TriggerScheduleBody, VersionBody,
};

const SCHEDULES: [&str; 2] = ["orchestration", "schedules"];

fn of<'a>(schedule: &'a str, what: &'a [&'a str]) -> Vec<&'a str> {
    SCHEDULES.into_iter().chain([schedule]).chain(what.iter().copied()).collect()
}

impl Client {
    /// The schedules, by name.
    pub async fn schedules(&self, options: &ListOptions) -> Result<Page<Schedule>, ClientError> {
        self.get(&SCHEDULES, &options.query("status")).await
    }

    /// A schedule, by its name or its id.
    pub async fn schedule(&self, schedule: &str) -> Result<Schedule, ClientError> {
        self.get(&of(schedule, &[]), &[]).await
    }

    /// The ticks of a schedule, the newest first.
    pub async fn schedule_ticks(
        &self,
        schedule: &str,
        options: &ListOptions,
    ) -> Result<Page<Tick>, ClientError> {
        self.get(&of(schedule, &["ticks"]), &options.query("status")).await
    }

    /// The next ticks of a schedule.
    pub async fn preview_schedule(&self, schedule: &str, count: usize) -> Result<NextTicks, ClientError> {
        self.get(&of(schedule, &["preview"]), &[("n", count.to_string())]).await
    }

    /// Creates a schedule.
    pub async fn create_schedule(&self, body: &ScheduleBody) -> Result<Accepted, ClientError> {
        self.change(&SCHEDULES, body).await
    }

    /// Gives a schedule that was created over the API another definition.
    pub async fn change_schedule(
        &self,
        schedule: &str,
        body: &ScheduleBody,
    ) -> Result<Accepted, ClientError> {
        self.replace(&of(schedule, &[]), body).await
    }

    /// Deletes a schedule that was created over the API.
    pub async fn delete_schedule(&self, schedule: &str, body: &VersionBody) -> Result<Accepted, ClientError> {
        self.delete(&of(schedule, &[]), body).await
    }

    /// Pauses a schedule.
    pub async fn pause_schedule(&self, schedule: &str, body: &VersionBody) -> Result<Accepted, ClientError> {
        self.change(&of(schedule, &["pause"]), body).await
    }

    /// Resumes a schedule.
    pub async fn resume_schedule(&self, schedule: &str, body: &VersionBody) -> Result<Accepted, ClientError> {
        self.change(&of(schedule, &["resume"]), body).await
    }

    /// Makes a tick now.
    pub async fn trigger_schedule(
        &self,
        schedule: &str,
        body: &TriggerScheduleBody,
    ) -> Result<AcceptedRun, ClientError> {
        self.change(&of(schedule, &["trigger"]), body).await
    }
}
