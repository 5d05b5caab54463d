//! `NextToken`: where a SELECT goes on. It holds all that is needed, so any gateway can take it.
//!
//! Of a SELECT that reads a whole table or index it holds the cursor of a Scan, which says under
//! which layouts it means something (`scan::mark`). Where the store carries out the statement, that
//! stands before the store's token.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use heatsink_dynamo::{AttributeDefinition, Error, Value, json};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::statement::Written;
use crate::cursor::{LAYOUT, SHARD, values};

/// A position in a SELECT.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    /// How many of its parts are behind it.
    pub(super) part: usize,
    /// The raw logical key of the last item read in this part; `None` at its start.
    pub(super) after: Option<Bytes>,
}

#[derive(Serialize, Deserialize)]
struct Token {
    /// Binds it to the statement and its parameters.
    of: u64,
    part: usize,
    after: Option<Json>,
    /// The order of a Query of an index, where layouts decide it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    order: Option<String>,
}

/// What stands before a token of the store.
const STORED: &str = "heatsink:";

/// A token of the store, with the order in which it goes on.
pub(super) fn with_order(order: &str, token: &str) -> String {
    format!("{STORED}{order}:{token}")
}

/// The order and the store's token of one that [`with_order`] made.
pub(super) fn of_store(token: &str) -> Option<(&str, &str)> {
    token.strip_prefix(STORED)?.split_once(':')
}

/// Whether the token was given out by Heatsink, and not by a store.
pub(super) fn is_own(token: &str) -> bool {
    of_store(token).is_some() || decoded(token).is_some()
}

fn decoded(token: &str) -> Option<Token> {
    serde_json::from_slice(&STANDARD.decode(token).ok()?).ok()
}

impl Position {
    /// The token of a position in a statement, which is read in that order.
    pub(super) fn write(&self, fingerprint: u64, order: Option<&str>) -> String {
        let after = self.after.as_ref().and_then(|after| serde_json::from_slice(after).ok());
        let token = Token { of: fingerprint, part: self.part, after, order: order.map(str::to_owned) };
        STANDARD.encode(serde_json::to_vec(&token).unwrap_or_default())
    }

    /// Reads a token, and the order that it names.
    ///
    /// # Errors
    /// DynamoDB's `ValidationException`: one text for what is no token, another for that of another
    /// statement.
    pub(super) fn read(
        token: &str,
        written: &Written<'_>,
        parts: usize,
        cursor: &[&AttributeDefinition],
    ) -> Result<(Self, Option<String>), Error> {
        let invalid = || Error::validation("Invalid NextToken");
        let token = decoded(token).ok_or_else(invalid)?;
        let compound = |value: &Value| matches!(value, Value::L(_) | Value::M(_));
        // DynamoDB does not take tokens beside such parameters at all.
        if token.of != fingerprint(written) || written.values.iter().any(compound) {
            return Err(Error::validation("NextToken does not match request"));
        }
        let after = token.after.map(|after| Bytes::from(after.to_string()));
        // At the end of the last part there is a position too, behind which nothing follows.
        let no_part = token.part > parts || token.part == parts && after.is_some();
        if no_part || after.as_ref().is_some_and(|after| !is_key(after, cursor)) {
            return Err(invalid());
        }
        Ok((Position { part: token.part, after }, token.order))
    }
}

fn is_key(raw: &[u8], cursor: &[&AttributeDefinition]) -> bool {
    let Ok(members) = json::members(raw) else { return false };
    let more = members.iter().filter(|(name, _)| name == SHARD || name == LAYOUT).count();
    members.len() == cursor.len() + more && values(&members, cursor).is_some()
}

/// FNV-1a over the text and the parameters: the token is not a secret, it is only not to be mixed
/// up.
pub(super) fn fingerprint(written: &Written<'_>) -> u64 {
    let mut all = written.text.as_bytes().to_vec();
    for value in &written.values {
        all.push(0);
        value.write(&mut all);
    }
    all.iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
