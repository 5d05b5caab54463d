//! Ctrl-C and SIGTERM: the first signal stops serving, the second one stops waiting for requests in
//! flight. The end of standard input, where it counts, is as Ctrl-C.
//!
//! Not here: SIGHUP, which ends nothing (`reload`).

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::exit::Exit;

/// Ctrl-C (SIGINT) and SIGTERM.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Resolves when standard input ends. It counts as the first signal alone.
    input: Option<oneshot::Receiver<()>>,
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
            input: None,
        })
    }

    /// The end of standard input counts too. The process that started this one holds its other end,
    /// so the input ends when that process does, however it ends.
    pub fn or_end_of_input(mut self) -> std::io::Result<Self> {
        let (sender, receiver) = oneshot::channel();
        // A thread of its own: a read of standard input cannot be given up, so the runtime must not
        // wait for it.
        std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
            // What cannot be read has ended as well.
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            drop(sender);
        })?;
        self.input = Some(receiver);
        Ok(self)
    }

    /// Resolves at the next signal.
    pub async fn next(&mut self) -> StopSignal {
        let came = tokio::select! {
            _ = self.interrupt.recv() => StopSignal::Interrupt,
            _ = self.terminate.recv() => StopSignal::Terminate,
            () = ended(&mut self.input) => StopSignal::Interrupt,
        };
        // Who stops it by a signal and ends is no second signal: requests in flight are finished.
        self.input = None;
        came
    }
}

/// Resolves when that input ends; never where there is none.
async fn ended(input: &mut Option<oneshot::Receiver<()>>) {
    match input {
        Some(input) => drop(input.await),
        None => std::future::pending().await,
    }
}
