//! Attribute values: one type each, nested no deeper than can be read. Not here: which members hold
//! one (`walk`).

use std::borrow::Cow;

use super::fault::{self, At, Stop, TOO_DEEP, scalar, stop};
use super::numbers::Numbers;
use super::scan::{Scan, decoded};

/// Levels of lists and maps that DynamoDB takes in an attribute (AWS, "Limits": 32, the attribute
/// itself counted). A value nested deeper is passed over unread.
const NESTING: usize = 32;
/// JSON levels from which the stores' own readers refuse a body for its depth alone, before they
/// can word it.
const BEYOND_READERS: usize = 120;
/// JSON levels of a value from which DynamoDB's own reader gives up; observed between 2,000 and
/// 5,000 levels of lists, varying by region.
const UNREADABLE: usize = 4_001;
const EMPTY: &str = "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes";
const SEVERAL: &str = "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes";

/// The attribute values of a body, as they are read.
pub(super) struct Values<'a> {
    pub(super) scan: Scan<'a>,
    /// The name of the request's structure.
    operation: &'static str,
    /// What is said of the first attribute value that is none.
    pub(super) wrong: Option<Cow<'static, str>>,
    pub(super) numbers: Numbers,
}

impl<'a> Values<'a> {
    /// Those of a request of that structure; nothing is read yet.
    pub(super) fn new(operation: &'static str, body: &'a [u8]) -> Self {
        Values { scan: Scan::new(body), operation, wrong: None, numbers: Numbers::default() }
    }

    /// Reads an attribute value. `judged`: whether more than its depth counts.
    pub(super) fn attribute(&mut self, at: At, judged: bool) -> Result<(), Stop> {
        if let Some(message) = self.value_at(at, 0)?
            && (judged || message == TOO_DEEP)
        {
            self.wrong.get_or_insert(Cow::Borrowed(message));
        }
        Ok(())
    }

