//! Global indexes: partitions of their own, a queue, and back-pressure on the table
//! (docs/explain/partitions.md#indexes).

use std::sync::Arc;

use crate::support::{self, SECOND, on_demand, write};
use heatsink_physics::{Demand, KeyRange, Mode, Tables, Units};

#[test]
fn an_index_has_partitions_of_its_own() {
    let (mut tables, own) = on_demand(0);
    let name: Arc<str> = "i".into();
    let index = tables.set_indexes(0, "table", &[(Arc::clone(&name), Mode::ON_DEMAND)])[0];
    assert_eq!(tables.id("table", Some("i")), Some(index));
    let base = write(own, KeyRange::key(1));
    let entry = Demand { units: Units::whole(750), ..write(index, KeyRange::key(1)) };
    // Half a second's worth, and one second's queue.
    assert_eq!(tables.admit(0, &[base, entry]), Ok(()));
    assert_eq!(tables.admit(0, &[base, entry]), Ok(()));
    let refused = tables.admit(0, &[base, entry]).unwrap_err();
    assert_eq!(refused.len(), 1);
    assert_eq!(
        (refused[0].demand, refused[0].reason().as_str()),
        (1, "IndexWriteKeyRangeThroughputExceeded")
    );
    let shown = tables.snapshot(0, "table").unwrap().remove(1);
    assert_eq!(shown.index, Some(name));
    assert_eq!(shown.partitions[0].lag, SECOND, "the queue is a second long");
    assert_eq!(tables.admit(0, &[base]), Ok(()), "the refused pair took nothing from the table");
    tables.set_indexes(0, "table", &[]);
    assert_eq!(tables.admit(0, &[entry]), Ok(()), "an index that is gone is the store's to answer for");
}

/// docs/explain/partitions.md#indexes: a hot index key holds back the writes of all table keys that
/// fall into it, and no others.
#[test]
fn a_hot_index_key_holds_back_the_table() {
    let (mut tables, own) = on_demand(0);
    let index = tables.set_indexes(0, "table", &[("status".into(), Mode::ON_DEMAND)])[0];
    let admitted =
        support::load(&mut tables, 0, 30, 4_000, |nth| write(own, KeyRange::key(support::shuffled(nth))));
    assert!(support::mean(&admitted) > 3_900.0, "without entries all is well: {admitted:?}");
    let mut admitted = 0;
    for nth in 0..30 * 4_000 {
        let now = 30 * SECOND + nth * SECOND / 4_000;
        let demands = [write(own, KeyRange::key(support::shuffled(nth))), write(index, KeyRange::key(7))];
        match tables.offer(now, &demands) {
            Ok(()) => admitted += 1,
            Err(throttle) => assert!(throttle.index, "{throttle:?}"),
        }
    }
    // The index partition's 1,000/s, its half second's worth and its queue's.
    assert!((31_400..=31_501).contains(&admitted), "{admitted}");
}

#[test]
fn a_provisioned_index_gives_its_own_reason() {
    let mut tables = Tables::default();
    let own = tables.create(0, "t".into(), Mode::Provisioned { read: 100, write: 100 });
    let index = tables.set_indexes(0, "t", &[("i".into(), Mode::Provisioned { read: 1, write: 1 })])[0];
    let demands = [write(own, KeyRange::key(1)), write(index, KeyRange::key(1))];
    assert!(tables.offer(0, &demands).is_ok());
    let refused = tables.offer(0, &demands).unwrap_err();
    assert_eq!(refused.reason(), "IndexWriteProvisionedThroughputExceeded");
    assert!(refused.provisioned);
}
