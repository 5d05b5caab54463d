//! The pass over JSON's structure: where a value ends, and the members of an object one by one.

/// The body is not well-formed JSON, or not of the kind that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed JSON")]
pub struct Malformed;

/// How deep objects and arrays may nest. A DynamoDB value nests 32 deep and takes up to two levels
/// of JSON for each; a request adds a few.
pub const MAX_DEPTH: u32 = 128;

/// The first place at or after `at` that is not white space.
#[inline]
pub(crate) fn space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Where the value that starts at `at` ends.
pub(crate) fn skip(bytes: &[u8], at: usize) -> Result<usize, Malformed> {
    match bytes.get(at) {
        Some(b'"') => skip_string(bytes, at),
        Some(b'{' | b'[') => skip_container(bytes, at),
        _ => skip_scalar(bytes, at),
    }
}

/// The place behind the closing quote of the string whose opening quote is at `at`.
#[inline]
fn skip_string(bytes: &[u8], at: usize) -> Result<usize, Malformed> {
    let mut from = at + 1;
    loop {
        // Most strings are short: a few words of eight bytes beat the call of a wide search.
        let mut words = 0;
        let stop = loop {
            let Some(word) = bytes.get(from..from + 8).and_then(|word| <[u8; 8]>::try_from(word).ok()) else {
                let rest = bytes.get(from..).ok_or(Malformed)?;
                break from + rest.iter().position(|byte| matches!(byte, b'"' | b'\\')).ok_or(Malformed)?;
            };
            let word = u64::from_le_bytes(word);
            let found = has(word, b'"') | has(word, b'\\');
            if found != 0 {
                break from + (found.trailing_zeros() / 8) as usize;
            }
            from += 8;
            words += 1;
            if words == 4 {
                let rest = bytes.get(from..).ok_or(Malformed)?;
                break from + memchr::memchr2(b'"', b'\\', rest).ok_or(Malformed)?;
            }
        };
        if bytes.get(stop) == Some(&b'"') {
            return Ok(stop + 1);
        }
        from = stop + 2;
    }
}

/// The high bit of each byte of the word that is `byte`; right up to the first such byte, which is
/// all that is used.
#[inline]
const fn has(word: u64, byte: u8) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let zeroed = word ^ (ONES * byte as u64);
    zeroed.wrapping_sub(ONES) & !zeroed & (ONES << 7)
}

fn skip_scalar(bytes: &[u8], at: usize) -> Result<usize, Malformed> {
    let rest = bytes.get(at..).ok_or(Malformed)?;
    let length = rest
        .iter()
        .position(|byte| !matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'E' | b'+' | b'-' | b'.'))
        .unwrap_or(rest.len());
    let (text, _) = rest.split_at_checked(length).ok_or(Malformed)?;
    let number = |text: &[u8]| {
        text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'e' | b'E' | b'+' | b'-' | b'.'))
            && matches!(text, [b'0'..=b'9', ..] | [b'-', b'0'..=b'9', ..])
    };
    match text {
        b"true" | b"false" | b"null" => Ok(at + length),
        text if number(text) => Ok(at + length),
        _ => Err(Malformed),
    }
}

/// Walks a container without recursion: one bit for each open level, set for an object.
fn skip_container(bytes: &[u8], start: usize) -> Result<usize, Malformed> {
    let (mut kinds, mut depth, mut at) = (0_u128, 0_u32, start);
    loop {
        // Here a value starts.
        match bytes.get(at) {
            Some(open @ (b'{' | b'[')) => {
                if depth == MAX_DEPTH {
                    return Err(Malformed);
                }
                depth += 1;
                kinds = (kinds << 1) | u128::from(*open == b'{');
                at = space(bytes, at + 1);
                let empty = if *open == b'{' { b'}' } else { b']' };
                if bytes.get(at) != Some(&empty) {
                    if *open == b'{' {
                        (_, at) = name(bytes, at)?;
                    }
                    continue;
                }
            }
            Some(b'"') => at = space(bytes, skip_string(bytes, at)?),
            _ => at = space(bytes, skip_scalar(bytes, at)?),
        }
        // Here a value has ended: close what closes, then go to the next value.
        loop {
            let object = kinds & 1 == 1;
            match bytes.get(at) {
                Some(b'}') if object => {}
                Some(b']') if !object => {}
                Some(b',') => {
                    at = space(bytes, at + 1);
                    if object {
                        (_, at) = name(bytes, at)?;
                    }
                    break;
                }
                _ => return Err(Malformed),
            }
            depth -= 1;
            kinds >>= 1;
            if depth == 0 {
                return Ok(at + 1);
            }
            at = space(bytes, at + 1);
        }
    }
}

/// Reads a member's name and the colon: where the name ends, and where the value starts.
#[inline]
fn name(bytes: &[u8], at: usize) -> Result<(usize, usize), Malformed> {
    if bytes.get(at) != Some(&b'"') {
        return Err(Malformed);
    }
    let end = skip_string(bytes, at)?;
    let colon = space(bytes, end);
    if bytes.get(colon) != Some(&b':') {
        return Err(Malformed);
    }
    Ok((end, space(bytes, colon + 1)))
}

/// A member's name, quotes and escapes included, and its value.
type RawMember<'a> = (&'a [u8], &'a [u8]);

/// The members of an object, one at a time.
pub(crate) struct Members<'a> {
    bytes: &'a [u8],
    /// Where the next name or its value starts, or the place behind the closing brace.
    at: usize,
    closed: bool,
}

impl<'a> Members<'a> {
    /// The object whose brace is at `at`.
    pub(crate) fn open(bytes: &'a [u8], at: usize) -> Result<Self, Malformed> {
        if bytes.get(at) != Some(&b'{') {
            return Err(Malformed);
        }
        let at = space(bytes, at + 1);
        let closed = bytes.get(at) == Some(&b'}');
        Ok(Members { bytes, at: if closed { at + 1 } else { at }, closed })
    }

    /// The next member.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<RawMember<'a>>, Malformed> {
        let Some(name) = self.name()? else { return Ok(None) };
        Ok(Some((name, self.skip_value()?)))
    }

    /// The next name; then the value must be passed.
    #[inline]
    pub(crate) fn name(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        if self.closed {
            return Ok(None);
        }
        let (end, value) = name(self.bytes, self.at)?;
        let name = self.bytes.get(self.at..end).ok_or(Malformed)?;
        self.at = value;
        Ok(Some(name))
    }

    /// Where the value starts whose name was just read.
    pub(crate) fn value(&self) -> usize {
        self.at
    }

    /// Passes over that value.
    #[inline]
    pub(crate) fn skip_value(&mut self) -> Result<&'a [u8], Malformed> {
        let (start, end) = (self.at, skip(self.bytes, self.at)?);
        self.value_ended(end)?;
        self.bytes.get(start..end).ok_or(Malformed)
    }

    /// Goes on behind that value.
    #[inline]
    pub(crate) fn value_ended(&mut self, end: usize) -> Result<(), Malformed> {
        let next = space(self.bytes, end);
        match self.bytes.get(next) {
            Some(b',') => self.at = space(self.bytes, next + 1),
            Some(b'}') => (self.at, self.closed) = (next + 1, true),
            _ => return Err(Malformed),
        }
        Ok(())
    }

    /// The place behind the closing brace, once all members are read.
    pub(crate) fn end(&self) -> usize {
        self.at
    }

    /// Nothing but white space may follow.
    pub(crate) fn finish(&self) -> Result<(), Malformed> {
        if space(self.bytes, self.at) == self.bytes.len() { Ok(()) } else { Err(Malformed) }
    }
}
