//! Templates: how tables that were sharded by hand write their physical keys.
//!
//! A template only appends to the logical key: `{pk}#{shard}`, `{pk}.{shard+1}`, `{pk}#{bucket}#{shard}`. So a physical key
//! is read from its end. Whether what was read is a key that the rule is for is the table's to say ([`Table`](crate::Table)).

use serde::{Deserialize, Serialize};

use crate::time::width;
use crate::{Bucket, Granularity, Slot};

/// How a physical key is made of a logical one and a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Template {
    text: String,
    /// What follows the logical key.
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(String),
    /// The shard, counted from this number.
    Shard(u16),
    /// The bucket, in this format; `None` for the granularity's own.
    Bucket(Option<String>),
}

/// What is wrong with a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// It does not begin with the logical key.
    #[error(
        "expected a template that begins with {{pk}}, such as \"{{pk}}#{{shard}}\"; only what follows the logical key can differ from shard to shard"
    )]
    Begin,
    /// A placeholder that is not known.
    #[error("expected {{shard}}, {{shard+1}}, {{bucket}} or {{bucket:%Y%m%d}} between braces, found {0:?}")]
    Placeholder(String),
    /// A placeholder stands twice, or none stands there.
    #[error(
        "expected {{shard}} or {{bucket}} once each at most, and at least one of them, such as \"{{pk}}#{{shard}}\""
    )]
    Count,
    /// A placeholder follows upon another, or a number upon a digit, so that where it begins could not be told.
    #[error(
        "expected a separator that does not end in a digit before every placeholder, such as the # of \"{{pk}}#{{shard}}\": without it \"a1\" in shard 1 and \"a\" in shard 11 would be one key"
    )]
    Separator,
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// [`TemplateError`], which says what was expected.
    pub fn read(text: &str) -> Result<Self, TemplateError> {
        let mut rest = text.strip_prefix("{pk}").ok_or(TemplateError::Begin)?;
        let mut pieces: Vec<Piece> = Vec::new();
        while !rest.is_empty() {
            let Some(inside) = rest.strip_prefix('{') else {
                let end = rest.find('{').unwrap_or(rest.len());
                let (literal, after) = rest.split_at(end);
                pieces.push(Piece::Literal(literal.to_owned()));
                rest = after;
                continue;
            };
            let (name, after) =
                inside.split_once('}').ok_or_else(|| TemplateError::Placeholder(inside.to_owned()))?;
            rest = after;
            let unknown = || TemplateError::Placeholder(name.to_owned());
            let piece = match (name.strip_prefix("shard"), name.strip_prefix("bucket")) {
                (Some(""), _) => Piece::Shard(0),
                (Some(from), _) => {
                    let from = from.strip_prefix('+').and_then(|from| from.parse::<u16>().ok());
                    Piece::Shard(from.filter(|from| *from <= 1_000).ok_or_else(unknown)?)
                }
                (_, Some("")) => Piece::Bucket(None),
                (_, Some(format)) => {
                    Piece::Bucket(Some(format.strip_prefix(':').ok_or_else(unknown)?.to_owned()))
                }
                _ => return Err(unknown()),
            };
            match pieces.last() {
                Some(Piece::Literal(literal)) if !literal.ends_with(|c: char| c.is_ascii_digit()) => {}
                _ => return Err(TemplateError::Separator),
            }
            pieces.push(piece);
        }
        let template = Template { text: text.to_owned(), pieces };
        let count = |wanted: fn(&Piece) -> bool| template.pieces.iter().filter(|piece| wanted(piece)).count();
        let shards = count(|piece| matches!(piece, Piece::Shard(_)));
        let buckets = count(|piece| matches!(piece, Piece::Bucket(_)));
        if shards > 1 || buckets > 1 || shards + buckets == 0 {
            return Err(TemplateError::Count);
        }
        Ok(template)
    }

    /// The template as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it has a `{shard}`.
    pub fn has_shard(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Shard(_)))
    }

    /// Whether it has a `{bucket}`.
    pub fn has_bucket(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Bucket(_)))
    }

    /// Whether its bucket, if it has one, says all that buckets of that length need, and no more.
    pub fn fits(&self, granularity: Granularity) -> bool {
        self.pieces.iter().all(|piece| match piece {
            Piece::Bucket(Some(format)) => {
                let fields = |format: &str| {
                    let mut fields: Vec<char> =
                        format.split('%').skip(1).filter_map(|field| field.chars().next()).collect();
                    fields.sort_unstable();
                    fields
                };
                fields(format) == fields(granularity.format())
            }
            _ => true,
        })
    }

    /// What follows the logical key in a slot.
    pub fn suffix(&self, slot: Slot) -> String {
        let mut suffix = String::new();
        for piece in &self.pieces {
            match (piece, slot.bucket) {
                (Piece::Literal(text), _) => suffix.push_str(text),
                (Piece::Shard(from), _) => {
                    suffix.push_str(&(u32::from(slot.shard) + u32::from(*from)).to_string())
                }
                (Piece::Bucket(Some(format)), Some(bucket)) => suffix.push_str(&bucket.write(format)),
                (Piece::Bucket(None), Some(bucket)) => suffix.push_str(&bucket.to_string()),
                (Piece::Bucket(_), None) => {}
            }
        }
        suffix
    }

    /// Reads a physical key: the length of its logical key, and its slot. `None` if it is not so written.
    pub fn decode(&self, physical: &[u8], granularity: Option<Granularity>) -> Option<(usize, Slot)> {
        let mut rest = physical;
        let mut slot = Slot::default();
        for piece in self.pieces.iter().rev() {
            match piece {
                Piece::Literal(text) => rest = rest.strip_suffix(text.as_bytes())?,
                Piece::Shard(from) => {
                    let digits = rest.iter().rev().take(6).take_while(|byte| byte.is_ascii_digit()).count();
                    let (head, number) = rest.split_at(rest.len() - digits);
                    if digits == 0 || digits > 5 || (digits > 1 && number.first() == Some(&b'0')) {
                        return None;
                    }
                    let number = number.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
                    slot.shard = u16::try_from(number.checked_sub(u32::from(*from))?).ok()?;
                    rest = head;
                }
                Piece::Bucket(format) => {
                    let granularity = granularity?;
                    let format = format.as_deref().unwrap_or(granularity.format());
                    let (head, text) = rest.split_at_checked(rest.len().checked_sub(width(format))?)?;
                    slot.bucket = Some(Bucket::read(text, granularity, format)?);
                    rest = head;
                }
            }
        }
        (!rest.is_empty()).then_some((rest.len(), slot))
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
