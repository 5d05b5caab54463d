//! What a gathered Query sends to every shard, and what it makes of the merged page.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::Error;

use super::answer::{Logical, Shape, ShardTags};
use super::page::{Collected, Homes, Reader};
use super::request::Query;
use crate::Calls;
use crate::capacity::Report;
use crate::collection::template::{Expressions, Template};
use crate::counter::pages::Fold;

/// The parts that do not depend on shards.
#[derive(Debug)]
pub(crate) struct Gathering {
    pub(crate) template: Template,
    pub(crate) reader: Reader,
    pub(crate) shape: Shape,
    /// What completes the counters among the items.
    pub(crate) fold: Option<Arc<Fold>>,
}

impl Gathering {
    /// Of a valid Query whose rows all have the logical key `logical`.
    pub(crate) fn new(query: &Query<'_>, logical: Logical) -> Self {
        let (asked, schema) = (&query.expressions, query.schema);
        let mut fresh = query.fresh();
        let filter = asked.unfiltering(schema, query.index, &mut fresh);
        let mut members = query.kept.clone();
        // A page of a range may go to the client as it came.
        let capacity = match query.report {
            Report::None if query.in_ranges => None,
            Report::Total if query.in_ranges => Some(&b"\"TOTAL\""[..]),
            _ => Some(&b"\"INDEXES\""[..]),
        };
        members.extend(capacity.map(|capacity| ("ReturnConsumedCapacity", capacity)));
        let wanted = asked.wanted(schema, query.index);
        let attributes = wanted.map(|wanted| wanted.paths.into_iter().map(|path| path.root).collect());
        let expressions = Expressions { members, filter, projection: None, attributes };
        let template = Template::new(query.queried(), &expressions, &asked.bindings, fresh);
        let reader = Reader {
            partition: schema.key.partition.clone(),
            sort: query.sort().to_vec(),
            index: query.index.map(|index| index.name.clone()),
            consistent: query.consistent,
            homes: query.homes.clone().map(|layout| Homes { table: Arc::clone(schema), layout }),
        };
        let shape = Shape {
            selection: asked.selection(schema, query.index),
            report: query.report,
            table: Arc::clone(schema),
            logical,
            tags: match query.index {
                _ if !schema.has_externally_assigned() => ShardTags::Never,
                None => ShardTags::Ties,
                Some(_) => ShardTags::Always,
            },
            from: query.home.and_then(|_| query.cursor().ok()??.into_iter().nth(1)).map(|(sort, _)| sort),
            cursor: query.cursor_attributes().into_iter().map(|attribute| attribute.name.clone()).collect(),
            end: query.end().cloned(),
            unique: query.index.is_none() && schema.key.sort.is_none(),
        };
        Gathering { template, reader, shape, fold: query.fold.clone() }
    }

    /// The client's answer: the merged page, or only its first `rows`, folded, filtered, projected
    /// and written.
    ///
    /// # Errors
    /// Those of the fold; `InternalServerError` for items that cannot be read.
    pub(crate) async fn answer(
        &self,
        page: &mut Collected,
        rows: Option<usize>,
        calls: &mut dyn Calls,
    ) -> Result<Bytes, Error> {
        let Some(fold) = &self.fold else { return self.shape.answer(page, rows, None) };
        let (whole, cost) = fold.whole(self.shape.items(page)?, calls).await?;
        if let Some(cost) = cost {
            page.capacity.get_or_insert_default().add(&cost);
        }
        self.shape.answer(page, rows, Some(&whole))
    }
}
