//! Layouts in words, for messages and listings.

use crate::{By, Digest, Epoch, Hash, Layout, Strategy, TableLayouts, Time};

/// `1 shard`, `4 shards`.
pub fn shards(count: u16) -> String {
    format!("{count} shard{}", if count == 1 { "" } else { "s" })
}

/// ` in slot 5`, ` in slots 0, 1, 4`; nothing where none is named.
pub fn in_slots(slots: &[u16]) -> String {
    let named: Vec<String> = slots.iter().map(u16::to_string).collect();
    match slots.len() {
        0 => String::new(),
        1 => format!(" in slot {}", named.concat()),
        _ => format!(" in slots {}", named.join(", ")),
    }
}

impl std::fmt::Display for TableLayouts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, one) in self.iter().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            if let Some(index) = one.index() {
                write!(f, "index {}, ", index.name)?;
            }
            write!(f, "keys {:?}: {}", one.keys().text(), one.layout())?;
        }
        Ok(())
    }
}

impl std::fmt::Display for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shards = self.shards;
        match &self.strategy {
            Strategy::None => f.write_str("whole"),
            Strategy::Calculated { by, slots } if slots.is_empty() => write!(f, "{shards} shards by {by}"),
            Strategy::Calculated { slots, .. } if self.shards <= 1 => {
                write!(f, "whole{}", in_slots(slots))
            }
            Strategy::Calculated { by, slots } => {
                write!(f, "{shards} shards{} by {by}", in_slots(slots))
            }
            Strategy::Range { split_points, slots } => {
                write!(f, "{shards} ranges{} of the sort key, split at {split_points}", in_slots(slots))
            }
            Strategy::Bucket { time, earlier, .. } if shards <= 1 && earlier.is_empty() => {
                write!(f, "a bucket for each {time}")
            }
            Strategy::Bucket { time, by, earlier } => {
                write!(f, "a bucket for each {time}, ")?;
                for step in earlier {
                    write!(f, "{} shards in each before {}, ", step.shards, step.before)?;
                }
                let since = self.newest_from().map(|from| format!(" from {from} on")).unwrap_or_default();
                write!(f, "{shards} shards in each{since} by {by}")
            }
            Strategy::Counter { attributes } => {
                write!(f, "counters of {} in {shards} shards", attributes.join(", "))
            }
            Strategy::Template { template, by, time } => {
                write!(f, "as {:?}", template.text())?;
                if let Some(time) = time {
                    write!(f, ", a bucket for each {time}")?;
                }
                match self.hash {
                    _ if shards <= 1 => Ok(()),
                    Hash::Random => write!(f, ", {shards} externally assigned shards"),
                    hash => write!(f, ", {shards} shards by {hash} of {by}"),
                }
            }
        }
    }
}

impl std::fmt::Display for By {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            By::SortKey => f.write_str("sort key"),
            By::Part { separator, part } => write!(f, "part {part} of the sort key split at {separator:?}"),
            By::PrimaryKey => f.write_str("primary key"),
        }
    }
}

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.granularity.name())?;
        if !self.prefix.is_empty() {
            write!(f, " after {:?} in the sort key", self.prefix)?;
        }
        if self.epoch == Epoch::Milliseconds {
            f.write_str(" of a time in milliseconds")?;
        }
        Ok(())
    }
}

impl std::fmt::Display for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Hash::Slice { digits: digits @ 1.., .. } => {
                write!(f, "the first {digits} hexadecimal digits of {}", self.name())
            }
            Hash::Slice { digits, .. } => {
                write!(f, "the last {} hexadecimal digits of {}", digits.unsigned_abs(), self.name())
            }
            _ => f.write_str(self.name()),
        }
    }
}

impl Hash {
    /// Its name, as rules have it.
    pub const fn name(self) -> &'static str {
        match self {
            Hash::JumpXxh3 => "jump",
            Hash::Md5 | Hash::Slice { digest: Digest::Md5, .. } => "md5",
            Hash::Sha1 | Hash::Slice { digest: Digest::Sha1, .. } => "sha1",
            Hash::Sha256 | Hash::Slice { digest: Digest::Sha256, .. } => "sha256",
            Hash::Crc32 => "crc32",
            Hash::Java => "java",
            Hash::JavaAbs => "java_abs",
            Hash::JavaMask => "java_mask",
            Hash::JavaObjects => "java_objects",
            Hash::Fnv1a32 => "fnv1a32",
            Hash::Fnv1a64 => "fnv1a64",
            Hash::Modulo => "modulo",
            Hash::Random => "random",
        }
    }
}
