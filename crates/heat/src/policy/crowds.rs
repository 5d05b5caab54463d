//! Which keys fill a partition together, and which of them have to change.
//!
//! A piece is a whole key or one shard of a key. All pieces on one partition are refused with the
//! same share. Where partitions are known, pieces are grouped by them. Where they are not, pieces
//! that are refused alike, and that together ask for what such a partition is asked for, are taken
//! to lie on one.
//!
//! Not here: how many shards a key then gets, and where (`plan`, `placing`).

use super::share::Share;
use crate::advice::{THROTTLED, asked_of, is_alone};

/// No more than this share of a partition is filled on purpose.
pub(super) const MOST_FILLED: f64 = 0.9;
/// Below this share of a partition a piece is not worth a change.
const WORTH: f64 = 0.1;
/// A refused share that was measured on fewer requests says that a key burns, not how much it asks
/// for.
const ENOUGH: f64 = 50.0;
/// Below this share of what the partition is asked for, a piece is attached to a larger one that
/// is refused alike.
const SMALL: f64 = 0.25;

/// A whole key, or one shard of a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// The place of its key among the keys that are looked at.
    pub(super) key: usize,
    pub(super) shard: usize,
    /// Whether it is all of the key.
    pub(super) is_whole: bool,
    /// Units a second, of the kind that burns.
    pub(super) units: f64,
    /// The units at most, if the store told what its requests cost; else nobody knows.
    pub(super) most_units: Option<f64>,
    pub(super) refused: Share,
    /// Whether it certainly burns.
    pub(super) burns: bool,
    /// Whether it may take another slot now.
    pub(super) can_leave: bool,
    /// Whether its key may get more shards now.
    pub(super) can_grow: bool,
    /// Whether its key changed a short while ago.
    pub(super) is_new: bool,
    /// The partition that it lies on, where known.
    pub(super) partition: Option<usize>,
}

impl Piece {
    /// The units at most, one standard deviation from what was counted: the bound is three away.
    fn likely_most(&self) -> Option<f64> {
        self.most_units.map(|most| self.units + (most - self.units) / 3.0)
    }
}

/// What becomes of a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Fate {
    /// What other pieces ask of its partition. Units a second.
    pub(super) beside: f64,
    /// All that its partition is asked for is taken to be its own, whatever was counted.
    pub(super) takes_all: bool,
    /// Its key needs more shards.
    pub(super) grows: bool,
    /// It needs another slot.
    pub(super) leaves: bool,
}

/// What a known partition is asked for. Units a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PartitionLoad {
    /// By all, as the store tells it.
    pub(super) all: f64,
    /// Of that by keys that do not burn, as they were counted.
    pub(super) cool: f64,
}

/// What becomes of each piece.
pub(super) fn fates(pieces: &[Piece], ceiling: f64, load: impl Fn(usize) -> PartitionLoad) -> Vec<Fate> {
    let mut pieces = pieces.to_vec();
    let crowds = crowds(&mut pieces, ceiling, load);
    let mut fates = vec![Fate::default(); pieces.len()];
    for Crowd { members, asked } in crowds {
        settle(&pieces, &members, asked, ceiling, &mut fates);
    }
    fates
}

/// Pieces on one partition, and what it is asked for.
struct Crowd {
    members: Vec<usize>,
    asked: f64,
}

/// Where partitions are known, the units of pieces are fitted to them.
fn crowds(pieces: &mut [Piece], ceiling: f64, load: impl Fn(usize) -> PartitionLoad) -> Vec<Crowd> {
    let mut open: Vec<usize> = (0..pieces.len()).collect();
    open.sort_by(|a, b| pieces[*b].units.total_cmp(&pieces[*a].units));
    let mut crowds = Vec::new();
    while let Some(at) = open.iter().position(|at| pieces[*at].burns) {
        let first = &pieces[open[at]];
        let by_refusal = asked_of(ceiling, first.refused.share);
        let members = match first.partition {
            Some(partition) => taken(&mut open, |one| pieces[one].partition == Some(partition)),
            None => alike(pieces, &mut open, by_refusal),
        };
        let sum: f64 = members.iter().map(|one| pieces[*one].units).sum();
        let asked = match first.partition.map(&load) {
            None => by_refusal.max(sum),
            Some(PartitionLoad { all, cool }) => {
                let refused = refused_units(pieces, &members);
                let told = asked_of(ceiling, refused).max(all);
                let asked = if refused >= THROTTLED { told } else { told.max(sum) };
                reconcile(pieces, &members, asked - cool - sum);
                asked
            }
        };
        crowds.push(Crowd { members, asked });
    }
    crowds
}

