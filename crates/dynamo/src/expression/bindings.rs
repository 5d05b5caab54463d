//! What the placeholders of a request's expressions stand for, and fresh ones that meet none of
//! them.

use std::collections::{BTreeMap, BTreeSet};

use super::lexer::{Token, lex};
use crate::json::{self, Malformed, Object, write_string};
use crate::{Error, Value};

/// `ExpressionAttributeNames` and `ExpressionAttributeValues` of a request. Shared by all its
/// expressions.
#[derive(Clone, Debug, Default)]
pub struct Bindings<'a> {
    names: BTreeMap<String, String>,
    /// Values stay as they were sent until an expression reads them.
    values: BTreeMap<String, &'a [u8]>,
}

impl<'a> Bindings<'a> {
    /// Reads the two members of a request's body; either may be missing.
    ///
    /// # Errors
    /// `SerializationException` when one is not an object, or a name is not a string.
    pub fn read(names: Option<&[u8]>, values: Option<&'a [u8]>) -> Result<Bindings<'a>, Error> {
        let malformed = |_: Malformed| Error::serialization("Unexpected value type in payload");
        let mut bindings = Bindings::default();
        for (placeholder, name) in names.map_or(Ok(Vec::new()), json::members).map_err(malformed)? {
            let name = json::string(name).map_err(malformed)?.into_owned();
            bindings.names.insert(placeholder.into_owned(), name);
        }
        for (placeholder, value) in values.map_or(Ok(Vec::new()), json::members).map_err(malformed)? {
            bindings.values.insert(placeholder.into_owned(), value);
        }
        Ok(bindings)
    }

    /// The attribute name that a `#placeholder` stands for.
    pub fn name(&self, placeholder: &str) -> Option<&str> {
        self.names.get(placeholder).map(String::as_str)
    }

    /// The value that a `:placeholder` stands for.
    ///
    /// # Errors
    /// `ValidationException` or `SerializationException` when it is no attribute value.
    pub fn value(&self, placeholder: &str) -> Result<Option<Value>, Error> {
        let Some(raw) = self.values.get(placeholder) else { return Ok(None) };
        Value::read(raw).map(Some).map_err(|mut error| {
            error.message = error.message.map(|message| {
                format!("ExpressionAttributeValues contains invalid value: {message} for key {placeholder}")
            });
            error
        })
    }

    /// The bytes of all values that the expressions mention, each as often as it is mentioned: what
    /// reading them takes.
    pub fn mentioned(&self, expressions: &[&str]) -> usize {
        let mentioned = expressions.iter().flat_map(|text| placeholders(text));
        mentioned.filter_map(|key| self.values.get(key)).map(|raw| raw.len()).sum()
    }

    /// The placeholders that no expression uses.
    pub fn unused<'s>(&'s self, expressions: &[&str]) -> Vec<&'s str> {
        let used: BTreeSet<&str> = expressions.iter().flat_map(|text| placeholders(text)).collect();
        let all = self.names.keys().chain(self.values.keys()).map(String::as_str);
        all.filter(|key| !used.contains(key)).collect()
    }

    /// Refuses placeholders that no expression uses, as DynamoDB does.
    ///
    /// # Errors
    /// `ValidationException`.
    pub fn check_unused(&self, expressions: &[&str]) -> Result<(), Error> {
        let used: BTreeSet<&str> = expressions.iter().flat_map(|text| placeholders(text)).collect();
        let refuse = |member: &str, unused: Vec<&String>| {
            if unused.is_empty() {
                return Ok(());
            }
            let unused = unused.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            Err(Error::validation(format!(
                "Value provided in {member} unused in expressions: keys: {{{unused}}}"
            )))
        };
        refuse(
            "ExpressionAttributeNames",
            self.names.keys().filter(|key| !used.contains(key.as_str())).collect(),
        )?;
        refuse(
            "ExpressionAttributeValues",
            self.values.keys().filter(|key| !used.contains(key.as_str())).collect(),
        )
    }

    /// The two members for a rewritten request: of the sent placeholders those that `kept`
    /// expressions still use, as they were sent, and all fresh ones. `None` where a member must not
    /// be sent, since it would be empty.
    pub fn rewritten(&self, kept: &[&str], fresh: &Fresh) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        let used: BTreeSet<&str> = kept.iter().flat_map(|text| placeholders(text)).collect();
        let (mut names, mut values) = (Object::new(), Object::new());
        for (placeholder, name) in self.names.iter().filter(|(key, _)| used.contains(key.as_str())) {
            names.string(placeholder, name);
        }
        for (placeholder, value) in self.values.iter().filter(|(key, _)| used.contains(key.as_str())) {
            values.raw(placeholder, value);
        }
        for (placeholder, name) in &fresh.names {
            write_string(names.name(placeholder), name);
        }
        for (placeholder, value) in &fresh.values {
            value.write(values.name(placeholder));
        }
        let member = |object: Object| (!object.is_empty()).then(|| object.finish());
        (member(names), member(values))
    }
}

/// The placeholders that an expression's text uses, `#` or `:` included.
pub fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    lex(text)
        .into_iter()
        .filter(|lexeme| matches!(lexeme.token, Token::Name | Token::Value))
        .map(|lexeme| lexeme.text)
}

/// Whether an expression may mention a top-level attribute; never says no where it does. Cheap:
/// most requests need no parse after it.
pub fn may_mention(text: &str, names: Option<&[u8]>, attribute: &str) -> bool {
    let has = |whole: &[u8]| memchr::memmem::find(whole, attribute.as_bytes()).is_some();
    // An escaped name could be any.
    has(text.as_bytes()) || names.is_some_and(|names| has(names) || names.contains(&b'\\'))
}

/// Placeholders that the request does not have yet, for rewritten expressions.
#[derive(Clone, Debug)]
pub struct Fresh {
    taken: BTreeSet<String>,
    names: Vec<(String, String)>,
    values: Vec<(String, Value)>,
}

impl Fresh {
    /// Placeholders that are not among those sent.
    pub fn avoiding(bindings: &Bindings<'_>) -> Self {
        let taken = bindings.names.keys().chain(bindings.values.keys()).cloned().collect();
        Fresh { taken, names: Vec::new(), values: Vec::new() }
    }

    /// A placeholder for an attribute name; the same for the same name.
    pub fn name(&mut self, name: &str) -> String {
        if let Some((placeholder, _)) = self.names.iter().find(|(_, known)| known == name) {
            return placeholder.clone();
        }
        let placeholder = self.unused('#', self.names.len());
        self.names.push((placeholder.clone(), name.to_owned()));
        placeholder
    }

    /// A placeholder for a value.
    pub fn value(&mut self, value: Value) -> String {
        let placeholder = self.unused(':', self.values.len());
        self.values.push((placeholder.clone(), value));
        placeholder
    }

    fn unused(&mut self, sign: char, from: usize) -> String {
        let mut number = from;
        loop {
            let placeholder = format!("{sign}h{number}");
            if self.taken.insert(placeholder.clone()) {
                return placeholder;
            }
            number += 1;
        }
    }
}
