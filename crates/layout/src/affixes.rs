//! What makes a logical key a physical one.

/// What stands around a logical key in a physical one: text without quotes, backslashes or control
/// characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Affixes {
    /// Before it; templates only.
    pub before: String,
    /// Behind it.
    pub after: String,
}

impl Affixes {
    pub(crate) fn suffix(after: String) -> Self {
        Affixes { before: String::new(), after }
    }

    /// How many bytes they have.
    pub fn len(&self) -> usize {
        self.before.len() + self.after.len()
    }

    /// Whether the physical key is the logical one.
    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }

    /// The physical key.
    pub fn around(&self, logical: &[u8]) -> Vec<u8> {
        [self.before.as_bytes(), logical, self.after.as_bytes()].concat()
    }
}
