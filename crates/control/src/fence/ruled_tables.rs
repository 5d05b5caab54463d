//! Which tables the rules of a gateway would shard. Its registration says so, because who takes a
//! table out of Heatsink has to know which gateways would bring it back.
//!
//! Not here: what the rules would do (`rules`).

use heatsink_layout::Glob;
use serde::{Deserialize, Serialize};

use crate::rules::{Mode, Rules, Spread};

/// Names and globs of tables, as the rules file has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuledTables {
    /// Those of rules that give keys shards.
    rules: Vec<String>,
    /// Those of `[[automatic]]` sections that are carried out.
    automatic: Vec<String>,
}

impl RuledTables {
    /// Those of these rules, each once.
    pub fn of(rules: &Rules) -> Self {
        let sharding = rules.iter().filter(|rule| rule.spread != Spread::Whole);
        let automatic = rules.automatics().filter(|one| one.mode == Mode::Auto);
        RuledTables {
            rules: each_once(sharding.map(|rule| rule.table.text())),
            automatic: each_once(automatic.map(|one| one.table.text())),
        }
    }

    /// What names a table there, in words; `None` where nothing does.
    pub fn naming(&self, table: &str) -> Option<String> {
        let find =
            |all: &[String]| all.iter().find(|text| Glob::new(text).matches(table.as_bytes())).cloned();
        let rule = find(&self.rules).map(|text| format!("a [[rule]] for {text:?}"));
        rule.or_else(|| find(&self.automatic).map(|text| format!("an [[automatic]] section for {text:?}")))
    }
}

fn each_once<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut all: Vec<String> = texts.map(str::to_owned).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_shard_a_table_is_named() {
        let rules = "[[rule]]\ntable = \"Whole\"\nstrategy = \"none\"\n[[rule]]\ntable = \"B*\"\nstrategy = \"calculated\"\nshards = 4\n\
            [[automatic]]\ntable = \"Hot\"\nmode = \"auto\"\n[[automatic]]\ntable = \"Cool\"\nmode = \"propose\"\n";
        let tables = RuledTables::of(&Rules::read("rules", rules).unwrap());
        assert_eq!(tables.naming("Board").as_deref(), Some("a [[rule]] for \"B*\""));
        assert_eq!(tables.naming("Hot").as_deref(), Some("an [[automatic]] section for \"Hot\""));
        assert!(["Whole", "Cool", "Other"].iter().all(|table| tables.naming(table).is_none()));
    }
}
