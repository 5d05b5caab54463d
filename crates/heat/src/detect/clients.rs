//! Which clients make a key hot: weighted Misra-Gries (Misra and Gries, "Finding repeated elements",
//! 1982), the heaviest clients of each key in four slots.
//!
//! Where a client comes that has no slot, all slots and the newcomer lose the same: what the
//! smallest of them has. Whoever has something left then has a slot. So of N units of a key each
//! client with more than N/5 is shown, with never more units than it took, and with too few by at
//! most a fifth of those that no slot shows. With up to four clients the figures are exact.
//!
//! Not here: who a client is (`heatsink-access`).

use std::cmp::Reverse;
use std::sync::Arc;

use super::key::Room;

/// The clients of one key that are told.
pub const CLIENTS: usize = 3;
/// The clients of one key that are kept.
const SLOTS: usize = 4;
/// What the clients of one key take, in bytes: 96.
pub(super) const BYTES: usize = size_of::<KeyClients>();
/// For so many keys there is room once the first client was seen.
const FIRST: usize = 16;

/// The heaviest clients of one key.
#[derive(Clone, Debug, Default)]
struct KeyClients([Slot; SLOTS]);

/// One without units is free.
#[derive(Clone, Debug, Default)]
struct Slot {
    client: Option<Arc<str>>,
    /// Thousandths of capacity units.
    units: u64,
}

impl KeyClients {
    fn add(&mut self, client: &Arc<str>, units: u64) {
        let is_its = |slot: &&mut Slot| {
            slot.client.as_ref().is_some_and(|known| Arc::ptr_eq(known, client) || known == client)
        };
        if let Some(slot) = self.0.iter_mut().find(is_its) {
            slot.units += units;
            return;
        }
        // 0 where a slot is free.
        let smallest = self.0.iter().map(|slot| slot.units).min().unwrap_or_default();
        let lost = smallest.min(units);
        self.0.iter_mut().for_each(|slot| slot.units -= lost);
        let left = units - lost;
        if let Some(free) = self.0.iter_mut().find(|slot| slot.units == 0).filter(|_| left > 0) {
            *free = Slot { client: Some(Arc::clone(client)), units: left };
        }
    }

    /// The heaviest first.
    fn told(&self) -> Vec<(Arc<str>, u64)> {
        let known = |slot: &Slot| Some((Arc::clone(slot.client.as_ref()?), slot.units));
        let mut told: Vec<_> = self.0.iter().filter(|slot| slot.units > 0).filter_map(known).collect();
        told.sort_by_key(|(_, units)| Reverse(*units));
        told.truncate(CLIENTS);
        told
    }
}

/// The clients of the keys of one window, by the places of the keys' counters. It takes [`BYTES`]
/// for each of at most twice the keys, 96 KB of a part with all its counters; nothing before a
/// client was seen. Where there is no room, clients are not told.
#[derive(Debug, Default)]
pub(super) struct Clients {
    keys: Vec<KeyClients>,
    /// For how many keys there is room.
    granted: usize,
}

impl Clients {
    /// This client has asked so many units of the key at that place.
    #[inline]
    pub(super) fn add(&mut self, place: usize, client: &Arc<str>, units: u64, room: &mut Room) {
        if place >= self.keys.len() && !self.grow(place, room) {
            return;
        }
        if let Some(key) = self.keys.get_mut(place) {
            key.add(client, units);
        }
    }

    #[cold]
    fn grow(&mut self, place: usize, room: &mut Room) -> bool {
        if place >= self.granted {
            let wanted = (place + 1).next_power_of_two().max(FIRST);
            if !room.take((wanted - self.granted) * BYTES) {
                return false;
            }
            self.granted = wanted;
            self.keys.reserve_exact(wanted - self.keys.len());
        }
        self.keys.resize(place + 1, KeyClients::default());
        true
    }

