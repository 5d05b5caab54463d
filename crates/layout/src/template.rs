//! Templates: how tables that were sharded by hand write their physical keys.
//!
//! A template puts text around the logical key: `{pk}#{shard}`, `{pk}.{shard+1}`,
//! `{shard:02}#{pk}`, `{pk}#{bucket}#{shard}`. A physical key is read from both ends; what is left
//! between is the logical key. Templates that could not be read back are refused here. Whether what
//! was read is a key that the rule is for is the table's to say ([`Table`](crate::Table)).

mod read;

use serde::{Deserialize, Serialize};

use crate::bucket::width;
use crate::{Affixes, Bucket, Granularity, Slot};

/// What is wrong with a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// It does not hold the logical key exactly once.
    #[error(
        "expected a template that holds {{pk}}, the logical key, once, such as \"{{pk}}#{{shard}}\" or \"{{shard}}#{{pk}}\""
    )]
    Begin,
    /// A placeholder that is not known.
    #[error(
        "expected {{shard}}, {{shard+1}}, {{shard:02}}, {{bucket}} or {{bucket:%Y%m%d}} between braces, found {0:?}; a shard's number has at most 5 digits"
    )]
    Placeholder(String),
    /// A placeholder stands twice, or none stands there.
    #[error(
        "expected {{shard}} or {{bucket}} once each at most, and at least one of them, such as \"{{pk}}#{{shard}}\""
    )]
    Count,
    /// A placeholder touches another one or the key, or a number touches a digit, so that where it
    /// begins could not be told.
    #[error(
        "expected a separator between the key and every placeholder, without a digit beside the placeholder, such as the # of \"{{pk}}#{{shard}}\": without it \"a1\" in shard 1 and \"a\" in shard 11 would be one key"
    )]
    Separator,
    /// A character that JSON escapes.
    #[error("expected text without quotes, backslashes and control characters, found {0:?}")]
    Literal(char),
}

/// How a physical key is made of a logical one and a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Template {
    text: String,
    /// What stands before the logical key.
    before: Vec<Piece>,
    /// What follows it.
    after: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Shard(Number),
    /// The bucket, in this format; `None` for the granularity's own.
    Bucket(Option<String>),
}

/// How a shard's number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Number {
    /// The number of shard 0.
    from: u16,
    /// How many digits it has at least, with zeros in front; 1 for none.
    width: usize,
}

/// The most digits of a shard's number.
const MAX_DIGITS: usize = 5;

impl Number {
    fn write(self, shard: u16) -> String {
        format!("{:0width$}", u32::from(shard) + u32::from(self.from), width = self.width)
    }

    /// The shard of a number, if it is written as [`write`](Self::write) does.
    fn read(self, digits: &[u8]) -> Option<u16> {
        if digits.is_empty() || digits.len() > MAX_DIGITS {
            return None;
        }
        let number = digits.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
        let shard = u16::try_from(number.checked_sub(u32::from(self.from))?).ok()?;
        (self.write(shard).as_bytes() == digits).then_some(shard)
    }
}

/// At which end of a key its pieces are read.
#[derive(Clone, Copy)]
enum End {
    Front,
    Back,
}

impl End {
    /// Splits `length` bytes off this end: those, and the rest.
    fn split(self, text: &[u8], length: usize) -> Option<(&[u8], &[u8])> {
        match self {
            End::Front => text.split_at_checked(length),
            End::Back => {
                let (rest, taken) = text.split_at_checked(text.len().checked_sub(length)?)?;
                Some((taken, rest))
            }
        }
    }

    /// How many digits stand at this end, as far as it matters.
    fn digits(self, text: &[u8]) -> usize {
        let count = |digits: &mut dyn Iterator<Item = &u8>| {
            digits.take(MAX_DIGITS + 1).take_while(|byte| byte.is_ascii_digit()).count()
        };
        match self {
            End::Front => count(&mut text.iter()),
            End::Back => count(&mut text.iter().rev()),
        }
    }
}

impl Template {
    fn pieces(&self) -> impl Iterator<Item = &Piece> {
        self.before.iter().chain(&self.after)
    }

    /// The template as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it has a `{shard}`.
    pub fn has_shard(&self) -> bool {
        self.pieces().any(|piece| matches!(piece, Piece::Shard(_)))
    }

    /// Whether it has a `{bucket}`.
    pub fn has_bucket(&self) -> bool {
        self.pieces().any(|piece| matches!(piece, Piece::Bucket(_)))
    }

    /// Whether its bucket, if it has one, says all that buckets of that length need, and no more.
    pub fn fits(&self, granularity: Granularity) -> bool {
        self.pieces().all(|piece| match piece {
            Piece::Bucket(Some(format)) => {
                let fields = |format: &str| {
                    // A percent sign that begins no field is one of its own, which fits nothing.
                    let mut fields: Vec<char> =
                        format.split('%').skip(1).map(|field| field.chars().next().unwrap_or('%')).collect();
                    fields.sort_unstable();
                    fields
                };
                fields(format) == fields(granularity.format())
            }
            _ => true,
        })
    }

    /// What stands around the logical key in a slot.
    pub fn affixes(&self, slot: Slot) -> Affixes {
        let write = |pieces: &[Piece]| {
            let mut text = String::new();
            for piece in pieces {
                match (piece, slot.bucket) {
                    (Piece::Literal(literal), _) => text.push_str(literal),
                    (Piece::Shard(number), _) => text.push_str(&number.write(slot.shard)),
                    (Piece::Bucket(Some(format)), Some(bucket)) => text.push_str(&bucket.write(format)),
                    (Piece::Bucket(None), Some(bucket)) => text.push_str(&bucket.to_string()),
                    (Piece::Bucket(_), None) => {}
                }
            }
            text
        };
        Affixes { before: write(&self.before), after: write(&self.after) }
    }

    /// Reads a physical key: its logical key, and its slot. `None` if it is not so written.
    pub fn decode<'a>(
        &self,
        physical: &'a [u8],
        granularity: Option<Granularity>,
    ) -> Option<(&'a [u8], Slot)> {
        let mut slot = Slot::default();
        let mut rest = physical;
        let front = self.before.iter().map(|piece| (piece, End::Front));
        for (piece, end) in front.chain(self.after.iter().rev().map(|piece| (piece, End::Back))) {
            let length = match piece {
                Piece::Literal(text) => text.len(),
                Piece::Shard(_) => end.digits(rest),
                Piece::Bucket(format) => width(format.as_deref().unwrap_or(granularity?.format())),
            };
            let (taken, left) = end.split(rest, length)?;
            match piece {
                Piece::Literal(text) => (taken == text.as_bytes()).then_some(())?,
                Piece::Shard(number) => slot.shard = number.read(taken)?,
                Piece::Bucket(format) => {
                    let format = format.as_deref().unwrap_or(granularity?.format());
                    slot.bucket = Some(Bucket::read(taken, granularity?, format)?);
                }
            }
            rest = left;
        }
        (!rest.is_empty()).then_some((rest, slot))
    }
}

impl TryFrom<String> for Template {
    type Error = TemplateError;

    fn try_from(text: String) -> Result<Self, TemplateError> {
        Template::read(&text)
    }
}

impl From<Template> for String {
    fn from(template: Template) -> String {
        template.text
    }
}
