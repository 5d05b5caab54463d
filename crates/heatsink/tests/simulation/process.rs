//! One process of the simulation, a gateway or a worker: its tasks run on a runtime of its own, in turns that the world gives.
//!
//! A process that is stopped gets no turns, while time and the network go on, as under SIGSTOP. One that is killed is dropped with all
//! its tasks; what it has sent goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use futures::task::AtomicWaker;
use tokio::runtime::{Builder, Handle, Runtime};

pub struct Process {
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
    pub fn new() -> Process {
        let idle = Arc::new(Idle::default());
        let parking = Arc::clone(&idle);
        let runtime = Builder::new_current_thread()
            .on_thread_park(move || {
                parking.parked.store(true, Ordering::SeqCst);
                parking.waker.wake();
            })
            .build()
            .unwrap();
        Process { runtime, idle, stopped: AtomicBool::new(false) }
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
