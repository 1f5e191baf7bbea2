//! Workers register and leave. Whoever drives the engine has seen that a worker shares the storage of the workspace.

use super::Decision;
use crate::command::{RegisterWorker, WorkerLeaves};
use crate::event::{EventData, WorkerChanged, WorkerLeft, WorkerLost, WorkerRegistered};
use crate::lifecycle::WorkerState;
use crate::principal::Principal;
use crate::refusal::Refusal;
use crate::state::State;

pub(super) fn register(state: &State, command: &RegisterWorker) -> Decision {
    let Some(deployment) = state.deployment() else {
        return Decision::refuse(Refusal::NothingDeployed { worker: command.worker_id.clone() });
    };
    if deployment.digest != command.digest {
        return Decision::refuse(Refusal::OtherCode {
            worker: command.worker_id.clone(),
            found: command.digest.clone(),
            deployment: deployment.number,
            deployed: deployment.digest.clone(),
        });
    }
    let principal = Principal::worker(command.worker_id.clone());
    let number = state.workers.number(&command.worker_id) + 1;
    let known = state.workers.get(&command.worker_id).filter(|row| row.state == WorkerState::Active);
    let mut queues = command.queues.clone();
    queues.sort();
    queues.dedup();
    if let Some(row) = known
        .filter(|row| row.slots == command.slots && row.queues.iter().eq(queues.iter().map(|queue| &**queue)))
    {
        if *row.digest == *command.digest {
            return Decision::unchanged();
        }
        let changed = WorkerChanged {
            worker_id: command.worker_id.clone(),
            number,
            deployment: deployment.number,
            digest: command.digest.clone(),
            draining: false,
        };
        return Decision::change(EventData::WorkerChanged(changed), principal);
    }
    let registered = WorkerRegistered {
        worker_id: command.worker_id.clone(),
        number,
        name: command.name.clone(),
        queues,
        slots: command.slots,
        deployment: deployment.number,
        digest: command.digest.clone(),
        storage: command.storage.clone(),
        host: command.host.clone(),
        version: command.version.clone(),
    };
    Decision::change(EventData::WorkerRegistered(registered), principal)
}

pub(super) fn leave(state: &State, command: &WorkerLeaves) -> Decision {
    let Some(row) = state.workers.get(&command.worker_id).filter(|row| !row.state.is_gone()) else {
        return Decision::unchanged();
    };
    let (worker_id, number) = (command.worker_id.clone(), row.change_number + 1);
    let principal = Principal::worker(worker_id.clone());
    if !command.draining {
        return Decision::change(EventData::WorkerLeft(WorkerLeft { worker_id, number }), principal);
    }
    if row.state == WorkerState::Draining {
        return Decision::unchanged();
    }
    let changed = WorkerChanged {
        worker_id,
        number,
        deployment: row.deployment,
        digest: row.digest.as_str().into(),
        draining: true,
    };
    Decision::change(EventData::WorkerChanged(changed), principal)
}

/// Workers whose id begins with this ended with the process before.
pub(super) fn lost(state: &State, prefix: &str) -> impl Iterator<Item = EventData> {
    let theirs = state.workers.rows().filter(move |row| row.worker_id.starts_with(prefix));
    theirs.filter(|row| !row.state.is_gone()).map(|row| {
        EventData::WorkerLost(WorkerLost {
            worker_id: row.worker_id.as_str().into(),
            number: row.change_number + 1,
            heard_at: None,
        })
    })
}
