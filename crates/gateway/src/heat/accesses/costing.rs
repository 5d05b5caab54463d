//! What an access costs: as the store tells it, else by the sizes that request and answer show,
//! else by what such accesses cost when they were carried out.
//!
//! Not here: what was learned of earlier requests (`heatsink_heat::costs`).

use heatsink_dynamo::capacity::Consistency;
use heatsink_heat::costs::{Cost, CostOf, Costs, RequestKind};

/// What one unit is, in thousandths: the least that a write costs, and a strong read.
pub(super) const UNIT: u64 = 1_000;

/// How a read is asked for.
pub(super) fn consistency(consistent: Option<&[u8]>) -> Consistency {
    Consistency::of(consistent.is_some_and(|flag| matches!(flag, b"true" | b"\"true\"")))
}

/// What is known of the cost of an access. Thousandths of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// The store told it, of this access or of several together.
    Told(Cost),
    /// It follows from the sizes that request and answer show.
    Sized(u64),
    /// Nothing.
    Nothing,
}

impl Known {
    /// By sizes, where they are known.
    pub(super) fn sized(units: Option<u64>) -> Self {
        units.map_or(Known::Nothing, Known::Sized)
    }
}

/// How much dearer than its plain form a request is, in halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Halves(u64);

impl Halves {
    /// A write, or a strong read.
    pub(super) const PLAIN: Halves = Halves(2);
    /// In a transaction.
    pub(super) const TRANSACTION: Halves = Halves(4);

    /// A read.
    pub(super) const fn of(consistency: Consistency) -> Self {
        match consistency {
            Consistency::Eventual => Halves(1),
            Consistency::Strong => Halves::PLAIN,
            Consistency::Transactional => Halves::TRANSACTION,
        }
    }

    /// So many units of the plain form.
    pub(super) const fn of_plain(self, units: u64) -> u64 {
        units * self.0 / 2
    }

    const fn of_cost(self, plain: Cost) -> Cost {
        Cost { units: self.of_plain(plain.units), deviation: self.of_plain(plain.deviation) }
    }

    const fn to_plain(self, units: u64) -> u64 {
        units * 2 / self.0
    }
}

/// What became of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fared {
    /// It was carried out.
    Done,
    /// The same, and the store was not asked what it cost.
    Unasked,
    /// A condition refused it: it cost what the item costs that was there.
    Failed,
    /// It was refused, and cost nothing. It counts for what it asked for.
    Refused,
}

/// The cost of an access. Where it was carried out and the store was asked, it is learned. `sized`:
/// what sizes show.
pub(super) fn price(
    costs: &mut Costs,
    of: CostOf<'_>,
    halves: Halves,
    fared: Fared,
    known: Known,
    sized: Option<u64>,
) -> Cost {
    match (fared, known) {
        (Fared::Done, Known::Told(cost)) => {
            costs.learn(of, halves.to_plain(cost.units), sized.map(|units| halves.to_plain(units)));
            cost
        }
        (Fared::Done, Known::Sized(units)) => {
            let plain = halves.to_plain(units);
            costs.learn(of, plain, Some(plain));
            Cost { units, deviation: 0 }
        }
        (_, Known::Told(cost)) => cost,
        (Fared::Unasked, _) => {
            let plain = costs.estimate_sized(of, sized.map(|units| halves.to_plain(units)));
            halves.of_cost(plain.unwrap_or(Cost { units: UNIT, deviation: 0 }))
        }
        (fared, known) => {
            let least = if let (Fared::Failed, Known::Sized(units)) = (fared, known) { units } else { 0 };
            let cost = estimate(costs, of, halves, fared, known);
            Cost { units: cost.units.max(least), ..cost }
        }
    }
}

fn estimate(costs: &Costs, of: CostOf<'_>, halves: Halves, fared: Fared, known: Known) -> Cost {
    let others = [RequestKind::Put, RequestKind::Update, RequestKind::Delete];
    // A condition is judged by the same item, whatever was to become of it.
    let of_others = || {
        let kinds = others.iter().filter(|_| fared == Fared::Failed && others.contains(&of.kind));
        kinds.copied().find_map(|kind| costs.estimate(CostOf { kind, ..of }))
    };
    let plain = match (costs.estimate(of).or_else(of_others), known) {
        (Some(cost), _) => cost,
        (None, Known::Sized(units)) => return Cost { units, deviation: 0 },
        (None, _) => costs.estimate(CostOf { key: None, ..of }).unwrap_or(Cost { units: UNIT, deviation: 0 }),
    };
    halves.of_cost(plain)
}

/// One of several items of a table of which the store tells a cost together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// What it is thought to cost.
    pub(super) units: u64,
    /// Whether that follows from its size.
    pub(super) is_sized: bool,
    /// It was refused, and has no part.
    pub(super) is_refused: bool,
}

