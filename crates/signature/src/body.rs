//! The hash of a body, taken while it is read.

use std::fmt;

use ring::digest::{Context, SHA256, digest};

/// The SHA-256 of a body as it came, before it is inflated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BodyHash([u8; 32]);

impl BodyHash {
    /// The hash of a whole body.
    pub fn of(body: &[u8]) -> Self {
        BodyHash::from(digest(&SHA256, body))
    }

    pub(crate) const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<ring::digest::Digest> for BodyHash {
    fn from(digest: ring::digest::Digest) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.as_ref());
        BodyHash(bytes)
    }
}

impl fmt::Debug for BodyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BodyHash")
    }
}

/// Hashes a body piece by piece.
pub struct BodyHasher(Context);

impl Default for BodyHasher {
    fn default() -> Self {
        BodyHasher(Context::new(&SHA256))
    }
}

impl BodyHasher {
    /// Adds the next piece.
    pub fn add(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The hash of all pieces.
    pub fn finish(self) -> BodyHash {
        BodyHash::from(self.0.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_hash_as_the_whole_does() {
        let mut hasher = BodyHasher::default();
        for piece in [&b"{\"TableName\""[..], b"", b":\"t\"}"] {
            hasher.add(piece);
        }
        assert_eq!(hasher.finish(), BodyHash::of(b"{\"TableName\":\"t\"}"));
        assert_ne!(BodyHash::of(b"a"), BodyHash::of(b"b"));
    }
}
