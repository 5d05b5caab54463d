//! More intents than are told at once: pages of them, each with where the next one begins.

use std::collections::BTreeSet;

use futures::executor::block_on;
use heatsink_control::reshard_intent::key_brief;

use super::town::{RULES, Town};

#[test]
fn intents_are_read_in_pages_and_each_once() {
    let town = Town::new(RULES);
    let keys: BTreeSet<String> = (0..250).map(|at| format!("{at}-{}", "\u{1}".repeat(900))).collect();
    for (at, key) in (0..).zip(&keys) {
        town.ask(key, 3.into(), at);
    }
    let registry = town.registry();
    let (mut found, mut after, mut pages) = (Vec::new(), None, Vec::new());
    loop {
        let page = block_on(registry.intents_after(true, after.as_deref(), 100)).unwrap();
        pages.push(page.len());
        found.extend(page.known.iter().map(|one| one.key_text()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert!(pages.iter().all(|page| *page <= 100) && pages.len() >= 3, "{pages:?}");
    assert_eq!((found.len(), found.into_iter().collect::<BTreeSet<_>>()), (250, keys));
    let all = block_on(registry.intents(true)).unwrap();
    assert_eq!((all.len(), all.next), (250, None));
    assert_eq!(key_brief(&"\u{e9}".repeat(100)).chars().count(), 65);
}
