//! The entry of a table's name in the registry: the table whose record holds for the name.
//!
//! Requests name tables by name, and records are stored under the store's table ids. A description
//! is eventually consistent: it may show a former table of the same name. The entry is read with
//! strong consistency, so it decides.

use heatsink_dynamo::Error;
use heatsink_layout::TableLayouts;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::counted::counted;
use crate::record::FORM;
use crate::seal;

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
    /// A gateway is about to create a table of that name, with these layouts, or to give the name
    /// to a table without a record. Until then no request for the name is planned, not even for a
    /// table on record: it may be the former one. `by`: that gateway, until it has given up without
    /// knowing whether the table was created. `former`: the table whose name it was.
    Intent {
        layouts: TableLayouts,
        by: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        former: Option<String>,
    },
    /// The table with this id: its record holds, if it has one. It stays the holder when it is
    /// deleted, so that no table before it is taken for it.
    Bound { id: String },
    /// Nobody, as far as is known: a table of that name was not created.
    Free,
}

impl NameEntry {
    /// The id of the table whose name it is.
    pub(crate) fn id(&self) -> Option<&str> {
        match &self.holder {
            Holder::Bound { id } => Some(id),
            Holder::Intent { former, .. } => former.as_deref(),
            Holder::Free => None,
        }
    }

    /// The next entry, where no table was created: the name is the former table's again.
    pub(crate) fn given_back(&self) -> Self {
        self.held(self.id().map_or(Holder::Free, |id| Holder::Bound { id: id.to_owned() }))
    }

    /// The next entry, with another holder.
    #[must_use]
    pub(crate) fn held(&self, holder: Holder) -> Self {
        NameEntry { name: self.name.clone(), holder, version: self.version + 1 }
    }

    pub(crate) fn key(name: &str) -> Json {
        json!({ "pk": { "S": format!("name:{name}") }, "sk": { "S": SORT } })
    }

    pub(crate) fn item(&self) -> Json {
        seal::sealed(json!({
            "pk": { "S": format!("name:{}", self.name) },
            "sk": { "S": SORT },
            "form": { "N": FORM.to_string() },
            "name": { "S": self.name },
            "holder": { "S": json!(self.holder).to_string() },
            "version": { "N": self.version.to_string() },
        }))
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
                version: counted(item, "version")?,
            })
        };
        read()
            .filter(|_| !seal::is_broken(item))
            .ok_or_else(|| Error::internal(format!("The registry's entry of the name {name} is damaged")))
    }
}
