//! Metrics: requests, plans, physical calls, retries. The handles are created once; a request only
//! adds to them.
//!
//! Not here: where the figures go (the installer of a recorder of the `metrics` crate decides).

use std::sync::OnceLock;
use std::time::Duration;

use heatsink_access::Caller;
use heatsink_dynamo::{Code, Error, Fault, Operation};
use heatsink_route::Plan;
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use crate::client_metrics::{AskedUnits, ClientMetrics};
use crate::outcome::{OUTCOMES, outcome};

/// Plans that are carried out, as the label `plan` names them.
const PLANS: [&str; 3] = ["forward", "single", "scatter"];

/// The kind of a plan, which outlives it: the place of its name in [`PLANS`].
#[derive(Clone, Copy)]
pub(crate) struct PlanKind(usize);

impl PlanKind {
    /// As metrics and spans name it.
    pub(crate) fn name(self) -> &'static str {
        PLANS[self.0]
    }
}

pub(crate) struct Metrics {
    requests: Vec<[Counter; 4]>,
    /// Made when they are first needed: most pairs of operation and plan never are.
    durations: Vec<[OnceLock<Histogram>; 3]>,
    plans: [Counter; 3],
    physical_calls: Histogram,
    retries: Counter,
    partial: Counter,
    too_costly: Counter,
    unplanned: Counter,
    denied: Counter,
    clients: ClientMetrics,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let of = |operation: &Operation| {
            OUTCOMES.map(|outcome| {
                counter!("heatsink_requests_total", "operation" => operation.name(), "outcome" => outcome)
            })
        };
        let plan = |kind: &'static str| counter!("heatsink_plans_total", "plan" => kind);
        Metrics {
            requests: Operation::ALL.iter().map(of).collect(),
            durations: Operation::ALL.iter().map(|_| Default::default()).collect(),
            plans: PLANS.map(plan),
            physical_calls: histogram!("heatsink_physical_calls_per_request"),
            retries: counter!("heatsink_throttled_shard_retries_total"),
            partial: counter!("heatsink_partial_answers_total"),
            too_costly: counter!("heatsink_too_costly_requests_total"),
            unplanned: plan("refused"),
            denied: counter!("heatsink_refused_total", "limit" => "rights"),
            clients: ClientMetrics::default(),
        }
    }

    /// A request was answered. `caller`: whose it was, where clients are known.
    pub(crate) fn answered(&self, operation: Operation, caller: Option<&Caller>, error: Option<&Error>) {
        let outcome = outcome(error);
        if let Some(caller) = caller {
            self.clients.answered(caller, outcome);
        }
        if let Some(counters) = self.requests.get(operation as usize) {
            counters[outcome].increment(1);
        }
    }

    /// A request has its plan.
    pub(crate) fn planned(&self, plan: &Plan) -> PlanKind {
        let kind = match plan {
            Plan::Forward { .. } => 0,
            Plan::Single(_) => 1,
            Plan::Scatter(_) => 2,
        };
        self.plans[kind].increment(1);
        PlanKind(kind)
    }

    /// A plan was carried out, so long after its request came.
    pub(crate) fn took(&self, operation: Operation, plan: PlanKind, time: Duration) {
        if let Some(of_operation) = self.durations.get(operation as usize) {
            let make = || {
                let (operation, plan) = (operation.name(), plan.name());
                histogram!("heatsink_request_duration_seconds", "operation" => operation, "plan" => plan)
            };
            of_operation[plan.0].get_or_init(make).record(time.as_secs_f64());
        }
    }

    /// A request has no plan: it is refused before anything is sent to the store.
    pub(crate) fn unplanned(&self, error: &Error) {
        if error.fault() == Fault::Client && !error.retryable() {
            self.unplanned.increment(1);
        }
    }

    /// A request was refused before it was planned: its client may not do it, or it cannot be judged.
    pub(crate) fn unjudged(&self, caller: &Caller, error: &Error) {
        match error.code {
            Code::AccessDeniedException => {
                self.denied.increment(1);
                self.clients.denied(caller);
            }
            _ => self.unplanned(error),
        }
    }

    /// A request of a client was counted, and stands for that.
    pub(crate) fn asked(&self, caller: &Caller, asked: &AskedUnits) {
        self.clients.asked(caller, asked);
    }

    /// A plan has ended, after this many physical calls without retries.
    #[allow(clippy::cast_precision_loss, reason = "a request makes few calls")]
    pub(crate) fn sent(&self, calls: usize) {
        self.physical_calls.record(calls as f64);
    }

    /// An answer leaves out a shard that could not be read.
    pub(crate) fn partial(&self) {
        self.partial.increment(1);
    }

    /// A request was refused because it needs too much of the store
    /// ([`Cost`](crate::limits::Cost)).
    pub(crate) fn too_costly(&self) {
        self.too_costly.increment(1);
    }

    /// A throttled shard is retried.
    pub(crate) fn retried(&self) {
        self.retries.increment(1);
    }
}

/// Metrics of the HTTP front: connections and bytes now, and what limits have refused.
pub(crate) struct Wire {
    pub(crate) connections: Gauge,
    pub(crate) in_flight: Gauge,
    pub(crate) over_connections: Counter,
    pub(crate) over_requests: Counter,
    pub(crate) over_bodies: Counter,
    pub(crate) over_answers: Counter,
    pub(crate) foreign_hosts: Counter,
    pub(crate) wrong_signatures: Counter,
    pub(crate) late_heads: Counter,
    pub(crate) late_bodies: Counter,
    pub(crate) untaken_answers: Counter,
    pub(crate) handshakes: Counter,
    pub(crate) failed_handshakes: Counter,
    pub(crate) late_handshakes: Counter,
    pub(crate) crowded_handshakes: Counter,
    pub(crate) reads_cancelled: Counter,
    pub(crate) writes_alone: Counter,
}

impl Wire {
    /// Metrics that nobody records: for what is no client of the tables.
    pub(crate) fn unrecorded() -> Self {
        metrics::with_local_recorder(&metrics::NoopRecorder, Wire::new)
    }

    pub(crate) fn new() -> Self {
        let refused = |limit: &'static str| counter!("heatsink_refused_total", "limit" => limit);
        let slow = |what: &'static str| counter!("heatsink_slow_clients_total", "what" => what);
        let handshakes =
            |outcome: &'static str| counter!("heatsink_tls_handshakes_total", "outcome" => outcome);
        Wire {
            connections: gauge!("heatsink_connections"),
            in_flight: gauge!("heatsink_requests_in_flight"),
            over_connections: refused("connections"),
            over_requests: refused("requests"),
            over_bodies: refused("held_bodies"),
            over_answers: refused("held_answers"),
            foreign_hosts: refused("host"),
            wrong_signatures: refused("signature"),
            late_heads: slow("head"),
            late_bodies: slow("body"),
            untaken_answers: slow("answer"),
            handshakes: handshakes("done"),
            failed_handshakes: handshakes("failed"),
            late_handshakes: handshakes("late"),
            crowded_handshakes: handshakes("crowded"),
            reads_cancelled: counter!("heatsink_cancelled_reads_total"),
            writes_alone: counter!("heatsink_unawaited_writes_total"),
        }
    }
}
