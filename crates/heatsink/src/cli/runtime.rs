//! What runs the waiting parts of a command.

use tokio::runtime::{Builder, Runtime};

use crate::exit::Exit;

/// On the thread that calls it: for commands that make one call after the other.
pub fn one_thread() -> Result<Runtime, Exit> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// On a thread for each processor.
pub fn threads() -> Result<Runtime, Exit> {
    Ok(Builder::new_multi_thread().enable_all().build()?)
}
