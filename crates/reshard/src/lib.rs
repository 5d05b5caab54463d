//! Decides how one logical key moves from one layout to another while clients read and write it.
//!
//! An item of the key has a *copy* under its old physical key, under its new one, or under both for
//! a while. DynamoDB cannot check per request which layout is in force, so the move goes through
//! [`Phase`]s, and each is acknowledged by every gateway before the next begins (`heatsink-fence`).
//!
//! - [`act`] is the table of what a request does in each phase.
//! - [`Write`], [`Pull`], [`PointRead`] and [`RangeRead`] are the requests that concern both
//!   copies, as machines: each says which call to send, and is told the answer.
//! - [`Coordinator`] takes the key from phase to phase. All that it has to remember is the
//!   [`Record`].
//! - [`Mover`] brings the items over, under a [`Claim`].
//!
//! A counter that only gets more fragments ([`Change::Widen`]) goes through RESERVE and PREPARE
//! alone. In PREPARE all that has to see or clear every fragment knows the new ones, and ADDs go to
//! the old ones (`heatsink_layout::Widening`); nothing waits, is pulled or moved. So does a key
//! whose buckets get another number of shards from one on: until STABLE nothing is put into these
//! (`heatsink_layout::Stepping`), and the survey proves them empty.
//!
//! A counter that gets fewer fragments ([`Change::Narrow`]) goes through RESERVE, PREPARE and MOVE.
//! From PREPARE on nobody adds to the fragments that it loses, and in MOVE each is folded into the
//! base fragment ([`Fold`]), while readers see to it that they count it once ([`FoldRead`]).
//!
//! A table of which all keys get other layouts is taken there by a [`TableCoordinator`]: key by key,
//! and at last for all keys that have no record, of which none has an item by then ([`first_write`]).
//!
//! Everything here is a plain function of values and times. `tests/model` searches all
//! interleavings of these same types.
//!
//! Not here: what a request or an item looks like (`route`), how records, claims and
//! acknowledgements are stored (`control`), who has acknowledged (`fence`), which physical key an
//! item has (`layout`). Nothing here waits, opens a socket or reads a clock.

mod claim;
mod coordinator;
mod fold;
mod mover;
mod pace;
mod phase;
mod pull;
mod range;
mod read;
mod record;
mod rules;
mod steps;
mod table;
mod unrecorded;
mod write;

pub use claim::{Claim, Create, Created};
pub use coordinator::Coordinator;
pub use fold::{Fold, FoldAnswer, FoldCall, FoldPart, FoldRead};
pub use heatsink_layout::{Phase, TablePhase};
pub use mover::{Moved, Mover, MoverDo};
pub use pace::Pace;
pub use phase::{Access, Act, Guard, Otherwise, act};
pub use pull::{Pull, PullAnswer, PullCall, Pulled};
pub use range::{Page, RangeCall, RangeRead};
pub use read::PointRead;
pub use record::{Record, Side, State};
#[doc(hidden)]
pub use rules::{Rule, Rules};
pub use steps::{Change, Do, Outcome, Seen};
pub use table::{TableCoordinator, TableDo, TableSeen};
pub use unrecorded::{FirstWrite, first_write};
pub use write::{Write, WriteAnswer, WriteCall, WriteStep};
