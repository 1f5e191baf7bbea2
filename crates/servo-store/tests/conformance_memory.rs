//! The log in memory keeps every rule, with its faults switched on and off.

use std::sync::Arc;

use async_trait::async_trait;
use futures::TryStreamExt;
use servo_store::conformance::{Storage, Trouble, batch};
use servo_store::{ErrorKind, Log, MemoryFault, MemoryLog, Record};

struct Memory(MemoryLog);

#[async_trait]
impl Storage for Memory {
    async fn writer(&self) -> Arc<dyn Log> {
        Arc::new(self.0.clone())
    }

    fn trouble(&self, trouble: Trouble) -> bool {
        self.0.plan([Some(match trouble {
            Trouble::LostAnswer => MemoryFault::LostAnswer,
            Trouble::NothingLanded => MemoryFault::NothingLanded,
            Trouble::Unavailable => MemoryFault::Unavailable,
        })]);
        true
    }
}

async fn fresh() -> Memory {
    Memory(MemoryLog::new())
}

servo_store::log_conformance!(fresh);

mod blobs {
    use servo_store::{MemoryBlobs, conformance::layout};

    async fn fresh() -> (MemoryBlobs, ()) {
        (MemoryBlobs::in_memory(&layout()), ())
    }

    servo_store::blob_conformance!(fresh);
}

#[tokio::test]
async fn another_writer_takes_the_number_just_before() {
    let log = MemoryLog::new();
    log.plan([None, Some(MemoryFault::TakenBySomebodyElse)]);
    log.append(batch(1, 1)).await.unwrap();
    assert_eq!(log.append(batch(2, 1)).await.unwrap_err().kind(), ErrorKind::Conflict);
    let taken: Vec<Record> = log.read(2).try_collect().await.unwrap();
    assert_ne!(taken[0].put_id, batch(2, 1).put_id);
    log.append(batch(3, 1)).await.unwrap();
}

#[tokio::test]
async fn a_full_store_takes_nothing_and_recovers() {
    let log = MemoryLog::new();
    let mut left = 3;
    log.choose(move |_| {
        left -= 1;
        (left >= 0).then_some(MemoryFault::Full)
    });
    for _ in 0..3 {
        assert_eq!(log.append(batch(1, 1)).await.unwrap_err().kind(), ErrorKind::Full);
        assert_eq!(log.next_seq().await.unwrap(), 1);
    }
    log.append(batch(1, 1)).await.unwrap();
}
