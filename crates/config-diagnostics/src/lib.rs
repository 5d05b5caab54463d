//! Errors in files that a person wrote: rules, a scenario, a trace. An error names the file, the
//! line, the field and what was expected.
//!
//! The TOML reader reports the byte range of an error and not its field. This crate derives the
//! field from the byte range.
//!
//! Not here: which values are valid. Each file's reader decides that.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

/// One fault in a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {}{problem}", .field.as_ref().map(|field| format!("{field}: ")).unwrap_or_default())]
pub struct Fault {
    /// The file's name, as the operator gave it.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The field, as a path: `workload[2].rate` is the second workload's. `None` where there is
    /// none.
    pub field: Option<String>,
    /// What is wrong and what was expected.
    pub problem: String,
}

impl Fault {
    /// A fault at the byte range `span` of a TOML text. The field is the innermost one whose key or
    /// value contains the range.
    pub fn at(file: &str, text: &str, span: Range<usize>, problem: impl Into<String>) -> Self {
        Fault {
            file: file.to_owned(),
            line: line_of(text, span.start),
            field: DeTable::parse(text).ok().and_then(|table| field(table.get_ref(), &span)),
            problem: problem.into(),
        }
    }

    /// A fault in field `name` of the `nth` (from 0) of `[[list]]`; at the top of the file where
    /// `list` is empty.
    pub fn field(
        file: &str,
        text: &str,
        list: &str,
        nth: usize,
        name: &str,
        problem: impl Into<String>,
    ) -> Self {
        let table = DeTable::parse(text).ok();
        let table = table.as_ref().map(|table| table.get_ref());
        let span = |table: &DeTable<'_>| {
            table.iter().find(|(key, _)| key.get_ref() == name).map(|(key, _)| key.span())
        };
        let (start, field) = if list.is_empty() {
            (table.and_then(span).map(|span| span.start), name.to_owned())
        } else {
            let element = table.and_then(|table| table.get(list)).and_then(|list| match list.get_ref() {
                DeValue::Array(elements) => elements.get(nth),
                _ => None,
            });
            let inner = element.and_then(|element| match element.get_ref() {
                DeValue::Table(inner) => span(inner),
                _ => None,
            });
            let start = inner.or_else(|| element.map(|element| element.span())).map(|span| span.start);
            (start, format!("{list}[{}].{name}", nth + 1))
        };
        Fault {
            file: file.to_owned(),
            line: line_of(text, start.unwrap_or(0)),
            field: Some(field),
            problem: problem.into(),
        }
    }

    /// A fault in a line of a file that is not TOML.
    pub fn line(file: &str, line: usize, problem: impl Into<String>) -> Self {
        Fault { file: file.to_owned(), line, field: None, problem: problem.into() }
    }

    /// Converts an error of the TOML reader.
    pub fn read(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let problem = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
        let fault = Fault::at(file, text, error.span().unwrap_or(0..0), problem);
        // The most common mistake in such a file. The reader's message names Rust types, which help
        // nobody here.
        match &fault.field {
            Some(field) if fault.problem == "invalid type: map, expected a sequence" => {
                let list = heading(field);
                let problem = format!("expected a list: write [[{list}]] with two brackets, not [{list}]");
                Fault { problem, ..fault }
            }
            _ => fault,
        }
    }
}

/// A field as a heading names it: `table.index` of `table[1].index`.
fn heading(field: &str) -> String {
    let parts = field.split('.').map(|part| part.split('[').next().unwrap_or_default());
    parts.collect::<Vec<_>>().join(".")
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count()
}

fn field(table: &DeTable<'_>, span: &Range<usize>) -> Option<String> {
    let holds =
        |outer: Range<usize>| outer.start <= span.start && span.end <= outer.end && span.start < outer.end;
    for (key, value) in table {
        let name = key.get_ref();
        if holds(key.span()) {
            return Some(name.to_string());
        }
        // The span of a table under a [[heading]] covers the heading only, so look inside the table
        // first.
        let inside = match value.get_ref() {
            DeValue::Table(inner) => field(inner, span).map(|rest| format!("{name}.{rest}")),
            DeValue::Array(elements) => elements.iter().enumerate().find_map(|(nth, element)| {
                let at = format!("{name}[{}]", nth + 1);
                match element.get_ref() {
                    DeValue::Table(inner) => field(inner, span).map(|rest| format!("{at}.{rest}")),
                    _ => None,
                }
                .or_else(|| holds(element.span()).then_some(at))
            }),
            _ => None,
        };
        if inside.is_some() {
            return inside;
        }
        if holds(value.span()) {
            return Some(name.to_string());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "about = 1\n[[rule]]\ntable = \"T\"\nby = { attribute = \"sk\", part = 1 }\n\n[[rule]]\ntable = \"U\"\n";

    fn at(what: &str) -> (usize, Option<String>) {
        let start = TEXT.find(what).unwrap();
        let fault = Fault::at("f", TEXT, start..start + what.len(), "no");
        (fault.line, fault.field)
    }

    #[test]
    fn the_innermost_field_is_named() {
        assert_eq!(at("1"), (1, Some("about".into())));
        assert_eq!(at("\"T\""), (3, Some("rule[1].table".into())));
        assert_eq!(at("\"sk\""), (4, Some("rule[1].by.attribute".into())));
        assert_eq!(at("part"), (4, Some("rule[1].by.part".into())));
        assert_eq!(at("\"U\""), (7, Some("rule[2].table".into())));
    }

    #[test]
    fn one_bracket_too_few_is_said() {
        type File =
            std::collections::BTreeMap<String, Vec<std::collections::BTreeMap<String, Vec<toml::Table>>>>;
        let said =
            |text: &str| Fault::read("f", text, &toml::from_str::<File>(text).unwrap_err()).to_string();
        assert_eq!(
            said("# rules\n[rule]\nindex = []\n"),
            "f:2: rule: expected a list: write [[rule]] with two brackets, not [rule]"
        );
        assert_eq!(
            said("[[rule]]\n[rule.index]\na = 1\n"),
            "f:2: rule[1].index: expected a list: write [[rule.index]] with two brackets, not [rule.index]"
        );
    }

    #[test]
    fn a_named_field_is_found_or_its_element_is() {
        let fault = |list, nth, name| Fault::field("f", TEXT, list, nth, name, "no").to_string();
        assert_eq!(fault("rule", 1, "table"), "f:7: rule[2].table: no");
        assert_eq!(fault("rule", 1, "shards"), "f:6: rule[2].shards: no");
        assert_eq!(fault("", 0, "about"), "f:1: about: no");
        assert_eq!(Fault::line("t.csv", 3, "no").to_string(), "t.csv:3: no");
    }
}
