//! The members of a request's body, found once and left as bytes.

use std::borrow::Cow;

use bytes::Bytes;
use heatsink_dynamo::{Code, Error, json};

/// A request's body and its members.
#[derive(Debug)]
pub struct Request<'a> {
    /// The body.
    pub body: &'a Bytes,
    members: Vec<(Cow<'a, str>, &'a [u8])>,
}

impl<'a> Request<'a> {
    /// Finds the members.
    ///
    /// # Errors
    /// `SerializationException` for a body that is no JSON object, or that has a member twice: which of the two a store
    /// would believe is its own affair, and a rewrite must not guess.
    pub fn read(body: &'a Bytes) -> Result<Self, Error> {
        let members = json::members(body).map_err(|_| malformed())?;
        for (at, (name, _)) in members.iter().enumerate() {
            if members.iter().take(at).any(|(earlier, _)| earlier == name) {
                return Err(Error::serialization(format!("The member {name} occurs more than once")));
            }
        }
        Ok(Request { body, members })
    }

    /// A member's raw value; `None` if it is absent or `null`.
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        let (_, value) = self.members.iter().find(|(found, _)| found == name)?;
        (*value != b"null").then_some(*value)
    }

    /// A member that is a string.
    ///
    /// # Errors
    /// `SerializationException` if it is something else.
    pub fn string(&self, name: &str) -> Result<Option<Cow<'a, str>>, Error> {
        self.get(name).map(|raw| json::string(raw).map_err(|_| malformed())).transpose()
    }
}

/// Members to set in a body, or to take out.
pub(crate) type Changes = Vec<(&'static str, Option<Vec<u8>>)>;

/// A body with some members changed; the others keep their bytes.
pub(crate) fn set_members(body: &Bytes, changes: &Changes) -> Result<Bytes, Error> {
    let changes: Vec<(&str, Option<&[u8]>)> =
        changes.iter().map(|(name, value)| (*name, value.as_deref())).collect();
    json::splice_members(body, &changes).map(Bytes::from).map_err(|_| malformed())
}

/// What DynamoDB says of a body that is not the JSON it expects.
pub fn malformed() -> Error {
    Error::bare(Code::SerializationException)
}

/// A text as a JSON string.
pub(crate) fn quoted(text: &str) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(text.len() + 2);
    json::write_string(&mut quoted, text);
    quoted
}
