//! The simulated scheduler: one thread, one clock, and a random generator that decides which task is next.
//!
//! Everything that happens is either a task that was woken or an event whose time has come. Tasks belong to a
//! process, which can be killed or frozen. Processes belong to a domain: domains share the clock and nothing else, so
//! what happens in one does not depend on whether the other is there.

use std::collections::{BTreeMap, BinaryHeap};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures::future::BoxFuture;

use crate::rng::Rng;

/// A part of the world that shares nothing but the clock with the others.
pub type Domain = u8;

const LANES: usize = 4;

/// A process: everything in it dies at once.
pub type ProcessId = u32;

/// The simulated machines, network and clock. Cheap to clone.
#[derive(Clone)]
pub struct World {
    /// The time at which it begins, in milliseconds since 1970.
    start: i64,
    inner: Arc<Mutex<Inner>>,
    woken: Arc<Mutex<Woken>>,
}

#[derive(Default)]
struct Woken([Vec<u32>; LANES]);

struct Inner {
    /// Microseconds since the beginning.
    now: u64,
    events: BinaryHeap<Due>,
    next_order: u64,
    tasks: Vec<Option<Task>>,
    free: Vec<u32>,
    processes: BTreeMap<ProcessId, Process>,
    next_process: ProcessId,
    rng: [Rng; LANES],
    turns: Rng,
    steps: u64,
    hash: u64,
    trace: Option<Vec<String>>,
    /// Whether it has ended: nothing happens any more.
    ended: bool,
}

struct Task {
    process: ProcessId,
    name: &'static str,
    /// Creation number of the task.
    born: u64,
    /// Absent while it is being polled.
    future: Option<BoxFuture<'static, ()>>,
    waker: Waker,
    signal: Arc<Signal>,
}

struct Process {
    name: String,
    domain: Domain,
    frozen: bool,
    /// Tasks that were woken while the process was paused.
    waiting: Vec<u32>,
    /// A planned event after so many more turns of its tasks.
    interrupt_after: Option<(u64, Happening)>,
}

/// Wakes a task once, however often it is called before the task's turn.
struct Signal {
    task: u32,
    domain: Domain,
    queued: AtomicBool,
    woken: Arc<Mutex<Woken>>,
}

impl Signal {
    /// Detaches the task: later wake-ups do nothing. False if its number is still queued, and can be reused only after
    /// its turn.
    fn silence(&self) -> bool {
        !self.queued.swap(true, Ordering::Relaxed)
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            lock(&self.woken).0[usize::from(self.domain)].push(self.task);
        }
    }
}

type Happening = Box<dyn FnOnce(&World) + Send>;

enum What {
    Wake(Waker, Arc<AtomicBool>),
    Happen(Happening),
}

struct Due {
    at: u64,
    /// A random number of the domain, then the order of arrival: two events of one moment come in any order.
    tie: u32,
    order: u64,
    what: What,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    /// The earliest is the greatest: a heap gives the greatest first.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.at, other.tie, other.order).cmp(&(self.at, self.tie, self.order))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    /// A world in which nothing has happened yet, at this time.
    pub fn new(seed: u64, start: i64, traced: bool) -> Self {
        let inner = Inner {
            now: 0,
            events: BinaryHeap::new(),
            next_order: 0,
            tasks: Vec::new(),
            free: Vec::new(),
            processes: BTreeMap::new(),
            next_process: 1,
            rng: std::array::from_fn(|domain| Rng::fork(seed, 100 + domain as u64)),
            turns: Rng::fork(seed, 99),
            steps: 0,
            hash: seed,
            trace: traced.then(Vec::new),
            ended: false,
        };
        Self { start, inner: Arc::new(Mutex::new(inner)), woken: Arc::default() }
    }

    /// The time at which it began, in milliseconds since 1970.
    pub fn start(&self) -> i64 {
        self.start
    }

    /// Microseconds since the beginning.
    pub fn now(&self) -> u64 {
        lock(&self.inner).now
    }

