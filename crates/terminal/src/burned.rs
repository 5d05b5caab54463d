//! When requests for a key were last refused, in words.

use serde::Deserialize;

/// What was refused so lately burns still: windows are of a second, and refusals come in bursts.
const STILL_BURNS_MS: u64 = 3_000;

/// A time in which requests for a key were refused, in milliseconds since 1970, by the server's
/// clock.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Burned {
    /// When it began.
    pub from_ms: u64,
    /// When it ended.
    pub to_ms: u64,
}

impl Burned {
    /// It, seen at `now` by the server's clock: `burns, for 2 min`, or
    /// `last burned 20 s ago, for 2 min`.
    pub fn told(self, now_ms: u64) -> String {
        let ago = now_ms.saturating_sub(self.to_ms);
        if ago < STILL_BURNS_MS {
            return format!("burns, for {}", duration(now_ms.saturating_sub(self.from_ms)));
        }
        let length = duration(self.to_ms.saturating_sub(self.from_ms));
        format!("last burned {} ago, for {length}", duration(ago))
    }
}

/// A length of time in one unit: `20 s`, `3 min`, `5 h`, `2 days`.
pub fn duration(millis: u64) -> String {
    let seconds = millis.saturating_add(500) / 1_000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", (seconds + 30) / 60),
        7_200..172_800 => format!("{} h", (seconds + 1_800) / 3_600),
        _ => format!("{} days", (seconds + 43_200) / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_burns_and_what_burned() {
        let burned = Burned { from_ms: 100_000, to_ms: 220_000 };
        assert_eq!(burned.told(221_000), "burns, for 2 min");
        assert_eq!(burned.told(240_000), "last burned 20 s ago, for 2 min");
        assert_eq!(burned.told(100_000), "burns, for 0 s", "a clock that was set back");
        assert_eq!(
            [duration(119_000), duration(7_200_000), duration(200_000_000)],
            ["119 s", "2 h", "2 days"]
        );
    }
}
