//! Decides when a layout change may continue: epochs, leases, acknowledgements.
//!
//! DynamoDB cannot check which layout a request was planned under. So a gateway may plan by what it
//! knows only while its *lease* runs, and a process that changes a layout waits until no gateway
//! can still act on the old one. Each change has an *epoch*. A gateway *acknowledges* an epoch once
//! no result that it planned before can reach a client any more.
//!
//! - [`Member`] is a gateway's side: what it has seen, and until when it may send.
//! - [`Gate`] admits the requests of one table under one version of its record.
//! - [`Liveness`] tells which gateways have died.
//! - [`Step`] is the changer's side: which gateways to wait for, and until when.
//!
//! Everything here is a plain function of values and times. `tests/model` searches all
//! interleavings of these same types.
//!
//! Not here: how records and registrations are read and written (`control`), what a layout is
//! (`layout`).

mod bounds;
mod gate;
mod head;
mod lease_end;
mod liveness;
mod member;
mod registration;
mod step;

pub use bounds::Bounds;
pub use gate::{Admission, Gate};
pub use head::{Change, Changes, Epoch, Head, KEPT_CHANGES};
pub use lease_end::LeaseEnd;
pub use liveness::Liveness;
pub use member::{Heartbeat, Member, Seen};
pub use registration::Registration;
pub use step::{Awaits, Step, Wait};
