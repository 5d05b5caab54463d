//! What each metric means, as `GET /_heatsink/metrics` says in its HELP lines.
//!
//! Not here: counting. Each crate counts what it does.

use metrics::{describe_counter, describe_gauge, describe_histogram};

const COUNTERS: [(&str, &str); 21] = [
    ("heatsink_requests_total", "Requests answered, by operation and outcome."),
    (
        "heatsink_plans_total",
        "Requests planned: forwarded as they are, one physical call, several, or refused.",
    ),
    (
        "heatsink_throttled_shard_retries_total",
        "Physical calls sent again because the store throttled one shard.",
    ),
    ("heatsink_partial_answers_total", "Answers that leave out a shard which could not be read."),
    ("heatsink_too_costly_requests_total", "Requests refused because they need too much of the store."),
    ("heatsink_refused_total", "Requests and connections refused, by the limit that was reached."),
    ("heatsink_slow_clients_total", "Connections closed because a client was too slow, by what it owed."),
    ("heatsink_cancelled_reads_total", "Reads given up because their client was gone."),
    ("heatsink_unawaited_writes_total", "Writes carried out although their client was gone."),
    ("heatsink_memory_waits_total", "Requests that waited for memory."),
    (
        "heatsink_physical_keys_total",
        "Keys of requests that have the form of a shard, by what they were taken for.",
    ),
    ("heatsink_large_items_total", "Items written that are large, by size."),
    ("heatsink_items_just_over_a_kb_total", "Items written that cost a unit more for their last few bytes."),
    ("heatsink_reshards_total", "Reshards that this gateway has ended, by outcome."),
    (
        "heatsink_table_units_total",
        "Capacity units that clients asked for, by table, index and kind; estimated where requests are drawn.",
    ),
    (
        "heatsink_table_requests_total",
        "Requests for items and pages, by table, index and kind; estimated where requests are drawn.",
    ),
    ("heatsink_table_throttled_total", "Throttled ones of them."),
    ("heatsink_upstream_connection_waits_total", "Physical calls that waited for a connection to the store."),
    (
        "heatsink_upstream_connection_refusals_total",
        "Physical calls that found no connection to the store in time.",
    ),
    ("heatsink_recorded_accesses_total", "Accesses recorded for --record; each may stand for several."),
    (
        "heatsink_recording_dropped_accesses_total",
        "Accesses left out of the recording because its file was written too slowly.",
    ),
];

const GAUGES: [(&str, &str); 5] = [
    ("heatsink_connections", "Open connections of clients."),
    ("heatsink_requests_in_flight", "Requests being answered."),
    ("heatsink_held_bytes", "Bytes that requests hold, by what for."),
    ("heatsink_reshards_running", "Reshards that this gateway carries out now."),
    ("heatsink_recording_failed", "1 once the file of --record could not be written; else 0."),
];

/// Describes all of them to the recorder that is installed.
pub(super) fn describe() {
    COUNTERS.iter().for_each(|(name, help)| describe_counter!(*name, *help));
    GAUGES.iter().for_each(|(name, help)| describe_gauge!(*name, *help));
    describe_histogram!(
        "heatsink_request_duration_seconds",
        "Time from a request's arrival to its answer, by operation and plan. Refused requests are not among them."
    );
    describe_histogram!(
        "heatsink_physical_calls_per_request",
        "Physical calls for one request, without retries."
    );
}