    /// Another key takes that place.
    #[inline]
    pub(super) fn forget(&mut self, place: usize) {
        if let Some(key) = self.keys.get_mut(place) {
            *key = KeyClients::default();
        }
    }

    /// Forgets all. Gives back the room if little of it was used.
    pub(super) fn clear(&mut self, room: &mut Room) {
        let used = self.keys.len();
        self.keys.clear();
        if used * 4 <= self.granted {
            room.give(self.granted * BYTES);
            self.granted = 0;
            self.keys.shrink_to(0);
        }
    }

    /// The heaviest clients of the key at that place, the heaviest first, with thousandths of
    /// capacity units that they took at least.
    pub(super) fn of(&self, place: usize) -> Vec<(Arc<str>, u64)> {
        self.keys.get(place).map(KeyClients::told).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn names(count: usize) -> Vec<Arc<str>> {
        (0..count).map(|at| Arc::from(format!("team{at}"))).collect()
    }

    proptest! {
        #[test]
        fn the_heavy_are_shown_and_never_with_more_than_they_took(
            clients in 1_usize..12,
            stream in prop::collection::vec((0_usize..12, 0_u64..5_000), 0..600),
        ) {
            // Two names of one text are one client: configurations are read again.
            let (names, again) = (names(clients), names(clients));
            let mut key = KeyClients::default();
            let mut exact = HashMap::<&str, u64>::new();
            for (nth, (at, units)) in stream.iter().enumerate() {
                let named = if nth % 3 == 0 { &again } else { &names };
                key.add(&named[at % clients], *units);
                *exact.entry(&*names[at % clients]).or_default() += units;
            }
            let all: u64 = exact.values().sum();
            let shown = |client: &str| {
                let slots = key.0.iter().filter(|slot| slot.client.as_deref() == Some(client));
                slots.map(|slot| slot.units).sum::<u64>()
            };
            let of_slots: u64 = key.0.iter().map(|slot| slot.units).sum();
            for (client, took) in exact {
                prop_assert!(shown(client) <= took, "{client}: {} of {took}", shown(client));
                prop_assert!(5 * (took - shown(client)) <= all - of_slots, "{client}: {key:?}");
                prop_assert!(5 * took <= all || shown(client) > 0, "{client} is missing: {key:?}");
                prop_assert!(clients > SLOTS || shown(client) == took);
            }
            let told = key.told();
            prop_assert!(told.len() <= CLIENTS && told.is_sorted_by(|a, b| a.1 >= b.1), "{told:?}");
        }
    }

    #[test]
    fn a_key_without_clients_takes_nothing_and_with_them_what_is_said() {
        assert_eq!(BYTES, 96);
        let (mut clients, mut room) = (Clients::default(), Room(20 * BYTES));
        clients.forget(7);
        clients.clear(&mut room);
        assert_eq!((room.0, clients.keys.capacity()), (20 * BYTES, 0));
        let [name, other]: [Arc<str>; 2] = names(2).try_into().unwrap();
        clients.add(15, &name, 5, &mut room);
        assert_eq!((room.0, clients.keys.capacity()), (4 * BYTES, FIRST));
        assert_eq!(
            (clients.of(15), clients.of(3), clients.of(99)),
            (vec![(name.clone(), 5)], vec![], vec![])
        );
        // There is no room for more, and what is known stays.
        clients.add(16, &name, 5, &mut room);
        clients.add(15, &other, 6, &mut room);
        assert_eq!((clients.of(16), clients.of(15)), (vec![], vec![(other.clone(), 6), (name.clone(), 5)]));
        clients.forget(15);
        assert_eq!(clients.of(15), []);
        clients.clear(&mut room);
        assert_eq!((clients.of(15), room.0), (vec![], 4 * BYTES), "most was used");
        clients.add(0, &name, 1, &mut room);
        clients.clear(&mut room);
        assert_eq!((room.0, clients.keys.capacity()), (20 * BYTES, 0));
        assert_eq!(Arc::strong_count(&name), 1);
    }
}
