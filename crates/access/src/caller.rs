//! A client that has signed a request, and the judgement over what it asks for.
//!
//! Two steps, for keys can be told only with the key schema of a table, and whoever has no right to
//! a table is not told whether it exists: [`Caller::ask`] reads the request and refuses what no key
//! could change; [`Request::judge`] judges the keys.

use std::collections::HashMap;
use std::sync::Arc;

use heatsink_dynamo::{Code, Error, Operation, wire};
use serde_json::Value as Json;

use crate::access::{Access, Asked, Resource};
use crate::asked;
use crate::facts::TableFacts;
use crate::rights::{Judgement, On, Rights};

/// A client that has signed a request.
#[derive(Clone, Debug)]
pub struct Caller {
    id: Arc<str>,
    region: Arc<str>,
    /// `None`: all.
    rights: Option<Arc<Rights>>,
}

/// A request of a caller that is allowed as far as its tables go.
#[derive(Debug)]
pub struct Request<'a> {
    caller: &'a Caller,
    operation: Operation,
    body: Json,
    raw: &'a [u8],
    tables: Vec<String>,
}

impl Caller {
    pub(crate) fn new(id: &str, region: &Arc<str>, rights: &Arc<Rights>) -> Self {
        let rights = (!rights.are_all()).then(|| Arc::clone(rights));
        Caller { id: id.into(), region: Arc::clone(region), rights }
    }

    /// Its access key.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The same, to be kept without a copy.
    pub fn shared_id(&self) -> &Arc<str> {
        &self.id
    }

    /// Whether anything is denied to it.
    pub fn is_restricted(&self) -> bool {
        self.rights.is_some()
    }

    /// Whether lists of tables show it this one.
    pub fn may_see(&self, table: &str) -> bool {
        self.rights.as_ref().is_none_or(|rights| rights.show(table))
    }

    /// Reads a request, and judges what does not depend on keys.
    ///
    /// # Errors
    /// `AccessDeniedException`; and what is wrong with the request where it cannot be judged.
    pub fn ask<'a>(&'a self, operation: Operation, raw: &'a [u8]) -> Result<Request<'a>, Error> {
        wire::check(operation, raw)?;
        let body = asked::strict::read(raw).ok_or_else(|| Error::bare(Code::SerializationException))?;
        let mut request = Request { caller: self, operation, body, raw, tables: Vec::new() };
        let accesses = request.accesses(None);
        self.judge(&accesses, None)?;
        let needs_facts = |access: &&Access| {
            let has_arn = matches!(&access.resource, Resource::Table { arn: Some(_), .. });
            has_arn || access.keys == Asked::Unread || access.attributes == Asked::Unread
        };
        let tables = accesses.iter().filter(needs_facts).filter_map(Access::table);
        request.tables = tables.map(str::to_owned).collect();
        request.tables.sort_unstable();
        request.tables.dedup();
        Ok(request)
    }

    fn judge(&self, accesses: &[Access], facts: Option<&HashMap<String, TableFacts>>) -> Result<(), Error> {
        let Some(rights) = &self.rights else { return Ok(()) };
        accesses.iter().try_for_each(|access| match rights.judge(access) {
            // The store's own credentials may reach further than this account.
            Judgement::Allowed if facts.is_some_and(|facts| is_elsewhere(access, facts)) => {
                Err(self.denied(access, Judgement::NotAllowed))
            }
            Judgement::Allowed => Ok(()),
            judgement => Err(self.denied(access, judgement)),
        })
    }

    /// In the words of IAM ("Troubleshoot access denied error messages", IAM User Guide).
    fn denied(&self, access: &Access, judgement: Judgement) -> Error {
        let Caller { id, region, .. } = self;
        let resource = match &access.resource {
            Resource::Table { path, arn: Some(arn), .. } => format!("{arn}:{path}"),
            Resource::Table { path, arn: None, .. } => format!("arn:aws:dynamodb:{region}:*:{path}"),
            Resource::Account => "*".to_owned(),
        };
        let action = access.action;
        let why = match judgement {
            Judgement::Denied => "with an explicit deny in an identity-based policy".to_owned(),
            _ => format!("because no identity-based policy allows the dynamodb:{action} action"),
        };
        let message = format!(
            "User: {id} is not authorized to perform: dynamodb:{action} on resource: {resource} {why}"
        );
        Error::new(Code::AccessDeniedException, message)
    }
}

/// Whether an ARN names a table of another account or region.
fn is_elsewhere(access: &Access, facts: &HashMap<String, TableFacts>) -> bool {
    let Resource::Table { name, arn: Some(arn), .. } = &access.resource else { return false };
    let own = facts.get(name).and_then(|facts| facts.arn.as_deref());
    own.and_then(|own| own.strip_prefix(arn.as_str())).is_none_or(|rest| !rest.starts_with(':'))
}

impl Request<'_> {
    /// The tables of which facts are needed for a judgement.
    pub fn tables(&self) -> &[String] {
        &self.tables
    }

    /// Judges the keys, with what is known of its [tables](Self::tables).
    ///
    /// # Errors
    /// `AccessDeniedException`.
    pub fn judge(&self, facts: &HashMap<String, TableFacts>) -> Result<(), Error> {
        match self.tables.is_empty() {
            true => Ok(()),
            false => self.caller.judge(&self.accesses(Some(facts)), Some(facts)),
        }
    }

    fn accesses(&self, facts: Option<&HashMap<String, TableFacts>>) -> Vec<Access> {
        let looks_at_names = self
            .caller
            .rights
            .as_ref()
            .is_some_and(|rights| rights.look_at(On::Keys) || rights.look_at(On::Attributes));
        // Where nothing is said of keys and attributes the names of keys need not be known.
        let nothing = HashMap::new();
        let facts = if looks_at_names { facts } else { Some(&nothing) };
        let accesses = asked::accesses(self.operation, &self.body, self.raw, facts);
        match accesses.is_empty() {
            true => vec![Access::whole(self.operation.name(), Resource::Account)],
            false => accesses,
        }
    }
}
