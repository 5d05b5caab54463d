//! A cursor over JSON text that checks the grammar (RFC 8259) as it goes and keeps nothing.

use std::borrow::Cow;

use crate::json;

/// The text is not JSON.
#[derive(Debug)]
pub(super) struct Malformed;

/// How deep arrays and objects may be nested before a body counts as unreadable. DynamoDB's own
/// parser gives up between about 2,000 and 5,000 levels of attribute values, each of which is two
/// levels of JSON.
const DEEPEST: usize = 4_032;

pub(super) struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Scan { text, at: 0 }
    }

    /// Where the cursor stands.
    pub(super) fn place(&self) -> usize {
        self.at
    }

    /// The text from a place to where the cursor stands.
    pub(super) fn since(&self, place: usize) -> &'a [u8] {
        self.text.get(place..self.at).unwrap_or_default()
    }

    /// The first byte of the next token.
    pub(super) fn peek(&mut self) -> Result<u8, Malformed> {
        while let Some(byte) = self.text.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
                return Ok(*byte);
            }
            self.at += 1;
        }
        Err(Malformed)
    }

    /// Takes the byte that was peeked at.
    pub(super) fn bump(&mut self) {
        self.at += 1;
    }

    pub(super) fn expect(&mut self, byte: u8) -> Result<(), Malformed> {
        if self.peek()? != byte {
            return Err(Malformed);
        }
        self.at += 1;
        Ok(())
    }

    /// The end of the text.
    pub(super) fn end(&mut self) -> Result<(), Malformed> {
        if self.peek().is_ok() { Err(Malformed) } else { Ok(()) }
    }

    /// A string's text between its quotes, escapes as they are.
    pub(super) fn string(&mut self) -> Result<&'a [u8], Malformed> {
        self.expect(b'"')?;
        let start = self.at;
        loop {
            match self.text.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => self.escape()?,
                Some(byte) if *byte >= 0x20 => self.at += 1,
                _ => return Err(Malformed),
            }
        }
        self.at += 1;
        self.text.get(start..self.at - 1).ok_or(Malformed)
    }

    fn escape(&mut self) -> Result<(), Malformed> {
        match self.text.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => {
                let digits = self.text.get(self.at + 2..self.at + 6).ok_or(Malformed)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return Err(Malformed);
                }
                self.at += 6;
            }
            _ => return Err(Malformed),
        }
        Ok(())
    }

    /// A number as it is written.
    pub(super) fn number(&mut self) -> Result<&'a [u8], Malformed> {
        self.peek()?;
        let start = self.at;
        self.take(b"-");
        if !self.take(b"0") {
            self.digits()?;
        }
        if self.take(b".") {
            self.digits()?;
        }
        if self.take(b"eE") {
            self.take(b"+-");
            self.digits()?;
        }
        self.text.get(start..self.at).ok_or(Malformed)
    }

    fn take(&mut self, any: &[u8]) -> bool {
        let found = self.text.get(self.at).is_some_and(|byte| any.contains(byte));
        if found {
            self.at += 1;
        }
        found
    }

    fn digits(&mut self) -> Result<(), Malformed> {
        let start = self.at;
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at == start { Err(Malformed) } else { Ok(()) }
    }

    /// `true`, `false` or `null`.
    pub(super) fn word(&mut self, word: &str) -> Result<(), Malformed> {
        self.peek()?;
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word.as_bytes())) {
            return Err(Malformed);
        }
        self.at += word.len();
        Ok(())
    }

    /// Takes the separator before the next member or element, or the closing `end`. `false` at the
    /// end.
    pub(super) fn more(&mut self, end: u8, first: bool) -> Result<bool, Malformed> {
        let byte = self.peek()?;
        if byte == end {
            self.at += 1;
            return Ok(false);
        }
        if first {
            return Ok(true);
        }
        if byte != b',' {
            return Err(Malformed);
        }
        self.at += 1;
        Ok(true)
    }

    /// A member's name and its colon.
    pub(super) fn name(&mut self) -> Result<&'a [u8], Malformed> {
        let name = self.string()?;
        self.expect(b':')?;
        Ok(name)
    }

    /// Passes over any value. How deep it nests: 0 for a scalar.
    pub(super) fn skip(&mut self) -> Result<usize, Malformed> {
        self.skip_with(|_, _, _| {})
    }

    /// [`skip`](Self::skip) that shows every string that is a member or an element of one: the
    /// member's name, and the string between its quotes, both with escapes as they are, and how
    /// deep it stands.
    pub(super) fn skip_with(
        &mut self,
        mut show: impl FnMut(&[u8], &'a [u8], usize),
    ) -> Result<usize, Malformed> {
        // One entry for each open array or object: its closing byte, and the name of the member
        // that is read, or that it is. No recursion: the text decides the depth.
        let mut open: Vec<(u8, &[u8])> = Vec::new();
        let mut deepest = 0;
        loop {
            let opened = match self.peek()? {
                b'{' => Some(b'}'),
                b'[' => Some(b']'),
                b'"' => {
                    let text = self.string()?;
                    if let Some((_, name)) = open.last() {
                        show(name, text, open.len());
                    }
                    None
                }
                b't' => {
                    self.word("true")?;
                    None
                }
                b'f' => {
                    self.word("false")?;
                    None
                }
                b'n' => {
                    self.word("null")?;
                    None
                }
                _ => {
                    self.number()?;
                    None
                }
            };
            let mut first = opened.is_some();
            if let Some(end) = opened {
                self.at += 1;
                // Of a list in a list no member is known.
                let name = open
                    .last()
                    .filter(|(around, _)| end == b']' && *around == b'}')
                    .map_or(&b""[..], |(_, name)| name);
                open.push((end, name));
                deepest = deepest.max(open.len());
                if deepest > DEEPEST {
                    return Err(Malformed);
                }
            }
            loop {
                let Some((end, _)) = open.last() else { return Ok(deepest) };
                let end = *end;
                if self.more(end, first)? {
                    if end == b'}' {
                        let name = self.name()?;
                        if let Some((_, of)) = open.last_mut() {
                            *of = name;
                        }
                    }
                    break;
                }
                open.pop();
                first = false;
            }
        }
    }
}

/// A string's text from what stands between its quotes.
pub(super) fn decoded(raw: &[u8]) -> Cow<'_, str> {
    if raw.contains(&b'\\') {
        let quoted = [b"\"", raw, b"\""].concat();
        // An escape that is half of a pair has no text; it fits no name and no set either.
        return json::string(&quoted).map_or(Cow::Borrowed("\u{fffd}"), |text| Cow::Owned(text.into_owned()));
    }
    String::from_utf8_lossy(raw)
}
