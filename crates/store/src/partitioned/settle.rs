//! Distributes the cost that the store reports for a request over its admitted demands.

use std::sync::Arc;

use heatsink_dynamo::capacity::write_units;
use heatsink_dynamo::size::item_size;
use heatsink_dynamo::value::read_item;
use heatsink_dynamo::{Code, Error, Outcome};
use heatsink_physics::{Access, Demand, KeyRange, Units};

use super::capacity::Consumed;
use super::catalogue::TableInfo;

/// What a request's demands have to pay in all, bounds included. A table's figure is shared among
/// its demands: each its lower bound, and an equal share of what is above the bounds. The second
/// part is what no demand stood for: index writes of an update or a delete, of which only the index
/// is known.
pub(super) fn costs(
    demands: &[Demand],
    consumed: &[Consumed],
    table: impl Fn(&str) -> Option<Arc<TableInfo>>,
) -> (Vec<Units>, Vec<Demand>) {
    let mut costs: Vec<Units> = demands.iter().map(|demand| demand.units).collect();
    let mut unasked = Vec::new();
    for told in consumed {
        let Some(table) = table(&told.table) else { continue };
        let belongs = |on| on == table.id || table.indexes.iter().any(|index| index.id == on);
        let of_table: Vec<usize> = (0..demands.len()).filter(|at| belongs(demands[*at].on)).collect();
        let Some(first) = of_table.first() else { continue };
        if !demands[*first].access.writes() {
            // One read touches a table or one index, never both.
            share(demands, &of_table, told.total(), &mut costs);
            continue;
        }
        let (own, mut entries): (Vec<usize>, Vec<usize>) =
            of_table.iter().partition(|at| demands[**at].on == table.id);
        share(demands, &own, told.own(), &mut costs);
        for (index, units) in told.indexes() {
            let Some(index) = table.index(index) else { continue };
            let (these, others): (Vec<usize>, Vec<usize>) =
                entries.iter().partition(|at| demands[**at].on == index.id);
            entries = others;
            if these.is_empty() {
                unasked.push(Demand { on: index.id, access: Access::Write, place: KeyRange::Unknown, units });
            }
            share(demands, &these, units, &mut costs);
        }
        // An index that is not reported was not written.
        share(demands, &entries, Units::ZERO, &mut costs);
    }
    (costs, unasked)
}

/// What the demands of a failed request have to pay.
/// `index` tells whether a demand is on an index.
pub(super) fn costs_of_failure(
    demands: &[Demand],
    error: &Error,
    index: impl Fn(&Demand) -> bool,
) -> Vec<Units> {
    let cost = |demand: &Demand| match error.code {
        // A failed condition is paid for, a cancelled transaction too; neither wrote an index (AWS,
        // "Read and write operations").
        Code::ConditionalCheckFailedException
        | Code::DuplicateItemException
        | Code::TransactionCanceledException
            if index(demand) =>
        {
            Units::ZERO
        }
        Code::ConditionalCheckFailedException | Code::DuplicateItemException => {
            demand.units.max(what_was_there(error))
        }
        Code::TransactionCanceledException => demand.units,
        // It may have been done.
        _ if error.status >= 500 || error.outcome == Outcome::Unknown => demand.units,
        _ => Units::ZERO,
    };
    demands.iter().map(cost).collect()
}

/// The write units of the item that failed the condition, where the client asked for it
/// (`ReturnValuesOnConditionCheckFailure`).
fn what_was_there(error: &Error) -> Units {
    let item = error.members.get("Item").and_then(|item| read_item(item.to_string().as_bytes()).ok());
    item.map_or(Units::ZERO, |item| Units::from_f64(write_units(item_size(&item), 0)))
}

fn share(demands: &[Demand], of: &[usize], units: Units, costs: &mut [Units]) {
    let bounds: Units = of.iter().map(|at| demands[*at].units).sum();
    let above = units >= bounds;
    let rest = if above { units.less(bounds) } else { units };
    for (at, share) in of.iter().zip(rest.shares(of.len())) {
        costs[*at] = if above { demands[*at].units + share } else { share };
    }
}

