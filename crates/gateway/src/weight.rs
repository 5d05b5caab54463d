//! Warnings of large items, which make a key hot early (a write costs a unit for each KB) and are refused beyond 400 KB.
//!
//! Only PutItem is looked at, and only when its body is large: small requests pay one comparison.

use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use heatsink_dynamo::size::{MAX_ITEM, item_size};
use heatsink_dynamo::value::read_item;
use heatsink_dynamo::{Operation, json};
use heatsink_env::Moment;
use metrics::{Counter, counter};

/// From here on, in bytes, an item is worth a warning: one write of it takes a tenth of a partition's second.
const LARGE: usize = 100 * 1024;
/// From here on it is likely to be refused soon.
const NEARLY_REFUSED: usize = MAX_ITEM / 10 * 9;
/// One warning in the log for so long.
const QUIET: Duration = Duration::from_secs(60);

/// Counts large items, and warns of one a minute.
pub(crate) struct Weight {
    large: Counter,
    nearly_refused: Counter,
    warned: Mutex<Option<Moment>>,
}

impl Weight {
    pub(crate) fn new() -> Self {
        let of = |size: &'static str| counter!("heatsink_large_items_total", "size" => size);
        Weight { large: of("over_100_kb"), nearly_refused: of("near_400_kb"), warned: Mutex::new(None) }
    }

    /// Looks at a request.
    pub(crate) fn see(&self, operation: Operation, body: &Bytes, now: Moment) {
        if operation != Operation::PutItem || body.len() < LARGE {
            return;
        }
        let item = json::member(body, "Item").ok().flatten().and_then(|item| read_item(item).ok());
        let size = item.map_or(0, |item| item_size(&item));
        if size < LARGE {
            return;
        }
        if size < NEARLY_REFUSED { &self.large } else { &self.nearly_refused }.increment(1);
        let Ok(mut warned) = self.warned.lock() else { return };
        if warned.is_some_and(|warned| now.since(warned) < QUIET) {
            return;
        }
        *warned = Some(now);
        let table = json::member(body, "TableName").ok().flatten().and_then(|name| json::string(name).ok());
        tracing::warn!(
            table = table.as_deref().unwrap_or_default(),
            "an item of {size} bytes costs {} write units a write, of the 1,000 a second that its key has; beyond {MAX_ITEM} bytes it is refused",
            size.div_ceil(1024)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_warning_a_minute() {
        let weight = Weight::new();
        let put = |bytes: usize| {
            Bytes::from(format!(r#"{{"TableName":"T","Item":{{"pk":{{"S":"{}"}}}}}}"#, "x".repeat(bytes)))
        };
        weight.see(Operation::PutItem, &put(1000), Moment(0));
        weight.see(Operation::GetItem, &put(LARGE), Moment(0));
        assert_eq!(*weight.warned.lock().unwrap(), None);
        weight.see(Operation::PutItem, &put(LARGE), Moment(0));
        weight.see(Operation::PutItem, &put(LARGE), Moment(0) + QUIET / 2);
        assert_eq!(*weight.warned.lock().unwrap(), Some(Moment(0)));
        weight.see(Operation::PutItem, &put(LARGE), Moment(0) + QUIET);
        assert_eq!(*weight.warned.lock().unwrap(), Some(Moment(0) + QUIET));
    }
}
