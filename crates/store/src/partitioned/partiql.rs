//! `ExecuteStatement`, `BatchExecuteStatement` and `ExecuteTransaction`: admitted and charged as the
//! operations on items that their statements equal.
//!
//! A statement of a batch that its partition throttles gets an error in its place, and the others
//! are executed (AWS, "Error codes" of `BatchStatementError`).
//!
//! Not here: what a statement asks of partitions (`statement`).

use bytes::Bytes;
use heatsink_dynamo::json;
use heatsink_dynamo::{Error, Operation};
use heatsink_physics::{Access, Demand, Units};

use super::batch::{Admitted, Entry};
use super::capacity::{CapacityDetail, IndexCosts};
use super::statement::Stated;
use super::transact::{Items, TWO};
use super::writing::full;
use super::{Partitioned, demands, refusal};
use crate::Store;

/// The most statements of a batch (API reference, `BatchExecuteStatement`).
const MOST: usize = 25;

impl<S: Store> Partitioned<S> {
    pub(super) async fn statement(&self, body: Bytes) -> Result<Bytes, Error> {
        const OPERATION: Operation = Operation::ExecuteStatement;
        let now = self.gate.now();
        let read = || Some((self.stated(&body)?, CapacityDetail::read(&body)?));
        // The store refuses what cannot be read.
        let Some((stated, told)) = read() else { return self.inner.call(OPERATION, body).await };
        if let Some(write) = stated.write(1) {
            return self.write(now, OPERATION, &body, told, write).await;
        }
        let (access, units) = bounds(&body);
        let demands = stated.reads(access, units);
        self.gate.admit(now, &demands).map_err(|throttles| self.gate.refuse(&throttles))?;
        self.metered(OPERATION, body, told, IndexCosts::None, demands).await
    }

    fn stated(&self, holder: &[u8]) -> Option<Stated> {
        Stated::read(holder, |table| self.gate.table(table))
    }

    pub(super) async fn statements(&self, body: Bytes) -> Result<Bytes, Error> {
        const OPERATION: Operation = Operation::BatchExecuteStatement;
        let now = self.gate.now();
        let read = || {
            let all = json::elements(json::member(&body, "Statements").ok()??).ok()?;
            Some((all, CapacityDetail::read(&body)?))
        };
        let Some((all, told)) = read().filter(|(all, _)| all.len() <= MOST) else {
            return self.inner.call(OPERATION, body).await;
        };
        let stated: Vec<Option<Stated>> = all.iter().map(|raw| self.stated(raw)).collect();
        let entries = stated.iter().zip(&all).map(|(stated, raw)| entry(stated.as_ref(), raw)).collect();
        let Admitted { lists, verdicts, ready } = self.admit_entries(now, entries).await;
        let indexed = stated.iter().flatten().any(|one| !one.table.indexes.is_empty());
        let costs = if indexed && !ready.changes.is_empty() { IndexCosts::Told } else { IndexCosts::None };
        let admitted: Vec<Demand> = lists
            .into_iter()
            .zip(&verdicts)
            .filter(|(_, verdict)| verdict.is_ok())
            .flat_map(|(list, _)| list)
            .collect();
        if self.gate.store(&ready.changes).is_err() {
            self.gate.give_back(admitted.iter());
            return Err(full());
        }
        let going: Vec<&[u8]> =
            all.iter().zip(&verdicts).filter(|(_, verdict)| verdict.is_ok()).map(|(raw, _)| *raw).collect();
        if going.len() == all.len() {
            let done = self.metered(OPERATION, body, told, costs, admitted).await;
            self.stored(&ready.changes, &done);
            return done;
        }
        let mut answer = Bytes::from_static(br#"{"Responses":[]}"#);
        if !going.is_empty() {
            let reduced = json::splice_members(&body, &[("Statements", Some(&listed(&going)))]);
            let reduced = Bytes::from(reduced.map_err(|_| broken())?);
            let done = self.metered(OPERATION, reduced, told, costs, admitted).await;
            self.stored(&ready.changes, &done);
            answer = done?;
        }
        let theirs = json::member(&answer, "Responses").map_err(|_| broken())?.unwrap_or(b"[]");
        let mut theirs = json::elements(theirs).map_err(|_| broken())?.into_iter();
        let mut responses: Vec<Vec<u8>> = Vec::with_capacity(all.len());
        for (verdict, stated) in verdicts.iter().zip(&stated) {
            responses.push(match verdict {
                Ok(()) => theirs.next().ok_or_else(broken)?.to_vec(),
                Err(throttles) => {
                    let table = stated.as_ref().map_or("", |stated| &stated.table.name);
                    refusal::of_statement(throttles, table).to_string().into_bytes()
                }
            });
        }
        let responses: Vec<&[u8]> = responses.iter().map(Vec::as_slice).collect();
        let merged = json::splice_members(&answer, &[("Responses", Some(&listed(&responses)))]);
        merged.map(Bytes::from).map_err(|_| broken())
    }

    pub(super) async fn transaction(&self, body: Bytes) -> Result<Bytes, Error> {
        const OPERATION: Operation = Operation::ExecuteTransaction;
        let now = self.gate.now();
        let read = || {
            let all = json::elements(json::member(&body, "TransactStatements").ok()??).ok()?;
            Some((all.iter().map(|raw| self.stated(raw)).collect::<Vec<_>>(), CapacityDetail::read(&body)?))
        };
        let Some((all, told)) = read() else { return self.inner.call(OPERATION, body).await };
        let mut items = Items::default();
        for (nth, stated) in all.iter().enumerate() {
            let Some(stated) = stated else { continue };
            match stated.write(2) {
                Some(write) => items.writes.push((nth, write)),
                None => {
                    items.reads.extend(stated.reads(Access::Strong, TWO).into_iter().map(|one| (nth, one)))
                }
            }
        }
        self.transact_items(now, OPERATION, body.clone(), told, items, all.len()).await
    }
}

/// A statement of a batch names one item: any other is the store's to refuse.
fn entry<'a>(stated: Option<&'a Stated>, raw: &[u8]) -> Entry<'a> {
    let Some(stated) = stated else { return Entry::Unknown };
    if let Some(write) = stated.write(1) {
        return Entry::Write(write);
    }
    let (access, units) = bounds(raw);
    match stated.reads(access, units).as_slice() {
        [one] => Entry::Read(*one),
        _ => Entry::Unknown,
    }
}

/// Which replicas may answer a SELECT, and the lower bound of what it costs.
fn bounds(holder: &[u8]) -> (Access, Units) {
    let consistent = json::member(holder, "ConsistentRead").ok().flatten();
    (demands::read_access(consistent), demands::read_bound(consistent))
}

fn listed(elements: &[&[u8]]) -> Vec<u8> {
    [b"[", &elements.join(&b',')[..], b"]"].concat()
}

fn broken() -> Error {
    Error::internal("A batch of statements or its answer is not the JSON of a DynamoDB batch")
}
