//! How a logical key, or a value of an index, stands in the sort key of an item of the registry: as
//! it is while there is room, then by its hash.
//!
//! The item of one that stands by its hash holds it whole beside that. Its form is one that builds
//! before this rule refuse: they would take the hash for the key. Not here: which items there are.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use heatsink_dynamo::KeyType;
use heatsink_dynamo::key::MAX_SORT_KEY;
use heatsink_layout::number_codec;
use sha2::{Digest, Sha256};

/// What a hash begins with. A key that begins so stands by its hash, too, so no two keys have one
/// place.
const HASHED: &str = "~sha256~";

/// The place of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The sort key of the item.
    pub sort: String,
    /// Whether it names the key by its hash.
    pub hashed: bool,
}

impl Place {
    /// The place of a key, after what the sort key begins with. `None` for what its type cannot be,
    /// and for a number without room for a shard.
    pub(crate) fn of(before: &str, key: &[u8], key_type: KeyType) -> Option<Self> {
        let text = text(key, key_type)?;
        let hashed = before.len() + text.len() > MAX_SORT_KEY || text.starts_with(HASHED);
        let sort = match hashed {
            false => format!("{before}{text}"),
            true => {
                let digest = Sha256::digest(key);
                let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("{before}{HASHED}{digest}")
            }
        };
        Some(Place { sort, hashed })
    }
}

/// The key as text: as it is, a number in canonical text, binary in base64.
pub(crate) fn text(key: &[u8], key_type: KeyType) -> Option<String> {
    match key_type {
        KeyType::S => std::str::from_utf8(key).ok().map(str::to_owned),
        KeyType::B => Some(STANDARD.encode(key)),
        KeyType::N => number(std::str::from_utf8(key).ok()?),
    }
}

/// A number that can have shards, which is short. Only canonical text is a place: else one key
/// would have several.
fn number(text: &str) -> Option<String> {
    let is_one = number_codec::canonical(text)? == text && number_codec::has_room(text.as_bytes());
    is_one.then(|| text.to_owned())
}

/// The key that has this text.
pub(crate) fn bytes(text: &str, key_type: KeyType) -> Option<Vec<u8>> {
    match key_type {
        KeyType::S => Some(text.as_bytes().to_vec()),
        KeyType::B => STANDARD.decode(text).ok(),
        KeyType::N => number(text).map(String::into_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(key: &[u8], key_type: KeyType) -> Place {
        let place = Place::of("key:", key, key_type).unwrap();
        assert!(place.sort.starts_with("key:") && place.sort.len() <= MAX_SORT_KEY);
        assert_eq!(bytes(&text(key, key_type).unwrap(), key_type).unwrap(), key);
        place
    }

    #[test]
    fn a_key_stands_as_it_is_while_there_is_room() {
        let fits = "k".repeat(1_020);
        assert_eq!(place(fits.as_bytes(), KeyType::S), Place { sort: format!("key:{fits}"), hashed: false });
        assert_eq!(place(&[0, 255], KeyType::B).sort, "key:AP8=");
        for (key, key_type) in
            [(vec![b'k'; 1_021], KeyType::S), (vec![b'k'; 2_048], KeyType::S), (vec![7; 800], KeyType::B)]
        {
            let placed = place(&key, key_type);
            assert!(placed.hashed && placed.sort.len() == 4 + 8 + 64);
            // A client's key that looks like it has another place.
            let imitation = placed.sort.strip_prefix("key:").unwrap();
            assert_ne!(place(imitation.as_bytes(), KeyType::S).sort, placed.sort);
        }
        assert_ne!(place(&[b'a'; 1_100], KeyType::S), place(&[b'b'; 1_100], KeyType::S));
        assert_eq!(place(b"-7.5", KeyType::N), Place { sort: "key:-7.5".to_owned(), hashed: false });
        for without_place in ["7.50", "1E1", "1e20", "0.0000001", "12.0000007095510003", "seven"] {
            assert_eq!(Place::of("key:", without_place.as_bytes(), KeyType::N), None, "{without_place}");
            assert_eq!(bytes(without_place, KeyType::N), None);
        }
        assert_eq!(Place::of("key:", &[255], KeyType::S), None);
    }
}
