//! The `[[automatic]]` tables of a rules file: which keys may get shards without being asked for,
//! how many, and after how long.
//!
//! They say nothing of layouts: a key that they match stays as it is until it is hot.
//!
//! Not here: what a hot key needs (`heatsink-heat`), carrying it out (`heatsink-workers`).

use std::fmt;
use std::time::Duration;

use heatsink_layout::Glob;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::RulesError;
use super::display::{Keys, Tables};
use super::fault::Fault;
use super::fence::duration;
use super::numbers::{MAX_SHARDS, Shards, max_age};

/// The capacity units of a partition that the move of one item takes at least: two transactions of
/// two writes each, and its reads. No key's move takes less.
const LEAST_BUDGET: u64 = 10;

/// Which keys may get shards without being asked for. For every key the first that matches holds.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Section {
    /// The tables it is for: a name, or a glob in which * is any run of characters and ? is one
    /// character.
    #[schemars(with = "String", length(min = 1))]
    pub table: Spanned<String>,
    /// The logical partition keys it is for, as a glob. Default: "*".
    #[schemars(with = "Option<String>")]
    pub keys: Option<Spanned<String>>,
    /// "observe": nothing is proposed. "propose" (the default): a change is logged with the command
    /// for it. "auto": it is carried out.
    #[serde(default)]
    pub mode: Mode,
    /// The fewest shards of a key. Default: 1.
    #[schemars(with = "Option<Shards>")]
    pub min_shards: Option<Spanned<Shards>>,
    /// The most. Default: 1,000.
    #[schemars(with = "Option<Shards>")]
    pub max_shards: Option<Spanned<Shards>>,
    /// For how long a key is left to DynamoDB's own split, where that can help. Default: "15m".
    #[schemars(with = "Option<String>")]
    pub patience: Option<Spanned<String>>,
    /// For how long a key has to need half of its shards or fewer before it loses any. Default:
    /// "72h".
    #[schemars(with = "Option<String>")]
    pub cold: Option<Spanned<String>>,
    /// Whether values of global indexes may get shards, too: of keys that it matches, whatever the
    /// index. Their items are rewritten. Default: false.
    #[serde(default)]
    pub index_values: bool,
    /// The numbers that clients only add to. An item that is hot because it is added to may become
    /// a counter of them. Default: none.
    #[schemars(with = "Option<Vec<String>>")]
    pub counters: Option<Spanned<Vec<String>>>,
    /// Whether a key whose items are read in order may get ranges of its sort key in place of shards
    /// by a hash. Default: false.
    #[serde(default)]
    pub ranges: bool,
    /// For how many milliseconds an answer may be given again, while a page or an item of the key is
    /// read again and again, as with the same field of a rule. Default: reads are sent.
    #[schemars(with = "Option<u16>", range(min = 1, max = 10_000))]
    pub cache_max_age_ms: Option<Spanned<u16>>,
    /// How many capacity units the moves of a table's keys may take in an hour; a key whose move
    /// would take more than is left is left alone meanwhile. Default: as much as pays.
    #[schemars(with = "Option<u64>", range(min = 10))]
    pub units_per_hour: Option<Spanned<u64>>,
}

/// What becomes of a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// None is made.
    Observe,
    /// It is logged, with the command that carries it out.
    #[default]
    Propose,
    /// It is carried out.
    Auto,
}

/// Which keys may get shards without being asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Automatic {
    /// Its place among the sections, from 1 on.
    pub number: usize,
    /// The tables.
    pub table: Glob,
    /// The logical keys.
    pub keys: Glob,
    /// What becomes of a decision.
    pub mode: Mode,
    /// The fewest shards of a key.
    pub fewest: u16,
    /// The most.
    pub most: u16,
    /// For how long a key is left to DynamoDB's own split.
    pub patience: Duration,
    /// For how long it has to be cold before it loses shards.
    pub cold: Duration,
    /// Whether values of global indexes may get shards, too.
    pub index_values: bool,
    /// The numbers that an item may become a counter of.
    pub counters: Vec<String>,
    /// Whether a key may get ranges of its sort key.
    pub ranges: bool,
    /// For how many milliseconds an answer may be given again that is asked for again and again;
    /// `None` if never.
    pub cache_max_age_ms: Option<u16>,
    /// How many capacity units the moves of a table may take in an hour; `None` for the default.
    pub units_per_hour: Option<u64>,
}

