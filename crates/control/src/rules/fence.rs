//! The `[fence]` table of a rules file: how the gateways of one store agree on layout changes.

use std::sync::Arc;
use std::time::Duration;

use heatsink_env::Env;
use heatsink_fence::Bounds;
use heatsink_store::Store;
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::RulesError;
use super::fault::Fault;
use crate::memory::Expectation;
use crate::registry::{REGISTRY, Registry};

/// How the gateways of a store agree on layout changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FenceSettings {
    /// The name of the registry's table.
    pub registry: String,
    /// The time bounds.
    pub bounds: Bounds,
    /// Whether the store has to have its registry, and what is remembered of it.
    pub expectation: Arc<Expectation>,
}

impl FenceSettings {
    /// Whether both say the same of the registry and its bounds. What this process remembers does
    /// not count.
    pub(crate) fn agrees(&self, other: &FenceSettings) -> bool {
        let said = |of: &FenceSettings| (of.registry.clone(), of.bounds, of.expectation.required);
        said(self) == said(other)
    }

    /// The registry, in a store of which is expected what is expected of its registry.
    pub fn registry_in(&self, store: Arc<dyn Store>, env: Arc<dyn Env>) -> Registry {
        Registry::new(store, env, &self.registry).expecting(&self.expectation)
    }
}

impl Default for FenceSettings {
    fn default() -> Self {
        FenceSettings { registry: REGISTRY.to_owned(), bounds: Bounds::DEFAULT, expectation: Arc::default() }
    }
}

/// How the gateways of a store agree on changes of layouts. All gateways of one store should have
/// the same.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Section {
    /// The name of the registry's table. Default: "heatsink.registry".
    #[schemars(with = "Option<String>")]
    pub registry: Option<Spanned<String>>,
    /// Whether the registry has to be there. `true`: nothing starts without it, and no other one is
    /// made. `false`: a store without it has no sharded tables, whatever their tags and keys say.
    /// Default: as `true` for tables that are known to have been on record.
    pub required: Option<bool>,
    /// For how long a gateway goes on with what it knows when the registry cannot be reached, such
    /// as "60s" (the default). A gateway that died delays a change by this and `straggler`.
    #[schemars(with = "Option<String>")]
    pub lease: Option<Spanned<String>>,
    /// How often a gateway shows a sign of life. Default: "12s", or a fifth of a shorter lease.
    #[schemars(with = "Option<String>")]
    pub heartbeat: Option<Spanned<String>>,
    /// How often a gateway looks for changes. With several gateways a step takes about this long.
    /// Default: "2500ms", or a tenth of a shorter lease.
    #[schemars(with = "Option<String>")]
    pub poll: Option<Spanned<String>>,
    /// How late a request may take effect that was sent and never answered. Default: "30s".
    #[schemars(with = "Option<String>")]
    pub straggler: Option<Spanned<String>>,
}

/// Checks the section of a file; `None` for a file without it.
pub(super) fn settings(
    section: Option<Spanned<Section>>,
    fault: Fault<'_>,
) -> Result<FenceSettings, RulesError> {
    let Some(section) = section else { return Ok(FenceSettings::default()) };
    let whole = section.span();
    let section = section.into_inner();
    let mut bounds = Bounds::DEFAULT;
    let fields = [
        (&section.lease, &mut bounds.lease),
        (&section.heartbeat, &mut bounds.heartbeat),
        (&section.poll, &mut bounds.poll),
        (&section.straggler, &mut bounds.straggler),
    ];
    for (text, field) in fields {
        if let Some(text) = text {
            let limited = duration(text.get_ref()).filter(|time| *time <= Bounds::LONGEST);
            *field = limited.ok_or_else(|| {
                let problem = format!(
                    "expected a time such as \"30s\", \"500ms\" or \"2m\", found {:?}",
                    text.get_ref()
                );
                fault(text.span(), problem)
            })?;
        }
    }
    // Settings that are left out follow from the lease.
    if section.heartbeat.is_none() {
        bounds.heartbeat = bounds.heartbeat.min(bounds.lease / 5);
    }
    if section.poll.is_none() {
        bounds.poll = bounds.poll.min(bounds.lease / 10);
    }
    bounds.check().map_err(|problem| fault(whole, problem))?;
    let registry = match section.registry {
        None => REGISTRY.to_owned(),
        Some(name) => {
            let known = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
            if !(3..=255).contains(&name.get_ref().len()) || !name.get_ref().chars().all(known) {
                let problem = "table names hold 3 to 255 of a-z, A-Z, 0-9, _ . -".to_owned();
                return Err(fault(name.span(), problem));
            }
            name.into_inner()
        }
    };
    let expectation = Arc::new(Expectation { required: section.required, ..Expectation::default() });
    Ok(FenceSettings { registry, bounds, expectation })
}

/// Reads a whole number with a unit.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    // A year is longer than any setting of this file needs.
    let limited = |duration: Duration| (duration <= Duration::from_secs(365 * 86_400)).then_some(duration);
    match unit {
        "ms" => limited(Duration::from_millis(number)),
        "s" => limited(Duration::from_secs(number)),
        "m" => limited(Duration::from_secs(number.checked_mul(60)?)),
        "h" => limited(Duration::from_secs(number.checked_mul(3_600)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;

    #[test]
    fn the_section_is_read_and_checked() {
        let rules = Rules::read(
            "f",
            "[fence]\nlease = \"4s\"\nheartbeat = \"1s\"\npoll = \"500ms\"\nregistry = \"my.registry\"\n",
        )
        .unwrap();
        assert_eq!(rules.fence().registry, "my.registry");
        assert_eq!(rules.fence().expectation.required, None);
        let required = Rules::read("f", "[fence]\nrequired = true\n").unwrap();
        assert_eq!(required.fence().expectation.required, Some(true));
        assert_eq!(rules.fence().bounds.poll, Duration::from_millis(500));
        assert_eq!(rules.fence().bounds.straggler, Bounds::DEFAULT.straggler);
        assert_eq!(Rules::default().fence().bounds, Bounds::DEFAULT);
        for (text, said) in [
            ("[fence]\nlease = \"1 hour\"\n", "expected a time such as"),
            ("[fence]\nlease = \"99999999999999999999s\"\n", "expected a time such as"),
            ("[fence]\nlease = \"1s\"\nheartbeat = \"2s\"\n", "runs out between two reads"),
            ("[fence]\nregistry = \"a b c\"\n", "table names hold"),
            ("[fence]\nlaese = \"1s\"\n", "unknown field"),
        ] {
            let error = Rules::read("f", text).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
