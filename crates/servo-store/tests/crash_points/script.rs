//! The actions of a log's writer, and its expectations after a restart.

use std::error::Error;

use futures::TryStreamExt;
use servo_core::PutId;
use servo_store::{Log, Record, Seq};

#[derive(Debug, Clone, Copy)]
enum Step {
    /// Appends a batch with a text of so many bytes.
    Append(usize),
    DeleteBefore(Seq),
    /// Closes the log and opens it again.
    Reopen,
}

use Step::{Append, DeleteBefore, Reopen};

const SCRIPT: [Step; 26] = [
    Append(0),
    Append(40),
    Append(300),
    Append(1),
    Append(5000),
    DeleteBefore(2),
    Append(10),
    Append(200),
    DeleteBefore(5),
    Reopen,
    Append(700),
    Append(4500),
    Append(3),
    DeleteBefore(5),
    Append(150),
    Append(150),
    Append(150),
    Reopen,
    DeleteBefore(11),
    Append(2),
    DeleteBefore(15),
    Append(600),
    Append(20),
    Reopen,
    Append(1),
    DeleteBefore(16),
];

/// A writer and its acknowledgements. It outlives the process that it runs in.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    /// How many steps were acknowledged.
    done: usize,
}

impl Writer {
    /// Goes through what is left of the script, until it is done or the process has died. Every time the log was
    /// opened, what was acknowledged must be there.
    pub(crate) async fn go_on<L: Log>(
        &mut self,
        open: impl Fn() -> Result<L, Box<dyn Error>>,
    ) -> Result<(), Box<dyn Error>> {
        loop {
            let log = open()?;
            self.check(&log).await;
            loop {
                match SCRIPT.get(self.done) {
                    None => return Ok(()),
                    Some(Append(_)) => log.append(self.record(self.acknowledged() + 1)).await?,
                    Some(DeleteBefore(seq)) => log.truncate_before(*seq).await?,
                    Some(Reopen) => break,
                }
                self.done += 1;
            }
            self.done += 1;
        }
    }

    /// The last acknowledged batch.
    fn acknowledged(&self) -> Seq {
        SCRIPT[..self.done].iter().map(|step| Seq::from(matches!(step, Append(_)))).sum()
    }

    /// The boundaries that there may be: the last one that was acknowledged, and one more if that is the next step.
    fn boundaries(&self) -> (Seq, Seq) {
        let boundary = |steps: &[Step]| steps.iter().fold(1, |lowest, step| lowest.max(step.boundary()));
        (boundary(&SCRIPT[..self.done]), boundary(&SCRIPT[..SCRIPT.len().min(self.done + 1)]))
    }

    /// The same each time, with the same put id.
    fn record(&self, seq: Seq) -> Record {
        let mut sizes = SCRIPT.iter().filter_map(|step| match step {
            Append(size) => Some(*size),
            DeleteBefore(_) | Reopen => None,
        });
        let size = usize::try_from(seq - 1).ok().and_then(|at| sizes.nth(at)).expect("the script appends it");
        let payload = format!(r#"[{{"seq":{seq},"text":"{}"}}]"#, "x".repeat(size)).into();
        Record { seq, epoch: 1, put_id: PutId::from_parts(7, u128::from(seq)), payload }
    }

    /// Checks that every acknowledged batch is there, at most one more, and nothing else.
    async fn check(&self, log: &dyn Log) {
        let (acknowledged, next) = (self.acknowledged(), log.next_seq().await.expect("the end is found"));
        let in_flight = matches!(SCRIPT.get(self.done), Some(Append(_)));
        assert!(
            next == acknowledged + 1 || in_flight && next == acknowledged + 2,
            "{acknowledged} were acknowledged and {next} is next, after {} steps",
            self.done
        );
        let lowest = log.boundary().await.expect("the boundary is read");
        let (least, most) = self.boundaries();
        assert!(lowest == least || lowest == most, "the log begins at {lowest}, not at {least} or {most}");
        let found: Vec<Record> = log.read(lowest).try_collect().await.expect("the log is read");
        let expected: Vec<Record> = (lowest..next).map(|seq| self.record(seq)).collect();
        assert!(found == expected, "the batches from {lowest} to {next} are not those that were written");
    }
}

impl Step {
    fn boundary(&self) -> Seq {
        match self {
            DeleteBefore(seq) => *seq,
            Append(_) | Reopen => 1,
        }
    }
}
