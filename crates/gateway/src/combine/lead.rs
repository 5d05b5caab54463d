//! The write that leads, and those that it takes with it: sent as one, or each alone where the
//! store refuses them for what only some of them ask.

use std::ops::Range;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_route::combine::{Combined, ItemWrite};

use super::queues::{Combiner, Told, Waiting};

/// Sends one physical call.
pub(super) type Send<'a> = dyn Fn(Operation, Bytes) -> BoxFuture<'a, Result<Bytes, Error>> + Sync + 'a;

/// A write of an item that leads. Dropped half-way, its followers are told that nobody knows what
/// became of them, and the next one leads.
pub(super) struct Lead<'c> {
    combiner: &'c Combiner,
    item: Vec<u8>,
    /// Those that wait for its answer, as long as they do.
    followers: Vec<Option<Waiting>>,
    is_over: bool,
}

impl<'c> Lead<'c> {
    pub(super) fn new(combiner: &'c Combiner, item: &[u8]) -> Self {
        Lead { combiner, item: item.to_vec(), followers: Vec::new(), is_over: false }
    }

    /// Carries out a write, and those that can be combined with it.
    pub(super) async fn carry_out(mut self, write: ItemWrite, send: &Send<'_>) -> Result<Bytes, Error> {
        let mut group = Combined::new(&write);
        if write.can_combine() {
            let joined = self.combiner.join(&self.item, &mut group);
            self.followers = joined.into_iter().map(Some).collect();
        }
        if self.followers.is_empty() {
            let (operation, body) = write.request();
            return send(operation, body).await;
        }
        let followers = self.followers.iter().flatten().map(|one| one.write.clone());
        let writes: Vec<ItemWrite> = std::iter::once(write).chain(followers).collect();
        let mut own = None;
        let (mut group, mut rest) = (Some(group), Vec::new());
        rest.push(0..writes.len());
        while let Some(all) = rest.pop() {
            let (group, range) = match group.take() {
                Some(group) => (group, all),
                None => {
                    let Some((group, range)) = first_of(&writes, &all) else { continue };
                    rest.extend((range.end < all.end).then_some(range.end..all.end));
                    (group, range)
                }
            };
            let answer = match group.request() {
                Ok((operation, body)) => send(operation, body).await,
                Err(error) => Err(error),
            };
            self.combiner.sent(range.len());
            if answer.as_ref().is_err_and(of_one) && range.len() > 1 {
                // In halves: with one wrong write among many, few are sent alone.
                let middle = range.start + range.len() / 2;
                rest.extend([middle..range.end, range.start..middle]);
                continue;
            }
            if rest.is_empty() {
                // Before the answers are told apart: the next one is sent meanwhile.
                self.pass_on();
            }
            self.tell(range, &group, answer, &mut own);
        }
        own.unwrap_or_else(|| Err(Error::internal("The answer of a combined write is missing")))
    }

    /// Tells each of these writes its own answer.
    fn tell(
        &mut self,
        range: Range<usize>,
        group: &Combined,
        answer: Result<Bytes, Error>,
        own: &mut Option<Result<Bytes, Error>>,
    ) {
        let count = range.len();
        let answers = match answer.and_then(|answer| group.answers(&answer)) {
            Ok(answers) => answers,
            Err(error) => vec![Err(error); count],
        };
        for (number, answer) in range.zip(answers) {
            match number.checked_sub(1) {
                None => *own = Some(answer),
                Some(at) => {
                    if let Some(follower) = self.followers.get_mut(at).and_then(Option::take) {
                        // Whoever has gone meanwhile is not told.
                        let _ = follower.tell.send(Told::Answer(answer));
                    }
                }
            }
        }
    }

    fn pass_on(&mut self) {
        if !self.is_over {
            self.is_over = true;
            self.combiner.pass_on(&self.item);
        }
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        for follower in self.followers.drain(..).flatten() {
            let _ = follower.tell.send(Told::Answer(Err(lost())));
        }
        self.pass_on();
    }
}

/// The first of these writes that can be combined, one at least.
fn first_of(writes: &[ItemWrite], all: &Range<usize>) -> Option<(Combined, Range<usize>)> {
    let mut group = Combined::new(writes.get(all.start)?);
    let mut end = all.start + 1;
    while end < all.end && writes.get(end).is_some_and(|write| group.join(write)) {
        end += 1;
    }
    Some((group, all.start..end))
}

/// Whether a refusal may be for what one of several writes asks.
fn of_one(error: &Error) -> bool {
    error.outcome == Outcome::NotDone
        && matches!(error.code, Code::ValidationException | Code::ItemCollectionSizeLimitExceededException)
}

fn lost() -> Error {
    Error::unavailable(
        "The write went as one with others of its item, whose request ended before its answer; it may have been carried out",
        Outcome::Unknown,
    )
}
