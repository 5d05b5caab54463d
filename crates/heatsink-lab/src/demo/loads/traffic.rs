//! Offers a scene: which key each request is for, over all gateways, and what is counted of it.
//!
//! Not here: the pace and the connections (`heatsink-load`).

use std::sync::Arc;

use heatsink_load::{Answer, Outcome, Request, Work};

use super::subject::Subject;
use crate::demo::account::{Account, Verdict};
use crate::demo::workload::scramble;

/// Which key each request of a second is for: every second has the same ones in the same order.
struct Schedule {
    /// The key's number, and how many requests of the second are for it before.
    order: Vec<(usize, u64)>,
    /// Requests of a second for each key.
    rates: Vec<u64>,
}

impl Schedule {
    fn new(subjects: &[Subject]) -> Self {
        let rates: Vec<u64> = subjects.iter().map(|one| u64::from(one.per_second)).collect();
        let mut places: Vec<(u64, usize)> = Vec::new();
        for (subject, &rate) in rates.iter().enumerate() {
            // Evenly over the second, and no two keys in step.
            let offset = scramble(subject as u64) % 1_000_000;
            places.extend((0..rate).map(|nth| ((nth * 1_000_000 + offset) / rate, subject)));
        }
        places.sort_unstable();
        let mut before = vec![0; rates.len()];
        let mut order = Vec::with_capacity(places.len());
        for (_, subject) in places {
            let Some(count) = before.get_mut(subject) else { continue };
            order.push((subject, *count));
            *count += 1;
        }
        Schedule { order, rates }
    }

    /// The key that the nth request is for, and its number among that key's requests.
    fn of(&self, nth: u64) -> Option<(usize, u64)> {
        let each = self.order.len() as u64;
        let second = nth.checked_div(each)?;
        let &(subject, before) = self.order.get(usize::try_from(nth % each).ok()?)?;
        Some((subject, second * self.rates.get(subject)? + before))
    }
}

/// The whole load: keys, schedule and account.
pub struct Offer {
    subjects: Vec<Subject>,
    schedule: Schedule,
    account: Account,
}

impl Offer {
    /// Of these keys.
    pub fn new(subjects: Vec<Subject>, account: Account) -> Self {
        Offer { schedule: Schedule::new(&subjects), subjects, account }
    }

    /// Requests a second, of all keys.
    pub fn per_second(&self) -> u64 {
        self.schedule.order.len() as u64
    }

    /// The keys.
    pub fn subjects(&self) -> &[Subject] {
        &self.subjects
    }

    /// The account.
    pub fn account(&self) -> &Account {
        &self.account
    }
}

/// One gateway's part of it: every `of`th request, from its own on.
pub struct Part {
    /// The load.
    pub offer: Arc<Offer>,
    /// Which gateway, from 0 on.
    pub nth: u64,
    /// How many there are.
    pub of: u64,
}

impl Part {
    fn subject(&self, nth: u64) -> Option<(usize, u64, &Subject)> {
        let (subject, nth) = self.offer.schedule.of(nth * self.of + self.nth)?;
        Some((subject, nth, self.offer.subjects.get(subject)?))
    }
}

impl Work for Part {
    fn request(&self, nth: u64) -> Request {
        match self.subject(nth) {
            Some((number, nth, subject)) => {
                self.offer.account.sent(number, subject.items_of(nth));
                subject.request(nth)
            }
            // A scene without keys offers nothing; the generator wants a request all the same.
            None => Request::new(heatsink_dynamo::Operation::ListTables, "{}"),
        }
    }

    fn outcome(&self, nth: u64, answer: &Answer) -> Outcome {
        let Some((number, nth, subject)) = self.subject(nth) else { return Outcome::of(answer) };
        let mut left = false;
        for (item, verdict) in subject.verdicts(nth, answer) {
            left |= verdict == Verdict::Refused;
            self.offer.account.answered(number, nth, item, verdict);
        }
        if left { Outcome::Throttled } else { Outcome::of(answer) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::subject::Act;
    use super::*;

    #[test]
    fn every_second_has_each_key_as_often_as_it_is_asked_for() {
        let subject = |name: &str, per_second| Subject {
            name: name.to_owned(),
            hot: true,
            act: Act::Put,
            per_second,
            bytes: 100,
            items: 10,
        };
        let schedule = Schedule::new(&[subject("a", 70), subject("b", 3)]);
        let asked: Vec<(usize, u64)> = (0..146).filter_map(|nth| schedule.of(nth)).collect();
        for (key, rate) in [(0, 70), (1, 3)] {
            let numbers: Vec<u64> =
                asked.iter().filter(|(one, _)| *one == key).map(|(_, nth)| *nth).collect();
            assert_eq!(numbers, (0..2 * rate).collect::<Vec<_>>());
        }
        // Not one key after the other.
        assert!(asked.iter().take(36).any(|(key, _)| *key == 1));
    }
}
