//! Sensors.

use super::{Client, ClientError, ListOptions};
use crate::pages::Page;
use crate::views::{
    Accepted, EvaluateBody, PushBody, ResetCursorBody, Sensor, SensorBody, SensorEval, SensorEvaluation,
    VersionBody,
};

const SENSORS: [&str; 2] = ["orchestration", "sensors"];

fn of<'a>(sensor: &'a str, what: &'a [&'a str]) -> Vec<&'a str> {
    SENSORS.into_iter().chain([sensor]).chain(what.iter().copied()).collect()
}

impl Client {
    /// The sensors, by name.
    pub async fn sensors(&self, options: &ListOptions) -> Result<Page<Sensor>, ClientError> {
        self.get(&SENSORS, &options.query("status")).await
    }

    /// A sensor, by its name or its id.
    pub async fn sensor(&self, sensor: &str) -> Result<Sensor, ClientError> {
        self.get(&of(sensor, &[]), &[]).await
    }

    /// The evaluations of a sensor, the newest first.
    pub async fn sensor_evals(
        &self,
        sensor: &str,
        options: &ListOptions,
    ) -> Result<Page<SensorEval>, ClientError> {
        self.get(&of(sensor, &["evals"]), &options.query("status")).await
    }

    /// Creates a sensor.
    pub async fn create_sensor(&self, body: &SensorBody) -> Result<Accepted, ClientError> {
        self.change(&SENSORS, body).await
    }

    /// Gives a sensor that was created over the API another definition.
    pub async fn change_sensor(&self, sensor: &str, body: &SensorBody) -> Result<Accepted, ClientError> {
        self.replace(&of(sensor, &[]), body).await
    }

    /// Deletes a sensor that was created over the API.
    pub async fn delete_sensor(&self, sensor: &str, body: &VersionBody) -> Result<Accepted, ClientError> {
        self.delete(&of(sensor, &[]), body).await
    }

    /// Pauses a sensor.
    pub async fn pause_sensor(&self, sensor: &str, body: &VersionBody) -> Result<Accepted, ClientError> {
        self.change(&of(sensor, &["pause"]), body).await
    }

    /// Resumes a sensor.
    pub async fn resume_sensor(&self, sensor: &str, body: &VersionBody) -> Result<Accepted, ClientError> {
        self.change(&of(sensor, &["resume"]), body).await
    }

    /// Sets the cursor of a sensor.
    pub async fn reset_sensor_cursor(
        &self,
        sensor: &str,
        body: &ResetCursorBody,
    ) -> Result<Accepted, ClientError> {
        self.change(&of(sensor, &["reset-cursor"]), body).await
    }

    /// Evaluates a sensor now, or shows what would happen.
    pub async fn evaluate_sensor(
        &self,
        sensor: &str,
        body: &EvaluateBody,
    ) -> Result<SensorEvaluation, ClientError> {
        self.change(&of(sensor, &["evaluate"]), body).await
    }

    /// Sends a message to a sensor.
    pub async fn push_to_sensor(&self, sensor: &str, message: &PushBody) -> Result<Accepted, ClientError> {
        self.change(&of(sensor, &["push"]), message).await
    }
}
