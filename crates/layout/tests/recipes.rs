//! Hashes by the recipes that people write by hand, held against what their languages gave.
//!
//! Computed by Python 3 (`hashlib`, `zlib`) and by Java (`String.hashCode`, `Objects.hash`,
//! `Math.floorMod`, `Math.abs`), which share no code with ours:
//!
//! ```python
//! for n in (1, 2, 4, 5, 10, 16, 100, 1000, 65535):
//!     int(hashlib.sha1(key).hexdigest(), 16) % n
//!     zlib.crc32(key) % n
//!     int.from_bytes(hashlib.md5(key).digest()[:4], "big") % n
//!     int(hashlib.sha1(key).hexdigest()[:8], 16) % n
//!     int(hashlib.sha256(key).hexdigest()[:15], 16) % n
//!     int(hashlib.md5(key).hexdigest()[-4:], 16) % n
//! ```
//!
//! ```java
//! Math.floorMod(key.hashCode(), n);    Math.abs(key.hashCode() % n);
//! (key.hashCode() & 0x7fffffff) % n;   Math.floorMod(Objects.hash(key), n);
//! ```
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use heatsink_layout::{By, Digest, Hash, Layout, Slot, SortKey, Strategy, Template, Unplaced, hash};

const COUNTS: [u16; 9] = [1, 2, 4, 5, 10, 16, 100, 1000, 65535];
type Row = [u16; 9];

#[test]
fn golden_digests() {
    // sha1, crc32, 8 digits of md5, 8 of sha1, 15 of sha256, the last 4 of md5
    let cases: &[(&[u8], [Row; 6])] = &[
        (
            b"",
            [
                [0, 1, 1, 0, 5, 9, 5, 305, 32440],
                [0, 0, 0, 0, 0, 0, 0, 0, 0],
                [0, 1, 1, 3, 3, 9, 93, 393, 24823],
                [0, 0, 2, 1, 6, 14, 6, 606, 32296],
                [0, 1, 1, 3, 3, 1, 53, 353, 1488],
                [0, 0, 2, 2, 2, 14, 22, 22, 17022],
            ],
        ),
        (
            b"a",
            [
                [0, 0, 0, 2, 2, 8, 52, 152, 20752],
                [0, 1, 3, 2, 7, 3, 7, 907, 42747],
                [0, 1, 1, 2, 7, 9, 77, 177, 33402],
                [0, 1, 3, 4, 9, 7, 59, 759, 27439],
                [0, 0, 0, 0, 0, 12, 40, 140, 27960],
                [0, 1, 1, 0, 5, 1, 25, 825, 9825],
            ],
        ),
        (
            b"event-67890",
            [
                [0, 0, 2, 3, 8, 14, 78, 278, 43358],
                [0, 1, 3, 1, 1, 11, 11, 411, 61286],
                [0, 1, 1, 4, 9, 1, 69, 769, 4419],
                [0, 1, 3, 0, 5, 11, 95, 395, 29310],
                [0, 0, 0, 0, 0, 8, 60, 560, 20555],
                [0, 1, 1, 0, 5, 9, 85, 585, 36585],
            ],
        ),
        (
            b"player_7",
            [
                [0, 1, 3, 4, 9, 11, 79, 579, 62364],
                [0, 0, 2, 0, 0, 2, 30, 930, 54735],
                [0, 0, 0, 0, 0, 8, 60, 160, 41480],
                [0, 1, 3, 3, 3, 3, 63, 763, 28913],
                [0, 0, 0, 0, 0, 4, 60, 860, 60035],
                [0, 1, 3, 0, 5, 7, 55, 855, 40855],
            ],
        ),
        (
            b"1718000000",
            [
                [0, 1, 1, 3, 3, 9, 93, 193, 18003],
                [0, 0, 0, 4, 4, 8, 44, 344, 42364],
                [0, 1, 1, 4, 9, 1, 29, 129, 22614],
                [0, 0, 0, 4, 4, 12, 64, 164, 45764],
                [0, 0, 2, 1, 6, 6, 26, 326, 29091],
                [0, 0, 0, 0, 0, 8, 80, 680, 4680],
            ],
        ),
        (
            b"12.5",
            [
                [0, 0, 0, 2, 2, 12, 32, 732, 46077],
                [0, 1, 1, 4, 9, 9, 69, 169, 53169],
                [0, 0, 2, 2, 2, 10, 2, 402, 5977],
                [0, 1, 3, 2, 7, 3, 47, 947, 56542],
                [0, 0, 2, 3, 8, 2, 38, 938, 50558],
                [0, 1, 1, 1, 1, 9, 41, 641, 63641],
            ],
        ),
        (
            b"\xff\x00\x01",
            [
                [0, 0, 0, 2, 2, 4, 12, 412, 34917],
                [0, 1, 1, 2, 7, 9, 37, 337, 5192],
                [0, 1, 3, 1, 1, 15, 91, 791, 27641],
                [0, 0, 0, 3, 8, 12, 48, 948, 33298],
                [0, 1, 3, 2, 7, 11, 7, 907, 54282],
                [0, 0, 0, 4, 4, 4, 44, 844, 1844],
            ],
        ),
    ];
    for (key, rows) in cases {
        let [sha1, crc32, md5_8, sha1_8, sha256_15, md5_last_4] = rows;
        let digest = |of, digits| COUNTS.map(|shards| hash::digest(of, digits, key, shards));
        assert_eq!(digest(Digest::Sha1, 0), *sha1, "{key:?}");
        assert_eq!(COUNTS.map(|shards| hash::crc32(key, shards)), *crc32, "{key:?}");
        assert_eq!(digest(Digest::Md5, 8), *md5_8, "{key:?}");
        assert_eq!(digest(Digest::Sha1, 8), *sha1_8, "{key:?}");
        assert_eq!(digest(Digest::Sha256, 15), *sha256_15, "{key:?}");
        assert_eq!(digest(Digest::Md5, -4), *md5_last_4, "{key:?}");
        for (of, digits) in [(Digest::Md5, 32), (Digest::Sha1, 40), (Digest::Sha256, 64)] {
            assert_eq!(digest(of, digits), digest(of, 0));
            assert_eq!(digest(of, -digits), digest(of, 0));
        }
    }
}

