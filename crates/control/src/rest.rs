//! How long the layouts of a table have been the ones in force, as this gateway knows: positions
//! that do not say under which layouts they were given out are taken for those in force once the
//! table has rested for [`REST`].

use std::time::Duration;

use heatsink_env::{Env, MonotonicInstant};

/// How long after the last change of a table's record a position may still come back from before
/// it. A client that pauses for longer between two pages, keeps nothing of a position but its key,
/// and goes on across a change may miss items.
pub const REST: Duration = Duration::from_secs(600);

/// How a table's record stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// The record's version; zero without a record.
    pub version: u64,
    /// When the record was first written; zero without a record.
    pub created: u64,
    /// When it was last written, by its writer's wall clock: milliseconds since
    /// 1970-01-01T00:00:00Z; zero if it does not say.
    pub changed: u64,
    /// Whether index keys are being given other layouts.
    pub migrates: bool,
}

/// Since when a table rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Not while its index keys migrate.
    Migrates,
    /// Since the gateway first saw the record as it is.
    Since(MonotonicInstant),
    /// For so long that it does not matter any more.
    Over,
}

impl Rest {
    /// `before`: the version of the same table's record that the gateway knew, and since when. Only
    /// of a table that it had not known yet does it believe wall clocks, and only twice the time,
    /// so that clocks which disagree by less than [`REST`] do no harm.
    pub fn of(standing: Standing, before: Option<(u64, Rest)>, env: &dyn Env, now: MonotonicInstant) -> Rest {
        match before {
            _ if standing.migrates => Rest::Migrates,
            Some((version, rest)) if version == standing.version => rest,
            Some(_) => Rest::Since(now),
            None => {
                let age = Duration::from_millis(env.unix_millis().saturating_sub(standing.changed));
                let is_old = standing.changed > 0 && age >= REST * 2;
                if is_old { Rest::Over } else { Rest::Since(now) }
            }
        }
    }

    pub fn is_over(self, now: MonotonicInstant) -> bool {
        match self {
            Rest::Migrates => false,
            Rest::Since(since) => now.since(since) >= REST,
            Rest::Over => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use heatsink_env::ManualEnv;

    use super::*;

    #[test]
    fn a_table_that_was_not_known_is_believed_to_rest_only_after_twice_the_time() {
        let env = ManualEnv::seeded(1);
        let wall = env.unix_millis();
        let ago = |seconds: u64| Standing {
            version: 7,
            created: 1,
            changed: wall - seconds * 1000,
            migrates: false,
        };
        let rest = |standing| Rest::of(standing, None, &env, env.now());
        assert_eq!(rest(ago(1_200)), Rest::Over);
        assert_eq!(rest(ago(1_199)), Rest::Since(env.now()));
        assert_eq!(rest(Standing { changed: 0, ..ago(0) }), Rest::Since(env.now()));
        assert_eq!(rest(Standing { changed: wall + 5_000, ..ago(0) }), Rest::Since(env.now()));
        assert_eq!(rest(Standing { migrates: true, ..ago(9_999) }), Rest::Migrates);
        assert!(!Rest::Since(env.now()).is_over(env.now() + Duration::from_secs(599)));
        assert!(Rest::Since(env.now()).is_over(env.now() + REST));
    }
}
