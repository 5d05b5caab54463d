//! The words that an expression cannot use as bare attribute names (AWS, "Reserved words in
//! DynamoDB": 573 words).

use std::sync::LazyLock;

/// Sorted, one word a line.
static WORDS: LazyLock<Vec<&'static str>> = LazyLock::new(|| include_str!("reserved.txt").lines().collect());

/// Whether a name must stand behind a `#placeholder`. Case does not matter.
pub fn is_reserved(name: &str) -> bool {
    name.len() <= 16 && WORDS.binary_search(&name.to_ascii_uppercase().as_str()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_whole() {
        assert_eq!(WORDS.len(), 573);
        assert!(WORDS.is_sorted());
        assert!(WORDS.iter().all(|word| word.len() <= 16));
        assert!(is_reserved("name") && is_reserved("ZONE") && !is_reserved("pk"));
    }
}