impl fmt::Display for Automatic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Automatic { number, table, keys, mode, fewest, most, patience, cold, .. } = self;
        write!(f, "automatic {number}: {} of {}: ", Keys(keys), Tables(table))?;
        match mode {
            Mode::Observe => return f.write_str("nothing is done when a key is hot"),
            Mode::Propose => write!(
                f,
                "when a key is hot, {fewest} to {most} shards are proposed in the log, and nothing is changed"
            )?,
            Mode::Auto => write!(f, "a key gets {fewest} to {most} shards by itself when it is hot")?,
        }
        write!(
            f,
            "; where DynamoDB can split its partition, after {}; fewer shards after {} of cold",
            Time(*patience),
            Time(*cold)
        )?;
        if self.index_values {
            f.write_str("; values of indexes, too")?;
        }
        if !self.counters.is_empty() {
            write!(f, "; an item that is only added to becomes a counter of {}", self.counters.join(", "))?;
        }
        if self.ranges {
            f.write_str("; ranges of the sort key where items are read in order")?;
        }
        if let Some(age) = self.cache_max_age_ms {
            write!(f, "; what is read again and again is answered from memory for {age} ms")?;
        }
        match self.units_per_hour {
            Some(units) => write!(f, "; moves take at most {units} units an hour of a table"),
            None => Ok(()),
        }
    }
}

/// A time as a rules file has it.
struct Time(Duration);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        match millis {
            0 => f.write_str("0s"),
            _ if millis.is_multiple_of(3_600_000) => write!(f, "{}h", millis / 3_600_000),
            _ if millis.is_multiple_of(60_000) => write!(f, "{}m", millis / 60_000),
            _ if millis.is_multiple_of(1_000) => write!(f, "{}s", millis / 1_000),
            _ => write!(f, "{millis}ms"),
        }
    }
}

/// Checks one section.
pub(super) fn automatic(
    number: usize,
    raw: Spanned<Section>,
    fault: Fault<'_>,
) -> Result<Automatic, RulesError> {
    let whole = raw.span().start..raw.span().start;
    let raw = raw.into_inner();
    for glob in [Some(&raw.table), raw.keys.as_ref()].into_iter().flatten() {
        if glob.get_ref().is_empty() {
            return Err(fault(glob.span(), "expected a name or a glob, found an empty text".to_owned()));
        }
    }
    let time = |text: Option<Spanned<String>>, default: Duration| {
        let Some(text) = text else { return Ok(default) };
        duration(text.get_ref()).ok_or_else(|| {
            let problem =
                format!("expected a time such as \"30s\", \"15m\" or \"72h\", found {:?}", text.get_ref());
            fault(text.span(), problem)
        })
    };
    let (fewest, most) = (
        raw.min_shards.map_or(1, |shards| shards.into_inner().0),
        raw.max_shards.map_or(MAX_SHARDS, |shards| shards.into_inner().0),
    );
    if fewest > most {
        return Err(fault(whole, format!("min_shards = {fewest} is more than max_shards = {most}")));
    }
    if let Some(units) = raw.units_per_hour.as_ref().filter(|units| *units.get_ref() < LEAST_BUDGET) {
        let problem = format!(
            "units_per_hour = {} is less than the move of a single item takes, which is {LEAST_BUDGET}: no key could ever move",
            units.get_ref()
        );
        return Err(fault(units.span(), problem));
    }
    let counters = raw.counters.map(|names| counters(names, fault)).transpose()?.unwrap_or_default();
    Ok(Automatic {
        number,
        table: Glob::new(raw.table.get_ref()),
        keys: Glob::new(raw.keys.as_ref().map_or("*", |keys| keys.get_ref())),
        mode: raw.mode,
        fewest,
        most,
        patience: time(raw.patience, Duration::from_secs(15 * 60))?,
        cold: time(raw.cold, Duration::from_secs(3 * 86_400))?,
        index_values: raw.index_values,
        counters,
        ranges: raw.ranges,
        cache_max_age_ms: raw.cache_max_age_ms.map(|age| max_age(&age, fault)).transpose()?,
        units_per_hour: raw.units_per_hour.map(Spanned::into_inner),
    })
}

