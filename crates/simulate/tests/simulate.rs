//! The tests of this crate, in one program: each program is linked with all that it depends on.

mod fair;
mod leaderboard;
mod measured;
mod pictures;
mod recorded;
mod remedies;
mod scenario;
