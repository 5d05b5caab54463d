//! Sources of layouts that stand before another one and answer a question or two themselves.
//!
//! Not a default of the trait: a source that forgot to pass on `is_hidden` would show the registry to clients.

/// Passes on, to the source in this field, what no such source answers itself, and those of `note`, `found` and `drawn_slot` that are named.
macro_rules! passed_on {
    ($inner:tt: $($method:ident),+) => {
        fn table(&self, name: &str) -> Option<std::sync::Arc<heatsink_layout::Table>> {
            self.$inner.table(name)
        }

        fn placement(&self, table: &heatsink_layout::Table, key: &[u8]) -> heatsink_layout::Placement {
            self.$inner.placement(table, key)
        }

        fn reads(&self, table: &heatsink_layout::Table, key: &[u8]) -> heatsink_layout::Reads {
            self.$inner.reads(table, key)
        }

        fn now(&self) -> Option<u64> {
            self.$inner.now()
        }

        fn handle(&self) -> std::sync::Arc<dyn heatsink_layout::LayoutSource> {
            self.$inner.handle()
        }

        fn is_hidden(&self, name: &str) -> bool {
            self.$inner.is_hidden(name)
        }

        fn hidden_tables(&self) -> Vec<String> {
            self.$inner.hidden_tables()
        }

        $($crate::passed_on::passed_on!(@$method $inner);)+
    };
    (@note $inner:tt) => {
        fn note(&self, table: &heatsink_layout::Table, key: &[u8], bucket: heatsink_layout::Bucket) {
            self.$inner.note(table, key, bucket);
        }
    };
    (@found $inner:tt) => {
        fn found(
            &self,
            table: &heatsink_layout::Table,
            key: &[u8],
            sort: Option<heatsink_layout::SortKey<'_>>,
        ) -> Option<heatsink_layout::Slot> {
            self.$inner.found(table, key, sort)
        }
    };
    (@drawn_slot $inner:tt) => {
        fn drawn_slot(
            &self,
            table: &heatsink_layout::Table,
            layout: &heatsink_layout::Layout,
            key: &[u8],
            sort: Option<heatsink_layout::SortKey<'_>>,
        ) -> Result<heatsink_layout::Slot, heatsink_layout::Unplaced> {
            self.$inner.drawn_slot(table, layout, key, sort)
        }
    };
}
pub(crate) use passed_on;