#[cfg(test)]
mod tests {
    use heatsink_physics::{ResourceId, Tables};

    use super::*;

    /// A table with two indexes, and their ids: of the table and of both.
    fn table() -> (Arc<TableInfo>, [ResourceId; 3]) {
        let description =
            br#"{"TableName":"t","TableArn":"arn","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],
            "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],
            "GlobalSecondaryIndexes":[{"IndexName":"i","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}]},
                {"IndexName":"j","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}]}]}"#;
        let mut info = TableInfo::read(description).unwrap();
        let mut tables = Tables::default();
        info.id = tables.create(0, Arc::clone(&info.name), info.mode);
        let indexes: Vec<_> =
            info.indexes.iter().map(|index| (Arc::clone(&index.name), index.mode)).collect();
        let ids = tables.set_indexes(0, "t", &indexes);
        (info.indexes[0].id, info.indexes[1].id) = (ids[0], ids[1]);
        let all = [info.id, ids[0], ids[1]];
        (Arc::new(info), all)
    }

    fn demand(on: ResourceId, access: Access) -> Demand {
        Demand { on, access, place: KeyRange::key(0), units: Units::ONE }
    }

    fn consumed(json: &str) -> Vec<Consumed> {
        vec![serde_json::from_str(json).unwrap()]
    }

    #[test]
    fn what_is_above_the_bounds_is_shared() {
        let (table, [own, i, j]) = table();
        let demands = [own, i, own].map(|on| demand(on, Access::Write));
        let told = consumed(
            r#"{"TableName":"t","CapacityUnits":9.0,"GlobalSecondaryIndexes":{"i":{"CapacityUnits":2.0},"j":{"CapacityUnits":1.0}}}"#,
        );
        let (costs, unasked) = costs(&demands, &told, |_| Some(Arc::clone(&table)));
        assert_eq!(costs, [Units::whole(3), Units::whole(2), Units::whole(3)]);
        assert_eq!((unasked[0].on, unasked[0].units), (j, Units::ONE));
    }

    #[test]
    fn an_index_that_was_not_written_costs_nothing() {
        let (table, [own, i, _]) = table();
        let demands = [own, i].map(|on| demand(on, Access::Write));
        let told = consumed(r#"{"TableName":"t","CapacityUnits":1.0}"#);
        let (costs, _) = costs(&demands, &told, |_| Some(Arc::clone(&table)));
        assert_eq!(costs, [Units::ONE, Units::ZERO]);
    }

    #[test]
    fn a_read_of_an_index_pays_all_of_it() {
        let told = consumed(
            r#"{"TableName":"t","CapacityUnits":5.5,"GlobalSecondaryIndexes":{"i":{"CapacityUnits":5.5}}}"#,
        );
        let (table, [_, i, _]) = table();
        let read = [demand(i, Access::Eventual)];
        assert_eq!(costs(&read, &told, |_| Some(Arc::clone(&table))).0, [Units::from_f64(5.5)]);
    }

    #[test]
    fn failures() {
        let (_, [own, i, _]) = table();
        let demands = [own, i].map(|on| demand(on, Access::Write));
        let costs_of_failure =
            |demands: &[Demand], error: &Error| costs_of_failure(demands, error, |demand| demand.on == i);
        let failed = costs_of_failure(&demands, &Error::bare(Code::ConditionalCheckFailedException));
        assert_eq!(failed, [Units::ONE, Units::ZERO]);
        let was = serde_json::json!({ "pk": {"S": "x".repeat(3 * 1024)} });
        let shown = Error::bare(Code::ConditionalCheckFailedException).with("Item", was);
        assert_eq!(costs_of_failure(&demands, &shown), [Units::whole(4), Units::ZERO]);
        assert_eq!(costs_of_failure(&demands, &Error::validation("no")), [Units::ZERO; 2]);
        let lost = Error::unavailable("lost", Outcome::Unknown);
        assert_eq!(costs_of_failure(&demands, &lost), [Units::ONE; 2]);
    }
}
