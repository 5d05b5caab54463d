//! The registrations that a gateway has left behind which served at the same place before: whoever
//! listens there now knows that it is gone.
//!
//! Not here: gateways that go silent elsewhere (`heatsink_control::fence`).

use std::fmt;

use heatsink_control::{Control, Gateway};
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

    /// Whether a gateway that died was at the same place. It has to have been silent for as long as
    /// its lease and its last calls could last: another machine may have this one's name.
    fn is_former(&self, one: &Gateway, now: u64) -> bool {
        let registration = &one.registration;
        let bounds = registration.bounds;
        let over = u64::try_from((bounds.lease + bounds.straggler).as_millis()).unwrap_or(u64::MAX);
        let was_here = one.name.starts_with(&self.place) && one.name != self.to_string();
        was_here && now.saturating_sub(one.heard) > over
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
    for one in listed.into_iter().flat_map(|(_, list)| list).filter(|one| name.is_former(one, now)) {
        let gateway = one.registration.gateway;
        match changer.strike(&gateway).await {
            Ok(()) => {
                tracing::warn!(gateway, name = one.name, "took a dead gateway of this place off the list")
            }
            Err(error) => tracing::debug!(%error, "cannot take a former registration off"),
        }
    }
}
