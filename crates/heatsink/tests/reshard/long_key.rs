//! A key of nearly as many bytes as DynamoDB takes: the registry names it by its hash.

use heatsink_control::reshard_intent::EndedAs;

use super::town::{RULES, Town};

#[test]
fn a_key_of_two_kilobytes_moves_there_and_back() {
    let town = Town::new(RULES);
    // One of a hundred shards still has room for its suffix.
    let (key, other) = ("L".repeat(2_044), "M".repeat(1_021));
    let _carried = town.carry();
    for key in [&key, &other] {
        town.fill(key, 12);
        for shards in [42, 1] {
            town.ask(key, shards.into(), 1);
            let (how, text) = town.ended(key);
            assert_eq!((how, town.shards(key)), (EndedAs::Moved, shards), "{text}");
            let lies = town.lies(key);
            assert_eq!(lies.values().sum::<usize>(), 12, "{lies:?}");
            assert_eq!(lies.len() > 1, shards > 1, "{lies:?}");
        }
    }
}
