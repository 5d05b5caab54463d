//! Groups keys by pattern: `THREAT#{id}` for `THREAT#acme`, `THREAT#globex` and a hundred more.
//!
//! Times, UUIDs, long hexadecimal numbers and digits are masked everywhere. The rest is cut at `#`,
//! `|`, `/` and `:`, and a part with more different words than a program would name is an id.

use std::collections::BTreeMap;

use super::stamp;

/// More different words than this in one place are ids.
pub(super) const WORDS: usize = 12;
/// An id with this many times the items of the median id is a pattern of its own.
pub(super) const OUTSTANDING: u64 = 8;

const SEPARATORS: [char; 4] = ['#', '|', '/', ':'];

/// A pattern is written in parts, each with the separator behind it.
type Parts = Vec<String>;

/// The pattern of each key. `keys` are texts and their items.
pub(super) fn of(keys: &[(&str, u64)]) -> Vec<String> {
    let mut all: Vec<(Parts, u64)> = keys.iter().map(|(key, items)| (parts(&mask(key)), *items)).collect();
    let deepest = all.iter().map(|(parts, _)| parts.len()).max().unwrap_or(0);
    for place in 0..deepest {
        fold(&mut all, place);
    }
    all.into_iter().map(|(parts, _)| parts.concat()).collect()
}

/// Replaces the words at one place by an id, in keys that are equal before it and have as many
/// parts.
fn fold(all: &mut [(Parts, u64)], place: usize) {
    let mut groups: BTreeMap<(Parts, usize), BTreeMap<String, u64>> = BTreeMap::new();
    for (parts, items) in all.iter() {
        if let (Some(before), Some(word)) = (parts.get(..place), parts.get(place)) {
            let words = groups.entry((before.to_vec(), parts.len())).or_default();
            *words.entry(word.clone()).or_default() += items;
        }
    }
    groups.retain(|_, words| words.len() > WORDS);
    for words in groups.values_mut() {
        let mut sizes: Vec<u64> = words.values().copied().collect();
        sizes.sort_unstable();
        let median = sizes.get(sizes.len() / 2).copied().unwrap_or(0);
        let least =
            sizes.iter().rev().nth(WORDS).copied().unwrap_or(0).max(median.saturating_mul(OUTSTANDING));
        words.retain(|_, items| *items > least);
    }
    for (parts, _) in all {
        let Some(before) = parts.get(..place) else { continue };
        let Some(outstanding) = groups.get(&(before.to_vec(), parts.len())) else { continue };
        if let Some(word) = parts.get_mut(place)
            && !outstanding.contains_key(word)
        {
            let end = word.chars().last().filter(|last| SEPARATORS.contains(last));
            *word = format!("{{id}}{}", end.map_or_else(String::new, String::from));
        }
    }
}

fn parts(masked: &str) -> Parts {
    masked.split_inclusive(SEPARATORS).map(str::to_owned).collect()
}

/// A key with only its times masked: the pattern of one that is a pattern of its own.
pub(super) fn exact(key: &str) -> String {
    masked(key, str::to_owned)
}

/// A key with its times, UUIDs, hexadecimal numbers and digits masked.
fn mask(key: &str) -> String {
    masked(key, mask_words)
}

/// A key with its times masked, and what stands between them as `between` has it.
fn masked(key: &str, between: impl Fn(&str) -> String) -> String {
    let mut masked = String::with_capacity(key.len());
    let mut rest = key;
    while let Some(stamp) = stamp::find(rest) {
        masked.push_str(&between(rest.get(..stamp.from).unwrap_or_default()));
        masked.push_str("{time}");
        rest = rest.get(stamp.to..).unwrap_or_default();
    }
    masked.push_str(&between(rest));
    masked
}

fn mask_words(text: &str) -> String {
    let of_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let length = rest.find(|c: char| !of_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        masked.push_str(&mask_word(word));
        let next = after.find(of_word).unwrap_or(after.len());
        let (between, after) = after.split_at(next);
        masked.push_str(between);
        rest = after;
    }
    masked
}