/// What is known of each item, by what the store told of all together.
pub(super) fn shares(told: Option<u64>, members: &[Member]) -> Vec<Known> {
    let alone = |member: &Member| if member.is_sized { Known::Sized(member.units) } else { Known::Nothing };
    let Some(told) = told else { return members.iter().map(alone).collect() };
    let takes =
        |sized: bool| members.iter().filter(move |member| !member.is_refused && member.is_sized == sized);
    let (sized, guessed): (u64, u64) =
        (takes(true).map(|member| member.units).sum(), takes(false).map(|member| member.units).sum());
    let unsized_count = u64::try_from(takes(false).count()).unwrap_or(u64::MAX);
    // What sizes show is right where the others have a unit each left.
    let rest = told.checked_sub(sized).filter(|rest| match unsized_count {
        0 => *rest == 0,
        count => *rest * 2 >= count * UNIT,
    });
    let of_sum = |units: u64, part: u64, sum: u64| {
        u64::try_from(u128::from(units) * u128::from(part) / u128::from(sum.max(1))).unwrap_or(u64::MAX)
    };
    let share = |member: &Member| match rest {
        _ if member.is_refused => alone(member),
        Some(_) if member.is_sized => Known::Told(Cost { units: member.units, deviation: 0 }),
        Some(rest) => {
            let units = of_sum(member.units, rest, guessed);
            // One alone takes all of the rest, and items that all cost the least do so each.
            let is_certain = unsized_count == 1 || rest == unsized_count * UNIT || rest == guessed;
            Known::Told(Cost { units, deviation: if is_certain { 0 } else { units.max(member.units) / 2 } })
        }
        None => {
            let units = of_sum(member.units, told, sized + guessed);
            Known::Told(Cost { units, deviation: units.abs_diff(member.units) })
        }
    };
    members.iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use heatsink_heat::detect::{Detector, Kind};

    use super::*;

    fn told(units: u64) -> Known {
        Known::Told(Cost { units, deviation: 0 })
    }

    #[test]
    fn what_is_refused_costs_what_such_requests_of_the_key_cost() {
        let part = Detector::new(1, 0).part(&Arc::from("games"), None, Kind::Write);
        let of = |kind, key| CostOf { part, kind, key: Some(key) };
        let mut costs = Costs::new(1);
        let update = RequestKind::Update;
        let mut units = |of, halves, fared, known| {
            let sized = if let Known::Sized(units) = known { Some(units) } else { None };
            price(&mut costs, of, halves, fared, known, sized).units
        };
        assert_eq!(units(of(update, "a"), Halves::PLAIN, Fared::Refused, Known::Nothing), 1_000);
        assert_eq!(units(of(update, "a"), Halves::TRANSACTION, Fared::Done, told(120_000)), 120_000);
        assert_eq!(units(of(update, "a"), Halves::PLAIN, Fared::Refused, Known::Nothing), 60_000);
        assert_eq!(units(of(update, "b"), Halves::TRANSACTION, Fared::Refused, Known::Nothing), 120_000);
        // A put by its own size, where none of the key was carried out; a failed one by the larger.
        let put = of(RequestKind::Put, "a");
        assert_eq!(units(put, Halves::PLAIN, Fared::Refused, Known::Sized(3_000)), 3_000);
        assert_eq!(units(put, Halves::PLAIN, Fared::Failed, Known::Sized(3_000)), 60_000);
        assert_eq!(units(put, Halves::PLAIN, Fared::Done, Known::Sized(2_000)), 2_000);
        assert_eq!(units(put, Halves::PLAIN, Fared::Failed, Known::Sized(3_000)), 3_000);
        // Not asked: by its size where that was right so far, else by what such requests cost.
        let put = of(RequestKind::Put, "c");
        assert_eq!(units(put, Halves::PLAIN, Fared::Done, told(9_000)), 9_000);
        assert_eq!(units(put, Halves::PLAIN, Fared::Unasked, Known::Sized(2_000)), 9_000);
        let put = of(RequestKind::Put, "d");
        assert_eq!(units(put, Halves::PLAIN, Fared::Done, Known::Sized(2_000)), 2_000);
        assert_eq!(units(put, Halves::PLAIN, Fared::Unasked, Known::Sized(5_000)), 5_000);
        assert_eq!(units(of(update, "a"), Halves::PLAIN, Fared::Unasked, Known::Nothing), 60_000);
        let get = of(RequestKind::Get, "a");
        let eventual = Halves::of(Consistency::Eventual);
        assert_eq!(units(get, eventual, Fared::Done, told(5_000)), 5_000);
        assert_eq!(units(get, Halves::of(Consistency::Strong), Fared::Refused, Known::Nothing), 10_000);
    }

    #[test]
    fn items_share_what_is_told_of_their_table() {
        let member = |units, is_sized| Member { units, is_sized, is_refused: false };
        let shared = |sum: u64, members: &[Member]| -> Vec<(u64, u64)> {
            let all = shares(Some(sum), members).into_iter();
            all.map(|known| match known {
                Known::Told(cost) => (cost.units, cost.deviation),
                other => panic!("{other:?}"),
            })
            .collect()
        };
        let (one, three, guess) = (member(1_000, true), member(3_000, true), member(1_000, false));
        assert_eq!(shared(4_000, &[one, three]), [(1_000, 0), (3_000, 0)]);
        assert_eq!(shared(14_000, &[one, three, guess]), [(1_000, 0), (3_000, 0), (10_000, 0)]);
        assert_eq!(shared(3_000, &[one, guess, guess]), [(1_000, 0), (1_000, 0), (1_000, 0)]);
        // Larger items were there before: nobody knows under which key.
        assert_eq!(shared(8_000, &[one, three]), [(2_000, 1_000), (6_000, 3_000)]);
        assert_eq!(shared(9_000, &[one, guess, member(3_000, false)])[1..], [(2_000, 1_000), (6_000, 3_000)]);
        let refused = Member { is_refused: true, ..three };
        assert_eq!(
            shares(Some(1_000), &[one, refused, Member { is_refused: true, ..guess }]),
            [told(1_000), Known::Sized(3_000), Known::Nothing]
        );
        assert_eq!(shares(None, &[three, guess]), [Known::Sized(3_000), Known::Nothing]);
    }
}
