//! What a narrowing adds to the search of [`widening`](crate::widening): the worker that folds, and
//! reads of which the parts are no snapshot.

use heatsink_reshard::{Fold, FoldAnswer, FoldCall, FoldPart, FoldRead, Pulled, Rules};

use crate::widening::MOST;

type Cells = [Option<u16>; MOST];

/// A worker that folds one fragment after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Worker {
    /// The fragment that is folded now.
    fold: Option<(usize, Fold<u16>)>,
}

/// A transaction of a fold that may land late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Late {
    cell: usize,
    part: u16,
    if_same: bool,
}

impl Late {
    /// What the store does with it.
    pub fn land(self, cells: &mut Cells) -> FoldAnswer<u16> {
        let Some(base) = cells[0] else { return FoldAnswer::NoBase };
        if self.if_same && cells[self.cell] != Some(self.part) {
            return FoldAnswer::Changed;
        }
        cells[0] = Some(base.wrapping_add(self.part));
        cells[self.cell] = None;
        FoldAnswer::Done
    }
}

impl Worker {
    /// One call. Whether it has found nothing to fold.
    pub fn step(&mut self, cells: &mut Cells, lost: usize, rules: Rules) -> bool {
        let Some((cell, fold)) = &mut self.fold else {
            let found = (lost..MOST).find_map(|cell| Some((cell, cells[cell]?)));
            self.fold = found.map(|(cell, part)| (cell, Fold::of(part, rules)));
            return self.fold.is_none();
        };
        let answer = match fold.call() {
            FoldCall::Read => FoldAnswer::Read(cells[*cell]),
            FoldCall::Add { fragment: part, if_same } => Late { cell: *cell, part, if_same }.land(cells),
        };
        match fold.answered(answer) {
            Some(Pulled::Clear) => self.fold = None,
            Some(other) => unreachable!("{other:?}"),
            None => {}
        }
        false
    }

    /// Waits no longer for the answer to what it has sent, which may land yet.
    pub fn give_up(&mut self) -> Option<Late> {
        let (cell, fold) = self.fold.as_mut()?;
        let FoldCall::Add { fragment: part, if_same } = fold.call() else { return None };
        fold.answered(FoldAnswer::Again);
        Some(Late { cell: *cell, part, if_same })
    }
}

/// What a read that is no snapshot has read so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Parts {
    base: Option<Option<u16>>,
    folding: Option<FoldRead<Vec<Option<u16>>>>,
    kept: Vec<Option<u16>>,
}

impl Parts {
    /// Reads the next part of a counter with these fragments, of which those from `folds` on are
    /// folded. The sum, when it is over.
    pub fn read(&mut self, cells: &[Option<u16>], folds: Option<usize>, rules: Rules) -> Option<Option<u16>> {
        let sum = |base: Option<u16>, others: &[Option<u16>]| {
            base.map(|base| others.iter().flatten().fold(base, |sum, part| sum.wrapping_add(*part)))
        };
        let Some(from) = folds else {
            let Some(base) = self.base else {
                self.base = Some(cells[0]);
                return None;
            };
            return Some(sum(base, &cells[1..]));
        };
        let read = self.folding.get_or_insert_with(|| FoldRead::new(rules));
        let (kept, lost) = cells.split_at(from);
        match read.call() {
            FoldPart::Kept => {
                self.kept = kept.to_vec();
                read.kept();
                None
            }
            FoldPart::Lost if read.lost(lost.to_vec()) => {
                Some(sum(self.kept[0], &[&self.kept[1..], lost].concat()))
            }
            FoldPart::Lost => None,
        }
    }
}
