//! Samples key numbers by a distribution or an order, and names the keys.

use fastrand::Rng;
use heatsink_physics::position;

use crate::draw::{Alias, zipf};
use crate::scenario::{Drawn, Keys, Loaded, Order, Zipf};

/// Picks key numbers. Keys are numbered from 0.
#[derive(Clone, Debug)]
pub(crate) enum KeySampler {
    /// Always the first.
    One,
    /// Each as likely.
    Uniform(u64),
    /// By popularity.
    Weighted(Alias),
    /// The next one after a while.
    Rolling { keys: u64, each: u64 },
    /// All of one, then all of the next: the number of the first item that is no longer of each
    /// key; and the item that is next.
    Sequential { ends: Vec<u64>, next: u64 },
    /// Walks a list again and again.
    Walk { order: Vec<u32>, next: usize },
}

impl KeySampler {
    pub(crate) fn pick(&mut self, now: u64, rng: &mut Rng) -> usize {
        match self {
            KeySampler::One => 0,
            KeySampler::Uniform(keys) => usize::try_from(rng.u64(..*keys)).unwrap_or(0),
            KeySampler::Weighted(alias) => alias.draw(rng),
            KeySampler::Rolling { keys, each } => usize::try_from(now / *each % *keys).unwrap_or(0),
            KeySampler::Sequential { ends, next } => {
                let item = *next % ends.last().copied().unwrap_or(1).max(1);
                *next += 1;
                ends.partition_point(|end| *end <= item)
            }
            KeySampler::Walk { order, next } => {
                let at = *next % order.len().max(1);
                *next = at + 1;
                order.get(at).map_or(0, |key| *key as usize)
            }
        }
    }
}

/// A set of keys with the way one is picked.
#[derive(Clone, Debug)]
pub(crate) struct KeySet {
    pub names: Vec<String>,
    pub sampler: KeySampler,
    /// How likely each is; empty where that is not all there is to it.
    pub weights: Vec<f64>,
}

impl KeySet {
    /// `items`: how many a sequential load has. Keys of one prefix are equally popular wherever
    /// they are named.
    pub(crate) fn new(keys: &Keys, loaded: &Loaded, items: u64) -> KeySet {
        let drawn = match keys {
            Keys::Constant(name) => {
                return KeySet { names: vec![name.clone()], sampler: KeySampler::One, weights: vec![1.0] };
            }
            Keys::Drawn(drawn) => drawn,
        };
        let prefix = match drawn {
            Drawn::Uniform(uniform) => &uniform.prefix,
            Drawn::Zipf(zipf) | Drawn::Sequential(zipf) => &zipf.prefix,
            Drawn::Rolling(rolling) => &rolling.prefix,
            Drawn::File(file) => &file.path,
        };
        let rng = &mut Rng::with_seed(loaded.scenario.seed ^ position(prefix.as_bytes()));
        match drawn {
            Drawn::Uniform(uniform) => {
                let names = names(&uniform.prefix, uniform.keys.0);
                KeySet {
                    weights: vec![1.0; names.len()],
                    names,
                    sampler: KeySampler::Uniform(uniform.keys.0),
                }
            }
            Drawn::Zipf(of) => {
                // Names are shuffled, not weights: popular keys stay together in memory.
                let mut names = names(&of.prefix, of.keys.0);
                rng.shuffle(&mut names);
                let weights = zipf(names.len(), of.exponent.map_or(1.0, |exponent| exponent.0));
                KeySet { names, sampler: KeySampler::Weighted(Alias::new(&weights)), weights }
            }
            Drawn::Rolling(rolling) => KeySet {
                names: names(&rolling.prefix, rolling.keys.0),
                sampler: KeySampler::Rolling { keys: rolling.keys.0, each: rolling.each.0 },
                weights: Vec::new(),
            },
            Drawn::Sequential(zipf) => {
                let weights = weights(zipf, rng);
                let total: f64 = weights.iter().sum();
                let mut sum = 0.0;
                let end = |weight: &f64| {
                    sum += weight;
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "up to items")]
                    let end = (items as f64 * sum / total).round() as u64;
                    end
                };
                let ends = weights.iter().map(end).collect();
                let sampler = KeySampler::Sequential { ends, next: 0 };
                KeySet { names: names(&zipf.prefix, zipf.keys.0), sampler, weights: Vec::new() }
            }
            Drawn::File(file) => {
                let lines = loaded.lists.get(&file.path).cloned().unwrap_or_default();
                let mut numbers = std::collections::HashMap::new();
                let mut names: Vec<String> = Vec::new();
                let mut order: Vec<u32> = Vec::with_capacity(lines.len());
                for (key, times) in lines {
                    let next = u32::try_from(names.len()).unwrap_or(u32::MAX);
                    let number = *numbers.entry(key.clone()).or_insert_with(|| {
                        names.push(key);
                        next
                    });
                    order.extend(std::iter::repeat_n(number, usize::try_from(times).unwrap_or(0)));
                }
                if file.order == Order::Shuffled {
                    rng.shuffle(&mut order);
                }
                KeySet { names, sampler: KeySampler::Walk { order, next: 0 }, weights: Vec::new() }
            }
        }
    }
}

fn names(prefix: &str, keys: u64) -> Vec<String> {
    (0..keys).map(|number| format!("{prefix}{number}")).collect()
}

/// Popularity by key number, shuffled: which name is popular is chance.
fn weights(of: &Zipf, rng: &mut Rng) -> Vec<f64> {
    let keys = usize::try_from(of.keys.0).unwrap_or(usize::MAX);
    let mut weights = zipf(keys, of.exponent.map_or(1.0, |exponent| exponent.0));
    rng.shuffle(&mut weights);
    weights
}
