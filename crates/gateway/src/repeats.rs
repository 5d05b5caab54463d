//! Pages that one request asks for again and again: the store's position does not advance, or goes in a circle, and a plan that follows it would not end
//! before its deadline.
//!
//! Not here: reads of keys that the store leaves unread (`heatsink_route` asks for them with pauses), the limit of all calls (`spent`).

use std::hash::BuildHasher;

use foldhash::HashMap;
use foldhash::fast::FixedState;
use heatsink_dynamo::{Error, pages};
use heatsink_route::PhysicalCall;

/// Calls that are not looked at: most requests need fewer.
const FREE: usize = 16;

/// How often one page may be asked for beyond those. Plans do so a few times: while a key moves, or where a page was cut short.
const MOST: u8 = 4;

/// The pages that were asked for.
#[derive(Default)]
pub(crate) struct Repeats {
    calls: usize,
    asked: HashMap<u64, u8>,
}

impl Repeats {
    /// Counts a round's calls.
    ///
    /// # Errors
    /// `InternalServerError`, the store's fault: a page was asked for too often.
    pub(crate) fn count(&mut self, calls: &[PhysicalCall]) -> Result<(), Error> {
        self.calls += calls.len();
        if self.calls <= FREE {
            return Ok(());
        }
        for call in calls {
            if !call.operation.gives_pages() || !pages::may_go_on(&call.body) {
                continue;
            }
            let times =
                self.asked.entry(FixedState::default().hash_one((call.operation, &call.body))).or_default();
            *times += 1;
            if *times > MOST {
                return Err(pages::stuck(call.operation));
            }
        }
        Ok(())
    }
}
