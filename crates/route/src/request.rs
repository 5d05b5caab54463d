//! The members of a request's body, found once and left as bytes.

use std::borrow::Cow;
use std::collections::HashSet;

use bytes::Bytes;
use heatsink_dynamo::wire::{self, Members};
use heatsink_dynamo::{Code, Error, Operation, json};

use crate::refusal::Unplanned;

/// A request's body and its members.
#[derive(Debug)]
pub struct Request<'a> {
    /// The body.
    pub body: &'a Bytes,
    members: Members<'a>,
}

impl<'a> Request<'a> {
    /// Finds the members.
    ///
    /// # Errors
    /// `SerializationException` for a body that is no JSON object, or that has a member twice:
    /// which of the two a store would believe is its own affair, and a rewrite must not guess.
    pub fn read(body: &'a Bytes) -> Result<Self, Error> {
        Request::of(body, json::members(body).map_err(|_| malformed())?)
    }

    /// Finds the members of a request that a client has sent, which is checked as DynamoDB checks
    /// it.
    ///
    /// # Errors
    /// DynamoDB's own; as [`read`](Self::read).
    pub(crate) fn checked(operation: Operation, body: &'a Bytes) -> Result<Self, Error> {
        Request::of(body, wire::read(operation, body)?)
    }

    fn of(body: &'a Bytes, members: Members<'a>) -> Result<Self, Error> {
        if let Some(name) = repeated(&members) {
            let name: String = name.chars().take(LONGEST_NAME).collect();
            return Err(Error::serialization(format!("The member {name} occurs more than once")));
        }
        Ok(Request { body, members })
    }

    /// A member's raw value; `None` if it is absent or `null`.
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        let (_, value) = self.members.iter().find(|(found, _)| found == name)?;
        (*value != b"null").then_some(*value)
    }

    /// The names of its members.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|(name, _)| &**name)
    }

    /// Whether it has one of these members.
    pub(crate) fn has_any(&self, names: &[&str]) -> bool {
        self.members.iter().any(|(found, _)| names.contains(&&**found))
    }

    /// A member that is a string.
    ///
    /// # Errors
    /// `SerializationException` if it is something else.
    pub fn string(&self, name: &str) -> Result<Option<Cow<'a, str>>, Error> {
        self.get(name).map(|raw| json::string(raw).map_err(|_| malformed())).transpose()
    }

    /// `Limit`: a positive number of 32 bits.
    ///
    /// # Errors
    /// [`Unplanned::Invalid`] for anything else.
    pub(crate) fn limit(&self) -> Result<Option<usize>, Unplanned> {
        let Some(raw) = self.get("Limit") else { return Ok(None) };
        let limit = std::str::from_utf8(raw).ok().and_then(|text| text.parse::<i32>().ok());
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0);
        limit.map(Some).ok_or(Unplanned::Invalid)
    }
}

/// The most characters of a name that an error tells.
const LONGEST_NAME: usize = 100;

/// A name that occurs more than once.
fn repeated<'s>(members: &'s [(Cow<'_, str>, &[u8])]) -> Option<&'s str> {
    // No operation has more than 20 members: they are compared one by one, without a set.
    if members.len() <= 20 {
        let earlier = |at: usize, name: &str| members.iter().take(at).any(|(earlier, _)| earlier == name);
        return members.iter().enumerate().find_map(|(at, (name, _))| earlier(at, name).then_some(&**name));
    }
    let mut met = HashSet::with_capacity(members.len());
    members.iter().find_map(|(name, _)| (!met.insert(&**name)).then_some(&**name))
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
