//! Group commit of outputs: those that come while others are synced are written and synced together, off the threads of
//! whoever runs tasks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::channel::oneshot;

use super::directory::{Directory, Unsynced};
use super::{DataError, Output};

/// Outputs that wait for the disk.
#[derive(Debug, Default)]
pub(super) struct Queue(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Waiting>,
    /// Whether some thread takes care of those that wait.
    is_served: bool,
}

#[derive(Debug)]
struct Waiting {
    output: Output,
    done: oneshot::Sender<Result<(), DataError>>,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Commits an output, together with others. In place where there is no tokio.
pub(super) async fn commit(directory: &Arc<Directory>, output: Output) -> Result<(), DataError> {
    let (done, outcome) = oneshot::channel();
    let is_served = {
        let mut state = directory.queue.lock();
        state.waiting.push(Waiting { output, done });
        std::mem::replace(&mut state.is_served, true)
    };
    if !is_served {
        let serving = Serving(Arc::clone(directory));
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || serving.run())),
            Err(_) => serving.run(),
        }
    }
    outcome
        .await
        .unwrap_or_else(|_| Err(std::io::Error::other("the thread that commits outputs has ended").into()))
}

/// A thread that takes care of those that wait, until there are none. If it panics, they are let go of.
struct Serving(Arc<Directory>);

impl Serving {
    fn run(self) {
        loop {
            let group = {
                let mut state = self.0.queue.lock();
                if state.waiting.is_empty() {
                    state.is_served = false;
                    return;
                }
                std::mem::take(&mut state.waiting)
            };
            self.commit(group);
        }
    }

    fn commit(&self, group: Vec<Waiting>) {
        let mut unsynced = Unsynced::default();
        let whole = self.0.whole();
        let write = |waiting: Waiting| {
            let written = match &whole {
                Ok(_) => waiting.output.write(&self.0, &mut unsynced),
                Err(error) => Err(again(error).into()),
            };
            match written {
                Ok(()) => Some(waiting.done),
                Err(error) => {
                    let _gone = waiting.done.send(Err(error));
                    None
                }
            }
        };
        let written: Vec<_> = group.into_iter().filter_map(write).collect();
        let Ok(whole) = whole else { return };
        let synced = if written.is_empty() { Ok(()) } else { self.0.sync(whole.as_ref(), &unsynced) };
        for done in written {
            let _gone = done.send(synced.as_ref().map(|_| ()).map_err(|error| again(error).into()));
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if std::thread::panicking() {
            *self.0.queue.lock() = State::default();
        }
    }
}

/// The same error for another of those who wait.
fn again(error: &std::io::Error) -> std::io::Error {
    match error.raw_os_error() {
        Some(number) => std::io::Error::from_raw_os_error(number),
        None => std::io::Error::new(error.kind(), error.to_string()),
    }
}