    /// The number of turns of tasks and events so far.
    pub fn steps(&self) -> u64 {
        lock(&self.inner).steps
    }

    /// Hash of everything that happened, and its order.
    pub fn hash(&self) -> u64 {
        lock(&self.inner).hash
    }

    /// Draws from the random generator of a domain.
    pub fn roll<T>(&self, domain: Domain, throw: impl FnOnce(&mut Rng) -> T) -> T {
        throw(&mut lock(&self.inner).rng[usize::from(domain)])
    }

    /// Records an event: into the hash always, into the trace if enabled.
    pub fn note(&self, what: &str, detail: impl FnOnce() -> String) {
        let mut inner = lock(&self.inner);
        inner.mix(what.as_bytes());
        if inner.trace.is_some() {
            let line = format!("{:>14} {what} {}", seconds(inner.now), detail());
            inner.trace.get_or_insert_default().push(line);
        }
    }

    /// Adds bytes to the hash.
    pub fn mix(&self, bytes: &[u8]) {
        lock(&self.inner).mix(bytes);
    }

    /// The trace, if it was requested.
    pub fn trace(&self) -> Vec<String> {
        lock(&self.inner).trace.clone().unwrap_or_default()
    }

    /// A new process.
    pub fn process(&self, domain: Domain, name: impl Into<String>) -> ProcessId {
        let mut inner = lock(&self.inner);
        let id = inner.next_process;
        inner.next_process += 1;
        let process =
            Process { name: name.into(), domain, frozen: false, waiting: Vec::new(), interrupt_after: None };
        inner.processes.insert(id, process);
        id
    }

    /// Live processes and their tasks.
    pub fn alive(&self) -> Vec<String> {
        let inner = lock(&self.inner);
        let tasks = inner.tasks.iter().flatten();
        let told = tasks.filter_map(|task| {
            let process = inner.processes.get(&task.process)?;
            Some(format!("{}{}: {}", process.name, if process.frozen { " (frozen)" } else { "" }, task.name))
        });
        told.collect()
    }

    /// Spawns a task. Does nothing if its process is dead.
    pub fn spawn(&self, process: ProcessId, name: &'static str, future: BoxFuture<'static, ()>) {
        let mut inner = lock(&self.inner);
        let Some(domain) = inner.processes.get(&process).map(|process| process.domain) else {
            drop(inner);
            drop(future);
            return;
        };
        let number = inner.free.pop().unwrap_or(inner.tasks.len() as u32);
        let woken = Arc::clone(&self.woken);
        let signal = Arc::new(Signal { task: number, domain, queued: AtomicBool::new(true), woken });
        let waker = Waker::from(Arc::clone(&signal));
        let born = inner.next_order;
        inner.next_order += 1;
        let task = Some(Task { process, name, born, future: Some(future), waker, signal });
        match inner.tasks.get_mut(number as usize) {
            Some(slot) => *slot = task,
            None => inner.tasks.push(task),
        }
        drop(inner);
        lock(&self.woken).0[usize::from(domain)].push(number);
    }

    /// Kills a process at once, as `kill -9` does.
    pub fn kill(&self, process: ProcessId) {
        let mut inner = lock(&self.inner);
        let Some(dead) = inner.processes.remove(&process) else { return };
        let mut leak_check = Vec::new();
        for (number, slot) in inner.tasks.iter_mut().enumerate() {
            if let Some(task) = slot.take_if(|task| task.process == process) {
                // A number that is queued to be woken is given away only when its turn has passed.
                leak_check.push((number as u32, task));
            }
        }
        // Whoever hears of their end hears of it in this order. Numbers depend on who else lives in this world.
        leak_check.sort_by_key(|(_, task)| task.born);
        for (number, task) in &leak_check {
            if task.signal.silence() {
                inner.free.push(*number);
            }
        }
        drop(inner);
        drop(leak_check);
        self.note("killed", || dead.name);
    }

