//! An unknown access key takes as long as a wrong signature.

use heatsink_env::{Env, RealEnv};
use heatsink_signature::{Client, Verifier};

use crate::draft::{Draft, KEY, NOON, SECRET, judge};

/// Pairs of batches. The two kinds take turns, so that what else the machine does meets both.
const PAIRS: usize = 400;
const BATCH: usize = 20;
/// How far the lower quartiles may be apart. Without the work for nobody's key the unknown one takes
/// less than two thirds.
const ALLOWED: f64 = 0.1;

#[test]
fn an_unknown_key_takes_as_long_as_a_wrong_signature() {
    let clients = (0..100).map(|nth| Client::new(&format!("CLIENT{nth}"), "secret").unwrap());
    let verifier = Verifier::new("eu-west-1", clients.chain([Client::new(KEY, SECRET).unwrap()])).unwrap();
    let wrong = Draft { secret: "guess".to_owned(), ..Draft::good() };
    let unknown = Draft { key: "AKIDNOBODY".to_owned(), ..wrong.clone() };
    let heads = [wrong.head(), unknown.head()];
    let mut times: [Vec<u64>; 2] = Default::default();
    for _ in 0..PAIRS {
        for (head, times) in heads.iter().zip(&mut times) {
            let begun = RealEnv.now();
            for _ in 0..BATCH {
                assert!(judge(&verifier, head, &wrong.body, NOON).is_err());
            }
            times.push(RealEnv.now().0 - begun.0);
        }
    }
    let [wrong, unknown] = times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 4]
    });
    #[allow(clippy::cast_precision_loss, reason = "far below 2^52 nanoseconds")]
    let ratio = unknown as f64 / wrong as f64;
    assert!((ratio - 1.0).abs() < ALLOWED, "an unknown key takes {ratio:.3} times as long");
}
