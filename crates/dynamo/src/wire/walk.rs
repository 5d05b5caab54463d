//! The one engine that reads a body along its shape.

use std::borrow::Cow;

use super::fault::{self, Stop, TOO_DEEP, stop};
use super::numbers::Numbers;
use super::placeholders;
use super::problems::{Problems, cut};
use super::scan::Scan;
use super::shape::{List, Map, Member, Named, Shape, Structure, Text, Total, Whole, Wording};
use crate::json;
use crate::{Code, Error};

/// As DynamoDB prints it, its slip (`UPDATE_NEW`) included.
const RETURN_VALUES: &str = "Failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]";

/// What DynamoDB says of `ReturnValues` that DeleteItem does not take, where values nest too deep; other bodies are the store's to refuse.
const NOT_HONOURED: &str = "ReturnValues can only be ALL_OLD or NONE";

/// The members of a body, in its order, each with its raw value.
pub type Members<'a> = Vec<(Cow<'a, str>, &'a [u8])>;

/// Checks a body against its operation's shape, and gives its members.
pub(super) fn read<'a>(request: &'static Structure, body: &'a [u8]) -> Result<Members<'a>, Error> {
    let malformed = || Error::bare(Code::SerializationException);
    if std::str::from_utf8(body).is_err() {
        return Err(malformed());
    }
    let mut walk = Walk {
        scan: Scan::new(body),
        members: Vec::new(),
        path: Vec::new(),
        top: 0,
        elements: 0,
        value: None,
        problems: Problems::default(),
        oversized: false,
        operation: request.name,
        numbers: Numbers::default(),
        not_honoured: false,
    };
    match walk.request(request) {
        Ok(()) => {
            let members = std::mem::take(&mut walk.members);
            walk.verdict().map(|()| members)
        }
        Err(Stop::Malformed) => Err(malformed()),
        Err(Stop::Type(message)) => {
            // What follows in the body must still be JSON: that error comes first.
            let mut scan = Scan::new(body);
            if scan.skip().and_then(|_| scan.end()).is_err() {
                return Err(malformed());
            }
            Err(message.map_or_else(malformed, Error::serialization))
        }
    }
}

pub(super) struct Walk<'a> {
    pub(super) scan: Scan<'a>,
    /// What the request itself holds, as far as it was read.
    members: Members<'a>,
    path: Vec<Step<'a>>,
    /// The request's member that is being read, by its place in the shape.
    top: usize,
    /// How many elements lists of structures and keys had so far.
    elements: usize,
    /// The first attribute value that is none.
    pub(super) value: Option<Cow<'static, str>>,
    problems: Problems,
    /// An expression's names and values hold too much.
    oversized: bool,
    /// The name of the request's structure.
    pub(super) operation: &'static str,
    pub(super) numbers: Numbers,
    /// `ReturnValues` is a word of its set that this operation does not take.
    not_honoured: bool,
}

/// One step of a member's path.
enum Step<'a> {
    Member(&'static str),
    /// A map's key.
    Key(&'a [u8]),
    /// A list's place, from 1.
    Place(usize),
}

/// Where a value stands decides how a wrong type is worded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    Member,
    Element,
}

impl<'a> Walk<'a> {
    fn request(&mut self, request: &'static Structure) -> Result<(), Stop> {
        if self.scan.peek()? == b'{' {
            self.members(request)?;
        } else {
            return stop(fault::FIELD);
        }
        Ok(self.scan.end()?)
    }

    fn verdict(self) -> Result<(), Error> {
        if let Some(message) = self.value {
            if message == TOO_DEEP {
                // Of a body whose values nest too deep its members are checked first (observed on AWS, us-east-1 and eu-west-2, 2026-10-09,
                // by the authors of the embedded engine).
                self.problems.verdict()?;
                if self.not_honoured {
                    return Err(Error::validation(NOT_HONOURED));
                }
            }
            return Err(Error::validation(message));
        }
        self.problems.verdict()?;
        if let Some(message) = self.numbers.refused() {
            return Err(Error::validation(message));
        }
        if self.oversized { Err(Error::validation(placeholders::TOO_MUCH)) } else { Ok(()) }
    }

    fn shape(&mut self, shape: Shape, at: At) -> Result<(), Stop> {
        if self.scan.peek()? == b'n' && !matches!(shape, Shape::Value | Shape::LaterValue | Shape::Any) {
            // A null member is an absent one; an element cannot be absent.
            self.scan.word("null")?;
            return if at == At::Element { stop(fault::ELEMENT) } else { Ok(()) };
        }
        match shape {
            Shape::Text(text) => self.text(text),
            Shape::Whole(whole) => self.whole(whole),
            Shape::Flag => self.flag(),
            Shape::Value => self.attribute(at, true),
            Shape::LaterValue => self.attribute(at, false),
            Shape::List(list) => self.list(list, at),
            Shape::Map(map) => self.map(map, at),
            Shape::Structure(structure) => self.structure(structure, at),
            Shape::Any => self.binaries(),
        }
    }

