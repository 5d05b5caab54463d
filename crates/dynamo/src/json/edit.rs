//! Writing JSON around bytes that stay as they are.

use super::Malformed;
use super::scan::{Members, space};

/// Writes a text as a JSON string, quotes included.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)) {
        let (plain, tail) = rest.split_at(at);
        out.extend_from_slice(plain);
        let Some((&byte, tail)) = tail.split_first() else { break };
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
        rest = tail;
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// A JSON object that is written member by member.
#[derive(Clone, Debug)]
pub struct Object {
    out: Vec<u8>,
}

impl Default for Object {
    fn default() -> Self {
        Object::new()
    }
}

impl Object {
    /// An object without members.
    pub fn new() -> Self {
        Object::with_capacity(1)
    }

    /// An object without members yet that has room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        let mut out = Vec::with_capacity(bytes.max(1));
        out.push(b'{');
        Object { out }
    }

    /// Adds a member whose value is JSON already.
    pub fn raw(&mut self, name: &str, value: &[u8]) -> &mut Self {
        self.name(name).extend_from_slice(value);
        self
    }

    /// Adds a member whose value is a string.
    pub fn string(&mut self, name: &str, value: &str) -> &mut Self {
        write_string(self.name(name), value);
        self
    }

    /// Adds a member's name; the caller writes exactly one JSON value behind it.
    pub fn name(&mut self, name: &str) -> &mut Vec<u8> {
        if self.out.len() > 1 {
            self.out.push(b',');
        }
        write_string(&mut self.out, name);
        self.out.push(b':');
        &mut self.out
    }

    /// Whether nothing was added yet.
    pub fn is_empty(&self) -> bool {
        self.out.len() == 1
    }

    /// The object's JSON.
    pub fn finish(mut self) -> Vec<u8> {
        self.out.push(b'}');
        self.out
    }
}

/// The same object with some members set (`Some`: replaced in place, or added at the end) or taken
/// out (`None`). All other members keep their bytes; white space between members goes.
///
/// # Errors
/// `object` is not one JSON object.
pub fn splice_members(object: &[u8], changes: &[(&str, Option<&[u8]>)]) -> Result<Vec<u8>, Malformed> {
    let added: usize =
        changes.iter().map(|(name, value)| name.len() + value.map_or(0, <[u8]>::len) + 4).sum();
    let mut out = Object { out: Vec::with_capacity(object.len() + added) };
    out.out.push(b'{');
    let mut done = vec![false; changes.len()];
    let mut walk = Members::open(object, space(object, 0))?;
    while let Some((quoted, value)) = walk.next()? {
        let name = super::string(quoted)?;
        match changes.iter().position(|(changed, _)| *changed == name) {
            None => {
                if !out.is_empty() {
                    out.out.push(b',');
                }
                out.out.extend_from_slice(quoted);
                out.out.push(b':');
                out.out.extend_from_slice(value);
            }
            // A repeated member is written once.
            Some(at) => {
                if let (Some((_, Some(new))), Some(false)) = (changes.get(at), done.get(at)) {
                    out.raw(&name, new);
                }
                if let Some(done) = done.get_mut(at) {
                    *done = true;
                }
            }
        }
    }
    walk.finish()?;
    for ((name, value), done) in changes.iter().zip(done) {
        if let (Some(value), false) = (value, done) {
            out.raw(name, value);
        }
    }
    Ok(out.finish())
}
