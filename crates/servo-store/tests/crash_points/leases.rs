//! Leases on blobs in files.

use std::error::Error;
use std::sync::Arc;

use futures::executor::block_on;
use servo_core::{Millis, Timestamp};
use servo_store::conformance::layout;
use servo_store::testing::MemoryFiles;
use servo_store::{FileBlobs, Lease, Leases};

use crate::crashes::{Client, CrashFreeRun, survive_all};

const TTL: Millis = Millis::from_secs(10);
/// So many that old records are deleted.
const RENEWALS: u32 = 22;

/// Two holders: the live one takes the lease, renews it often and releases it, then the other does so once more.
#[derive(Default)]
struct Holders {
    /// How many processes there have been; each is a holder of its own.
    processes: u64,
    now: i64,
    /// The last acknowledged lease.
    told: Option<Lease>,
    /// Whether the one who had it may have given it up.
    released: bool,
    renewed: u32,
}

impl Holders {
    fn at(&self) -> Timestamp {
        Timestamp::from_millis(self.now * 1000)
    }

    fn is_told(&mut self, lease: Lease) {
        self.told = Some(lease);
        self.now += 1;
    }

    async fn go_on(&mut self, leases: &Leases) -> Result<(), Box<dyn Error>> {
        let found = leases.acquire(self.at()).await?;
        if self.told.is_some() && !self.released {
            assert_eq!(found, None, "the dead one still has it");
        }
        let lease = match found {
            Some(lease) => lease,
            None => {
                self.now += 10;
                leases.acquire(self.at()).await?.expect("it has expired")
            }
        };
        if let Some(told) = self.told {
            assert!(lease.epoch > told.epoch, "{lease:?} after {told:?}");
        }
        assert!(lease.epoch <= self.processes, "{lease:?}");
        self.released = false;
        self.is_told(lease);
        while self.renewed < RENEWALS {
            let renewed = leases.renew(self.at()).await?.expect("still ours");
            assert_eq!(renewed.epoch, lease.epoch);
            self.is_told(renewed);
            self.renewed += 1;
        }
        self.released = true;
        leases.release(self.at()).await?;
        Ok(())
    }
}

impl Client for Holders {
    fn run(&mut self, files: &MemoryFiles) -> Result<(), Box<dyn Error>> {
        self.processes += 1;
        let blobs = FileBlobs::with_files(Arc::new(files.clone()), "/state", &layout());
        let leases = Leases::new(Arc::new(blobs), "compactor", format!("process {}", self.processes), TTL);
        block_on(self.go_on(&leases))
    }
}

#[test]
fn a_lease_is_respected_and_passed_on_wherever_its_holder_dies() {
    let undisturbed = CrashFreeRun::run::<Holders>();
    let mut cases = undisturbed.once();
    cases.extend(undisturbed.once_with_power(0));
    let points = survive_all::<Holders>(cases, |_| {});
    eprintln!("leases: {points} deaths and losses of power");
    assert!(points >= 1_000, "{points}");
}
