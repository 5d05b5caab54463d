//! Cuts a file into JSON values, with the line of each: one value a line, or documents that are
//! written over several lines.
//!
//! A file is taken for lines if its first line is a value of its own, or is cut off; for documents
//! if that line ends where a printer breaks a line, or is longer than any item. Of a document, the
//! elements of an array at the top, and of the members `Items` and `Records` of an object there,
//! are values by themselves, so that the output of one long Scan needs no more memory than one
//! item.
//!
//! Memory is bounded by [`LONGEST`]. Sans-IO: bytes in, values out. Not here: what the values mean
//! ([`records`](super::records)).

use std::ops::ControlFlow;

/// The longest value that is taken, in bytes of JSON. An item has at most 400 KB, and a byte takes
/// at most six as an escape: 2.4 MB, and twice that in a stream record with both images.
pub const LONGEST: usize = 16 << 20;

/// A piece of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A JSON value, as far as line ends or brackets tell.
    Value(&'a [u8]),
    /// No value. What follows is read.
    Bad(&'static str),
    /// No value, and where the next one would begin cannot be told. Nothing follows.
    Lost(&'static str),
}

/// Whoever takes frames: each with the number of its line, from 1. It breaks to end the file early.
pub trait Take: FnMut(u64, Frame<'_>) -> ControlFlow<()> {}

impl<F: FnMut(u64, Frame<'_>) -> ControlFlow<()>> Take for F {}

const TOO_LONG: &str = "it is longer than 16 MB, which no item is";
const CUT: &str = "the file ends in the middle of the value that begins here";

/// Cuts one file.
#[derive(Debug)]
pub struct Framing {
    state: State,
    /// What was read of the value under way.
    pending: Vec<u8>,
    /// The line that is read, from 1.
    line: u64,
}

#[derive(Debug)]
enum State {
    /// In the first line that is not blank.
    First,
    /// One value a line.
    Lines,
    /// In a line that is too long.
    Overlong,
    /// Values over several lines.
    Document(Document),
    /// Nothing more can be read.
    Lost,
}

/// Where a document is read.
#[derive(Debug, Default)]
struct Document {
    depth: usize,
    /// The depth at which values begin: 0 for those at the top, 1 for the elements of an array
    /// there, 2 for those of a member.
    level: usize,
    in_string: bool,
    escaped: bool,
    /// The line in which the value under way begins; `None` between values.
    began: Option<u64>,
    /// Behind the array of a document, until its last bracket.
    behind: bool,
}

impl Default for Framing {
    fn default() -> Self {
        Framing { state: State::First, pending: Vec::new(), line: 1 }
    }
}

impl Framing {
    /// Takes the next bytes of the file.
    pub fn push(&mut self, mut chunk: &[u8], take: &mut impl Take) -> ControlFlow<()> {
        while !chunk.is_empty() {
            match &mut self.state {
                State::Lost => return ControlFlow::Break(()),
                State::Document(_) => return self.document(chunk, take),
                State::First | State::Lines | State::Overlong => {
                    let end = memchr::memchr(b'\n', chunk);
                    let (line, rest) = chunk.split_at(end.map_or(chunk.len(), |end| end + 1));
                    chunk = rest;
                    self.piece(line, end.is_some(), take)?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// The file has ended.
    pub fn end(&mut self, take: &mut impl Take) -> ControlFlow<()> {
        match &self.state {
            State::First | State::Lines => self.piece(&[], true, take)?,
            _ => {}
        }
        match &self.state {
            State::Document(document) if document.depth > 0 => {
                let line = document.began.unwrap_or(self.line);
                self.state = State::Lost;
                take(line, Frame::Lost(CUT))
            }
            _ => ControlFlow::Continue(()),
        }
    }

    /// The number of the line that is read.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// A line, or the part of one that there is.
    fn piece(&mut self, piece: &[u8], ends: bool, take: &mut impl Take) -> ControlFlow<()> {
        if matches!(self.state, State::Overlong) {
            if ends {
                self.state = State::Lines;
                self.line += 1;
            }
            return ControlFlow::Continue(());
        }
        if self.pending.len() + piece.len() > LONGEST {
            let is_first = matches!(self.state, State::First);
            self.pending.extend_from_slice(piece);
            if is_first && matches!(self.pending.trim_ascii_start().first(), Some(b'{' | b'[')) {
                return self.reread(take);
            }
            let line = self.line;
            self.pending = Vec::new();
            self.state = if ends { State::Lines } else { State::Overlong };
            self.line += u64::from(ends);
            return take(line, Frame::Bad(TOO_LONG));
        }
        if !ends {
            self.pending.extend_from_slice(piece);
            return ControlFlow::Continue(());
        }
        let mut whole = std::mem::take(&mut self.pending);
        let value = if whole.is_empty() {
            piece
        } else {
            whole.extend_from_slice(piece);
            whole.as_slice()
        };
        let text = value.trim_ascii();
        if matches!(self.state, State::First) && breaks(text) {
            self.pending = value.to_vec();
            return self.reread(take);
        }
        let line = self.line;
        self.line += 1;
        let flow = if text.is_empty() {
            ControlFlow::Continue(())
        } else {
            self.state = State::Lines;
            take(line, Frame::Value(text))
        };
        // The room is used again.
        whole.clear();
        self.pending = whole;
        flow
    }

    /// Reads what was taken for a line as the start of a document.
    fn reread(&mut self, take: &mut impl Take) -> ControlFlow<()> {
        let read = std::mem::take(&mut self.pending);
        self.state = State::Document(Document::default());
        self.document(&read, take)
    }

    fn document(&mut self, chunk: &[u8], take: &mut impl Take) -> ControlFlow<()> {
        let Framing { state, pending, line } = self;
        let State::Document(document) = state else { return ControlFlow::Continue(()) };
        for byte in chunk {
            match document.step(*byte, *line, pending) {
                Step::On => {}
                Step::Value(began) => {
                    let flow = take(began, Frame::Value(pending.as_slice()));
                    pending.clear();
                    flow?;
                }
                Step::Lost(why) => {
                    let at = *line;
                    *state = State::Lost;
                    take(at, Frame::Lost(why))?;
                    return ControlFlow::Break(());
                }
            }
            *line += u64::from(*byte == b'\n');
        }
        ControlFlow::Continue(())
    }
}

/// Whether a printer of JSON breaks a line behind this text.
fn breaks(text: &[u8]) -> bool {
    matches!(text.first(), Some(b'{' | b'[')) && matches!(text.last(), Some(b'{' | b'[' | b',' | b':'))
}

enum Step {
    On,
    /// A value has ended; it begins in that line.
    Value(u64),
    Lost(&'static str),
}

impl Document {
    fn step(&mut self, byte: u8, line: u64, pending: &mut Vec<u8>) -> Step {
        if self.in_string {
            match byte {
                b'\n' => return Step::Lost("a string is cut off here"),
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return self.keep(byte, pending);
        }
        match byte {
            b'{' | b'[' => {
                if self.depth == self.level && self.began.is_none() && !self.behind {
                    if byte == b'[' {
                        // An array at the top: its elements are the values.
                        if self.level > 0 {
                            return Step::Lost("an element is no item");
                        }
                        (self.level, self.depth) = (1, 1);
                        return Step::On;
                    }
                    self.began = Some(line);
                } else if byte == b'[' && self.level == 0 && self.depth == 1 && is_list(pending) {
                    pending.clear();
                    (self.level, self.depth, self.began) = (2, 2, None);
                    return Step::On;
                }
                self.depth += 1;
                self.keep(byte, pending)
            }
            b'}' | b']' => {
                let Some(depth) = self.depth.checked_sub(1) else {
                    return Step::Lost("a bracket closes nothing");
                };
                self.depth = depth;
                if depth == 0 && self.level > 0 {
                    // The document is over; another one may follow.
                    *self = Document::default();
                    return Step::On;
                }
                if depth < self.level {
                    self.behind = true;
                    return Step::On;
                }
                let kept = self.keep(byte, pending);
                match self.began.filter(|_| depth == self.level) {
                    Some(began) => {
                        self.began = None;
                        Step::Value(began)
                    }
                    None => kept,
                }
            }
            b'"' if self.depth > 0 => {
                if self.began.is_none() && !self.behind {
                    return Step::Lost("an element is no item");
                }
                self.in_string = true;
                self.keep(byte, pending)
            }
            b' ' | b'\t' | b'\r' | b'\n' => self.keep(byte, pending),
            b',' if self.level > 0 => self.keep(byte, pending),
            _ if self.began.is_none() && !self.behind => Step::Lost("this is not JSON"),
            _ => self.keep(byte, pending),
        }
    }

    fn keep(&self, byte: u8, pending: &mut Vec<u8>) -> Step {
        if self.began.is_none() {
            return Step::On;
        }
        if pending.len() == LONGEST {
            return Step::Lost(TOO_LONG);
        }
        pending.push(byte);
        Step::On
    }
}

/// Whether what was read of an object ends in the name of its list of items or records.
fn is_list(object: &[u8]) -> bool {
    let Some(name) = object.trim_ascii_end().strip_suffix(b":") else { return false };
    let name = name.trim_ascii_end();
    name.ends_with(br#""Items""#) || name.ends_with(br#""Records""#)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The frames of a file that comes in chunks of that size, as text.
    fn frames(file: &[u8], chunk: usize) -> Vec<(u64, String)> {
        let mut found = Vec::new();
        let mut take = |line, frame: Frame<'_>| {
            found.push((
                line,
                match frame {
                    Frame::Value(value) => String::from_utf8_lossy(value).into_owned(),
                    Frame::Bad(why) => format!("bad: {why}"),
                    Frame::Lost(why) => format!("lost: {why}"),
                },
            ));
            ControlFlow::Continue(())
        };
        let mut framing = Framing::default();
        let pushed = file.chunks(chunk.max(1)).try_for_each(|chunk| framing.push(chunk, &mut take));
        if pushed.is_continue() {
            let _ = framing.end(&mut take);
        }
        found
    }

    fn is(file: &str, expected: &[(u64, &str)]) {
        let expected: Vec<(u64, String)> =
            expected.iter().map(|(line, text)| (*line, (*text).to_owned())).collect();
        for chunk in [1, 2, 7, 4_096] {
            assert_eq!(frames(file.as_bytes(), chunk), expected, "{file:?} in chunks of {chunk}");
        }
    }

    #[test]
    fn lines_are_values() {
        is("{\"a\":1}\n\n  {\"b\":2} \r\n{\"c\":3}", &[(1, "{\"a\":1}"), (3, "{\"b\":2}"), (4, "{\"c\":3}")]);
        is("\n\n", &[]);
        is("", &[]);
        // A first line that is cut off does not make a document of the rest.
        is("x\"}}\n{\"a\":1}\n", &[(1, "x\"}}"), (2, "{\"a\":1}")]);
        is("{\"a\":{\"S\":\"b\n{\"a\":1}\n", &[(1, "{\"a\":{\"S\":\"b"), (2, "{\"a\":1}")]);
    }

    #[test]
    fn the_elements_of_a_document_are_values() {
        let scan = "{\n  \"Count\": 2,\n  \"Items\": [\n    {\n      \"a\": \"]}\\\"\"\n    },\n    {\"b\":[1]}\n  ],\n  \"X\": [{}]\n}\n{\"Items\" :[\n{}]}";
        is(scan, &[(4, "{\n      \"a\": \"]}\\\"\"\n    }"), (7, "{\"b\":[1]}"), (12, "{}")]);
        is("[\n{\"a\":1},\n{\"b\":{}}\n]\n", &[(2, "{\"a\":1}"), (3, "{\"b\":{}}")]);
        is(
            "{\n\"a\":{\n\"Items\":[{}]}}\n{\n\"b\":1}",
            &[(1, "{\n\"a\":{\n\"Items\":[{}]}}"), (4, "{\n\"b\":1}")],
        );
    }

    #[test]
    fn what_is_cut_off_is_said_with_its_line() {
        is(
            "{\n\"Items\":[\n{\"a\":1},\n{\"b\":",
            &[(3, "{\"a\":1}"), (4, "lost: the file ends in the middle of the value that begins here")],
        );
        is("{\n\"a\":\"b\n}", &[(2, "lost: a string is cut off here")]);
        is("[\n1]", &[(2, "lost: this is not JSON")]);
        is("[\n\"a\"]", &[(2, "lost: an element is no item")]);
        is("[\n[]]", &[(2, "lost: an element is no item")]);
        is("{\n}}", &[(1, "{\n}"), (2, "lost: a bracket closes nothing")]);
    }

    #[test]
    fn what_is_too_long_is_passed_over_and_a_long_document_is_read() {
        let long = "x".repeat(LONGEST + 10);
        let found = frames(format!("{{\"a\":1}}\n{long}\n{{\"b\":2}}\n").as_bytes(), 1 << 16);
        assert_eq!(found.len(), 3);
        assert_eq!((found[1].0, found[2].clone()), (2, (3, "{\"b\":2}".to_owned())));
        assert!(found[1].1.contains("longer than 16 MB"), "{}", found[1].1);
        let items = vec![format!("{{\"a\":\"{}\"}}", "y".repeat(1 << 20)); 20].join(",");
        let found = frames(format!("{{\"Items\":[{items}]}}").as_bytes(), 1 << 16);
        assert_eq!((found.len(), found[19].1.len()), (20, (1 << 20) + 8));
    }

    proptest! {
        /// Whatever a file holds, chunks make no difference.
        #[test]
        fn chunks_make_no_difference(
            file in prop::collection::vec(prop::sample::select(&b"{}[]\",:\\\n aItems1\"\"{}"[..]), 0..80), chunk in 1..9_usize,
        ) {
            prop_assert_eq!(frames(&file, chunk), frames(&file, usize::MAX));
        }
    }
}
