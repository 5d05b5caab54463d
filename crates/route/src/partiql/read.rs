//! A SELECT as Queries or a Scan, run by their own plans; what it shows of each item is decided
//! here.

use std::sync::Arc;

use heatsink_dynamo::expression::{Path, Step as PathStep};
use heatsink_dynamo::partiql::{Condition, Operand, Order, TestKind};
use heatsink_dynamo::{AttributeDefinition, Error, IndexSchema, KeySchema, Operation, json};
use heatsink_layout::Table;

use super::answer::logical;
use super::gather::{Gather, Refused, Shape};
use super::keys::names_moving;
use super::pages::{Common, partitions, sort_condition};
use super::refused::{as_sent, not_understood, refused_read};
use super::statement::Written;
use super::token::{self, Position, fingerprint};
use crate::answer::rewrite;
use crate::collection::keys::{Key, cursor_attributes, stable};
use crate::collection::selection::{Selection, Shown, projects};
use crate::context::PlanContext;
use crate::layout_cursor::mark::Mark;
use crate::moving::unsupported;
use crate::plan::{Finish, Plan, Single};
use crate::request::{Request, quoted, set_members};
use crate::shared::Shared;
use crate::{layout_cursor, preflight, query, scan};

/// How many shards the keys of one statement may have together: ten keys of a thousand shards, or
/// fifty (as many as DynamoDB takes in one `IN`) of two hundred. They are read one key after the
/// other, and each is planned before the first is.
const MOST_READS: usize = 10_000;

/// A SELECT.
pub(super) struct Select<'a> {
    pub(super) written: &'a Written<'a>,
    pub(super) schema: &'a Arc<Table>,
    pub(super) shown: &'a [Path],
    pub(super) order: &'a [Order],
}

