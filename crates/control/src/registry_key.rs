//! How a logical key, or a value of an index, stands in the sort key of an item of the registry: as
//! it is while there is room, then by its hash.
//!
//! The item of one that stands by its hash holds it whole beside that. Its form is one that builds
//! before this rule refuse: they would take the hash for the key. Not here: which items there are.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use heatsink_dynamo::KeyType;
use heatsink_dynamo::key::MAX_SORT_KEY;
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
    /// The place of a key, after what the sort key begins with. `None` for a number, which is never
    /// sharded, and for what its type cannot be.
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

/// The key as text: as it is, binary in base64.
pub(crate) fn text(key: &[u8], key_type: KeyType) -> Option<String> {
    match key_type {
        KeyType::S => std::str::from_utf8(key).ok().map(str::to_owned),
        KeyType::B => Some(STANDARD.encode(key)),
        KeyType::N => None,
    }
}

/// The key that has this text.
pub(crate) fn bytes(text: &str, key_type: KeyType) -> Option<Vec<u8>> {
    match key_type {
        KeyType::S => Some(text.as_bytes().to_vec()),
        KeyType::B => STANDARD.decode(text).ok(),
        KeyType::N => None,
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
        assert_eq!(Place::of("key:", b"7", KeyType::N), None);
        assert_eq!(Place::of("key:", &[255], KeyType::S), None);
    }
}
