//! The one engine that reads a body along its shape. Beneath: attribute values (`value`), what
//! texts and numbers must satisfy (`constraint`), where the walk stands (`trail`).

use std::borrow::Cow;

use super::bounds;
use super::constraint::{beyond, broken};
use super::fault::{self, At, Stop, TOO_DEEP, scalar, stop};
use super::placeholders;
use super::problems::cut;
use super::scan::{Scan, decoded};
use super::shape::{List, Map, Member, Named, Shape, Structure, Text, Total, Whole, Wording};
use super::trail::{Step, Trail};
use super::value::{Values, flag};
use crate::{Code, Error};

/// As DynamoDB prints it, its slip (`UPDATE_NEW`) included.
const RETURN_VALUES: &str = "Failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]";

/// What DynamoDB says of `ReturnValues` that DeleteItem does not take, where values nest too deep;
/// other bodies are the store's to refuse.
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
        values: Values::new(request.name, body),
        members: Vec::new(),
        trail: Trail::default(),
        elements: 0,
        oversized: false,
        too_large: None,
        operation: request.name,
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

struct Walk<'a> {
    /// The body, and what its attribute values are.
    values: Values<'a>,
    /// What the request itself holds, as far as it was read.
    members: Members<'a>,
    trail: Trail<'a>,
    /// How many elements lists of structures and keys had so far.
    elements: usize,
    /// An expression's names and values hold too much.
    oversized: bool,
    /// What is said of the first value that is larger than an item.
    too_large: Option<Cow<'static, str>>,
    /// The name of the request's structure.
    operation: &'static str,
    /// `ReturnValues` is a word of its set that this operation does not take.
    not_honoured: bool,
}

impl<'a> Walk<'a> {
    fn request(&mut self, request: &'static Structure) -> Result<(), Stop> {
        if self.values.scan.peek()? == b'{' {
            self.members(request)?;
        } else {
            return stop(fault::FIELD);
        }
        Ok(self.values.scan.end()?)
    }

    fn verdict(self) -> Result<(), Error> {
        if let Some(message) = self.values.wrong {
            if message == TOO_DEEP {
                // Of a body whose values nest too deep its members are checked first (observed on
                // AWS, us-east-1 and eu-west-2, 2026-10-09, by the authors of the embedded engine).
                self.trail.problems.verdict()?;
                if self.not_honoured {
                    return Err(Error::validation(NOT_HONOURED));
                }
            }
            return Err(Error::validation(message));
        }
        self.trail.problems.verdict()?;
        if let Some(message) = self.too_large {
            return Err(Error::validation(message));
        }
        if let Some(message) = self.values.numbers.refused() {
            return Err(Error::validation(message));
        }
        if self.oversized { Err(Error::validation(placeholders::TOO_MUCH)) } else { Ok(()) }
    }

    fn shape(&mut self, shape: Shape, at: At) -> Result<(), Stop> {
        if self.values.scan.peek()? == b'n' && !matches!(shape, Shape::Value | Shape::LaterValue | Shape::Any)
        {
            // A null member is an absent one; an element cannot be absent.
            self.values.scan.word("null")?;
            return if at == At::Element { stop(fault::ELEMENT) } else { Ok(()) };
        }
        match shape {
            Shape::Text(text) => self.text(text),
            Shape::Whole(whole) => self.whole(whole),
            Shape::Flag => flag(&mut self.values.scan),
            Shape::Value => self.values.attribute(at, true),
            Shape::LaterValue => self.values.attribute(at, false),
            Shape::List(list) => self.list(list, at),
            Shape::Map(map) => self.map(map, at),
            Shape::Structure(structure) => self.structure(structure, at),
            Shape::Any => self.values.binaries(),
        }
    }

    fn structure(&mut self, structure: &'static Structure, at: At) -> Result<(), Stop> {
        match self.values.scan.peek()? {
            b'{' => self.members(structure),
            b'[' => stop(format!("Unrecognized collection type class {}", fault::class(structure.name))),
            _ => scalar(at),
        }
    }

    fn members(&mut self, structure: &'static Structure) -> Result<(), Stop> {
        let mut present = 0u64;
        let mut first = true;
        let mut bound: Vec<&[u8]> = Vec::new();
        self.values.scan.bump();
        while self.values.scan.more(b'}', first)? {
            first = false;
            let name = self.values.scan.name()?;
            let known =
                structure.members.iter().enumerate().find(|(_, member)| member.name.as_bytes() == name);
            let known = known.or_else(|| {
                let name = name.contains(&b'\\').then(|| decoded(name))?;
                structure.members.iter().enumerate().find(|(_, member)| *member.name == *name)
            });
            let value = self.values.scan.peek()?;
            let start = self.values.scan.place();
            match known {
                None => self.values.skip()?,
                Some((place, member)) => {
                    if self.trail.is_at_request() {
                        self.trail.come_to(place);
                    }
                    if value == b'n' {
                        self.values.scan.word("null")?;
                    } else {
                        present |= 1 << place;
                        self.trail.enter(Step::Member(member.name));
                        self.shape(member.shape, At::Member)?;
                        self.trail.leave();
                        let raw = self.values.scan.since(start);
                        if matches!(member.name, "ExpressionAttributeNames" | "ExpressionAttributeValues") {
                            bound.push(raw);
                        }
                        if self.too_large.is_none() {
                            self.too_large = bounds::refusal(member.name, raw);
                        }
                    }
                }
            }
            if self.trail.is_at_request() {
                self.members.push((decoded(name), self.values.scan.since(start)));
            }
        }
        self.oversized |= placeholders::exceed(&bound);
        for (place, Member { name, .. }) in structure
            .members
            .iter()
            .enumerate()
            .filter(|(place, member)| member.required && present & (1 << place) == 0)
        {
            if self.trail.is_at_request() {
                self.trail.come_to(place);
            }
            self.trail.enter(Step::Member(name));
            self.trail.problem(Wording::Quoted, |trail| {
                let path = trail.path(Wording::Quoted);
                format!("Value null at '{path}' failed to satisfy constraint: Member must not be null")
            });
            self.trail.leave();
        }
        Ok(())
    }