    /// Reads an attribute value; what is wrong with its content, if anything. `depth` counts the
    /// lists and maps around it.
    fn value_at(&mut self, at: At, depth: usize) -> Result<Option<&'static str>, Stop> {
        match self.scan.peek()? {
            b'{' => {}
            b'n' => {
                self.scan.word("null")?;
                return Ok(Some(EMPTY));
            }
            b'[' => {
                return stop(format!(
                    "Unrecognized collection type class {}",
                    fault::class("AttributeValue")
                ));
            }
            _ => return scalar(at),
        }
        if depth > NESTING {
            // Not read any further: a reader that recurses, like this one, must have an end.
            let levels = 2 * depth + self.scan.skip()?;
            if levels > UNREADABLE {
                return Err(Stop::Malformed);
            }
            return Ok((levels > BEYOND_READERS).then_some(TOO_DEEP));
        }
        self.scan.bump();
        let (mut types, mut wrong, mut first) = (0, None, true);
        while self.scan.more(b'}', first)? {
            first = false;
            let name = self.scan.name()?;
            if self.scan.peek()? == b'n' {
                self.scan.word("null")?;
                continue;
            }
            types += 1;
            match name {
                b"S" => self.plain()?,
                b"N" => self.number()?,
                b"B" => self.binary()?,
                b"BOOL" | b"NULL" => self.boolean()?,
                b"SS" | b"NS" | b"BS" => {
                    self.open_list()?;
                    let mut first = true;
                    while self.scan.more(b']', first)? {
                        first = false;
                        if self.scan.peek()? == b'n' {
                            self.scan.word("null")?;
                        } else if name == b"BS" {
                            self.binary()?;
                        } else if name == b"NS" {
                            self.number()?;
                        } else {
                            self.plain()?;
                        }
                    }
                }
                b"L" => {
                    self.open_list()?;
                    let mut first = true;
                    while self.scan.more(b']', first)? {
                        first = false;
                        let inner = self.value_at(At::Element, depth + 1)?;
                        wrong = wrong.or(inner);
                    }
                }
                b"M" => {
                    match self.scan.peek()? {
                        b'{' => self.scan.bump(),
                        b'[' => {
                            return stop(format!(
                                "Unrecognized collection type java.util.Map<java.lang.String, {}>",
                                fault::class("AttributeValue")
                            ));
                        }
                        _ => return stop(fault::FIELD),
                    }
                    let mut first = true;
                    while self.scan.more(b'}', first)? {
                        first = false;
                        self.scan.name()?;
                        let inner = self.value_at(At::Element, depth + 1)?;
                        wrong = wrong.or(inner);
                    }
                }
                _ => {
                    types -= 1;
                    self.skip()?;
                }
            }
        }
        Ok(wrong.or(match types {
            0 => Some(EMPTY),
            1 => None,
            _ => Some(SEVERAL),
        }))
    }

    fn plain(&mut self) -> Result<(), Stop> {
        if self.scan.peek()? != b'"' {
            return fault::cannot(&mut self.scan, "String");
        }
        self.scan.string()?;
        Ok(())
    }

    /// A string that should be a number.
    fn number(&mut self) -> Result<(), Stop> {
        if self.operation != "BatchWriteItemInput" || self.scan.peek()? != b'"' {
            return self.plain();
        }
        let raw = self.scan.string()?;
        self.numbers.batched(&decoded(raw));
        Ok(())
    }

    /// A string that is base64: DynamoDB refuses any other as it reads the body.
    fn binary(&mut self) -> Result<(), Stop> {
        if self.scan.peek()? != b'"' {
            return fault::cannot(&mut self.scan, "String");
        }
        not_base64(self.scan.string()?)
    }

    /// `BOOL` and `NULL`: which texts pass for booleans is the value reader's to know.
    fn boolean(&mut self) -> Result<(), Stop> {
        match self.scan.peek()? {
            b'"' => self.plain(),
            b'[' => Err(Stop::Type(None)),
            _ => flag(&mut self.scan),
        }
    }

    fn open_list(&mut self) -> Result<(), Stop> {
        match self.scan.peek()? {
            b'[' => {
                self.scan.bump();
                Ok(())
            }
            b'{' => stop(fault::STRUCTURE),
            _ => stop(fault::FIELD),
        }
    }

    /// Passes over a value of which nothing is judged here but its binary values.
    pub(super) fn binaries(&mut self) -> Result<(), Stop> {
        let mut wrong = None;
        // Of several statements each has its own answer.
        let parameters = matches!(self.operation, "ExecuteStatementInput" | "ExecuteTransactionInput");
        let numbers = &mut self.numbers;
        let depth = self.scan.skip_with(|name, text, depth| match name {
            b"B" | b"BS" if wrong.is_none() => wrong = not_base64(text).err(),
            b"N" | b"NS" if parameters => numbers.parameter(&decoded(text), depth),
            _ if parameters => numbers.nests(depth),
            _ => {}
        })?;
        numbers.nests(depth);
        if depth > BEYOND_READERS {
            // DynamoDB tells which of the two it meets first.
            let message = numbers.before_the_deep().map_or(Cow::Borrowed(TOO_DEEP), Cow::Owned);
            self.wrong.get_or_insert(message);
        }
        wrong.map_or(Ok(()), Err)
    }

    /// Passes over a value that nobody here judges.
    pub(super) fn skip(&mut self) -> Result<(), Stop> {
        if self.scan.skip()? > BEYOND_READERS {
            self.wrong.get_or_insert(Cow::Borrowed(TOO_DEEP));
        }
        Ok(())
    }
}

/// Reads a boolean, or a text that passes for one.
pub(super) fn flag(scan: &mut Scan<'_>) -> Result<(), Stop> {
    match scan.peek()? {
        b't' => Ok(scan.word("true")?),
        b'f' => Ok(scan.word("false")?),
        b'"' => {
            let text = scan.string()?;
            if text.eq_ignore_ascii_case(b"true") || text.eq_ignore_ascii_case(b"false") {
                Ok(())
            } else {
                stop(fault::TOKEN)
            }
        }
        _ => fault::cannot(scan, "Boolean"),
    }
}

/// Stops at a text, as it stands between its quotes, that is not base64.
fn not_base64(raw: &[u8]) -> Result<(), Stop> {
    let found = if raw.contains(&b'\\') {
        crate::value::base64_fault(decoded(raw).as_bytes())
    } else {
        crate::value::base64_fault(raw)
    };
    found.map_or(Ok(()), stop)
}
