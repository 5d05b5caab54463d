//! The end of every simulation: the weather clears, everything late arrives, every gateway runs,
//! and all that is there is read.
//!
//! A table that is refused because it holds items which no rule brought in is adopted, as its
//! refusal says; what was acknowledged has to be there afterwards.

use std::time::Duration;

use heatsink_dynamo::{Code, Error};
use heatsink_history::{Operation, State};
use heatsink_workers::{Direction, WorkerError};

use crate::client::{PATIENCE, Reply};
use crate::network::Weather;
use crate::world::{World, name};

/// Longer than any request, any lease and any bound on stragglers.
pub const QUIET: Duration = Duration::from_secs(200);
/// How often a read is tried again, and after how long.
const TRIES: usize = 100;
const PAUSE: Duration = Duration::from_secs(3);

impl World {
    /// Reads every item in every way through every gateway, and holds it against what lies in the
    /// store. `rules`: those of all gateways by now. Returns all that is wrong.
    pub async fn end(&self, items: &[String], rules: &str) -> Vec<String> {
        self.clear_up().await;
        self.start_all().await;
        let mut adopted = false;
        for gateway in 0..self.gateways() {
            if let Err(error) = self.read_all(gateway, items).await {
                if error.code == Code::ValidationException && !adopted {
                    adopted = true;
                    self.adopt_surely(rules, Direction::Adopt).await;
                    self.clock.sleep(QUIET).await;
                }
                if let Err(error) = self.read_all(gateway, items).await {
                    let told = format!("the table cannot be read through {}: {error}", name(gateway));
                    self.book.fault_within_bounds(told);
                }
            }
        }
        self.compare(items).await;
        self.book.judge()
    }

    /// The weather clears, everything late arrives, and every gateway that was stopped goes on.
    pub async fn clear_up(&self) {
        self.log.line("the weather clears");
        self.network.set(Weather::default());
        (0..self.gateways()).for_each(|gateway| self.stop(gateway, false));
        self.clock.sleep(QUIET).await;
    }

    /// Every gateway runs.
    pub async fn start_all(&self) {
        for gateway in 0..self.gateways() {
            if let Err(why) = self.start_surely(gateway).await {
                self.book.fault(format!("{} does not start: {why}", name(gateway)));
            }
        }
    }

    /// Adopts the table, however often it takes.
    pub async fn adopt_surely(&self, rules: &str, direction: Direction) -> bool {
        let mut last = None;
        for _ in 0..20 {
            match self.adopt(rules, direction, Duration::from_secs(3_600)).await {
                Some(Ok(_)) => return true,
                Some(Err(WorkerError::Usage(done))) if done.contains("as they lie") => return true,
                // A run before this one had ended, but for its answer.
                Some(Err(WorkerError::Usage(_))) if direction == Direction::Back => return true,
                ended => last = ended,
            }
            self.clock.sleep(PAUSE).await;
        }
        let why = last.and_then(Result::err).map_or("killed".to_owned(), |error| error.to_string());
        self.book.fault_within_bounds(format!("{direction:?} does not come to its end: {why}"));
        false
    }

    async fn read_all(&self, gateway: usize, items: &[String]) -> Result<(), Error> {
        for item in items {
            self.read(gateway, item).await?;
        }
        self.query(gateway, items, None, 3, true).await?;
        for label in [1, 2] {
            self.query(gateway, items, Some(label), 2, true).await?;
        }
        self.scan(gateway, items, 3).await
    }

    /// Reads an item, waiting for as long as the gateway says that it cannot be read yet.
    async fn read(&self, gateway: usize, item: &str) -> Result<State, Error> {
        let mut tries = 0;
        loop {
            match self.call(gateway, item, Operation::Get, PATIENCE).await {
                Reply::Answered(heatsink_history::Answer::Saw(state)) => return Ok(state),
                Reply::NotDone(error) if !error.retryable() || tries == TRIES => return Err(error),
                _ if tries == TRIES => return Err(Error::internal("no answer")),
                _ => tries += 1,
            }
            self.clock.sleep(PAUSE).await;
        }
    }

    /// What lies in the store is what gateways show, each item once.
    async fn compare(&self, items: &[String]) {
        let rows = self.rows().await;
        for (item, _) in &rows {
            if !items.contains(item) {
                self.book.fault(format!("the store holds {item}, which nobody wrote"));
            }
        }
        for item in items {
            let lying: Vec<State> =
                rows.iter().filter(|(sk, _)| sk == item).map(|(_, value)| *value).collect();
            for gateway in 0..self.gateways() {
                let Ok(shown) = self.read(gateway, item).await else { continue };
                let strays = self.book.is_beyond() && shown.is_none_or(|value| lying.contains(&Some(value)));
                if lying != Vec::from_iter(shown.map(Some)) && !strays {
                    self.book.fault(format!(
                        "{} shows {shown:?} of {item}; the store holds {lying:?}",
                        name(gateway)
                    ));
                }
            }
        }
    }
}
