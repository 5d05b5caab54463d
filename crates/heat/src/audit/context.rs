//! What holds for all patterns of a report.

use super::recorded::Recorded;

/// How much of a table was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub items: u64,
    /// Of about so many. DynamoDB counts every six hours, so it may be too few.
    pub of: u64,
}

impl Sample {
    /// `None` if the count says that there are no more items.
    #[allow(clippy::cast_precision_loss, reason = "items, far below 2^52")]
    pub fn share(self) -> Option<f64> {
        (self.of > self.items).then(|| self.items as f64 / self.of as f64)
    }
}

/// What holds for all patterns of a report.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub table: &'a str,
    pub sample: Option<Sample>,
    pub measured: bool,
    /// Of recorded requests: what is known of all of them.
    pub recorded: Option<Recorded<'a>>,
    /// Items of the whole table, or of the sample.
    pub all: u64,
}
