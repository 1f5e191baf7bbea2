//! Reads about deployments: the current one from the state, those before and their definitions from the tables.

use servo_core::EventId;
use servo_engine::rows::{DefinitionKind, DefinitionVersionRow, DeploymentRow};
use servo_projections::DefinitionsAsOf;

use crate::error::Error;
use crate::workspace::Workspace;

impl Workspace {
    /// Deployments that were followed by another and are in the tables, the newest first, beginning before an event.
    pub async fn deployments_before(
        &self,
        before: Option<EventId>,
        limit: usize,
        accepts: impl Fn(&DeploymentRow) -> bool,
    ) -> Result<Vec<DeploymentRow>, Error> {
        match self.projection() {
            Some(projection) => Ok(projection.deployments_before(before, limit, accepts).await?),
            None => Ok(Vec::new()),
        }
    }

    /// The definitions that a deployment had, as far as the tables go.
    pub async fn definitions_as_of(&self, number: u64) -> Result<DefinitionsAsOf, Error> {
        match self.projection() {
            Some(projection) => Ok(projection.definitions_as_of(number).await?),
            None => Ok(DefinitionsAsOf::new()),
        }
    }

    /// Versions of a definition that are in the tables, the newest first, beginning before an event.
    pub async fn definition_versions(
        &self,
        kind: DefinitionKind,
        name: &str,
        before: Option<EventId>,
        limit: usize,
    ) -> Result<Vec<DefinitionVersionRow>, Error> {
        match self.projection() {
            Some(projection) => Ok(projection.definition_versions(kind, name, before, limit).await?),
            None => Ok(Vec::new()),
        }
    }
}
