//! A statement as it stands in a request: its text, its parameters, and what they say.

use std::borrow::Cow;

use heatsink_dynamo::partiql::{self, Statement};
use heatsink_dynamo::{Value, json};

use crate::request::Request;

/// A statement that was read.
#[derive(Debug)]
pub(super) struct Written<'a> {
    /// The text.
    pub(super) text: Cow<'a, str>,
    /// The text as the JSON string that it is; a slice of the body.
    pub(super) raw_text: &'a [u8],
    /// The raw list of parameters; a slice of the body.
    pub(super) raw_parameters: Option<&'a [u8]>,
    /// Each parameter, raw.
    pub(super) parameters: Vec<&'a [u8]>,
    /// Each parameter.
    pub(super) values: Vec<Value>,
    /// What the text says.
    pub(super) statement: Statement,
    /// Whether the item is asked for where a condition fails.
    pub(super) shows_old: bool,
}

impl<'a> Written<'a> {
    /// Reads the statement of a request; `None` without one.
    ///
    /// # Errors
    /// Why it cannot be read, in words for the client. Whether it is wrong is the store's to say.
    pub(super) fn read(request: &Request<'a>) -> Result<Option<Self>, String> {
        match request.get("Statement") {
            None => Ok(None),
            Some(raw) => {
                let on_failure = request.get("ReturnValuesOnConditionCheckFailure");
                Written::of(raw, request.get("Parameters"), on_failure).map(Some)
            }
        }
    }

    /// Reads a statement with its parameters; `on_failure` is its raw
    /// `ReturnValuesOnConditionCheckFailure`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(super) fn of(
        raw_text: &'a [u8],
        raw_parameters: Option<&'a [u8]>,
        on_failure: Option<&[u8]>,
    ) -> Result<Self, String> {
        let text = json::string(raw_text).map_err(|_| "its text is not a string".to_owned())?;
        let parameters = json::elements(raw_parameters.unwrap_or(b"[]"))
            .map_err(|_| "its parameters are not a list".to_owned())?;
        let values = parameters
            .iter()
            .map(|raw| Value::read(raw))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| "a parameter is not an attribute value".to_owned())?;
        let statement = partiql::parse(&text).map_err(|unread| unread.to_string())?;
        if statement.parameters != values.len() {
            return Err(format!("it takes {} parameters, not {}", statement.parameters, values.len()));
        }
        let shows_old = on_failure.is_some_and(|raw| raw != b"null" && raw != b"\"NONE\"");
        Ok(Written { text, raw_text, raw_parameters, parameters, values, statement, shows_old })
    }
}

/// Whether a statement, understood or not, can only read.
pub(crate) fn reads(request: &Request<'_>) -> bool {
    let text = request.get("Statement").and_then(|raw| json::string(raw).ok());
    text.is_some_and(|text| only_reads(&text))
}

/// [`reads`] for a text. Comments before the first word make it a write: that is the safe side.
pub(super) fn only_reads(text: &str) -> bool {
    let first = text.trim_start().get(..6);
    first.is_some_and(|word| word.eq_ignore_ascii_case("SELECT"))
}
