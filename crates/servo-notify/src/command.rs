//! Commands: a program on the machine of the server is given the notification.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use servo_core::Millis;
use servo_engine::notification::{Delivery, SendFailure};
use servo_engine::work::CREDENTIALS;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use crate::{Senders, again, never};

const LONGEST: Millis = Millis::from_secs(30);

/// Characters of what it printed that are told of a failure.
const TOLD: usize = 300;
const MOST_READ: u64 = 64 * 1_024;

/// Runs a program with the notification as its standard input.
pub(crate) async fn run(
    senders: &Senders,
    delivery: &Delivery,
    command: &[String],
    timeout: Option<Millis>,
) -> Result<(), SendFailure> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(never("the command names no program"));
    };
    let longest = timeout.unwrap_or(LONGEST);
    let mut process = Command::new(program);
    for name in CREDENTIALS {
        process.env_remove(name);
    }
    process
        .args(arguments)
        .env("SERVO_NOTIFICATION_ID", &*delivery.notification_id)
        .env("SERVO_NOTIFICATION_TRIGGER", delivery.trigger.name())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    if let Some(directory) = &senders.project {
        process.current_dir(directory);
    }
    let mut child =
        process.spawn().map_err(|error| again(format!("{program} cannot be started: {error}")))?;
    let group = Group(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
    let input = senders.object(delivery).to_string();
    let stdin = child.stdin.take();
    let ended = async {
        if let Some(mut stdin) = stdin {
            // A program that does not read it need not.
            let _closed = stdin.write_all(input.as_bytes()).await;
        }
        wait(child).await
    };
    let ended = tokio::time::timeout(Duration::from_millis(longest.get()), ended).await;
    drop(group);
    match ended {
        Err(_) => Err(again(format!("{program} did not end within {longest}, and was stopped"))),
        Ok(Err(error)) => Err(again(format!("{program} could not be waited for: {error}"))),
        Ok(Ok((status, _))) if status.success() => Ok(()),
        Ok(Ok((status, printed))) => {
            let start = printed.chars().count().saturating_sub(TOLD);
            let printed: String = printed.chars().skip(start).collect();
            Err(again(format!("{program} ended with {status}: {}", printed.trim())))
        }
    }
}

/// How it ended, and the beginning of what it printed.
async fn wait(mut child: Child) -> std::io::Result<(std::process::ExitStatus, String)> {
    let mut printed = Vec::new();
    if let Some(mut stderr) = child.stderr.take() {
        (&mut stderr).take(MOST_READ).read_to_end(&mut printed).await?;
        // It goes on only if somebody reads.
        tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await?;
    }
    Ok((child.wait().await?, String::from_utf8_lossy(&printed).into_owned()))
}

/// The processes of a command; none is left when it is dropped.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _gone = kill_process_group(group, Signal::KILL);
        }
    }
}
