//! Rules as text, for `heatsink config check` and for error messages.

use std::fmt;

use heatsink_layout::{By, Consistency, Glob, PhysicalKeys, Strategy};

use super::rule::{Rule, SharedCalls, Spread};

pub(super) struct Keys<'a>(pub &'a Glob);
pub(super) struct Tables<'a>(pub &'a Glob);

impl fmt::Display for Keys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            glob if glob.is_any() => f.write_str("all keys"),
            glob if glob.is_exact() => write!(f, "the key {:?}", glob.text()),
            glob => write!(f, "the keys like {:?}", glob.text()),
        }
    }
}

impl fmt::Display for Tables<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            glob if glob.is_any() => f.write_str("every table with a sort key"),
            glob if glob.is_exact() => write!(f, "table {}", glob.text()),
            glob => write!(f, "the tables like {:?}", glob.text()),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {} (line {}): {} of ", self.number, self.line, Keys(&self.keys))?;
        match &self.index {
            // Its values are spread by the primary key, which a table without a sort key has too.
            Some(_) if self.table.is_any() => f.write_str("every table: "),
            None if self.table.is_any() && self.spread == Spread::Whole => f.write_str("every table: "),
            _ => write!(f, "{}: ", Tables(&self.table)),
        }?;
        let Spread::Sharded { layout, part_of } = &self.spread else {
            f.write_str("not spread")?;
            return self.shared_calls.fmt(f);
        };
        if let Some(index) = &self.index {
            return write!(
                f,
                "as values of the partition key of index {index}: spread over {} by a hash of the primary key",
                layout.shards
            );
        }
        match (&layout.strategy, part_of) {
            (Strategy::Calculated { by: By::Part { separator, part }, .. }, Some(attribute)) => write!(
                f,
                "spread over {} by a hash of part {part} of the sort key {attribute}, split at {separator:?}",
                layout.shards
            ),
            (Strategy::Calculated { .. }, _) => {
                write!(f, "spread over {} by a hash of the sort key", layout.shards)
            }
            _ => write!(f, "{layout}"),
        }?;
        // Always mentioned: of buckets that the directory does not list, an open Query tries the
        // last 100.
        if layout.template().is_some() && layout.time().is_some() {
            f.write_str(
                "; buckets that other writers begin are found by open Queries only among the last 100, and by Queries whose range spans at most 8",
            )?;
        }
        if self.reads.consistency == Consistency::Strong {
            f.write_str(", seen as they were at one moment")?;
        }
        match self.physical_keys {
            None | Some(PhysicalKeys::Accept) => {}
            Some(PhysicalKeys::Refuse) => {
                f.write_str("; keys that are written like physical ones are refused")?
            }
            Some(PhysicalKeys::AsShard) => {
                f.write_str(
                    "; keys that are written like physical ones are taken as the shards that they name",
                )?;
            }
        }
        if self.reads.partial {
            f.write_str("; a Query is answered without shards that cannot be read")?;
        }
        self.shared_calls.fmt(f)
    }
}

impl fmt::Display for SharedCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.combine, self.combine_streams) {
            (false, _) => {}
            (true, false) => {
                f.write_str("; writes of an item are combined, unless the table has a stream")?
            }
            (true, true) => f.write_str("; writes of an item are combined")?,
        }
        if self.coalesce {
            f.write_str("; identical reads become one")?;
        }
        if let Some(age) = self.cache_max_age_ms {
            write!(f, "; an answer is given again for {age} ms")?;
        }
        Ok(())
    }
}
