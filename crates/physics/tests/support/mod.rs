//! What the tests share: a clock's unit, demands, and steady loads in virtual time.

use heatsink_physics::{
    Access, Batch, Demand, Event, EventKind, KeyRange, Mode, ResourceId, Rules, Tables, Tally, Units,
};

pub const SECOND: u64 = 1_000_000_000;
pub const MINUTE: u64 = 60 * SECOND;

/// The id of the first table made.
pub fn first_id() -> ResourceId {
    Tables::default().create(0, "first".into(), Mode::ON_DEMAND)
}

/// A new on-demand table under the default rules with this seed.
pub fn on_demand(seed: u64) -> (Tables, ResourceId) {
    let mut tables = Tables::new(Rules { seed, ..Rules::default() });
    let id = tables.create(0, "table".into(), Mode::ON_DEMAND);
    (tables, id)
}

pub fn write(on: ResourceId, place: KeyRange) -> Demand {
    Demand { on, access: Access::Write, place, units: Units::ONE }
}

pub fn strong(on: ResourceId, place: KeyRange) -> Demand {
    Demand { on, access: Access::Strong, place, units: Units::ONE }
}

pub fn eventual(on: ResourceId, place: KeyRange) -> Demand {
    Demand { on, access: Access::Eventual, place, units: Units::HALF }
}

/// An even, unbiased choice for the nth request.
pub fn shuffled(nth: u64) -> u64 {
    let mut word = nth.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Requests at even distances, each made by `demand` from its number; how many were admitted in
/// each second.
pub fn load(
    tables: &mut Tables,
    from: u64,
    seconds: u64,
    rate: u64,
    mut demand: impl FnMut(u64) -> Demand,
) -> Vec<u64> {
    (0..seconds)
        .map(|second| {
            let start = from + second * SECOND;
            let request = |nth: u64| (start + nth * SECOND / rate, second * rate + nth);
            let mut admitted = 0;
            for (now, number) in (0..rate).map(request) {
                admitted += u64::from(tables.offer(now, &[demand(number)]).is_ok());
            }
            admitted
        })
        .collect()
}

/// Equal requests at an even rate over `seconds`.
pub fn steady(tables: &mut Tables, from: u64, seconds: u64, rate: u64, demands: &[Demand]) -> Tally {
    let mut tally = Tally::default();
    for batch in Batch::spread(from, seconds * SECOND, seconds * rate) {
        tally += tables.offer_batch(batch, demands);
    }
    tally
}

/// When partitions were split, in order.
pub fn splits(events: &[Event]) -> Vec<u64> {
    let mut at: Vec<u64> = events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::Split { .. }))
        .map(|event| event.at)
        .collect();
    at.sort_unstable();
    at
}

/// The mean of what was admitted per second.
pub fn mean(admitted: &[u64]) -> f64 {
    admitted.iter().sum::<u64>() as f64 / admitted.len() as f64
}
