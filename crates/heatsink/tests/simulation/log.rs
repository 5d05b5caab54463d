//! What happened, line by line, each with its moment. One seed gives one log.

use std::sync::{Arc, Mutex};

use crate::clock::Clock;

/// The log of one simulation. Clones share it.
#[derive(Clone)]
pub struct Log {
    clock: Clock,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Log {
    pub fn new(clock: &Clock) -> Log {
        Log { clock: clock.clone(), lines: Arc::default() }
    }

    pub fn line(&self, text: impl AsRef<str>) {
        let now = self.clock.now().0 / 1_000;
        let line = format!("{:>5}.{:06} {}", now / 1_000_000, now % 1_000_000, text.as_ref());
        self.lines.lock().unwrap().push(line);
    }

    /// Prints the last lines; all of them, where a seed is replayed.
    pub fn print_end(&self) {
        let lines = self.take();
        let from =
            if crate::setting("HEATSINK_SEED").is_some() { 0 } else { lines.len().saturating_sub(100) };
        lines[from..].iter().for_each(|line| println!("{line}"));
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.lines.lock().unwrap())
    }
}
