//! Keys that are pressed while a run is followed on a terminal.

use std::io::IsTerminal;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use tokio::sync::mpsc;

/// Ctrl-R, as terminals send it.
const CTRL_R: u8 = 0x12;
/// How long a look at the terminal takes at most, so that it is let go in time.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// The terminal as it was before keys were listened to.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// The keys of a terminal, one by one. It is as it was before once this is dropped.
pub(crate) struct Keys {
    pressed: mpsc::UnboundedReceiver<u8>,
    stop: Arc<AtomicBool>,
}

/// Makes the terminal as it was before keys were listened to.
pub(crate) fn restore_terminal() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(before) = before {
        let _gone = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &before);
    }
}

impl Keys {
    /// None if nobody sits in front of it.
    pub(crate) fn of_terminal() -> Option<Self> {
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() || !is_in_foreground() {
            return None;
        }
        let before = tcgetattr(rustix::stdio::stdin()).ok()?;
        let mut single = before.clone();
        // Ctrl-C and Ctrl-Z go on to be signals.
        single.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        single.special_codes[SpecialCodeIndex::VMIN] = 0;
        single.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &single).ok()?;
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        let (sender, pressed) = mpsc::unbounded_channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        std::thread::spawn(move || listen(&sender, &stopped));
        Some(Self { pressed, stop })
    }

    /// Resolves when Ctrl-R is pressed.
    pub(crate) async fn retry(&mut self) {
        loop {
            match self.pressed.recv().await {
                Some(CTRL_R) => return,
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        restore_terminal();
    }
}

/// Whether this process may change the terminal without being stopped for it.
fn is_in_foreground() -> bool {
    rustix::termios::tcgetpgrp(rustix::stdio::stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}

fn listen(sender: &mpsc::UnboundedSender<u8>, stopped: &AtomicBool) {
    let stdin: BorrowedFd<'_> = rustix::stdio::stdin();
    while !stopped.load(Ordering::Acquire) {
        let mut asked = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut asked, Some(&LOOK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(_) => return,
        }
        let mut bytes = [0u8; 64];
        match rustix::io::read(stdin, &mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(count) => {
                for byte in &bytes[..count] {
                    let _ended = sender.send(*byte);
                }
            }
        }
    }
}
