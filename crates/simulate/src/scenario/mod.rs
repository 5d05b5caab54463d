//! The language of scenarios: what a file may say, and whether its fields fit together.
//!
//! Not here: reading a file with all that it names ([`crate::read`]); whether a run is too large
//! ([`crate::bounds`]).

mod check;
mod check_remedy;
mod file;
mod found;
mod keys;
mod loaded;
mod remedy;
pub mod trace;
mod values;

pub(crate) use check::check;
pub(crate) use check_remedy::{reads_again, reads_equal, writes_one_item};
pub use file::{
    Between, Burst, Changing, Client, Consistency, Growth, Index, Load, ModeName, Operation, Page, Scenario,
    Size, Sort, Table, Workload,
};
pub use heatsink_config_diagnostics::Fault;
pub(crate) use keys::read_list;
pub use keys::{Drawn, File, Keys, Order, Rolling, Uniform, Zipf};
pub use loaded::Loaded;
pub use remedy::{Kind, Remedy};
pub use values::{Length, MAX_RATE, Rate, Whole};

/// The published JSON schema of scenarios, for editors and checkers.
pub fn json_schema() -> String {
    let mut text = serde_json::to_string_pretty(&schemars::schema_for!(Scenario)).unwrap_or_default();
    text.push('\n');
    text
}