/// The names of numbers, each once.
fn counters(names: Spanned<Vec<String>>, fault: Fault<'_>) -> Result<Vec<String>, RulesError> {
    let (span, names) = (names.span(), names.into_inner());
    let problem = match names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        _ if names.is_empty() || names.iter().any(String::is_empty) => {
            "expected the names of numbers, as in counters = [\"votes\"]".to_owned()
        }
        Some((_, twice)) => format!("{twice:?} is named twice"),
        None => return Ok(names),
    };
    Err(fault(span, problem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;

    #[test]
    fn the_first_section_that_matches_holds() {
        let rules = Rules::read(
            "f",
            "[[automatic]]\ntable = \"Scores\"\nkeys = \"game_*\"\nmode = \"auto\"\nmax_shards = 64\npatience = \"0s\"\n\
             [[automatic]]\ntable = \"*\"\nmode = \"observe\"\n",
        )
        .unwrap();
        let held = rules.automatic("Scores", b"game_x").unwrap();
        assert_eq!((held.mode, held.fewest, held.most, held.patience), (Mode::Auto, 1, 64, Duration::ZERO));
        assert_eq!(rules.automatic("Scores", b"user_x").map(|held| held.mode), Some(Mode::Observe));
        assert_eq!(Rules::default().automatic("Scores", b"game_x"), None);
        assert!(rules.is_empty(), "no layout follows from it");
        let words: Vec<String> = rules.automatics().map(ToString::to_string).collect();
        assert_eq!(
            words,
            [
                "automatic 1: the keys like \"game_*\" of table Scores: a key gets 1 to 64 shards by itself when it is hot; where DynamoDB can split its \
                 partition, after 0s; fewer shards after 72h of cold",
                "automatic 2: all keys of every table with a sort key: nothing is done when a key is hot",
            ]
        );
    }

    #[test]
    fn index_values_counters_and_a_budget_are_off_until_they_are_named() {
        let read = |more: &str| {
            let text = format!("[[automatic]]\ntable = \"T\"\nmode = \"auto\"\n{more}");
            Rules::read("f", &text).unwrap().automatics().next().unwrap().clone()
        };
        let plain = read("");
        assert_eq!((plain.index_values, plain.counters.len(), plain.units_per_hour), (false, 0, None));
        assert_eq!((plain.ranges, plain.cache_max_age_ms), (false, None));
        let all = read("ranges = true\ncache_max_age_ms = 100\n");
        assert_eq!((all.ranges, all.cache_max_age_ms), (true, Some(100)));
        let words = all.to_string();
        let said = "; ranges of the sort key where items are read in order; what is read again and again is answered from memory for 100 ms";
        assert!(words.ends_with(said), "{words}");
        let all = read("index_values = true\ncounters = [\"votes\", \"likes\"]\nunits_per_hour = 10\n");
        assert!(all.index_values && all.counters == ["votes", "likes"] && all.units_per_hour == Some(10));
        let words = all.to_string();
        assert!(
            words.ends_with(
                "; values of indexes, too; an item that is only added to becomes a counter of votes, likes; moves take at most 10 units an hour of a table"
            ),
            "{words}"
        );
    }

    #[test]
    fn faults_are_said() {
        for (text, said) in [
            ("[[automatic]]\nmode = \"auto\"\n", "missing field `table`"),
            ("[[automatic]]\ntable = \"\"\n", "found an empty text"),
            ("[[automatic]]\ntable = \"T\"\nmode = \"always\"\n", "unknown variant"),
            ("[[automatic]]\ntable = \"T\"\nmin_shards = 9\nmax_shards = 3\n", "min_shards = 9 is more than"),
            ("[[automatic]]\ntable = \"T\"\nmax_shards = 0\n", "a whole number from 1 to 1000"),
            ("[[automatic]]\ntable = \"T\"\npatience = \"soon\"\n", "expected a time such as"),
            (
                "[[automatic]]\ntable = \"T\"\nunits_per_hour = 9\n",
                "units_per_hour = 9 is less than the move",
            ),
            ("[[automatic]]\ntable = \"T\"\ncounters = []\n", "expected the names of numbers"),
            (
                "[[automatic]]\ntable = \"T\"\ncache_max_age_ms = 0\n",
                "expected a number of milliseconds from 1 to 10000, found 0",
            ),
            ("[[automatic]]\ntable = \"T\"\ncounters = [\"a\", \"a\"]\n", "\"a\" is named twice"),
        ] {
            let error = Rules::read("f", text).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