/// Which share of the units of some pieces is refused.
fn refused_units(pieces: &[Piece], members: &[usize]) -> f64 {
    let (refused, all) = members
        .iter()
        .map(|at| &pieces[*at])
        .fold((0.0, 0.0), |(refused, all), one| (refused + one.units * one.refused.share, all + one.units));
    if all > 0.0 { refused / all } else { 0.0 }
}

/// Fits what was counted of single pieces, which is rough where requests are drawn, to what their
/// partition is asked for, which is known well. Each takes of what is `missing` by its variance,
/// within its bounds: so a key that fills a partition is not taken for one that others disturb.
fn reconcile(pieces: &mut [Piece], members: &[usize], missing: f64) {
    let bound = |piece: &Piece| (piece.most_units.unwrap_or(0.0) - piece.units).max(0.0);
    let variance: f64 = members.iter().map(|at| bound(&pieces[*at]).powi(2)).sum();
    if variance <= 0.0 {
        return;
    }
    for at in members {
        let piece = &mut pieces[*at];
        let bound = bound(piece);
        piece.units = (piece.units + (missing * bound.powi(2) / variance).clamp(-bound, bound)).max(0.0);
    }
}

/// Takes those out for which that is so, in their order.
fn taken(open: &mut Vec<usize>, is_one: impl Fn(usize) -> bool) -> Vec<usize> {
    let (members, rest) = open.iter().partition(|one| is_one(**one));
    *open = rest;
    members
}

/// The largest burning piece, and those that are refused like it and may lie beside it.
fn alike(pieces: &[Piece], open: &mut Vec<usize>, asked: f64) -> Vec<usize> {
    let mut sum = 0.0;
    let mut first: Option<&Piece> = None;
    let mut members = Vec::new();
    open.retain(|at| {
        let piece = &pieces[*at];
        let Some(first) = first.filter(|_| piece.burns) else {
            if piece.burns {
                (first, sum) = (Some(piece), piece.units);
                members.push(*at);
            }
            return !piece.burns;
        };
        let fits = sum + piece.units <= asked / ALIKE || piece.units < SMALL * asked;
        let is_alike = piece.refused.is_near(first.refused) && (piece.key != first.key || !first.is_whole);
        let joins = is_alike && fits && !is_alone(piece.units, asked);
        if joins {
            sum += piece.units;
            members.push(*at);
        }
        !joins
    });
    members
}

/// How near the sum of pieces on one partition has to be to what it is asked for.
const ALIKE: f64 = 0.85;

