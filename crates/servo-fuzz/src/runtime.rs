//! Runs what is async on the thread that calls.

use std::cell::LazyCell;

use tokio::runtime::{Builder, Runtime};

thread_local! {
    static RUNTIME: LazyCell<Runtime> =
        LazyCell::new(|| Builder::new_current_thread().build().expect("a runtime without I/O can be made"));
}

/// Waits for a future.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.with(|runtime| runtime.block_on(future))
}
