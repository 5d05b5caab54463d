//! Ctrl-C and SIGTERM.

use std::future::Future;

use tokio::signal::unix::{SignalKind, signal};

/// Resolves at the first Ctrl-C (SIGINT) or SIGTERM. The handlers stand when this returns, so no signal is missed.
pub fn stop() -> std::io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
