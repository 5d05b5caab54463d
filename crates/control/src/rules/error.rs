//! What is wrong with a rules file: where, which field, what was expected.

use std::fmt;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

/// One fault in a rules file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulesError {
    /// The file's name, as the operator gave it.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The field, as a path: `rule[2].shards` is the second rule's. `None` where the text is not TOML.
    pub field: Option<String>,
    /// What is wrong and what was expected.
    pub problem: String,
}

impl fmt::Display for RulesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            Some(field) => write!(f, "{}:{}: {field}: {}", self.file, self.line, self.problem),
            None => write!(f, "{}:{}: {}", self.file, self.line, self.problem),
        }
    }
}

impl std::error::Error for RulesError {}

impl RulesError {
    /// A fault at `span` of `text`. The field is the innermost one whose key or value holds the span.
    pub(super) fn at(file: &str, text: &str, span: Range<usize>, problem: impl Into<String>) -> Self {
        let before = text.as_bytes().get(..span.start).unwrap_or(text.as_bytes());
        RulesError {
            file: file.to_owned(),
            line: 1 + before.iter().filter(|byte| **byte == b'\n').count(),
            field: DeTable::parse(text).ok().and_then(|table| field(table.get_ref(), &span)),
            problem: problem.into(),
        }
    }

    /// What the TOML reader found.
    pub(super) fn read(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let problem = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
        RulesError::at(file, text, error.span().unwrap_or(0..0), problem)
    }
}

fn holds(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end && inner.start < outer.end
}

fn field(table: &DeTable<'_>, span: &Range<usize>) -> Option<String> {
    for (key, value) in table {
        let name = key.get_ref();
        if holds(&key.span(), span) {
            return Some(name.to_string());
        }
        match value.get_ref() {
            // Tables under [[headings]] and under dotted keys have spans of their headings only, so look inside first.
            DeValue::Array(elements) => {
                for (number, element) in elements.iter().enumerate() {
                    if let DeValue::Table(inner) = element.get_ref()
                        && let Some(rest) = field(inner, span)
                    {
                        return Some(format!("{name}[{}].{rest}", number + 1));
                    }
                    if holds(&element.span(), span) {
                        return Some(format!("{name}[{}]", number + 1));
                    }
                }
            }
            DeValue::Table(inner) => {
                if let Some(rest) = field(inner, span) {
                    return Some(format!("{name}.{rest}"));
                }
            }
            _ => {}
        }
        if holds(&value.span(), span) {
            return Some(name.to_string());
        }
    }
    None
}