/// Says who changes, so that the partition is filled to no more than [`MOST_FILLED`].
fn settle(pieces: &[Piece], members: &[usize], asked: f64, ceiling: f64, fates: &mut [Fate]) {
    let room = MOST_FILLED * ceiling;
    let mut left = asked;
    let mut grown = 0.0;
    for (nth, at) in members.iter().enumerate() {
        let piece = &pieces[*at];
        // What nobody is known to ask for is taken to be the whole key's that burns alone, if it
        // may ask for that much.
        let is_only = members.len() == 1 && piece.is_whole && piece.partition.is_none();
        let is_only = is_only && piece.refused.measured_on >= ENOUGH;
        let is_only = is_only && piece.likely_most().is_none_or(|most| is_alone(most, asked));
        let units = if is_only { asked } else { piece.units };
        fates[*at].beside = (asked - units).max(0.0);
        fates[*at].takes_all = is_only;
        if units >= room && piece.can_grow {
            // The first one keeps its slot, if there is room beside the others.
            let others = asked - units;
            fates[*at].grows = true;
            fates[*at].leaves = piece.can_leave && (nth > 0 || others > room / 2.0);
            left -= units;
            grown += if fates[*at].leaves { 0.0 } else { room / 2.0 };
        }
    }
    left += if left > 0.0 { grown.min(room - left).max(0.0) } else { 0.0 };
    let mut leavers: Vec<usize> = members
        .iter()
        .copied()
        // What fills a partition by itself fills any.
        .filter(|at| (WORTH * ceiling..room).contains(&pieces[*at].units))
        .filter(|at| pieces[*at].can_leave && !fates[*at].grows)
        // Of one item, which no shards spread, that has to be likely.
        .filter(|at| pieces[*at].can_grow || pieces[*at].likely_most().is_none_or(|most| most < room))
        .collect();
    // What came last goes first; of equals the smallest one that suffices, else the largest.
    while left > room && !leavers.is_empty() {
        let suffices = |at: &usize| left - pieces[*at].units <= room;
        let order = |at: &usize| {
            let units = pieces[*at].units;
            (!pieces[*at].is_new, !suffices(at), if suffices(at) { units } else { -units })
        };
        let next = (0..leavers.len()).min_by(|a, b| {
            let (a, b) = (order(&leavers[*a]), order(&leavers[*b]));
            (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2))
        });
        let Some(at) = next.map(|next| leavers.swap_remove(next)) else { break };
        fates[at].leaves = true;
        left -= pieces[at].units;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A whole key of so many units, of which that share is refused.
    fn piece(key: usize, units: f64, share: f64) -> Piece {
        Piece {
            key,
            shard: 0,
            is_whole: true,
            units,
            most_units: Some(units),
            refused: Share { share, measured_on: 1_000.0 },
            burns: share >= 0.01,
            can_leave: true,
            can_grow: true,
            is_new: false,
            partition: None,
        }
    }

    /// Which grow, and which leave.
    fn changes(pieces: &[Piece]) -> (Vec<usize>, Vec<usize>) {
        let fates = fates(pieces, 1_000.0, |_| PartitionLoad::default());
        let those = |is: fn(&Fate) -> bool| (0..fates.len()).filter(|at| is(&fates[*at])).collect();
        (those(|fate| fate.grows), those(|fate| fate.leaves))
    }

    #[test]
    fn a_key_over_the_ceiling_grows_and_its_neighbour_stays() {
        // 1,540 units: a third is refused.
        assert_eq!(changes(&[piece(0, 1_500.0, 0.35), piece(1, 40.0, 0.35)]), (vec![0], vec![]));
        let ten: Vec<Piece> = (0..10).map(|key| piece(key, 1_100.0, 0.09)).collect();
        assert_eq!(changes(&ten), ((0..10).collect(), vec![]));
    }

    #[test]
    fn of_two_below_the_ceiling_one_leaves() {
        assert_eq!(changes(&[piece(0, 700.0, 0.286), piece(1, 700.0, 0.286)]).1.len(), 1);
        assert_eq!(changes(&[piece(0, 880.0, 0.2), piece(1, 370.0, 0.2)]), (vec![], vec![1]));
        // What came last goes, though it is the larger one.
        let new = Piece { is_new: true, ..piece(0, 880.0, 0.2) };
        assert_eq!(changes(&[new, piece(1, 370.0, 0.2)]), (vec![], vec![0]));
    }

    #[test]
    fn what_may_not_change_is_left_and_others_go() {
        let barred = Piece { can_grow: false, can_leave: false, ..piece(0, 1_500.0, 0.45) };
        assert_eq!(changes(&[barred, piece(1, 320.0, 0.45)]), (vec![], vec![1]));
    }

    #[test]
    fn known_partitions_group_what_lies_on_them() {
        let on = |partition, piece: Piece| Piece { partition: Some(partition), ..piece };
        let pieces =
            [on(3, piece(0, 700.0, 0.286)), on(4, piece(1, 700.0, 0.286)), on(3, piece(2, 600.0, 0.286))];
        let load = |partition| {
            let all = if partition == 4 { 1_400.0 } else { 1_300.0 };
            PartitionLoad { all, cool: 0.0 }
        };
        let fates = fates(&pieces, 1_000.0, load);
        assert_eq!(fates.iter().map(|fate| fate.leaves).collect::<Vec<_>>(), [false, true, true]);
        let beside = asked_of(1_000.0, 0.286) - 700.0;
        assert!((fates[1].beside - beside).abs() < 1e-9, "{fates:?}");
    }

    #[test]
    fn what_was_counted_roughly_is_fitted_to_its_partition() {
        let load = |_| PartitionLoad { all: 1_200.0, cool: 100.0 };
        let fate = |most| {
            let rough = Piece { partition: Some(3), most_units: Some(most), ..piece(0, 800.0, 0.2) };
            fates(&[rough], 1_000.0, load)[0]
        };
        // 1,250 units are asked for, of which all but the 100 may be its own.
        let grows = fate(1_300.0);
        assert!(grows.grows && !grows.leaves && (grows.beside - 100.0).abs() < 1e-9, "{grows:?}");
        // It certainly has 820 at most: others disturb it.
        let leaves = fate(820.0);
        assert!(leaves.leaves && !leaves.grows && (leaves.beside - 430.0).abs() < 1e-9, "{leaves:?}");
    }
}