fn mask_word(word: &str) -> String {
    let hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if word.split('-').map(str::len).eq([8, 4, 4, 4, 12]) && word.split('-').all(hex) {
        return "{uuid}".to_owned();
    }
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    if word.len() >= 8 && hex(word) && digits > 0 && digits < word.len() {
        return "{hex}".to_owned();
    }
    let mut masked = String::with_capacity(word.len());
    let mut in_number = false;
    for c in word.chars() {
        let digit = c.is_ascii_digit();
        if digit && !in_number {
            masked.push_str("{n}");
        } else if !digit {
            masked.push(c);
        }
        in_number = digit;
    }
    masked
}

/// A pattern as a rule names its keys: every mask becomes a `*`, and so do bytes that are no text.
/// It matches all keys of the pattern, and may match more.
pub(super) fn glob(pattern: &str) -> String {
    let mut glob = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once(['{', char::REPLACEMENT_CHARACTER]) {
        let mask = rest.get(before.len()..).is_some_and(|from| from.starts_with('{'));
        glob.push_str(before);
        if !glob.ends_with('*') {
            glob.push('*');
        }
        // A brace that nothing closes is the key's own.
        rest = if mask { after.split_once('}').map_or("", |(_, after)| after) } else { after };
    }
    glob.push_str(rest);
    glob
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_varies_is_masked() {
        for (key, masked) in [
            ("OPS_LOG", "OPS_LOG"),
            ("user-12345", "user-{n}"),
            ("conv_abc123", "conv_abc{n}"),
            ("VOTER#9b2e4c1d", "VOTER#{hex}"),
            ("ORDER#550e8400-e29b-41d4-a716-446655440000#LINE", "ORDER#{uuid}#LINE"),
            ("OPS_LOG#2026-06-22", "OPS_LOG#{time}"),
            ("m|2026-06-22T01:00:00Z|x", "m|{time}|x"),
            ("", ""),
        ] {
            assert_eq!(mask(key), masked);
        }
        assert_eq!(glob("THREAT#{id}#{n}"), "THREAT#*#*");
        assert_eq!(glob("a{n}{time}b"), "a*b");
        assert_eq!(glob("OPS_LOG"), "OPS_LOG");
    }

    proptest::proptest! {
        /// Whatever the keys are, a rule for their pattern is for them.
        #[test]
        fn a_patterns_glob_matches_its_keys(
            keys in proptest::collection::vec(proptest::prop_oneof!["[A-Ca-f0-9#|{}*?: é-]{0,24}", ".{0,12}"], 1..40)
        ) {
            let weighed: Vec<(&str, u64)> = keys.iter().map(|key| (key.as_str(), 1)).collect();
            for (key, pattern) in keys.iter().zip(of(&weighed)) {
                let glob = glob(&pattern);
                proptest::prop_assert!(heatsink_layout::Glob::new(&glob).matches(key.as_bytes()), "{key:?} {pattern:?} {glob:?}");
            }
        }
    }

    #[test]
    fn words_that_are_many_are_ids_but_for_those_that_stand_out() {
        let names: Vec<String> = ('a'..='z').map(|letter| format!("THREAT#brand-{letter}")).collect();
        let mut keys: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 5)).collect();
        keys.push(("THREAT#acme", 900));
        keys.push(("OPS_LOG", 7));
        let found = of(&keys);
        assert!(found.iter().take(26).all(|pattern| pattern == "THREAT#{id}"), "{found:?}");
        assert_eq!(&found[26..], ["THREAT#acme", "OPS_LOG"]);
    }

    #[test]
    fn few_words_stay_words() {
        let keys = [("USER#x#ORDERS", 1), ("USER#x#CART", 1), ("BRAND_INDEX", 1)];
        assert_eq!(of(&keys), ["USER#x#ORDERS", "USER#x#CART", "BRAND_INDEX"]);
    }
}
