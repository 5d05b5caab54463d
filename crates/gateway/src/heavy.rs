//! Work that takes a worker of the runtime too long to leave other requests waiting behind it.

use tokio::runtime::{Handle, RuntimeFlavor};

/// From this many bytes on, work on them may take a few milliseconds: the slowest pass over a body, the wire check, takes about 6 ms for a
/// megabyte where nothing is optimised, and 1 ms otherwise.
const HEAVY: usize = 512 * 1024;

/// Does work on so many bytes. Where they are many, other tasks of this worker go on meanwhile on another one. A runtime of one thread has no
/// other, and neither has a caller without a runtime.
pub(crate) fn heavy<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let movable =
        || Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
    if bytes >= HEAVY && movable() { tokio::task::block_in_place(work) } else { work() }
}
