//! A Query that shows its shards as they were at one moment.
//!
//! Shards are read one beside the other, so a plain gather can show a write and miss an earlier one that went to a shard read
//! before. Here the page is collected twice, with consistent reads: what both collects hold alike was so in the moment between
//! them. Where they part the page ends, with a cursor; where they part at the first item it is collected again.
//!
//! Not seen: an item that is changed and changed back, byte for byte, between the two collects.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::Error;
use heatsink_dynamo::Outcome;

use super::scatter::{Collected, Progress, Scatter, Wanted};
use crate::{Execution, Outlook, Step};

/// How often a page is collected before the request fails. Each collect is one round trip or a few; a first item that changes
/// through eight of them is written to hundreds of times a second.
const COLLECTS: u32 = 8;

/// Such a Query under way.
pub(crate) struct Strong {
    wanted: Arc<Wanted>,
    current: Scatter,
    earlier: Option<Collected>,
    collects: u32,
}

impl Strong {
    pub(crate) fn new(wanted: Arc<Wanted>) -> Self {
        Strong { current: Scatter::new(Arc::clone(&wanted)), wanted, earlier: None, collects: 0 }
    }

    /// Takes the next collect; the answer, if it can be given.
    fn collected(&mut self, mut page: Collected) -> Option<Result<Bytes, Error>> {
        self.collects += 1;
        if let Some(earlier) = &self.earlier {
            if let Some(capacity) = &earlier.capacity {
                page.capacity.get_or_insert_default().add(capacity);
            }
            let agreed = agreed(earlier, &page);
            if agreed == earlier.rows.len() && agreed == page.rows.len() {
                page.more |= earlier.more;
                return Some(self.wanted.gathering.shape.answer(&page, None));
            }
            if agreed > 0 {
                page.more = true;
                return Some(self.wanted.gathering.shape.answer(&page, Some(agreed)));
            }
            if self.collects >= COLLECTS {
                return Some(Err(Error::unavailable(
                    format!(
                        "The first item of the page changed in each of {COLLECTS} reads, so the shards could not be seen as they were at \
                         one moment (consistency = \"strong\"). Nothing was returned; try again"
                    ),
                    Outcome::NotDone,
                )));
            }
        }
        self.earlier = Some(page);
        self.current = Scatter::new(Arc::clone(&self.wanted));
        None
    }
}

/// How many rows two collects begin with alike.
fn agreed(earlier: &Collected, later: &Collected) -> usize {
    let both = earlier.rows.len().min(later.rows.len());
    (0..both).take_while(|&row| earlier.item(row) == later.item(row)).count()
}

impl Execution for Strong {
    fn step(&mut self) -> Step {
        loop {
            match self.current.advance() {
                Ok(Progress::Calls(calls)) => return Step::Call(calls),
                Ok(Progress::Collected(page)) => {
                    if let Some(answer) = self.collected(page) {
                        return Step::Done(answer);
                    }
                }
                Err(error) => return Step::Done(Err(error)),
            }
        }
    }

    fn answer(&mut self, id: usize, answer: Result<Bytes, Error>) {
        self.current.answer(id, answer);
    }

    fn outlook(&self) -> Outlook {
        self.current.outlook()
    }
}
