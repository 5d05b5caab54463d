//! What is done about heat, told by whoever does it.
//!
//! Not here: doing it (`heatsink_workers`).

/// Tells as JSON what is done about heat, and what is not.
pub type Told = Box<dyn Fn() -> serde_json::Value + Send + Sync>;