    /// Stops the simulation. Tasks that wait for an event hold the world, and are held by it, until then.
    pub fn end(&self) {
        let mut inner = lock(&self.inner);
        let Inner { tasks, events, processes, ended, .. } = &mut *inner;
        *ended = true;
        let ended = (std::mem::take(tasks), std::mem::take(events), std::mem::take(processes));
        drop(inner);
        drop(ended);
    }

    /// Returns a handle that tells whether the world was freed.
    pub fn leak_check(&self) -> LeakCheck {
        LeakCheck(Arc::downgrade(&self.inner))
    }

    /// Pauses a process as SIGSTOP does, until it is resumed.
    pub fn freeze(&self, process: ProcessId) {
        if let Some(process) = lock(&self.inner).processes.get_mut(&process) {
            process.frozen = true;
        }
    }

    /// Schedules an event for a process after so many turns of its tasks, at whatever time that is. Dropped if the
    /// process ends before.
    pub fn interrupt_after(
        &self,
        process: ProcessId,
        turns: u64,
        happening: impl FnOnce(&World) + Send + 'static,
    ) {
        if let Some(process) = lock(&self.inner).processes.get_mut(&process) {
            process.interrupt_after = Some((turns, Box::new(happening)));
        }
    }

    /// Resumes a paused process.
    pub fn thaw(&self, process: ProcessId) {
        let (domain, waiting) = {
            let mut inner = lock(&self.inner);
            let Some(process) = inner.processes.get_mut(&process) else { return };
            process.frozen = false;
            (process.domain, std::mem::take(&mut process.waiting))
        };
        lock(&self.woken).0[usize::from(domain)].extend(waiting);
    }

    /// Schedules an event.
    pub fn after(&self, domain: Domain, micros: u64, happening: impl FnOnce(&World) + Send + 'static) {
        let mut inner = lock(&self.inner);
        if !inner.ended {
            inner.schedule(domain, micros, What::Happen(Box::new(happening)));
        }
    }

    /// Ready when this much time has passed.
    pub fn pause(&self, domain: Domain, how_long: Duration) -> Sleep {
        self.sleep(domain, u64::try_from(how_long.as_micros()).unwrap_or(u64::MAX))
    }

    /// The same, in microseconds.
    pub fn sleep(&self, domain: Domain, micros: u64) -> Sleep {
        Sleep { world: self.clone(), domain, micros, state: None }
    }

    /// Runs one turn of one task, or one event; false if there is nothing left to run.
    pub fn step(&self) -> bool {
        if let Some(number) = self.next_woken() {
            self.poll(number);
            return true;
        }
        let mut inner = lock(&self.inner);
        while let Some(due) = inner.events.pop() {
            let happening = match due.what {
                // Nobody waits for it any more.
                What::Wake(_, cancelled) if cancelled.load(Ordering::Relaxed) => continue,
                What::Wake(waker, _) => {
                    inner.now = inner.now.max(due.at);
                    drop(inner);
                    waker.wake();
                    return true;
                }
                What::Happen(happening) => happening,
            };
            inner.now = inner.now.max(due.at);
            inner.steps += 1;
            drop(inner);
            happening(self);
            return true;
        }
        false
    }

