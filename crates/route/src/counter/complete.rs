//! Items of a page, of which those of counters are row 0 alone: the other rows are read beside, and folded in.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::expression::{Bindings, Fresh, Projection};
use heatsink_dynamo::json::{self, Malformed};
use heatsink_dynamo::{Error, Operation};
use heatsink_layout::{Layout, Table};

use super::fold::fold;
use crate::answer::unreadable;
use crate::items::fetch::Fetch;
use crate::items::{fragments, identity};
use crate::refusal::unplaced;

/// Which numbers of which counters are completed.
#[derive(Clone, Debug)]
pub(super) struct Complete {
    table: Arc<Table>,
    /// The table's name as the client wrote it, raw.
    name: Vec<u8>,
    consistent: bool,
    report: Option<Vec<u8>>,
    /// The numbers that the page shows, of all layouts.
    shown: Vec<String>,
    /// Whether row 0 is read again: the page may lack numbers that it should show.
    row0_too: bool,
}

impl Complete {
    /// `shown` says of a declared number whether the page shows it. `None` if it shows none.
    pub(super) fn new(
        table: &Arc<Table>,
        name: &[u8],
        consistent: bool,
        report: Option<&[u8]>,
        shown: impl Fn(&str) -> bool,
    ) -> Option<Self> {
        let counted = table.layouts().iter().filter_map(|one| one.layout().counted()).flatten();
        let mut names: Vec<String> = counted.filter(|name| shown(name)).cloned().collect();
        names.sort_unstable();
        names.dedup();
        let report = report.map(<[u8]>::to_vec);
        (!names.is_empty()).then(|| Complete {
            table: Arc::clone(table),
            name: name.to_vec(),
            consistent,
            report,
            shown: names,
            row0_too: false,
        })
    }

    /// Takes the numbers of row 0 from the table too, whatever the page has of them.
    pub(super) fn with_row0(self) -> Self {
        Complete { row0_too: true, ..self }
    }

    fn layout(&self, item: &[u8]) -> Result<Option<&Arc<Layout>>, Malformed> {
        let identity = identity::logical(&self.table, item)?;
        let layout = self.table.layouts().of(identity.partition());
        Ok(layout.filter(|layout| layout.counted().is_some()))
    }

    /// What has to be read for items with logical keys.
    ///
    /// # Errors
    /// `InternalServerError` for items without keys.
    pub(super) fn fetch(&self, items: &[Bytes]) -> Result<Fetch, Error> {
        let mut keys = Vec::new();
        for item in items {
            let layout = self.layout(item).map_err(|Malformed| unreadable(Operation::BatchGetItem))?;
            if let Some(layout) = layout {
                let own = usize::from(!self.row0_too);
                let placement = layout.placement(None).map_err(unplaced)?;
                keys.extend(fragments::keys(&self.table, layout, &placement, item)?.into_iter().skip(own));
            }
        }
        let bindings = Bindings::default();
        let mut fresh = Fresh::avoiding(&bindings);
        let mut projection = Projection::default();
        for name in self.table.key.names().chain(self.shown.iter().map(String::as_str)) {
            projection.add_root(name);
        }
        let mut text = Vec::new();
        json::write_string(&mut text, &projection.render(&mut fresh));
        let mut options = vec![("ProjectionExpression", text)];
        if let (Some(names), _) = bindings.rewritten(&[], &fresh) {
            options.push(("ExpressionAttributeNames", names));
        }
        if self.consistent {
            options.push(("ConsistentRead", b"true".to_vec()));
        }
        Ok(Fetch::new(&self.table, self.name.clone(), options, self.report.clone(), keys))
    }

    /// An item with its sums.
    ///
    /// # Errors
    /// As [`fold`].
    pub(super) fn whole(&self, item: &Bytes, fetched: &Fetch) -> Result<Bytes, Error> {
        let broken = |Malformed| unreadable(Operation::BatchGetItem);
        let Some(layout) = self.layout(item).map_err(broken)? else { return Ok(item.clone()) };
        let identity = identity::logical(&self.table, item).map_err(broken)?;
        let Some(parts) = fetched.parts(&identity) else { return Ok(item.clone()) };
        let counted = layout.counted().unwrap_or_default().iter();
        let counted: Vec<String> = counted.filter(|name| self.shown.contains(name)).cloned().collect();
        let mut item = item.clone();
        if let (true, Some(row0)) = (self.row0_too, parts.base()) {
            let mut own = Vec::new();
            for name in &counted {
                own.push((name.as_str(), json::member(row0, name).map_err(broken)?));
            }
            item = json::splice_members(&item, &own).map(Bytes::from).map_err(broken)?;
        }
        fold(&counted, &item, parts.others())
    }
}
