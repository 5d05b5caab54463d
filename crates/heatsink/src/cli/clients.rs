//! Which client makes a key hot, as `/_heatsink/heat` tells it, in words that are safe to show.
//!
//! Not here: how it is counted (`heatsink-heat`).

use serde::Deserialize;

use super::inert;

/// From this share on most of a key's units are a client's.
const MOST: f64 = 50.0;
/// Columns of a client's name.
const NAME: usize = 40;

/// What one client makes of a key's heat.
#[derive(Clone, Debug, Deserialize)]
pub struct Client {
    client: String,
    #[serde(default)]
    share_percent: f64,
}

/// `mostly by team1 (83 %)`; `None` where no client makes the most of it, or none is known.
pub fn mostly(clients: &[Client]) -> Option<String> {
    let most = clients.iter().find(|one| one.share_percent >= MOST)?;
    let name = inert::shortened(&inert::visible(&most.client), NAME);
    Some(format!("mostly by {name} ({:.0} %)", most.share_percent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_named_where_most_is_its_and_its_name_is_inert() {
        let told = |clients: &[(&str, f64)]| {
            let one = |(client, share_percent): &(&str, f64)| Client {
                client: (*client).to_owned(),
                share_percent: *share_percent,
            };
            mostly(&clients.iter().map(one).collect::<Vec<_>>())
        };
        assert_eq!(told(&[("team1", 83.4), ("team2", 16.6)]).as_deref(), Some("mostly by team1 (83 %)"));
        assert_eq!(told(&[("team1", 49.9), ("team2", 49.9)]), None);
        assert_eq!(told(&[]), None);
        let hostile = told(&[("a\u{1b}[31m\u{202e}b\n", 100.0)]).unwrap();
        assert_eq!(hostile, r"mostly by a\u{1b}[31m\u{202e}b\n (100 %)");
        assert!(told(&[(&"x".repeat(999), 100.0)]).unwrap().len() < 80);
    }
}
