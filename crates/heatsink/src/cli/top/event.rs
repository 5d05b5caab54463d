//! What the screen is told while it waits for keys.

use super::told::Told;

/// Something that the screen takes notice of.
#[derive(Debug)]
pub enum Event {
    Told(Told),
    /// SIGTERM or SIGINT.
    Stop,
}
