//! Logical and physical keys: what is written is read back, whatever the key.

use std::sync::Arc;

use heatsink_layout::{
    Glob, KeyLayout, Layout, MAX_PARTITION_KEY, Slot, SortKey, Table, TableLayouts, Template, codec,
};

use crate::layouts::{calculated, schema};

/// Any key has one physical key in each shard, from which it is read back; any sort key has one
/// shard.
pub fn keys(data: &[u8]) {
    let decoded = codec::decode(data);
    assert!(decoded.logical.len() <= data.len());
    let layout = calculated();
    if !data.is_empty() && data.len() + 16 < MAX_PARTITION_KEY {
        for shard in 0..layout.shards {
            let physical = codec::encode(data, shard).expect("it is short enough");
            let decoded = codec::decode(&physical);
            assert_eq!((decoded.logical, decoded.shard), (data, shard));
            assert_eq!(physical, [data, codec::suffix(data, shard).as_bytes()].concat());
        }
    }
    let text = String::from_utf8_lossy(data);
    for sort in [SortKey::B(data), SortKey::S(&text), SortKey::N(&text)] {
        let slot = layout.slot_of(Some(sort)).expect("a calculated shard follows from any sort key");
        assert!(slot.shard < layout.shards && slot.bucket.is_none());
    }
    // The first line is a template, the rest a key.
    let (first, rest) = text.split_once('\n').unwrap_or((&text, "k"));
    if let Ok(template) = Template::read(first) {
        let layout = Layout {
            strategy: heatsink_layout::Strategy::Template {
                template,
                by: heatsink_layout::By::SortKey,
                time: None,
            },
            ..calculated()
        };
        let layouts = TableLayouts::new(vec![KeyLayout::new(Glob::new("*"), layout.clone())]);
        let table = Table::new(schema("S").expect("a table"), Arc::new(layouts));
        let own = table.layouts().of(rest.as_bytes()).cloned().expect("every key has a layout");
        for shard in 0..layout.shards {
            let slot = Slot::shard(shard);
            if let Ok(physical) = table.physical(rest.as_bytes(), &own, slot) {
                assert_eq!(table.decode(&physical).0, rest.as_bytes(), "{first:?} {rest:?}");
            }
        }
    }
}
