//! The results of a run: the throttled share of each load, and the answers that the application
//! got.

use std::fmt;

use serde::Serialize;

use crate::stage::Load;

/// One system, before and after.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Story {
    /// The same load under different rules.
    pub phases: Vec<Phase>,
    /// The checks other than the loads.
    pub findings: Vec<Finding>,
}

/// A load and its result.
#[derive(Clone, Debug, Serialize)]
pub struct Phase {
    /// The name of the phase.
    pub name: String,
    /// Writes offered.
    pub offered: usize,
    /// Of these throttled.
    pub throttled: usize,
    /// Throttled ÷ offered.
    pub throttled_share: f64,
}

/// A condition, and whether it was true.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What was checked.
    pub what: String,
    /// The actual value.
    pub found: String,
    /// The expected value.
    pub expected: String,
    /// Whether the two are equal.
    pub holds: bool,
}

/// A value as people read it: no quotes, no names of Rust's types.
pub trait Shown {
    /// The value in words.
    fn shown(&self) -> String;
}

macro_rules! shown_as_it_is {
    ($($kind:ty),*) => {
        $(impl Shown for $kind {
            fn shown(&self) -> String {
                self.to_string()
            }
        })*
    };
}

shown_as_it_is!(u32, u64, usize, i32, f64, str, String);

impl Shown for bool {
    fn shown(&self) -> String {
        if *self { "yes" } else { "no" }.to_owned()
    }
}

impl<T: Shown + ?Sized> Shown for &T {
    fn shown(&self) -> String {
        (*self).shown()
    }
}

impl<T: Shown> Shown for Option<T> {
    fn shown(&self) -> String {
        self.as_ref().map_or_else(|| "none".to_owned(), Shown::shown)
    }
}

impl<T: Shown> Shown for Vec<T> {
    fn shown(&self) -> String {
        self.iter().map(Shown::shown).collect::<Vec<_>>().join("; ")
    }
}

impl<A: Shown, B: Shown> Shown for (A, B) {
    fn shown(&self) -> String {
        format!("{}, {}", self.0.shown(), self.1.shown())
    }
}

impl<A: Shown, B: Shown, C: Shown> Shown for (A, B, C) {
    fn shown(&self) -> String {
        format!("{}, {}, {}", self.0.shown(), self.1.shown(), self.2.shown())
    }
}

impl Story {
    /// Adds a load.
    pub fn load(&mut self, name: &str, load: &Load) {
        let offered = load.accepted.len() + load.throttled;
        #[allow(clippy::cast_precision_loss, reason = "a share is printed with three digits")]
        let throttled_share = if offered > 0 { load.throttled as f64 / offered as f64 } else { 0.0 };
        let name = name.to_owned();
        self.phases.push(Phase { name, offered, throttled: load.throttled, throttled_share });
    }

    /// Adds a comparison of what came out with what should have.
    pub fn check<T: PartialEq + Shown>(&mut self, what: &str, found: &T, expected: &T) {
        self.add(what, found.shown(), expected.shown(), found == expected);
    }

    /// Adds a comparison of rows, whose order counts.
    pub fn rows(&mut self, what: &str, found: &[String], expected: &[String]) {
        let differ = found.iter().zip(expected).position(|(found, expected)| found != expected);
        let shown = |rows: &[String]| match differ.and_then(|at| Some((at, rows.get(at)?))) {
            Some((at, row)) => format!("{} rows, row {at} {row}", rows.len()),
            None => format!("{} rows", rows.len()),
        };
        self.add(what, shown(found), shown(expected), found == expected);
    }

    /// Adds a figure that has a bound.
    pub fn at_most(&mut self, what: &str, found: u64, most: u64) {
        self.add(what, found.to_string(), format!("at most {most}"), found <= most);
    }

    fn add(&mut self, what: &str, found: String, expected: String, holds: bool) {
        self.findings.push(Finding { what: what.to_owned(), found, expected, holds });
    }

    /// The share of a phase's writes that was throttled.
    pub fn throttled_share(&self, phase: &str) -> Option<f64> {
        self.phases.iter().find(|one| one.name == phase).map(|one| one.throttled_share)
    }

    /// Whether all that has to hold did.
    pub fn holds(&self) -> bool {
        self.findings.iter().all(|finding| finding.holds)
    }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>9} {:>10} {:>7}   under", "writes", "throttled", "share")?;
        for phase in &self.phases {
            let share = phase.throttled_share * 100.0;
            writeln!(f, "{:>9} {:>10} {share:>6.1}%   {}", phase.offered, phase.throttled, phase.name)?;
        }
        writeln!(f)?;
        for finding in &self.findings {
            let mark = if finding.holds { "yes" } else { " NO" };
            write!(f, "  {mark}  {}: {}", finding.what, finding.found)?;
            if !finding.holds {
                write!(f, ", expected {}", finding.expected)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
