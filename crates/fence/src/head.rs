//! The head of the registry: the newest epoch, and what the last few epochs changed.

use serde::{Deserialize, Serialize};

/// Numbers the changes of a registry. Each change has its own number.
pub type Epoch = u64;

/// How many changes the head keeps. A gateway that has missed more assumes that everything changed.
pub const KEPT_CHANGES: usize = 16;

/// The change of one epoch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Change {
    /// Its epoch.
    pub epoch: Epoch,
    /// The table's name. Requests name tables by it, so every plan for the name is invalid,
    /// whichever table it stood for.
    pub table: String,
    /// The version of the table's record that was written before the head; `None` if only the name
    /// was reserved.
    pub version: u64,
}

/// The head as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Head {
    /// The newest epoch.
    pub epoch: Epoch,
    /// The changes of the newest epochs, the newest last; at most [`KEPT_CHANGES`].
    pub changes: Vec<Change>,
}

/// The changes between an epoch and the head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changes<'a> {
    /// These changes; none if the epoch is the head's.
    These(&'a [Change]),
    /// More changes than the head keeps.
    Everything,
}

impl Head {
    /// The changes after `epoch`.
    pub fn since(&self, epoch: Epoch) -> Changes<'_> {
        if epoch >= self.epoch {
            return Changes::These(&[]);
        }
        let begin = self.changes.partition_point(|change| change.epoch <= epoch);
        let missed = self.changes.get(begin..).unwrap_or_default();
        // Epochs have no gaps: the kept changes must begin with the next epoch.
        match missed.first() {
            Some(first) if first.epoch == epoch + 1 => Changes::These(missed),
            _ => Changes::Everything,
        }
    }

    /// The head after one more change.
    #[must_use]
    pub fn with(&self, table: &str, version: u64) -> Head {
        let epoch = self.epoch + 1;
        let kept = self.changes.len().saturating_sub(KEPT_CHANGES - 1);
        let mut changes = self.changes.get(kept..).unwrap_or_default().to_vec();
        changes.push(Change { epoch, table: table.to_owned(), version });
        Head { epoch, changes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_tells_what_changed_as_far_back_as_it_keeps() {
        let mut head = Head::default();
        for number in 0..20_u64 {
            head = head.with(&format!("table{number}"), 1);
        }
        assert_eq!((head.epoch, head.changes.len()), (20, KEPT_CHANGES));
        assert_eq!(head.since(20), Changes::These(&[]));
        let Changes::These(missed) = head.since(17) else { panic!() };
        assert_eq!(missed.iter().map(|change| change.epoch).collect::<Vec<_>>(), [18, 19, 20]);
        assert!(matches!(head.since(4), Changes::These(all) if all.len() == 16));
        assert_eq!(head.since(3), Changes::Everything);
    }
}