/// "polygenelubricants" has the one hash code without an absolute value, -2147483648; the last key
/// is one character of two UTF-16 units.
#[test]
fn golden_hash_codes() {
    // floorMod, abs of the remainder, masked, floorMod of Objects.hash
    let cases: &[(&str, [Row; 4])] = &[
        (
            "",
            [
                [0, 0, 0, 0, 0, 0, 0, 0, 0],
                [0, 0, 0, 0, 0, 0, 0, 0, 0],
                [0, 0, 0, 0, 0, 0, 0, 0, 0],
                [0, 1, 3, 1, 1, 15, 31, 31, 31],
            ],
        ),
        (
            "a",
            [
                [0, 1, 1, 2, 7, 1, 97, 97, 97],
                [0, 1, 1, 2, 7, 1, 97, 97, 97],
                [0, 1, 1, 2, 7, 1, 97, 97, 97],
                [0, 0, 0, 3, 8, 0, 28, 128, 128],
            ],
        ),
        (
            "event-67890",
            [
                [0, 1, 3, 0, 5, 11, 15, 515, 15360],
                [0, 1, 1, 0, 5, 5, 85, 485, 50175],
                [0, 1, 3, 3, 3, 11, 63, 163, 48128],
                [0, 0, 2, 1, 6, 10, 46, 546, 15391],
            ],
        ),
        (
            "player_7",
            [
                [0, 1, 1, 3, 3, 9, 73, 73, 57948],
                [0, 1, 1, 3, 3, 9, 73, 73, 57948],
                [0, 1, 1, 3, 3, 9, 73, 73, 57948],
                [0, 0, 0, 4, 4, 8, 4, 104, 57979],
            ],
        ),
        (
            "1718000000",
            [
                [0, 1, 1, 3, 3, 13, 53, 453, 1258],
                [0, 1, 1, 3, 3, 13, 53, 453, 1258],
                [0, 1, 1, 3, 3, 13, 53, 453, 1258],
                [0, 0, 0, 4, 4, 12, 84, 484, 1289],
            ],
        ),
        (
            "12.5",
            [
                [0, 0, 0, 3, 8, 8, 88, 288, 1983],
                [0, 0, 0, 3, 8, 8, 88, 288, 1983],
                [0, 0, 0, 3, 8, 8, 88, 288, 1983],
                [0, 1, 3, 4, 9, 7, 19, 319, 2014],
            ],
        ),
        (
            "Aa",
            [
                [0, 0, 0, 2, 2, 0, 12, 112, 2112],
                [0, 0, 0, 2, 2, 0, 12, 112, 2112],
                [0, 0, 0, 2, 2, 0, 12, 112, 2112],
                [0, 1, 3, 3, 3, 15, 43, 143, 2143],
            ],
        ),
        (
            "polygenelubricants",
            [
                [0, 0, 0, 2, 2, 0, 52, 352, 32767],
                [0, 0, 0, 3, 8, 0, 48, 648, 32768],
                [0, 0, 0, 0, 0, 0, 0, 0, 0],
                [0, 1, 3, 3, 3, 15, 83, 383, 32798],
            ],
        ),
        (
            "été",
            [
                [0, 0, 2, 2, 2, 14, 42, 742, 31137],
                [0, 0, 2, 2, 2, 14, 42, 742, 31137],
                [0, 0, 2, 2, 2, 14, 42, 742, 31137],
                [0, 1, 1, 3, 3, 13, 73, 773, 31168],
            ],
        ),
        (
            "😀",
            [
                [0, 1, 3, 4, 9, 3, 99, 899, 3454],
                [0, 1, 3, 4, 9, 3, 99, 899, 3454],
                [0, 1, 3, 4, 9, 3, 99, 899, 3454],
                [0, 0, 2, 0, 0, 2, 30, 930, 3485],
            ],
        ),
    ];
    for (key, [floor_mod, abs, mask, objects]) in cases {
        assert_eq!(COUNTS.map(|shards| hash::java(key, shards)), *floor_mod, "{key}");
        assert_eq!(COUNTS.map(|shards| hash::java_abs(key, shards)), *abs, "{key}");
        assert_eq!(COUNTS.map(|shards| hash::java_mask(key, shards)), *mask, "{key}");
        assert_eq!(COUNTS.map(|shards| hash::java_objects(key, shards)), *objects, "{key}");
    }
}

