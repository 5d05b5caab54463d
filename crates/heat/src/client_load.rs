//! Which clients make the heat of a key, as one gateway saw it, or several together.
//!
//! Each figure is a lower bound: what is added up, or left out, is one again.
//!
//! Not here: how it is counted (`detect`).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::detect::{CLIENTS, ClientHeat, KeyHeat};

/// What a client takes of a key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientLoad {
    /// Who: its access key.
    pub client: Arc<str>,
    /// Capacity units a second, reads and writes, at least.
    pub units: f64,
}

/// The share of a client, as operators are told it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClientShare {
    /// Who: its access key. Whoever shows it escapes it.
    pub client: Arc<str>,
    /// Of the units that were counted of the key, at least.
    pub share_percent: f64,
}

/// What the clients of a key take: of at most [`CLIENTS`], the heaviest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClientLoads(Vec<ClientLoad>);

impl ClientLoads {
    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds what another gateway saw.
    pub(crate) fn add(&mut self, other: &ClientLoads) {
        for more in &other.0 {
            match self.0.iter_mut().find(|one| one.client == more.client) {
                Some(one) => one.units += more.units,
                None => self.0.push(more.clone()),
            }
        }
        self.0.sort_by(|a, b| b.units.total_cmp(&a.units).then_with(|| a.client.cmp(&b.client)));
        self.0.truncate(CLIENTS);
    }

    /// So many times the units.
    pub(crate) fn times(&self, factor: f64) -> ClientLoads {
        let one = |one: &ClientLoad| ClientLoad { units: one.units * factor, ..one.clone() };
        ClientLoads(self.0.iter().map(one).collect())
    }

    /// The shares, where all that was counted is so many units.
    pub(crate) fn shares(&self, all: f64) -> Vec<ClientShare> {
        let of = |one: &ClientLoad| ClientShare {
            client: Arc::clone(&one.client),
            share_percent: 100.0 * (one.units / all).min(1.0),
        };
        if all > 0.0 { self.0.iter().map(of).collect() } else { Vec::new() }
    }
}

impl From<&[ClientHeat]> for ClientLoads {
    fn from(clients: &[ClientHeat]) -> Self {
        let one =
            |one: &ClientHeat| ClientLoad { client: Arc::clone(&one.client), units: one.least_units_per_s };
        ClientLoads(clients.iter().map(one).collect())
    }
}

impl KeyHeat {
    /// The shares of its clients in the units that were counted as its own.
    pub fn client_shares(&self) -> Vec<ClientShare> {
        ClientLoads::from(&*self.clients).shares(self.own_units_per_s())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeyLoad;

    fn load(writes: f64, clients: &[(&str, f64)]) -> KeyLoad {
        let one = |(client, units): &(&str, f64)| ClientLoad { client: Arc::from(*client), units: *units };
        let clients = ClientLoads(clients.iter().map(one).collect());
        KeyLoad { writes, clients, ..KeyLoad::default() }
    }

    fn shares(load: &KeyLoad) -> Vec<(String, f64)> {
        load.client_shares().iter().map(|one| (one.client.to_string(), one.share_percent)).collect()
    }

    #[test]
    fn what_gateways_saw_of_a_client_adds_up_and_the_heaviest_are_kept() {
        let mut all = load(60.0, &[("a", 30.0), ("b", 20.0), ("c", 10.0)]);
        all.add(&load(40.0, &[("d", 25.0), ("b", 15.0)]));
        let told = [("b", 35.0), ("a", 30.0), ("d", 25.0)].map(|(client, share)| (client.to_owned(), share));
        assert_eq!(shares(&all), told);
        assert_eq!(shares(&all.mean(&all)), told);
        assert_eq!(shares(&load(0.0, &[("a", 0.0)])), []);
    }

    #[test]
    fn a_gateway_that_knows_no_clients_tells_none_and_reads_what_others_tell() {
        let told = serde_json::to_value(load(10.0, &[("a", 5.0)])).unwrap();
        assert_eq!(told["clients"], serde_json::json!([{ "client": "a", "units": 5.0 }]));
        let mut older = told;
        older.as_object_mut().unwrap().remove("clients");
        let older: KeyLoad = serde_json::from_value(older).unwrap();
        assert!(older.clients.is_empty());
        let mut both = load(10.0, &[("a", 10.0)]);
        both.add(&older);
        assert_eq!(shares(&both), [("a".to_owned(), 50.0)]);
        // What a newer gateway adds is passed over, as older ones do with this member.
        let mut newer = serde_json::to_value(&older).unwrap();
        assert_eq!(newer.get("clients"), None);
        newer["who_knows"] = serde_json::json!([{ "client": "a" }]);
        assert_eq!(serde_json::from_value::<KeyLoad>(newer).unwrap(), older);
    }
}
