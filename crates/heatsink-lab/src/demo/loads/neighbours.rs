//! Cool keys in the partition of a hot one: what it does to them.
//!
//! Not here: the loads that have cool keys of their own (`scene`).

use std::sync::Arc;
use std::time::Duration;

use heatsink_env::Env;
use heatsink_load::{Rate, Span, open_loop};
use serde::Serialize;

use super::measure::share;
use super::names::{Names, Partitions};
use super::subject::{Act, Subject};
use super::traffic::{Offer, Part};
use crate::demo::account::{Account, Interval};
use crate::demo::fleet::Fleet;
use crate::exit::Exit;

/// How many there are.
const KEYS: usize = 3;
/// Puts a second on each.
const PUTS: u32 = 20;
/// Connections of their clients.
const CONNECTIONS: usize = 4;

/// The load on them, through the first gateway.
pub struct Neighbours {
    offer: Arc<Offer>,
    seconds: u64,
}

/// What they suffered.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Suffered {
    /// How many keys there are.
    pub keys: usize,
    /// Puts a second on all.
    pub per_second: u64,
    /// The share refused while the hot key burned.
    pub refused_before: f64,
    /// The share refused from its relief on.
    pub refused_after: f64,
}

impl Neighbours {
    /// Of that key, for a load of so many seconds that begins now.
    pub fn of(env: &Arc<dyn Env>, fleet: &Fleet, key: &str, seconds: u64) -> Self {
        let partitions = Partitions::new(fleet.partitions().iter().map(|one| one.first).collect());
        let mut names = Names::new(&partitions);
        let partition = names.partition(key, 0);
        let subjects = (0..KEYS).map(|_| Subject {
            name: names.within("title", partition),
            hot: false,
            act: Act::Put,
            per_second: PUTS,
            bytes: 400,
            items: 1_000,
        });
        let subjects: Vec<Subject> = subjects.collect();
        let items: Vec<usize> = subjects.iter().map(|one| one.items).collect();
        let account = Account::new(env.clone(), seconds, &items);
        Neighbours { offer: Arc::new(Offer::new(subjects, account)), seconds }
    }

    /// Offers the load.
    pub async fn offer(&self, env: &Arc<dyn Env>, fleet: &Fleet) -> Result<(), Exit> {
        let address = *fleet.addresses().first().ok_or_else(|| Exit::software("no gateway runs"))?;
        let span = Span::of(Duration::from_secs(self.seconds));
        #[allow(clippy::cast_precision_loss, reason = "a few puts")]
        let rate = Rate { per_second: self.offer.per_second() as f64, span, connections: CONNECTIONS };
        let part = Part { offer: Arc::clone(&self.offer), nth: 0, of: 1 };
        let report = open_loop(env.clone(), address, rate, Arc::new(part)).await;
        report.map(drop).map_err(|error| Exit::software(error.to_string()))
    }

    /// What they suffered while the hot key burned, between two moments in milliseconds since the
    /// load began, and afterwards.
    pub fn suffered(&self, from: u32, to: u32) -> Suffered {
        let mut all: Vec<Interval> = Vec::new();
        for nth in 0..KEYS {
            for (at, one) in self.offer.account().intervals(nth, self.seconds).into_iter().enumerate() {
                match all.get_mut(at) {
                    Some(sum) => *sum = Interval::sum(&[*sum, one]),
                    None => all.push(one),
                }
            }
        }
        Suffered {
            keys: KEYS,
            per_second: self.offer.per_second(),
            refused_before: share(&all, from, to),
            refused_after: share(&all, to, u32::MAX),
        }
    }
}

impl Suffered {
    /// It as a sentence; none where there were no neighbours.
    pub fn print(&self) -> Option<String> {
        let Suffered { keys, per_second, refused_before, refused_after } = *self;
        (keys > 0).then(|| {
            format!(
                "{keys} cool keys of the same partition, {per_second} puts/s: {:.1} % refused while it burned, {:.1} % afterwards.",
                refused_before * 100.0,
                refused_after * 100.0
            )
        })
    }
}
