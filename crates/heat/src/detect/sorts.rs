//! Some of the sort keys that are written to one key: a sample in which each write is as likely.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

/// So many are kept of a window: half of the writes lie above the median of them, give or take a
/// fourteenth.
pub(super) const KEPT: usize = 48;
/// Keys of which fewer writes were examined are not sampled: there are thousands of them.
const FROM: u32 = 16;
/// The longest sort key that is kept, as an attribute value in JSON.
const LONGEST: usize = 128;

/// A sample of sort keys, as attribute values in JSON.
#[derive(Clone, Debug, Default)]
pub(super) struct SortSample(Vec<Box<str>>);

impl SortSample {
    /// Of no write.
    pub(super) const NONE: SortSample = SortSample(Vec::new());

    /// The `nth` examined write is to that sort key. Algorithm R (Vitter, "Random sampling with a
    /// reservoir", 1985), by the hash of its number.
    pub(super) fn add(&mut self, nth: u32, sort: &[u8]) {
        if nth < FROM || sort.len() > LONGEST {
            return;
        }
        let Ok(sort) = std::str::from_utf8(sort) else { return };
        let kept = &mut self.0;
        if kept.len() < KEPT {
            kept.push(sort.into());
            return;
        }
        let place = FixedState::with_seed(1).hash_one(nth) % u64::from(nth - FROM + 1);
        if let Some(old) = usize::try_from(place).ok().and_then(|place| kept.get_mut(place)) {
            *old = sort.into();
        }
    }

    /// What was kept.
    pub(super) fn kept(&self) -> Vec<String> {
        self.0.iter().map(|sort| String::from(&**sort)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_of_all_writes_alike() {
        let mut below = 0;
        for round in 0..200_u32 {
            let mut sample = SortSample::NONE;
            for nth in 0..1_000 {
                let number = (nth * 7 + round * 13) % 1_000;
                sample.add(nth, format!("{{\"N\":\"{number}\"}}").as_bytes());
            }
            let kept = sample.kept();
            assert_eq!(kept.len(), KEPT);
            let number = |text: &String| text[6..text.len() - 2].parse::<u32>().unwrap();
            below += kept.iter().filter(|text| number(text) < 500).count();
        }
        let share = f64::from(u32::try_from(below).unwrap()) / (200.0 * 48.0);
        assert!((0.45..0.55).contains(&share), "{share}");
    }

    #[test]
    fn few_writes_and_long_keys_take_no_room() {
        let mut sample = SortSample::NONE;
        (0..FROM).for_each(|nth| sample.add(nth, br#"{"S":"a"}"#));
        sample.add(100, format!("{{\"S\":\"{}\"}}", "x".repeat(LONGEST)).as_bytes());
        assert_eq!(sample.0.capacity(), 0);
    }
}