    fn structure(&mut self, structure: &'static Structure, at: At) -> Result<(), Stop> {
        match self.scan.peek()? {
            b'{' => self.members(structure),
            b'[' => stop(format!("Unrecognized collection type class {}", fault::class(structure.name))),
            _ => scalar(at),
        }
    }

    fn members(&mut self, structure: &'static Structure) -> Result<(), Stop> {
        let mut present = 0u64;
        let mut first = true;
        let mut bound: Vec<&[u8]> = Vec::new();
        self.scan.bump();
        while self.scan.more(b'}', first)? {
            first = false;
            let name = self.scan.name()?;
            let known =
                structure.members.iter().enumerate().find(|(_, member)| member.name.as_bytes() == name);
            let known = known.or_else(|| {
                let name = name.contains(&b'\\').then(|| decoded(name))?;
                structure.members.iter().enumerate().find(|(_, member)| *member.name == *name)
            });
            let value = self.scan.peek()?;
            let start = self.scan.place();
            match known {
                None => self.skip()?,
                Some((place, member)) => {
                    if self.path.is_empty() {
                        self.top = place;
                    }
                    if value == b'n' {
                        self.scan.word("null")?;
                    } else {
                        present |= 1 << place;
                        self.path.push(Step::Member(member.name));
                        self.shape(member.shape, At::Member)?;
                        self.path.pop();
                        if matches!(member.name, "ExpressionAttributeNames" | "ExpressionAttributeValues") {
                            bound.push(self.scan.since(start));
                        }
                    }
                }
            }
            if self.path.is_empty() {
                self.members.push((decoded(name), self.scan.since(start)));
            }
        }
        self.oversized |= placeholders::exceed(&bound);
        for (place, Member { name, .. }) in structure
            .members
            .iter()
            .enumerate()
            .filter(|(place, member)| member.required && present & (1 << place) == 0)
        {
            if self.path.is_empty() {
                self.top = place;
            }
            self.path.push(Step::Member(name));
            self.problem(Wording::Quoted, |walk| {
                let path = walk.path(Wording::Quoted);
                format!("Value null at '{path}' failed to satisfy constraint: Member must not be null")
            });
            self.path.pop();
        }
        Ok(())
    }

    fn list(&mut self, list: &'static List, at: At) -> Result<(), Stop> {
        match self.scan.peek()? {
            b'[' => {}
            _ if at == At::Element => return stop(fault::GENERIC),
            b'{' => return stop(fault::STRUCTURE),
            _ => return stop(fault::FIELD),
        }
        self.scan.bump();
        let before = self.problems.place();
        let mut count = 0;
        while self.scan.more(b']', count == 0)? {
            count += 1;
            self.path.push(Step::Place(count));
            self.shape(list.of, At::Element)?;
            self.path.pop();
        }
        if matches!(list.of, Shape::Structure(_) | Shape::Map(_)) {
            self.elements += count;
        }
        if count < list.least {
            self.length("[]", list.wording, "greater", list.least);
        } else if count > list.most {
            // DynamoDB prints the whole list into the error, in words of its own language. It stands before what is wrong with the elements.
            let after = self.problems.go_back(before);
            self.length("[...]", list.wording, "less", list.most);
            self.problems.go_on(after);
        }
        Ok(())
    }

    fn map(&mut self, map: &'static Map, at: At) -> Result<(), Stop> {
        match self.scan.peek()? {
            b'{' => {}
            _ if at == At::Element => return stop(fault::GENERIC),
            b'[' => {
                return stop(format!(
                    "Unrecognized collection type java.util.Map<java.lang.String, {}>",
                    map.class
                ));
            }
            _ => return stop(fault::FIELD),
        }
        self.scan.bump();
        let mut count = 0;
        let (before, mut longest) = (self.elements, (0, &b""[..]));
        while self.scan.more(b'}', count == 0)? {
            count += 1;
            let key = self.scan.name()?;
            let so_far = self.elements;
            self.path.push(Step::Key(key));
            self.shape(map.of, At::Element)?;
            self.path.pop();
            if self.elements - so_far > longest.0 {
                longest = (self.elements - so_far, key);
            }
        }
        if count < map.least {
            self.length("", Wording::Unquoted, "greater", map.least);
        } else if count > map.most {
            self.length("", Wording::Unquoted, "less", map.most);
        }
        match map.total {
            Total::Keys(most) if self.elements - before > most && longest.0 <= most => {
                self.path.extend([Step::Key(longest.1), Step::Member("Keys")]);
                self.length("", Wording::Unquoted, "less", most);
                self.path.truncate(self.path.len() - 2);
            }
            Total::Writes(most) if self.elements - before > most => self.too_many_writes(longest.1, most),
            _ => {}
        }
        Ok(())
    }

    /// DynamoDB prints all of the map into this error, in words of its own language.
    fn too_many_writes(&mut self, table: &[u8], most: usize) {
        self.problem(Wording::Quoted, |walk| {
            let (path, table) = (walk.path(Wording::Quoted), decoded(table));
            format!(
                "Value '{{{}=[...]}}' at '{path}' failed to satisfy constraint: Map value must satisfy constraint: [Member must have length \
                 less than or equal to {most}, Member must have length greater than or equal to 1]",
                cut(&table)
            )
        });
    }

