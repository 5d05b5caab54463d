//! How far back a map goes, and in which steps.

use serde::{Deserialize, Serialize};

/// How far back, and in which steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Span {
    /// Ten minutes, by the second.
    TenMinutes,
    /// Six hours, by the minute.
    SixHours,
    /// Four days, by ten minutes.
    FourDays,
    /// 28 days, by the hour.
    FourWeeks,
}

impl Span {
    pub(super) const ALL: [Span; 4] = [Span::TenMinutes, Span::SixHours, Span::FourDays, Span::FourWeeks];

    /// By its name: `10m`, `6h`, `4d`, `28d`.
    pub fn by_name(name: &str) -> Option<Span> {
        match name {
            "10m" => Some(Span::TenMinutes),
            "6h" => Some(Span::SixHours),
            "4d" => Some(Span::FourDays),
            "28d" => Some(Span::FourWeeks),
            _ => None,
        }
    }

    /// The length of a step in milliseconds.
    pub const fn step(self) -> u64 {
        match self {
            Span::TenMinutes => 1_000,
            Span::SixHours => 60_000,
            Span::FourDays => 600_000,
            Span::FourWeeks => 3_600_000,
        }
    }

    /// How many steps.
    pub const fn columns(self) -> usize {
        match self {
            Span::TenMinutes => 600,
            Span::SixHours => 360,
            Span::FourDays => 576,
            Span::FourWeeks => 672,
        }
    }
}
