//! When the store last refused requests for a key, and since when.
//!
//! Not here: how much it refused (`map`).

use super::row::Row;
use super::span::Span;

/// Refusals that are no more steps apart are one time.
const GAP: usize = 5;

/// A time in which requests for a key were refused, in milliseconds since 1970. As exact as the
/// steps of the finest span that shows its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burned {
    /// When it began.
    pub from: u64,
    /// When it ended: the end of the last step with a refusal, at most now.
    pub to: u64,
}

impl Row {
    /// The last time in which requests were refused, within what is kept; `None` where none were.
    pub(super) fn burned(&self, now: u64) -> Option<Burned> {
        let mut found: Option<Burned> = None;
        for span in Span::ALL {
            let Some((seen, begins_with_span)) = self.burned_in(span, now) else { continue };
            let from = found.map_or(seen.from, |found| found.from.min(seen.from));
            found = Some(Burned { from, to: found.map_or(seen.to, |found| found.to) });
            // What began before this span is told by a coarser one.
            if !begins_with_span {
                break;
            }
        }
        found
    }

    /// The same within one span, and whether it may have begun before.
    fn burned_in(&self, span: Span, now: u64) -> Option<(Burned, bool)> {
        let (step, columns) = (span.step(), span.columns());
        let first = (now / step + 1).saturating_sub(columns as u64);
        let refused: Vec<bool> = self.cells(span, first).map(|[_, refused]| refused > 0.0).collect();
        let end = refused.iter().rposition(|refused| *refused)?;
        let (mut begin, mut calm) = (end, 0);
        for (at, refused) in refused.iter().enumerate().take(end).rev() {
            match refused {
                true => (begin, calm) = (at, 0),
                false if calm == GAP => break,
                false => calm += 1,
            }
        }
        let at = |column: usize| (first + column as u64) * step;
        Some((Burned { from: at(begin), to: (at(end) + step).min(now) }, begin <= GAP))
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::Window;
    use super::*;

    /// A key that is refused in these seconds, as it is seen at `now`, both in seconds.
    fn seen(refused: &[(u64, u64)], now: u64) -> Option<(u64, u64)> {
        let mut row = Row::default();
        for second in 0..now {
            let throttled =
                if refused.iter().any(|(from, to)| (*from..*to).contains(&second)) { 5.0 } else { 0.0 };
            row.add(Window { from: second * 1_000, to: (second + 1) * 1_000 }, [10.0, throttled], &[]);
        }
        row.burned(now * 1_000).map(|burned| (burned.from / 1_000, burned.to / 1_000))
    }

    #[test]
    fn it_is_the_last_time_with_short_gaps_in_it() {
        assert_eq!(seen(&[], 100), None);
        assert_eq!(seen(&[(10, 20), (50, 60), (63, 70)], 100), Some((50, 70)));
        assert_eq!(seen(&[(90, 100)], 100), Some((90, 100)), "it burns");
    }

    #[test]
    fn what_is_long_ago_is_told_by_the_minute() {
        assert_eq!(seen(&[(600, 720)], 3_600), Some((600, 720)));
        assert_eq!(seen(&[(1_200, 3_600)], 3_600), Some((1_200, 3_600)), "for longer than the finest span");
    }
}