/// Every recipe through a layout: of text, of numbers as their decimal digits, of binary keys where
/// it has a meaning.
#[test]
fn layouts_take_them() {
    let template = Template::read("{pk}#{shard}").unwrap();
    let strategy = Strategy::Template { template, by: By::SortKey, time: None };
    for (hash, text, number) in [
        (Hash::Sha1, 9, 3),
        (Hash::Crc32, 30, 44),
        (Hash::Slice { digest: Digest::Md5, digits: 8 }, 60, 29),
        (Hash::Slice { digest: Digest::Md5, digits: -4 }, 55, 80),
        (Hash::Java, 73, 53),
        (Hash::JavaAbs, 73, 53),
        (Hash::JavaMask, 73, 53),
        (Hash::JavaObjects, 4, 84),
    ] {
        let shards = if hash == Hash::Sha1 { 10 } else { 100 };
        let layout = Layout { strategy: strategy.clone(), shards, hash, version: 1 };
        assert_eq!(layout.slot_of(Some(SortKey::S("player_7"))), Ok(Slot::shard(text)), "{hash}");
        assert_eq!(layout.slot_of(Some(SortKey::N("1.718e9"))), Ok(Slot::shard(number)), "{hash}");
        let binary = layout.slot_of(Some(SortKey::B(b"\xff\x00\x01")));
        let of_text = matches!(hash, Hash::Java | Hash::JavaAbs | Hash::JavaMask | Hash::JavaObjects);
        assert_eq!(binary == Err(Unplaced::NoText), of_text, "{hash}");
    }
}
