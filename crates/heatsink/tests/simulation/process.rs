//! One process of the simulation, a gateway or a worker: its tasks run on a runtime of its own, in
//! turns that the world gives.
//!
//! A process that is stopped gets no turns, while time and the network go on, as under SIGSTOP. One
//! that is killed is dropped with all its tasks; what it has sent goes on.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use futures::task::AtomicWaker;
use heatsink_env::Processes;
use tokio::runtime::{Builder, Handle, Runtime};

pub struct Process {
    /// Which processes run: all that the world has made, but for those that were killed.
    alive: Alive,
    number: u64,
    runtime: Runtime,
    idle: Arc<Idle>,
    stopped: AtomicBool,
}

/// Whether every task of the process waits.
#[derive(Default)]
struct Idle {
    parked: AtomicBool,
    waker: AtomicWaker,
}

impl Process {
    pub fn new(alive: &Alive) -> Process {
        let number = alive.begin();
        let idle = Arc::new(Idle::default());
        let parking = Arc::clone(&idle);
        let runtime = Builder::new_current_thread()
            .on_thread_park(move || {
                parking.parked.store(true, Ordering::SeqCst);
                parking.waker.wake();
            })
            .build()
            .unwrap();
        Process { alive: alive.clone(), number, runtime, idle, stopped: AtomicBool::new(false) }
    }

    /// What the system tells this process of others.
    pub fn neighbours(&self) -> Arc<dyn Processes> {
        Arc::new(Neighbours { alive: self.alive.clone(), number: self.number })
    }

    /// Where tasks can be spawned.
    pub fn handle(&self) -> Handle {
        self.runtime.handle().clone()
    }

    /// Runs its tasks until all of them wait, unless it is stopped.
    pub fn run(&self) {
        if self.is_stopped() {
            return;
        }
        let idle = &self.idle;
        idle.parked.store(false, Ordering::SeqCst);
        self.runtime.block_on(std::future::poll_fn(|context| {
            idle.waker.register(context.waker());
            if idle.parked.load(Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }
        }));
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    pub fn stop(&self, stopped: bool) {
        self.stopped.store(stopped, Ordering::SeqCst);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.alive.running.lock().unwrap().1.remove(&self.number);
    }
}

/// The processes that run, stopped or not, and how many have been made.
#[derive(Clone, Debug)]
pub struct Alive {
    running: Arc<Mutex<(u64, BTreeSet<u64>)>>,
    /// Whether they are on one machine.
    pub together: bool,
}

impl Alive {
    pub fn new(together: bool) -> Alive {
        Alive { running: Arc::default(), together }
    }

    fn begin(&self) -> u64 {
        let mut made = self.running.lock().unwrap();
        made.0 += 1;
        let number = made.0;
        made.1.insert(number);
        number
    }
}

/// The processes of the world as one of them sees them.
#[derive(Debug)]
struct Neighbours {
    alive: Alive,
    number: u64,
}

impl Processes for Neighbours {
    fn own(&self) -> Option<String> {
        Some(self.number.to_string())
    }

    fn has_ended(&self, mark: &str) -> bool {
        let runs = |number: u64| self.alive.running.lock().unwrap().1.contains(&number);
        self.alive.together && mark.parse().is_ok_and(|number| !runs(number))
    }
}
