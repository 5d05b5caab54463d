//! What each metric means, as `GET /_heatsink/metrics` says in its HELP lines, and
//! docs/reference/metrics.md in its tables.
//!
//! Not here: counting. Each crate counts what it does, and the gateway says what those mean that it
//! computes when they are asked for.

use metrics::{describe_counter, describe_gauge, describe_histogram};

/// Name, labels, meaning.
type Metric = (&'static str, &'static str, &'static str);

const COUNTERS: [Metric; 33] = [
    ("heatsink_requests_total", "operation, outcome", "Requests answered."),
    (
        "heatsink_plans_total",
        "plan",
        "Requests planned: forwarded as they are, one physical call, several, or refused.",
    ),
    (
        "heatsink_throttled_shard_retries_total",
        "",
        "Physical calls sent again because the store throttled one shard, or a transaction was in the way.",
    ),
    ("heatsink_combined_calls_total", "", "Calls that stood for several writes of one item."),
    ("heatsink_combined_writes_total", "", "Clients' writes that went in such calls."),
    (
        "heatsink_reads_saved_total",
        "how",
        "Reads that were not sent: coalesced with one under way, or cached.",
    ),
    ("heatsink_partial_answers_total", "", "Answers that leave out a shard which could not be read."),
    ("heatsink_too_costly_requests_total", "", "Requests refused because they need too much of the store."),
    ("heatsink_refused_total", "limit", "Requests and connections refused, by the limit that was reached."),
    (
        "heatsink_slow_clients_total",
        "what",
        "Connections closed because a client owed too long: head, body, or reading its answer.",
    ),
    (
        "heatsink_cancelled_reads_total",
        "",
        "Reads given up because their client was gone, or for their deadline.",
    ),
    ("heatsink_unawaited_writes_total", "", "Writes carried out although their client was gone."),
    (
        "heatsink_tls_handshakes_total",
        "outcome",
        "TLS handshakes of clients: done, failed, late, or crowded out by later ones.",
    ),
    ("heatsink_config_refused_total", "", "Configurations, or certificates, read again and refused."),
    ("heatsink_memory_waits_total", "", "Requests that waited for memory."),
    ("heatsink_physical_keys_total", "taken", "Keys of requests that have the form of a shard."),
    ("heatsink_large_items_total", "size", "Items put of 100 KB and more, and of nine tenths of 400 KB."),
    (
        "heatsink_items_just_over_a_kb_total",
        "",
        "Items put that cost a unit more for their last few bytes; one in 16 is examined and counts as 16.",
    ),
    ("heatsink_reshards_total", "outcome", "Reshards that this gateway has ended."),
    ("heatsink_reshard_items_moved_total", "", "Items that reshards of this gateway have moved."),
    (
        "heatsink_automatic_decisions_total",
        "what, outcome",
        "Changes that this gateway has decided for hot keys.",
    ),
    (
        "heatsink_webhook_events_total",
        "outcome",
        "Events for the webhook: delivered, refused by it, given up, or dropped by a full queue or a stop.",
    ),
    (
        "heatsink_table_units_total",
        "table, index, kind",
        "Capacity units that clients asked for; estimated where requests are drawn.",
    ),
    (
        "heatsink_table_requests_total",
        "table, index, kind",
        "Requests for items and pages; estimated where requests are drawn.",
    ),
    ("heatsink_table_throttled_total", "table, index, kind", "Throttled ones of them."),
    ("heatsink_client_requests_total", "client, outcome", "Requests of known clients."),
    ("heatsink_client_refused_total", "client, limit", "Requests that a known client may not make."),
    (
        "heatsink_client_units_total",
        "client, kind",
        "Capacity units that known clients asked for; estimated where requests are drawn.",
    ),
    (
        "heatsink_client_throttled_total",
        "client, kind",
        "Throttled requests of known clients for items and pages.",
    ),
    (
        "heatsink_upstream_connection_waits_total",
        "",
        "Physical calls that waited for a connection to the store.",
    ),
    (
        "heatsink_upstream_connection_refusals_total",
        "",
        "Physical calls that found no connection to the store in time.",
    ),
    ("heatsink_recorded_accesses_total", "", "Accesses recorded for --record; each may stand for several."),
    (
        "heatsink_recording_dropped_accesses_total",
        "",
        "Accesses left out of the recording because its file was written too slowly.",
    ),
];

const GAUGES: [Metric; 8] = [
    ("heatsink_connections", "", "Open connections of clients."),
    ("heatsink_requests_in_flight", "", "Requests being answered."),
    ("heatsink_held_bytes", "of", "Bytes that requests hold, by what for: requests, work, answers."),
    ("heatsink_reshards_running", "", "Reshards that this gateway carries out now."),
    (
        "heatsink_automatic_left_alone",
        "reason",
        "Keys that burn and that this gateway, which decides, leaves alone now.",
    ),
    (
        "heatsink_config_generation",
        "",
        "How many configurations have been in force since the start, with the first.",
    ),
    (
        "heatsink_tls_certificate_expires_seconds",
        "",
        "When the first of the listener's certificates expires, in seconds since 1970.",
    ),
    ("heatsink_recording_failed", "", "1 once the file of --record could not be written; else 0."),
];

const HISTOGRAMS: [Metric; 2] = [
    (
        "heatsink_request_duration_seconds",
        "operation, plan",
        "Time from a request's arrival to its answer. Refused requests are not among them.",
    ),
    ("heatsink_physical_calls_per_request", "", "Physical calls for one request, without retries."),
];

/// Describes all of them to the recorder that is installed.
pub(super) fn describe() {
    COUNTERS.iter().for_each(|(name, _, help)| describe_counter!(*name, *help));
    GAUGES.iter().for_each(|(name, _, help)| describe_gauge!(*name, *help));
    HISTOGRAMS.iter().for_each(|(name, _, help)| describe_histogram!(*name, *help));
}

#[cfg(test)]
mod tests {
    use heatsink_gateway::COMPUTED_METRICS;

    use super::*;

    const HEAD: &str = "# Metrics

<!-- Generated: HEATSINK_BLESS=1 cargo test --workspace --bin heatsink metric_help -->

`GET /_heatsink/metrics` at the [admin address](admin-api.md) gives these in Prometheus' text form.
What to alert on: [monitor and alert](../how-to/monitor-and-alert.md). At most 200 combinations of
table, index and kind have names, and 200 clients; the rest is added up under empty ones.
";

    #[test]
    fn the_page_of_metrics_is_this_table() {
        let mut page = HEAD.to_owned();
        let gauges = [&GAUGES[..], &COMPUTED_METRICS].concat();
        for (kind, metrics) in [("Counters", &COUNTERS[..]), ("Gauges", &gauges), ("Histograms", &HISTOGRAMS)]
        {
            page += &format!("\n## {kind}\n\n| metric | labels | counts |\n|---|---|---|\n");
            for (name, labels, help) in metrics {
                page += &format!("| `{name}` | {labels} | {help} |\n");
            }
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md");
        if std::env::var_os("HEATSINK_BLESS").is_some() {
            std::fs::write(path, &page).unwrap();
        }
        assert!(
            std::fs::read_to_string(path).unwrap_or_default() == page,
            "docs/reference/metrics.md is stale: HEATSINK_BLESS=1 cargo test --workspace --bin heatsink metric_help"
        );
    }
}
