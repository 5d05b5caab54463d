//! The stream of a recorded workload.

use heatsink_physics::{Demand, KeyPosition, KeyRange, SortKey, position};

use super::resources::FindResource;
use crate::scenario::trace::Recorded;
use crate::scenario::{Loaded, Operation, Workload};
use crate::sizes::{access, units};
use crate::stream::{Source, Stream};

/// A recorded workload. Remedies that change keys leave it as it was recorded.
pub(super) fn stream(loaded: &Loaded, nth: usize, workload: &Workload, find: FindResource<'_>) -> Stream {
    let on = find(&workload.table, workload.index.as_deref());
    let recorded = workload.trace.as_ref().and_then(|path| loaded.traces.get(path));
    let request = |request: &Recorded| {
        let access = access(workload, request.operation);
        let position = position(request.key.as_bytes());
        let place = match request.operation {
            Operation::Query => KeyRange::collection(position),
            _ => KeyRange::At(KeyPosition::new(position, SortKey::bytes(request.sort.as_bytes()))),
        };
        (request.at, vec![Demand { on, access, place, units: units(access, request.bytes as u64) }])
    };
    let requests: Vec<_> = recorded.map(|trace| trace.iter().map(request).collect()).unwrap_or_default();
    let operation = recorded.and_then(|trace| trace.first()).map_or(Operation::Put, |first| first.operation);
    Stream {
        name: workload.name.clone(),
        workload: nth,
        operation,
        source: Source::Trace { requests, next: 0 },
        scatter: false,
        cache: None,
        loader: None,
    }
}
