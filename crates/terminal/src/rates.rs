//! The rates of a key, as arguments.

use crate::exit::Exit;

/// A number a second; -0 is 0.
pub fn rate(text: &str) -> Result<f64, std::num::ParseFloatError> {
    text.parse::<f64>().map(|rate| rate + 0.0)
}

/// Checks the rates of a key, each a second. The peak is the sustained rate where none is given.
///
/// # Errors
/// Exit 64 for a rate below 0 or above 1,000,000,000, and for a peak below the sustained rate.
pub fn rates(writes: f64, peak: Option<f64>, reads: f64) -> Result<f64, Exit> {
    let peak = peak.unwrap_or(writes);
    for (name, value) in [("--writes", writes), ("--peak", peak), ("--reads", reads)] {
        if !(0.0..=1e9).contains(&value) {
            return Err(Exit::usage(format!(
                "{name} is a rate from 0 to 1,000,000,000 a second, not {value}"
            )));
        }
    }
    if peak < writes {
        return Err(Exit::usage(format!("--peak ({peak}) is below --writes ({writes})")));
    }
    Ok(peak)
}
