//! Changing a few places of a body and nothing else: every other byte stays as it was sent.

use bytes::Bytes;

/// Changes to a body, collected in any order.
#[derive(Debug)]
pub struct Splice<'a> {
    whole: &'a [u8],
    edits: Vec<Edit>,
}

#[derive(Debug)]
struct Edit {
    start: usize,
    end: usize,
    with: Vec<u8>,
}

impl<'a> Splice<'a> {
    /// No changes to `whole` yet.
    pub fn new(whole: &'a [u8]) -> Self {
        Splice { whole, edits: Vec::new() }
    }

    /// Puts `with` in the place of `part`, a slice of the body itself. A slice of something else is
    /// ignored by construction of the callers, who get every slice from a lazy reader over the
    /// body.
    pub fn replace(&mut self, part: &[u8], with: impl Into<Vec<u8>>) {
        if let Some(start) = self.offset(part) {
            let with = with.into();
            self.edits.push(Edit { start, end: start + part.len(), with });
        }
    }

    /// Inserts `text` before the last `back` bytes of `part`, a slice of the body.
    pub fn insert(&mut self, part: &[u8], back: usize, text: impl Into<Vec<u8>>) {
        if let Some(start) = self.offset(part) {
            let at = start + part.len().saturating_sub(back);
            self.edits.push(Edit { start: at, end: at, with: text.into() });
        }
    }

    /// Takes out `length` bytes that end `back` bytes before the end of `part`, a slice of the
    /// body.
    pub fn remove(&mut self, part: &[u8], back: usize, length: usize) {
        if let Some(start) = self.offset(part) {
            let end = start + part.len().saturating_sub(back);
            let start = end.saturating_sub(length).max(start);
            self.edits.push(Edit { start, end, with: Vec::new() });
        }
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// The changed body; the same bytes, uncopied, where nothing changes. `body` is the whole that
    /// the splice was made for.
    pub fn finish(mut self, body: &Bytes) -> Bytes {
        if self.edits.is_empty() {
            return body.clone();
        }
        self.edits.sort_by_key(|edit| edit.start);
        let added: usize = self.edits.iter().map(|edit| edit.with.len()).sum();
        let mut out = Vec::with_capacity(self.whole.len() + added);
        let mut at = 0;
        for edit in &self.edits {
            out.extend_from_slice(self.whole.get(at..edit.start).unwrap_or_default());
            out.extend_from_slice(&edit.with);
            at = edit.end;
        }
        out.extend_from_slice(self.whole.get(at..).unwrap_or_default());
        Bytes::from(out)
    }

    fn offset(&self, part: &[u8]) -> Option<usize> {
        let start = (part.as_ptr() as usize).checked_sub(self.whole.as_ptr() as usize)?;
        (start + part.len() <= self.whole.len()).then_some(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_named_places_change() {
        let body = Bytes::from_static(b"abcdefghij");
        let mut splice = Splice::new(&body);
        splice.replace(&body[7..9], *b"HI");
        splice.insert(&body[0..3], 1, *b"+");
        splice.remove(&body[3..6], 1, 2);
        assert_eq!(splice.finish(&body), "ab+cfgHIj");
        assert_eq!(Splice::new(&body).finish(&body).as_ptr(), body.as_ptr());
    }
}