    fn list(&mut self, list: &'static List, at: At) -> Result<(), Stop> {
        match self.values.scan.peek()? {
            b'[' => {}
            _ if at == At::Element => return stop(fault::GENERIC),
            b'{' => return stop(fault::STRUCTURE),
            _ => return stop(fault::FIELD),
        }
        self.values.scan.bump();
        let before = self.trail.problems.place();
        let mut count = 0;
        while self.values.scan.more(b']', count == 0)? {
            count += 1;
            self.trail.enter(Step::Place(count));
            self.shape(list.of, At::Element)?;
            self.trail.leave();
        }
        if matches!(list.of, Shape::Structure(_) | Shape::Map(_)) {
            self.elements += count;
        }
        if count < list.least {
            self.trail.length("[]", list.wording, "greater", list.least);
        } else if count > list.most {
            // DynamoDB prints the whole list into the error, in words of its own language. It
            // stands before what is wrong with the elements.
            let after = self.trail.problems.go_back(before);
            self.trail.length("[...]", list.wording, "less", list.most);
            self.trail.problems.go_on(after);
        }
        Ok(())
    }

    fn map(&mut self, map: &'static Map, at: At) -> Result<(), Stop> {
        match self.values.scan.peek()? {
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
        self.values.scan.bump();
        let mut count = 0;
        let (before, mut longest) = (self.elements, (0, &b""[..]));
        while self.values.scan.more(b'}', count == 0)? {
            count += 1;
            let key = self.values.scan.name()?;
            let so_far = self.elements;
            self.trail.enter(Step::Key(key));
            self.shape(map.of, At::Element)?;
            self.trail.leave();
            if self.elements - so_far > longest.0 {
                longest = (self.elements - so_far, key);
            }
        }
        if count < map.least {
            self.trail.length("", Wording::Unquoted, "greater", map.least);
        } else if count > map.most {
            self.trail.length("", Wording::Unquoted, "less", map.most);
        }
        match map.total {
            Total::Keys(most) if self.elements - before > most && longest.0 <= most => {
                self.trail.enter(Step::Key(longest.1));
                self.trail.enter(Step::Member("Keys"));
                self.trail.length("", Wording::Unquoted, "less", most);
                self.trail.leave();
                self.trail.leave();
            }
            Total::Writes(most) if self.elements - before > most => self.too_many_writes(longest.1, most),
            _ => {}
        }
        Ok(())
    }

    /// DynamoDB prints all of the map into this error, in words of its own language.
    fn too_many_writes(&mut self, table: &[u8], most: usize) {
        self.trail.problem(Wording::Quoted, |trail| {
            let (path, table) = (trail.path(Wording::Quoted), decoded(table));
            format!(
                "Value '{{{}=[...]}}' at '{path}' failed to satisfy constraint: Map value must satisfy constraint: [Member must have length \
                 less than or equal to {most}, Member must have length greater than or equal to 1]",
                cut(&table)
            )
        });
    }

    fn text(&mut self, text: &'static Text) -> Result<(), Stop> {
        if self.values.scan.peek()? != b'"' {
            return fault::cannot(&mut self.values.scan, "String");
        }
        let raw = self.values.scan.string()?;
        if text.least == 0 && text.most == usize::MAX && text.words.is_empty() {
            return Ok(());
        }
        let value = decoded(raw);
        if text.named == Named::Table {
            if value.is_empty() {
                self.trail.length("", Wording::Unquoted, "greater", 1);
                return Ok(());
            }
            if value.starts_with("arn:") {
                return Ok(());
            }
        }
        let Some(broken) = broken(text, &value) else {
            self.not_honoured |= text.named == Named::ReturnValues
                && self.operation == "DeleteItemInput"
                && !matches!(&*value, "ALL_OLD" | "NONE");
            return Ok(());
        };
        self.trail.problem(Wording::Quoted, |trail| match text.named {
            Named::ReturnValues => RETURN_VALUES.to_owned(),
            _ => {
                let (path, value) = (trail.path(Wording::Quoted), cut(&value));
                format!("Value '{value}' at '{path}' failed to satisfy constraint: {broken}")
            }
        });
        Ok(())
    }

    fn whole(&mut self, whole: &'static Whole) -> Result<(), Stop> {
        if !matches!(self.values.scan.peek()?, b'-' | b'0'..=b'9') {
            return fault::cannot(&mut self.values.scan, whole.class);
        }
        let number = self.values.scan.number()?;
        if let Some((direction, limit)) = beyond(whole, number) {
            self.trail.problem(Wording::Unquoted, |trail| {
                let path = trail.path(Wording::Unquoted);
                format!(
                    "Value at '{path}' failed to satisfy constraint: Member must have value {direction} than or equal to {limit}"
                )
            });
        }
        Ok(())
    }
}
