//! Ctrl-C and SIGTERM: the first signal stops serving, the second one stops waiting for requests in
//! flight.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Exit;

/// Ctrl-C (SIGINT) and SIGTERM.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// The handlers stand when this returns, so no signal is missed.
    pub fn catch() -> std::io::Result<Self> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Resolves at the next signal, to how the process ends if it does so at once.
    pub async fn next(&mut self) -> Exit {
        let (name, number) = tokio::select! {
            _ = self.interrupt.recv() => ("Ctrl-C", 2),
            _ = self.terminate.recv() => ("SIGTERM", 15),
        };
        Exit::signalled(
            number,
            format!("a second signal ({name}) came before all requests in flight were finished"),
        )
    }
}
