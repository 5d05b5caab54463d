//! Ctrl-C and SIGTERM: the first signal stops serving, the second one stops waiting for requests in
//! flight.
//!
//! Not here: SIGHUP, which ends nothing (`reload`).

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Exit;

/// Ctrl-C (SIGINT) and SIGTERM.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSignal {
    /// A person at the terminal wants it to end.
    Interrupt,
    /// What manages services wants it to end, and leads clients elsewhere.
    Terminate,
}

impl StopSignal {
    /// How the process ends if it does so at once.
    pub fn at_once(self) -> Exit {
        let (name, number) = match self {
            StopSignal::Interrupt => ("Ctrl-C", 2),
            StopSignal::Terminate => ("SIGTERM", 15),
        };
        Exit::signalled(
            number,
            format!("a second signal ({name}) came before all requests in flight were finished"),
        )
    }
}

impl Signals {
    /// The handlers stand when this returns, so no signal is missed.
    pub fn catch() -> std::io::Result<Self> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Resolves at the next signal.
    pub async fn next(&mut self) -> StopSignal {
        tokio::select! {
            _ = self.interrupt.recv() => StopSignal::Interrupt,
            _ = self.terminate.recv() => StopSignal::Terminate,
        }
    }
}
