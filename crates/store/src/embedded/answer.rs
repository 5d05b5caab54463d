//! Writes the engine's answers as JSON with the members of every object sorted by name.
//!
//! The engine keeps attributes in hash maps, whose order changes from one run to the next; an
//! answer must not. Members are sorted while writing: each object's members are put in order when
//! the object ends.

use std::cell::RefCell;
use std::io;
use std::ops::Range;

use bytes::Bytes;
use heatsink_dynamo::Error;
use serde::Serialize;
use serde_json::ser::Formatter;

/// `value` as JSON.
pub(super) fn write(value: &impl Serialize) -> Result<Bytes, Error> {
    let sink = Sink(RefCell::new(Vec::with_capacity(512)));
    let mut writer = serde_json::Serializer::with_formatter(
        &sink,
        Ordered { sink: &sink, open: Vec::new(), spare: Vec::new() },
    );
    value
        .serialize(&mut writer)
        .map_err(|why| Error::internal(format!("the answer could not be written: {why}")))?;
    Ok(Bytes::from(sink.0.into_inner()))
}

/// The output so far, readable by the formatter while the serializer holds it as its writer.
struct Sink(RefCell<Vec<u8>>);

impl io::Write for &Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Ordered<'a> {
    sink: &'a Sink,
    open: Vec<Vec<Member>>,
    /// Lists of members no longer in use, kept for their memory.
    spare: Vec<Vec<Member>>,
}

/// The range of a member of the current object in the output.
struct Member {
    name: Range<usize>,
    end: usize,
}

impl Ordered<'_> {
    fn position(&self) -> usize {
        self.sink.0.borrow().len()
    }

    fn member(&mut self) -> Option<&mut Member> {
        self.open.last_mut()?.last_mut()
    }
}

impl Formatter for Ordered<'_> {
    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open.push(self.spare.pop().unwrap_or_default());
        writer.write_all(b"{")
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        let start = self.position();
        if let Some(members) = self.open.last_mut() {
            members.push(Member { name: start..start, end: start });
        }
        Ok(())
    }

    fn end_object_key<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        let end = self.position();
        if let Some(member) = self.member() {
            member.name.end = end;
        }
        Ok(())
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        let end = self.position();
        if let Some(member) = self.member() {
            member.end = end;
        }
        Ok(())
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if let Some(mut members) = self.open.pop() {
            order(&mut self.sink.0.borrow_mut(), &mut members);
            members.clear();
            self.spare.push(members);
        }
        writer.write_all(b"}")
    }
}

/// Puts the members that end `text` in order of their names.
fn order(text: &mut Vec<u8>, members: &mut [Member]) {
    let Some(first) = members.first() else { return };
    let start = first.name.start;
    if members.is_sorted_by(|a, b| text[a.name.clone()] <= text[b.name.clone()]) {
        return;
    }
    members.sort_unstable_by(|a, b| text[a.name.clone()].cmp(&text[b.name.clone()]));
    let mut ordered = Vec::with_capacity(text.len() - start);
    for member in members.iter() {
        if !ordered.is_empty() {
            ordered.push(b',');
        }
        ordered.extend_from_slice(&text[member.name.start..member.end]);
    }
    text.truncate(start);
    text.append(&mut ordered);
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn members_of_every_object_are_in_order() {
        let inner: HashMap<&str, Vec<HashMap<&str, u8>>> = ["b", "a", "c"]
            .into_iter()
            .map(|name| (name, vec![HashMap::from([("z", 1), ("y", 2), ("x", 3)]), HashMap::new()]))
            .collect();
        let outer = HashMap::from([("one", inner.clone()), ("four", inner)]);
        let inner =
            r#"{"a":[{"x":3,"y":2,"z":1},{}],"b":[{"x":3,"y":2,"z":1},{}],"c":[{"x":3,"y":2,"z":1},{}]}"#;
        assert_eq!(write(&outer).unwrap(), format!(r#"{{"four":{inner},"one":{inner}}}"#));
        assert_eq!(write(&HashMap::from([("a\"b", "é\n")])).unwrap(), r#"{"a\"b":"é\n"}"#);
    }
}
