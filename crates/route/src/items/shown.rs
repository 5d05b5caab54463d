//! What a read shows of items, and what the store is asked for so that it can be shown.
//!
//! Projections of items that are put together here are carried out here: the store shows what a
//! path leaves of one fragment.

use std::borrow::Cow;

use bytes::Bytes;
use heatsink_dynamo::Error;
use heatsink_dynamo::expression::{Bindings, Checks, Fresh, Projection};
use heatsink_dynamo::json::{self, Malformed};
use heatsink_layout::{Placement, Table};

use crate::answer::strip_object;
use crate::projection;
use crate::projection::project;
use crate::refusal::strict_then_lenient;
use crate::request::{Request, quoted};
use crate::splice::Splice;

/// What a read shows of items: all of them, or a projection, in whichever parameter it came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    pub(crate) projection: Option<Projection>,
    /// The members that take the place of the client's.
    pub(crate) asked: Vec<(&'static str, Vec<u8>)>,
}

impl Shown {
    /// Of a request, or of one table's part of a BatchGetItem. What is asked for has the key
    /// attributes beside.
    ///
    /// # Errors
    /// That of the expression.
    pub(crate) fn read(request: &Request<'_>, table: &Table, checks: Checks) -> Result<Self, Error> {
        let text = request.string("ProjectionExpression")?;
        let bindings = Bindings::read(request.get("ExpressionAttributeNames"), None)?;
        let listed = request.get("AttributesToGet").map(json::elements).transpose();
        let listed = listed.map_err(|Malformed| crate::request::malformed())?;
        let projection = match (text, listed) {
            (Some(_), Some(_)) => {
                return Err(Error::validation(
                    "Can not use both expression and non-expression parameters in the same request",
                ));
            }
            (Some(text), None) => {
                let projection = projection::read(&text, &bindings, checks, table)?;
                if checks == Checks::All {
                    bindings.check_unused(&[&text])?;
                }
                Some(projection)
            }
            (None, Some(names)) => {
                let mut projection = Projection::default();
                for name in names {
                    projection
                        .add_root(&json::string(name).map_err(|Malformed| crate::request::malformed())?);
                }
                Some(projection)
            }
            (None, None) if request.get("ExpressionAttributeNames").is_some() => {
                return Err(Error::validation(
                    "ExpressionAttributeNames can only be specified when using expressions",
                ));
            }
            (None, None) => None,
        };
        let mut asked = Vec::new();
        if let Some(projection) = &projection {
            let wanted = whole_attributes(projection, table);
            if request.get("AttributesToGet").is_some() {
                // In its own words: a batch must not have both.
                let names = wanted.paths.iter().map(|path| path.root.as_str());
                asked.push((
                    "AttributesToGet",
                    serde_json::json!(names.collect::<Vec<_>>()).to_string().into_bytes(),
                ));
                return Ok(Shown { projection: Some(projection.clone()), asked });
            }
            let mut fresh = Fresh::avoiding(&Bindings::default());
            asked.push(("ProjectionExpression", quoted(&wanted.render(&mut fresh))));
            if let (Some(names), _) = Bindings::default().rewritten(&[], &fresh) {
                asked.push(("ExpressionAttributeNames", names));
            }
        }
        Ok(Shown { projection, asked })
    }

    /// [`read`](Self::read), and whether the checks here find nothing wrong. What only they find
    /// wrong a store may take: it is asked.
    ///
    /// # Errors
    /// That of an expression that means nothing.
    pub(crate) fn leniently(request: &Request<'_>, table: &Table) -> Result<(Self, bool), Error> {
        strict_then_lenient(|_| true, |checks| Shown::read(request, table, checks))
    }

    /// Where to look for what it shows of an item placed so: the base fragment alone where that is
    /// no sum.
    pub(crate) fn needs<'p>(&self, placement: &'p Placement) -> Cow<'p, Placement> {
        let shows = |name: &String| match &self.projection {
            None => true,
            Some(projection) => projection.paths.iter().any(|path| path.root == *name),
        };
        match placement {
            Placement::SumOf { base, attributes, .. } if !attributes.iter().any(shows) => {
                Cow::Owned(Placement::One(*base))
            }
            placement => Cow::Borrowed(placement),
        }
    }

    /// What is shown of a whole item, its key made logical.
    pub(crate) fn of(&self, table: &Table, item: &Bytes) -> Result<Vec<u8>, Malformed> {
        let mut splice = Splice::new(item);
        strip_object(table, item, &mut splice)?;
        let item = splice.finish(item);
        let Some(projection) = &self.projection else { return Ok(item.to_vec()) };
        let mut left = Vec::new();
        project(projection, &item, &mut left)?;
        Ok(left)
    }
}

/// What to ask the store for: whole attributes, and the keys. A store shows what a path leaves of
/// an attribute, to which the path means something else when it is applied to the sum.
fn whole_attributes(projection: &Projection, table: &Table) -> Projection {
    let mut wanted = Projection::default();
    for path in &projection.paths {
        wanted.add_root(&path.root);
    }
    for name in table.key.names() {
        wanted.add_root(name);
    }
    wanted
}
