//! The registrations that a gateway has left behind which served at the same place before: whoever
//! listens there now knows that it is gone.
//!
//! Not here: gateways that go silent elsewhere (`heatsink_control::fence`).

use std::fmt;

use heatsink_control::{Bounds, Control};
use heatsink_env::Env;

use crate::cli::place::Place;

/// What people find a gateway by: machine, place, process.
pub struct Name {
    place: String,
}

impl Name {
    /// Of this process, at that place.
    pub fn at(place: &Place) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Name { place: format!("{host}, {place}, process ") }
    }

    /// Whether the gateway of that name was at the same place and died, when it was last heard at
    /// `heard`. It has to have been silent for as long as its lease and its last calls could last:
    /// another machine may have this one's name.
    fn is_former(&self, name: &str, bounds: Bounds, heard: u64, now: u64) -> bool {
        let over = u64::try_from((bounds.lease + bounds.straggler).as_millis()).unwrap_or(u64::MAX);
        let was_here = name.starts_with(&self.place) && name != self.to_string();
        was_here && now.saturating_sub(heard) > over
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.place, std::process::id())
    }
}

/// Removes the registrations of dead gateways at the place of this one. Where that cannot be done
/// the gateways find by themselves that they are silent.
pub async fn take_off(control: &Control, name: &Name, env: &dyn Env) {
    let changer = control.changer();
    let listed = match changer.gateways().await {
        Ok(listed) => listed,
        Err(error) => return tracing::debug!(%error, "cannot look for former registrations"),
    };
    let now = env.unix_millis();
    for one in listed.into_iter().flat_map(|(_, list)| list) {
        if !name.is_former(&one.name, one.registration.bounds, one.heard, now) {
            continue;
        }
        let gateway = one.registration.gateway;
        match changer.strike(&gateway).await {
            Ok(()) => {
                tracing::warn!(gateway, name = one.name, "took a dead gateway of this place off the list")
            }
            Err(error) => tracing::debug!(%error, "cannot take a former registration off"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_silent_one_of_the_same_place_is_former() {
        let own = Name::at(&Place::Tcp("127.0.0.1:8000".parse().unwrap()));
        let other = Name::at(&Place::Tcp("127.0.0.1:8001".parse().unwrap()));
        let bounds = Bounds::DEFAULT;
        let over = u64::try_from((bounds.lease + bounds.straggler).as_millis()).unwrap();
        let before = format!("{}1", own.place);
        assert!(own.is_former(&before, bounds, 0, over + 1));
        assert!(!own.is_former(&before, bounds, 0, over), "its last calls may take effect still");
        assert!(!own.is_former(&own.to_string(), bounds, 0, over + 1), "this one");
        assert!(!other.is_former(&before, bounds, 0, over + 1), "elsewhere");
    }
}
