//! The entry of a table's name in the registry: the table whose record holds for the name.
//!
//! Requests name tables by name, and records are stored under the store's table ids. A description is eventually consistent: it may show a former
//! table of the same name. The entry is read with strong consistency, so it decides.

use heatsink_dynamo::Error;
use heatsink_layout::TableLayouts;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::record::FORM;

/// The sort key of an entry.
const SORT: &str = "name";

/// The registry's entry of a table's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameEntry {
    pub(crate) name: String,
    pub(crate) holder: Holder,
    /// Counts its changes; each is conditional on the one before.
    pub(crate) version: u64,
}

/// The holder of a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "holder", rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum Holder {
    /// A gateway is about to create a table of that name, with these layouts. `by`: that gateway, until it has given up without knowing whether the
    /// table was created.
    Intent { layouts: TableLayouts, by: Option<String> },
    /// The recorded table with this id.
    Bound { id: String },
    /// Nobody: the table of that name was deleted through Heatsink.
    Free,
}

impl NameEntry {
    /// The next entry, with another holder.
    #[must_use]
    pub(crate) fn held(&self, holder: Holder) -> Self {
        NameEntry { name: self.name.clone(), holder, version: self.version + 1 }
    }

    pub(crate) fn key(name: &str) -> Json {
        json!({ "pk": { "S": format!("name:{name}") }, "sk": { "S": SORT } })
    }

    pub(crate) fn item(&self) -> Json {
        json!({
            "pk": { "S": format!("name:{}", self.name) },
            "sk": { "S": SORT },
            "form": { "N": FORM.to_string() },
            "name": { "S": self.name },
            "holder": { "S": json!(self.holder).to_string() },
            "version": { "N": self.version.to_string() },
        })
    }

    pub(crate) fn read(item: &Json) -> Result<Self, Error> {
        let text = |name: &str| item[name]["S"].as_str();
        let name = text("name").unwrap_or("?");
        if item["form"]["N"].as_str() != Some(&FORM.to_string()) {
            return Err(Error::internal(format!(
                "The registry's entry of the name {name} has a form that this version of Heatsink does not know; it was written by another version"
            )));
        }
        let read = || {
            Some(NameEntry {
                name: text("name")?.to_owned(),
                holder: serde_json::from_str(text("holder")?).ok()?,
                version: item["version"]["N"].as_str()?.parse().ok()?,
            })
        };
        read().ok_or_else(|| Error::internal(format!("The registry's entry of the name {name} is damaged")))
    }
}
