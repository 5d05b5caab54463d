//! File descriptors: every connection needs one, and many systems start with a limit of 1,024 for
//! each process.
//!
//! Not here: the limit of served connections (`Limits`), or of connections to an upstream
//! (`Bounds`).

use rustix::process::{Resource, getrlimit, setrlimit};

/// Descriptors for everything that is no connection: the data file, the log, the runtime's own.
const REST: u64 = 64;

/// Raises the soft limit of open files to what `connections` need, as far as the hard limit allows,
/// and warns where it does not.
pub fn provide(connections: usize) {
    let wanted = u64::try_from(connections).unwrap_or(u64::MAX).saturating_add(REST);
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return;
    }
    let allowed = limit.maximum.map_or(wanted, |most| most.min(wanted));
    limit.current = limit.current.map(|current| current.max(allowed));
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!("the limit of open files cannot be raised: {error}");
    }
    if allowed < wanted {
        tracing::warn!(
            "the hard limit of open files is {allowed}, and {wanted} are needed for all connections at once: some clients may find \
             no connection. Raise it (ulimit -Hn), or lower --max-connections"
        );
    }
}
