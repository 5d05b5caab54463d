//! A Query that shows its shards as they were at one moment.
//!
//! Shards are read one beside the other, so a plain gather can show a write and miss an earlier one
//! that went to a shard read before. Here the page is collected twice, with consistent reads: what
//! both collects hold alike was so in the moment between them. Where they part the page ends, with
//! a cursor; where they part at the first item it is collected again.
//!
//! Not seen: an item that is changed and changed back, byte for byte, between the two collects.

use std::sync::Arc;

use heatsink_dynamo::{Error, Outcome};

use super::page::Collected;
use super::scatter::Scatter;
use super::scatter::wanted::Wanted;
use crate::{Answer, Calls};

/// How often a page is collected before the request fails. Each collect is one round trip or a few;
/// a first item that changes through eight of them is written to hundreds of times a second.
const COLLECTS: u32 = 8;

/// Reads such a page.
pub(crate) async fn read(wanted: Arc<Wanted>, calls: &mut dyn Calls) -> Result<Answer, Error> {
    let gathering = &wanted.gathering;
    let mut earlier = Scatter::new(Arc::clone(&wanted)).collect(calls).await?;
    for _ in 1..COLLECTS {
        let mut page = Scatter::new(Arc::clone(&wanted)).collect(calls).await?;
        if let Some(capacity) = &earlier.capacity {
            page.capacity.get_or_insert_default().add(capacity);
        }
        let agreed = agreed(&earlier, &page);
        if agreed == earlier.rows.len() && agreed == page.rows.len() {
            page.more |= earlier.more;
            return gathering.answer(&mut page, None, calls).await.map(Answer::from);
        }
        if agreed > 0 {
            page.more = true;
            return gathering.answer(&mut page, Some(agreed), calls).await.map(Answer::from);
        }
        earlier = page;
    }
    Err(Error::unavailable(
        format!(
            "The first item of the page changed in each of {COLLECTS} reads, so the shards could not be seen as they were at one moment \
             (consistency = \"strong\"). Nothing was returned; try again"
        ),
        Outcome::NotDone,
    ))
}

/// How many rows two collects begin with alike.
fn agreed(earlier: &Collected, later: &Collected) -> usize {
    let both = earlier.rows.len().min(later.rows.len());
    (0..both).take_while(|&row| earlier.item(row) == later.item(row)).count()
}
