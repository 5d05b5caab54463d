//! Generates load: at a constant rate (open loop), or as fast as answers arrive (closed loop).

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::{join_all, try_join_all};
use heatsink_env::{Env, MonotonicInstant};

use crate::{Answer, Connection, LoadError, Outcome, Report, Request};

/// What to send, and how to count what comes back. A closure from number to request will do.
pub trait Work: Send + Sync + 'static {
    /// The request with this number. Numbers count from 0 over all connections and are given out
    /// once each.
    fn request(&self, nth: u64) -> Request;

    /// Counts an answer. Also the place to look into a body (consumed capacity) or to feed a live
    /// display.
    fn outcome(&self, nth: u64, answer: &Answer) -> Outcome {
        let _ = nth;
        Outcome::of(answer)
    }
}

impl<F: Fn(u64) -> Request + Send + Sync + 'static> Work for F {
    fn request(&self, nth: u64) -> Request {
        self(nth)
    }
}

/// How long a load runs. Both limits are hard.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Requests are offered for this long.
    pub offer: Duration,
    /// Answers are awaited this much longer; what is missing then counts as unanswered.
    pub grace: Duration,
}

impl Span {
    /// Offers for `offer`, and waits up to five seconds more for the last answers.
    pub const fn of(offer: Duration) -> Span {
        Span { offer, grace: Duration::from_secs(5) }
    }
}

/// An open loop's settings.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Requests per second, evenly spaced.
    pub per_second: f64,
    /// How long.
    pub span: Span,
    /// Connections that share the requests. At least rate × slowest expected answer, else requests
    /// queue in the client (which `latency` shows and `service` does not).
    pub connections: usize,
}

/// Sends at a constant rate until the span is over, whatever the server does.
///
/// # Errors
/// Before anything is sent: bad settings, or a connection that cannot be opened. Later failures are
/// counted.
pub async fn open_loop<W: Work>(
    env: Arc<dyn Env>,
    target: SocketAddr,
    rate: Rate,
    work: Arc<W>,
) -> Result<Report, LoadError> {
    let offered = rate.per_second * rate.span.offer.as_secs_f64();
    if !rate.per_second.is_finite() || rate.per_second <= 0.0 {
        return Err(LoadError::Nothing);
    }
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "above zero, and `as` saturates"
    )]
    let total = offered.round() as u64;
    let step = Some(1.0 / rate.per_second);
    let pace = Pace { total, step };
    drive(env, target, rate.connections, rate.span, pace, work).await
}

/// Sends the next request on each connection when its last answer is in, until the span is over or
/// `total` requests are sent.
///
/// # Errors
/// As [`open_loop`].
pub async fn closed_loop<W: Work>(
    env: Arc<dyn Env>,
    target: SocketAddr,
    connections: usize,
    span: Span,
    total: u64,
    work: Arc<W>,
) -> Result<Report, LoadError> {
    drive(env, target, connections, span, Pace { total, step: None }, work).await
}

/// How many requests, and how many seconds apart; with no step each is due when a connection is
/// free.
#[derive(Clone, Copy)]
struct Pace {
    total: u64,
    step: Option<f64>,
}

async fn drive<W: Work>(
    env: Arc<dyn Env>,
    target: SocketAddr,
    connections: usize,
    span: Span,
    pace: Pace,
    work: Arc<W>,
) -> Result<Report, LoadError> {
    if connections == 0 {
        return Err(LoadError::Nothing);
    }
    let open = try_join_all((0..connections).map(|_| Connection::open(target))).await?;
    let tickets = Arc::new(AtomicU64::new(0));
    let start = env.now();
    let workers = open.into_iter().map(|connection| {
        let (env, work, tickets) = (env.clone(), work.clone(), tickets.clone());
        let worker = Worker { env: env.clone(), target, start, pace, offer: span.offer, work, tickets };
        tokio::spawn(async move {
            let mut tally = Report::empty();
            // Whatever was counted when time is up stays counted.
            tokio::select! {
                () = worker.run(connection, &mut tally) => {}
                () = env.sleep(span.offer + span.grace) => {}
            }
            tally
        })
    });
    let mut report = Report::empty();
    for tally in join_all(workers).await {
        match tally {
            Ok(tally) => report.add(tally),
            Err(broken) => report.first_failure = Some(format!("a worker ended early: {broken}")),
        }
    }
    if pace.step.is_some() {
        report.offered = pace.total;
    }
    let answered = report.accepted + report.throttled + report.failed;
    report.unanswered = report.offered.saturating_sub(answered);
    Ok(report)
}

struct Worker<W> {
    env: Arc<dyn Env>,
    target: SocketAddr,
    start: MonotonicInstant,
    pace: Pace,
    offer: Duration,
    work: Arc<W>,
    tickets: Arc<AtomicU64>,
}

impl<W: Work> Worker<W> {
    async fn run(&self, connection: Connection, tally: &mut Report) {
        let mut connection = Some(connection);
        loop {
            let nth = self.tickets.fetch_add(1, Ordering::Relaxed);
            if nth >= self.pace.total {
                return;
            }
            let Some(intended) = self.wait_for(nth).await else { return };
            let request = self.work.request(nth);
            let sent = self.env.now();
            tally.offered += 1;
            let answer = self.send(&mut connection, &request).await;
            let now = self.env.now();
            tally.elapsed = now.since(self.start);
            match answer {
                Ok(answer) => match self.work.outcome(nth, &answer) {
                    Outcome::Accepted => {
                        tally.accepted += 1;
                        tally.latency.record(now.since(intended));
                        tally.service.record(now.since(sent));
                    }
                    Outcome::Throttled => tally.throttled += 1,
                    Outcome::Failed => {
                        tally.failed += 1;
                        tally.first_failure.get_or_insert_with(|| {
                            format!("{}: {}", answer.status, String::from_utf8_lossy(&answer.body))
                        });
                    }
                },
                Err(error) => {
                    tally.failed += 1;
                    tally.first_failure.get_or_insert_with(|| error.to_string());
                }
            }
        }
    }

    /// Waits until a request is due and says when that is; in a closed loop, now. `None` when a
    /// closed loop's time is over.
    async fn wait_for(&self, nth: u64) -> Option<MonotonicInstant> {
        let now = self.env.now();
        let Some(step) = self.pace.step else {
            return (now.since(self.start) < self.offer).then_some(now);
        };
        #[allow(clippy::cast_precision_loss, reason = "exact below 2^53 requests")]
        let due = self.start + Duration::from_secs_f64(step * nth as f64);
        if due > now {
            self.env.sleep(due.since(now)).await;
        }
        Some(due)
    }

    /// Sends, on a new connection if the last one broke.
    async fn send(&self, slot: &mut Option<Connection>, request: &Request) -> Result<Answer, LoadError> {
        let mut connection = match slot.take() {
            Some(open) => open,
            None => Connection::open(self.target).await?,
        };
        let answer = connection.send(request).await?;
        *slot = Some(connection);
        Ok(answer)
    }
}
