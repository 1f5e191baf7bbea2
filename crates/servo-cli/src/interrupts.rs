//! Ctrl-C: the first asks, the second leaves.

use crate::exit::Exit;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Waits for Ctrl-C.
#[derive(Default)]
pub(crate) struct Interrupts {
    signal: Option<Signal>,
    asked: bool,
}

impl Interrupts {
    /// Resolves at the first Ctrl-C; the second ends the process.
    pub(crate) async fn next(&mut self) -> anyhow::Result<()> {
        let pressed = match &mut self.signal {
            Some(pressed) => pressed,
            None => self.signal.insert(signal(SignalKind::interrupt())?),
        };
        pressed.recv().await;
        if std::mem::replace(&mut self.asked, true) {
            crate::keys::restore_terminal();
            std::process::exit(Exit::Interrupted.code().into());
        }
        Ok(())
    }
}
