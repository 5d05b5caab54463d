//! The text of a template, read and checked: what could not be read back from a key is refused.

use super::{Number, Piece, Template, TemplateError};

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// [`TemplateError`], which says what was expected.
    pub fn read(text: &str) -> Result<Self, TemplateError> {
        let (before, after) = text.split_once("{pk}").ok_or(TemplateError::Begin)?;
        if after.contains("{pk}") {
            return Err(TemplateError::Begin);
        }
        let (before, after) = (pieces(before)?, pieces(after)?);
        let is_apart = |literal: Option<&Piece>, edge: fn(&str) -> Option<char>| match literal {
            Some(Piece::Literal(text)) => edge(text).is_some_and(|c| !c.is_ascii_digit()),
            _ => false,
        };
        // Keys are read from both ends towards the middle, so each placeholder needs its separator
        // on the side of the key.
        for (at, piece) in before.iter().enumerate() {
            if !matches!(piece, Piece::Literal(_))
                && !is_apart(before.get(at + 1), |text| text.chars().next())
            {
                return Err(TemplateError::Separator);
            }
        }
        for (at, piece) in after.iter().enumerate() {
            let separator = at.checked_sub(1).and_then(|at| after.get(at));
            if !matches!(piece, Piece::Literal(_)) && !is_apart(separator, |text| text.chars().next_back()) {
                return Err(TemplateError::Separator);
            }
        }
        let template = Template { text: text.to_owned(), before, after };
        let count = |wanted: fn(&Piece) -> bool| template.pieces().filter(|piece| wanted(piece)).count();
        let shards = count(|piece| matches!(piece, Piece::Shard(_)));
        let buckets = count(|piece| matches!(piece, Piece::Bucket(_)));
        if shards > 1 || buckets > 1 || shards + buckets == 0 {
            return Err(TemplateError::Count);
        }
        Ok(template)
    }
}

/// The pieces of one side.
fn pieces(text: &str) -> Result<Vec<Piece>, TemplateError> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let Some(inside) = rest.strip_prefix('{') else {
            let (literal, after) = rest.split_at(rest.find('{').unwrap_or(rest.len()));
            // It is put into JSON strings as it is.
            if let Some(escaped) = literal.chars().find(|c| c.is_control() || ['"', '\\'].contains(c)) {
                return Err(TemplateError::Literal(escaped));
            }
            pieces.push(Piece::Literal(literal.to_owned()));
            rest = after;
            continue;
        };
        let (name, after) =
            inside.split_once('}').ok_or_else(|| TemplateError::Placeholder(inside.to_owned()))?;
        rest = after;
        pieces.push(placeholder(name).ok_or_else(|| TemplateError::Placeholder(name.to_owned()))?);
    }
    Ok(pieces)
}

fn placeholder(name: &str) -> Option<Piece> {
    if let Some(rest) = name.strip_prefix("shard") {
        let (from, width) = rest.split_once(':').map_or((rest, None), |(from, width)| (from, Some(width)));
        let from = match from {
            "" => 0,
            from => from.strip_prefix('+')?.parse::<u16>().ok().filter(|from| *from <= 1_000)?,
        };
        // As Python and Rust write it: a zero, and how many digits.
        let width = match width.map(|width| width.strip_suffix('d').unwrap_or(width).as_bytes()) {
            None => 1,
            Some([b'0', digit @ b'2'..=b'5']) => usize::from(digit - b'0'),
            Some(_) => return None,
        };
        return Some(Piece::Shard(Number { from, width }));
    }
    match name.strip_prefix("bucket")? {
        "" => Some(Piece::Bucket(None)),
        format => {
            let format = format.strip_prefix(':')?;
            let escaped = format.chars().any(|c| c.is_control() || ['"', '\\'].contains(&c));
            (!escaped).then(|| Piece::Bucket(Some(format.to_owned())))
        }
    }
}