    /// Steps until a future is ready; none if there is nothing left to do, or too much.
    pub fn run_until<T>(
        &self,
        domain: Domain,
        most_steps: u64,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Option<T>
    where
        T: Send + 'static,
    {
        let process = self.process(domain, "until");
        let answer = Arc::new(Mutex::new(None));
        let put = Arc::clone(&answer);
        self.spawn(
            process,
            "until",
            Box::pin(async move {
                let value = future.await;
                *lock(&put) = Some(value);
            }),
        );
        let last = self.steps().saturating_add(most_steps);
        loop {
            if let Some(value) = lock(&answer).take() {
                lock(&self.inner).processes.remove(&process);
                return Some(value);
            }
            if self.steps() > last || !self.step() {
                self.kill(process);
                return None;
            }
        }
    }

    /// A random woken task of some domain.
    fn next_woken(&self) -> Option<u32> {
        let mut woken = lock(&self.woken);
        let domains: usize = woken.0.iter().filter(|domain| !domain.is_empty()).count();
        if domains == 0 {
            return None;
        }
        let mut inner = lock(&self.inner);
        let chosen = if domains == 1 { 0 } else { inner.turns.below(domains) };
        let domain = (0..LANES).filter(|domain| !woken.0[*domain].is_empty()).nth(chosen)?;
        let queue = &mut woken.0[domain];
        let at = if queue.len() == 1 { 0 } else { inner.rng[domain].below(queue.len()) };
        Some(queue.swap_remove(at))
    }

    fn poll(&self, number: u32) {
        let mut inner = lock(&self.inner);
        let Inner { tasks, processes, free, steps, .. } = &mut *inner;
        let Some(task) = tasks[number as usize].as_mut() else {
            // Its process was killed after it was woken.
            free.push(number);
            return;
        };
        let Some(process) = processes.get_mut(&task.process) else { return };
        if process.frozen {
            process.waiting.push(number);
            return;
        }
        task.signal.queued.store(false, Ordering::Relaxed);
        let Some(mut future) = task.future.take() else { return };
        let waker = task.waker.clone();
        *steps += 1;
        let happening = process.take_turn();
        drop(inner);
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        self.put_back(number, future, &waker, polled.is_pending());
        if let Some(happening) = happening {
            happening(self);
        }
    }

    /// Puts a task back after its turn, or drops it if it is done.
    fn put_back(&self, number: u32, future: BoxFuture<'static, ()>, waker: &Waker, goes_on: bool) {
        let mut inner = lock(&self.inner);
        let slot = &mut inner.tasks[number as usize];
        let mut over = None;
        match slot {
            Some(task) if task.future.is_none() && task.waker.will_wake(waker) => {
                if goes_on {
                    task.future = Some(future);
                    return;
                }
                over = slot.take();
                if over.as_ref().is_some_and(|task| task.signal.silence()) {
                    inner.free.push(number);
                }
            }
            // It was killed during its own turn.
            Some(_) | None => {}
        }
        drop(inner);
        drop(future);
        drop(over);
    }
}

impl Process {
    /// Counts a turn of one of its tasks; returns the event scheduled after it.
    fn take_turn(&mut self) -> Option<Happening> {
        let (turns, happening) = self.interrupt_after.take()?;
        if turns <= 1 {
            return Some(happening);
        }
        self.interrupt_after = Some((turns - 1, happening));
        None
    }
}

impl Inner {
    fn schedule(&mut self, domain: Domain, micros: u64, what: What) {
        let tie = self.rng[usize::from(domain)].draw() as u32;
        let order = self.next_order;
        self.next_order += 1;
        self.events.push(Due { at: self.now.saturating_add(micros), tie, order, what });
    }

    fn mix(&mut self, bytes: &[u8]) {
        let mut hash = self.hash ^ self.now;
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        }
        self.hash = hash.wrapping_add(bytes.len() as u64);
    }
}

/// Ready when its time has come.
pub struct Sleep {
    world: World,
    domain: Domain,
    micros: u64,
    state: Option<(u64, Arc<AtomicBool>)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let world = self.world.clone();
        let mut inner = lock(&world.inner);
        match &self.state {
            Some((until, _)) if inner.now >= *until => Poll::Ready(()),
            Some(_) => Poll::Pending,
            None => {
                let cancelled = Arc::new(AtomicBool::new(false));
                let (domain, micros) = (self.domain, self.micros);
                self.state = Some((inner.now.saturating_add(micros), Arc::clone(&cancelled)));
                inner.schedule(domain, micros, What::Wake(context.waker().clone(), cancelled));
                Poll::Pending
            }
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some((_, cancelled)) = &self.state {
            cancelled.store(true, Ordering::Relaxed);
        }
    }
}

/// Detects leaks after a world has ended: empty, unless a part of it holds itself.
pub struct LeakCheck(Weak<Mutex<Inner>>);

impl LeakCheck {
    /// Whether its memory was freed.
    pub fn are_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}

/// Microseconds as people read them.
pub fn seconds(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// A length of time in the unit of the world.
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