impl Select<'_> {
    /// Its plan. A statement that the store has not taken yet goes there first.
    pub(super) fn plan(
        &self,
        shared: &Shared,
        request: &Request<'_>,
        context: &PlanContext<'_>,
    ) -> Result<Plan, Error> {
        if self.index().is_some_and(|index| index.key.attributes().is_composite()) {
            let error = Error::validation(
                "PartiQL statements cannot be executed on tables with multi-attribute HASH keys or multi-attribute RANGE keys.",
            );
            return Ok(refused_read(request.body, error, true));
        }
        let by_the_store = self.is_the_stores();
        if by_the_store && !self.reads_apart(request)? {
            return self.by_the_store(request);
        }
        if let Some(reads) = self.too_many_reads(context) {
            return Err(reads);
        }
        let waits = by_the_store || names_moving(self.written, self.schema, context);
        match self.parts(shared, request, context) {
            // What only the store can do it can do again once no key moves.
            Err(_) if waits => Err(unsupported(Operation::ExecuteStatement, &self.schema.name)),
            Err(error) => Ok(refused_read(request.body, error, true)),
            Ok(plan) if self.is_plain(request) => Ok(plan),
            Ok(plan) => Ok(as_sent(request.body, plan)),
        }
    }

    /// The refusal of a statement whose partition keys are spread over too many shards together.
    fn too_many_reads(&self, context: &PlanContext<'_>) -> Option<Error> {
        let schema = self.schema;
        if self.written.statement.index.is_some() {
            return None;
        }
        let condition = self.written.statement.condition.as_ref()?;
        let keys = partitions(condition, &schema.key.partition, &self.written.values)?;
        let reads: usize =
            keys.iter().map(|key| usize::from(stable(context, schema, key).shards.max(1))).sum();
        (keys.len() > 1 && reads > MOST_READS).then(|| {
            Error::gateway_rejection(format!(
                "The statement names {} values of {}, whose shards are {reads} together; a statement reads at most {MOST_READS}. Name fewer \
                 values at once. Nothing was read",
                keys.len(),
                schema.key.partition.name
            ))
        })
    }

    /// The index that it names, if the table has it.
    fn index(&self) -> Option<&IndexSchema> {
        self.schema.index(&self.written.statement.index.as_ref()?.name)
    }

    /// Whether the store can carry out the statement as it is: it reads the whole table, or an
    /// index whose collections lie as they would without shards; and no test, order or name is
    /// about the partition key. Of counters it would read fragments.
    fn is_the_stores(&self) -> bool {
        let partition = &self.schema.key.partition.name;
        let condition = self.written.statement.condition.as_ref();
        let read = condition.iter().flat_map(|condition| condition.tests()).flat_map(|test| test.paths());
        let ordered = self.order.iter().map(|order| &order.path);
        let key = self.index().map(|index| &index.key);
        if key.is_none() && self.written.statement.index.is_some() {
            return true;
        }
        if self.schema.has_counters() {
            return false;
        }
        let hidden = |name: &str| self.schema.stored_otherwise().any(|hidden| hidden == name);
        let elsewhere = key.is_some_and(|key| !key.names().any(hidden));
        !read.chain(ordered).any(|path| hidden(&path.root))
            && names_apart(self.shown, self.schema)
            && (elsewhere || self.order.is_empty() && key.is_none_or(|key| key.partition_has(partition)))
    }

    /// Whether keys move meanwhile, or the statement has been read by a Scan so far, because keys
    /// moved. The store would give all that it meets of them.
    fn reads_apart(&self, request: &Request<'_>) -> Result<bool, Error> {
        let token = request.string("NextToken")?;
        let own = token.is_some_and(|token| token::is_own(&token) && token::of_store(&token).is_none());
        let known = self.written.statement.index.is_none() || self.index().is_some();
        let keys = self.schema.key_layouts();
        Ok(known && (own || keys.any_apart(keys.begin())))
    }

    /// The plan of a statement that the store can carry out as it is.
    fn by_the_store(&self, request: &Request<'_>) -> Result<Plan, Error> {
        let why = "the SELECT does not read the partition key, and shards do not matter to it: one physical statement";
        let order = self.order();
        let mut body = request.body.clone();
        let mut mark = Mark::begun(order.clone(), self.schema);
        if let Some(token) = request.string("NextToken")? {
            let of_store = token::of_store(&token);
            let read = of_store.map(|(mark, _)| Mark::read(mark)).unwrap_or_default();
            mark = read.next(order.clone(), self.schema)?;
            layout_cursor::admit(read.order.as_deref(), order.as_deref(), self.schema)?;
            if self.schema.key_layouts().any_apart(mark.since) {
                // Nobody but the store knows where its token stands, and which is none.
                let error = layout_cursor::of_another_layout(self.schema);
                let why = "whether it is a token of its own, the store says";
                let (body, refused) = (request.body.clone(), Refused(error.clone()).plan());
                return match of_store {
                    Some(_) => Err(error),
                    None => Ok(preflight::first(Operation::ExecuteStatement, body, refused, why)),
                };
            }
            if let Some((_, token)) = of_store {
                body = set_members(&body, &vec![("NextToken", Some(quoted(token)))])?;
            }
        }
        let finish = logical(Arc::clone(self.schema));
        let finish: Finish = Box::new(move |answer| {
            let body = finish(answer)?;
            let Some(mark) = mark.text() else { return Ok(body) };
            rewrite(Operation::ExecuteStatement, &body, |splice| {
                if let Some(raw) = json::member(&body, "NextToken")?.filter(|raw| *raw != b"null") {
                    splice.replace(raw, quoted(&token::with_order(&mark, &json::string(raw)?)));
                }
                Ok(())
            })
        });
        Ok(Single::new(Operation::ExecuteStatement, body, Some(finish), why).plan())
    }

    /// The order in which a Scan would read what the statement reads.
    fn order(&self) -> Option<String> {
        let index = self.written.statement.index.as_ref();
        layout_cursor::order(self.schema, index.map(|index| index.name.as_str()))
    }

    fn parts(
        &self,
        shared: &Shared,
        request: &Request<'_>,
        context: &PlanContext<'_>,
    ) -> Result<Plan, Error> {
        let (schema, values) = (self.schema, &self.written.values);
        let index = self.index();
        let key = match index {
            None if self.written.statement.index.is_some() => {
                return Err(Error::validation("The table does not have the specified index"));
            }
            None => Some(schema.key.clone()),
            Some(index) => index.key.single(),
        };
        let key = &key.ok_or_else(|| not_understood("its index"))?;
        let condition = self.written.statement.condition.as_ref();
        let filter = match condition {
            None => None,
            Some(condition) => {
                Some(condition.meaning(values).ok_or_else(|| not_understood("a test in its WHERE clause"))?)
            }
        };
        let confined = condition.and_then(|condition| partitions(condition, &key.partition, values));
        let (confined, descending) = self.ordered(confined, key)?;
        let sort = key.sort.as_ref().zip(condition);
        let sort = sort.and_then(|(sort, condition)| sort_condition(condition, sort, values));
        let through_table = |index: &&IndexSchema| confined.is_none() && schema.is_index_mixed(index);
        let cursor = cursor_attributes(schema, index.filter(|index| !through_table(index)));
        let holds = |index: &IndexSchema, name: &str| {
            projects(index, name) || cursor.iter().any(|attribute| attribute.name == name)
        };
        let lacks = |index: &IndexSchema| self.shown.iter().any(|path| !holds(index, &path.root));
        let all_attributes = index.is_some_and(|index| index.local && lacks(index));
        if all_attributes && confined.is_none() {
            return Err(Error::gateway_rejection(format!(
                "The table is sharded, and a SELECT of the whole local index {} for attributes that it does not hold, with a condition on {}, is not supported on sharded tables",
                index.map_or("", |index| &index.name),
                key.partition.name
            )));
        }
        let order = match (&confined, index) {
            // Where it stands in a Scan the position itself says.
            (None, _) => None,
            (Some(_), Some(index)) => schema.query_order(index),
            // No layout changes the order of a Query of the table.
            (Some(_), None) => None,
        };
        let position = match request.string("NextToken")? {
            None => Position::default(),
            Some(token) => {
                // The store's, from when the table was not laid out yet; or one of a plan that was
                // in force then.
                if token::of_store(&token).is_some() || schema.is_adopted() && !token::is_own(&token) {
                    return Err(layout_cursor::of_another_layout(schema));
                }
                if !token::is_own(&token) && !schema.key_layouts().is_empty() {
                    // The store's, given out by a gateway that knew of no key that has moved or is
                    // to move; or none: the store says.
                    let refused = Refused(layout_cursor::of_another_layout(schema)).plan();
                    let why = "whether it is a token of its own, the store says";
                    return Ok(preflight::first(
                        Operation::ExecuteStatement,
                        request.body.clone(),
                        refused,
                        why,
                    ));
                }
                let parts = confined.as_ref().map_or(1, Vec::len);
                let (position, found) = Position::read(&token, self.written, parts, &cursor)?;
                if confined.is_some() && (order.is_some() || found.is_some()) {
                    layout_cursor::admit(found.as_deref(), order.as_deref(), schema)?;
                }
                position
            }
        };
        let index_name = index.map(|index| index.name.as_str());
        let common = Common { request, schema, index: index_name, all_attributes, descending };
        let mut plans = Vec::new();
        let mut position = position;
        // Without a sort key a partition key has one item, and behind it there is nothing.
        if position.after.is_some() && confined.is_some() && index.is_none() && key.sort.is_none() {
            position = Position { part: position.part + 1, after: None };
        }
        match &confined {
            None if position.part > 0 => {}
            None => {
                let body = common.scan(position.after.as_deref());
                plans.push(scan::plan(shared, &Request::read(&body)?, schema, context)?);
            }
            Some(keys) => {
                for (at, partition) in keys.iter().enumerate().skip(position.part) {
                    let after = if at == position.part { position.after.as_deref() } else { None };
                    let body = common.query(key, partition, sort.as_ref(), after);
                    let request = Request::read(&body)?;
                    plans.push(if context.moves(schema, &partition.canonical_bytes()) {
                        shared.plan_at(Operation::Query, &request, schema, context.layouts(), None)?.0
                    } else {
                        query::plan(shared, &request, schema, context)?
                    });
                }
            }
        }
        let limit = request.get("Limit").and_then(|raw| std::str::from_utf8(raw).ok()?.parse().ok());
        let seen = index.filter(|_| all_attributes).map(|index| {
            let names = cursor.iter().map(|attribute| attribute.name.clone());
            names.chain(index.included.iter().cloned()).collect()
        });
        let shown = if self.shown.is_empty() { Shown::Whole } else { Shown::Named(self.shown.to_vec()) };
        let shape = Shape {
            selection: Selection { filter, seen, shown },
            cursor: cursor.into_iter().map(|attribute| attribute.name.clone()).collect(),
            fingerprint: fingerprint(self.written),
            order,
        };
        Ok(Gather::new(plans, shape, limit, position.part).plan())
    }

    /// The partition keys in the order in which they are read, and whether each is read backwards.
    /// DynamoDB reads backwards when `ORDER BY` does not name the sort key.
    fn ordered(
        &self,
        confined: Option<Vec<Key>>,
        key: &KeySchema,
    ) -> Result<(Option<Vec<Key>>, bool), Error> {
        if self.order.is_empty() {
            return Ok((confined, false));
        }
        let mut keys = confined.ok_or_else(|| {
            Error::validation(
                "Must have at least one non-optional hash key condition in WHERE clause when using ORDER BY clause.",
            )
        })?;
        let term = |attribute: &AttributeDefinition| {
            self.order.iter().find(|order| order.path.is_root(&attribute.name))
        };
        keys.sort_unstable();
        if term(&key.partition).is_some_and(|order| order.descending) {
            keys.reverse();
        }
        let descending = key.sort.as_ref().and_then(term).is_none_or(|order| order.descending);
        Ok((Some(keys), descending))
    }

    /// Whether the store is certain to take the statement: it compares the keys of the table, each
    /// once, with values of their types, and asks for nothing else. Later pages have been taken
    /// with the first.
    fn is_plain(&self, request: &Request<'_>) -> bool {
        let limit = request.get("Limit");
        if limit.is_some_and(|limit| limit == b"0" || !limit.iter().all(u8::is_ascii_digit)) {
            return false;
        }
        if request.get("NextToken").is_some() {
            return true;
        }
        let asks_more = ["ReturnConsumedCapacity", "ReturnValuesOnConditionCheckFailure"];
        if self.written.statement.index.is_some()
            || !self.order.is_empty()
            || asks_more.iter().any(|name| request.get(name).is_some())
            || self.written.text.chars().count() > heatsink_dynamo::partiql::MAX_STATEMENT
            || self.shown.len() > 1
            || self.shown.iter().any(|path| !path.rest.is_empty())
        {
            return false;
        }
        let Some(condition) = &self.written.statement.condition else { return true };
        let key = &self.schema.key;
        let values = &self.written.values;
        let mut conjuncts = condition.conjuncts();
        conjuncts.retain(|part| !matches!(part, Condition::Test(test)
            if matches!(&test.kind, TestKind::Compare(Operand::Path(path), _, Operand::Term(_)) if path.is(&key.partition.name))
            && partitions(part, &key.partition, values).is_some()));
        let named = condition.conjuncts().len() - conjuncts.len();
        let sorted = key.sort.as_ref().is_some_and(|sort| {
            matches!(conjuncts.as_slice(), [Condition::Test(test)]
                if matches!(&test.kind, TestKind::Compare(Operand::Path(_), _, Operand::Term(_))))
                && sort_condition(condition, sort, values).is_some()
        });
        named == 1 && (conjuncts.is_empty() || sorted)
    }
}

/// Whether what is shown under the name of a key that is stored otherwise is that key.
pub(super) fn names_apart(shown: &[Path], table: &Table) -> bool {
    let inside = |path: &Path| {
        path.rest.iter().rev().find_map(|step| match step {
            PathStep::Name(name) => Some(table.stored_otherwise().any(|hidden| hidden == name)),
            PathStep::Index(_) => None,
        })
    };
    !shown.iter().any(|path| inside(path) == Some(true))
}
