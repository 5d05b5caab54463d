//! The `[limits]` table of a rules file: how many clients a gateway serves at once.

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::RulesError;
use super::fault::Fault;

/// More of them no process has descriptors for.
const MOST: u32 = 1_000_000;

/// How many clients a gateway serves at once, where the file says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientLimits {
    /// Connections of clients.
    pub connections: Option<usize>,
    /// Requests in progress.
    pub requests: Option<usize>,
}

/// How many clients a gateway serves at once, unless the command line says otherwise.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Section {
    /// The most connections at once, unless `--max-connections` says otherwise.
    #[schemars(with = "Option<u32>", range(min = 1, max = 1_000_000))]
    pub connections: Option<Spanned<u32>>,
    /// The most requests in progress at once, unless `--max-requests` says otherwise.
    #[schemars(with = "Option<u32>", range(min = 1, max = 1_000_000))]
    pub requests: Option<Spanned<u32>>,
}

/// Checks the section of a file; none for a file without it.
pub(super) fn limits(
    section: Option<Spanned<Section>>,
    fault: Fault<'_>,
) -> Result<ClientLimits, RulesError> {
    let Some(section) = section else { return Ok(ClientLimits::default()) };
    let Section { connections, requests } = section.into_inner();
    let read = |number: Option<Spanned<u32>>| match number {
        None => Ok(None),
        Some(number) if (1..=MOST).contains(number.get_ref()) => {
            Ok(usize::try_from(number.into_inner()).ok())
        }
        Some(number) => {
            let problem = format!("expected a number from 1 to {MOST}, found {}", number.get_ref());
            Err(fault(number.span(), problem))
        }
    };
    Ok(ClientLimits { connections: read(connections)?, requests: read(requests)? })
}

#[cfg(test)]
mod tests {
    use crate::rules::Rules;

    #[test]
    fn the_section_is_read_and_checked() {
        let limits = Rules::read("f", "[limits]\nconnections = 5\n").unwrap().limits();
        assert_eq!((limits.connections, limits.requests), (Some(5), None));
        for (text, said) in [
            ("[limits]\nrequests = 0\n", "line 2"),
            ("[limits]\nrequests = 1000001\n", "from 1 to 1000000"),
            ("[limits]\nrequets = 1\n", "unknown field"),
        ] {
            let error = Rules::read("f", text).unwrap_err().to_string();
            assert!(error.contains(said) || error.contains("f:2"), "{error}");
        }
    }
}