    fn length(&mut self, value: &str, wording: Wording, direction: &str, limit: usize) {
        self.problem(wording, |walk| {
            let path = walk.path(wording);
            let quoted = if wording == Wording::Quoted { format!("'{value}' ") } else { String::new() };
            format!(
                "Value {quoted}at '{path}' failed to satisfy constraint: Member must have length {direction} than or equal to {limit}"
            )
        });
    }

    fn text(&mut self, text: &'static Text) -> Result<(), Stop> {
        if self.scan.peek()? != b'"' {
            return fault::cannot(&mut self.scan, "String");
        }
        let raw = self.scan.string()?;
        if text.least == 0 && text.most == usize::MAX && text.words.is_empty() {
            return Ok(());
        }
        let value = decoded(raw);
        if text.named == Named::Table {
            if value.is_empty() {
                self.length("", Wording::Unquoted, "greater", 1);
                return Ok(());
            }
            if value.starts_with("arn:") {
                return Ok(());
            }
        }
        let broken = if !text.words.is_empty() {
            if text.words.contains(&&*value) {
                self.not_honoured |= text.named == Named::ReturnValues
                    && self.operation == "DeleteItemInput"
                    && !matches!(&*value, "ALL_OLD" | "NONE");
                return Ok(());
            }
            format!("Member must satisfy enum value set: [{}]", text.words.join(", "))
        } else if value.chars().count() < text.least {
            format!("Member must have length greater than or equal to {}", text.least)
        } else if value.chars().count() > text.most {
            format!("Member must have length less than or equal to {}", text.most)
        } else if text.named == Named::Table
            && !value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
        {
            "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+".to_owned()
        } else {
            return Ok(());
        };
        self.problem(Wording::Quoted, |walk| match text.named {
            Named::ReturnValues => RETURN_VALUES.to_owned(),
            _ => {
                let (path, value) = (walk.path(Wording::Quoted), cut(&value));
                format!("Value '{value}' at '{path}' failed to satisfy constraint: {broken}")
            }
        });
        Ok(())
    }

    fn whole(&mut self, whole: &'static Whole) -> Result<(), Stop> {
        if !matches!(self.scan.peek()?, b'-' | b'0'..=b'9') {
            return fault::cannot(&mut self.scan, whole.class);
        }
        let Some(value) = truncated(self.scan.number()?) else { return Ok(()) };
        let (direction, limit) = match value {
            _ if value < whole.least => ("greater", whole.least),
            _ if value > whole.most => ("less", whole.most),
            _ => return Ok(()),
        };
        self.problem(Wording::Unquoted, |walk| {
            let path = walk.path(Wording::Unquoted);
            format!(
                "Value at '{path}' failed to satisfy constraint: Member must have value {direction} than or equal to {limit}"
            )
        });
        Ok(())
    }

    pub(super) fn flag(&mut self) -> Result<(), Stop> {
        match self.scan.peek()? {
            b't' => Ok(self.scan.word("true")?),
            b'f' => Ok(self.scan.word("false")?),
            b'"' => {
                let text = self.scan.string()?;
                if text.eq_ignore_ascii_case(b"true") || text.eq_ignore_ascii_case(b"false") {
                    Ok(())
                } else {
                    stop(fault::TOKEN)
                }
            }
            _ => fault::cannot(&mut self.scan, "Boolean"),
        }
    }

    /// Takes note of what is wrong where the walk stands. Its text is made only if it will be told.
    fn problem(&mut self, wording: Wording, text: impl FnOnce(&Self) -> String) {
        if let Some(place) = self.problems.admits(wording, self.top) {
            let text = text(self);
            self.problems.keep(place, text);
        }
    }

    /// Where the walk stands, as DynamoDB writes it.
    fn path(&self, wording: Wording) -> String {
        let mut path = String::new();
        for step in &self.path {
            if !path.is_empty() {
                path.push('.');
            }
            match step {
                Step::Member(name) if wording == Wording::Quoted => {
                    let mut letters = name.chars();
                    path.extend(letters.next().map(|letter| letter.to_ascii_lowercase()));
                    path.push_str(letters.as_str());
                }
                Step::Member(name) => path.push_str(name),
                Step::Key(key) => {
                    path.push_str(&cut(&decoded(key)));
                    path.push_str(".member");
                }
                Step::Place(place) => {
                    path.push_str(&place.to_string());
                    path.push_str(".member");
                }
            }
        }
        path
    }
}

pub(super) fn scalar<T>(at: At) -> Result<T, Stop> {
    stop(if at == At::Element { fault::ELEMENT } else { fault::FIELD })
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

/// A JSON number cut to a whole one, as Java reads it into an `Integer` or `Long`.
fn truncated(number: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(number).ok()?;
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole);
    }
    let number = text.parse::<f64>().ok()?;
    #[allow(
        clippy::cast_possible_truncation,
        reason = "`as` cuts to the nearest end of the range, as is wanted"
    )]
    Some(number as i64)
}
