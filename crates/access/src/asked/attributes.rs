//! The top-level attributes that a request names, or that its answer may hold.

use std::collections::BTreeSet;

use heatsink_dynamo::expression::{Assigned, Bindings, Checks, Condition, Kind, Path, Projection, Update};
use serde_json::Value as Json;

use super::keys::{self, Facts};
use crate::access::{Asked, Resource};

/// Members whose own members are named after attributes.
const BY_NAME: [&str; 6] =
    ["Key", "Expected", "KeyConditions", "QueryFilter", "ScanFilter", "AttributeUpdates"];

/// Names of attributes.
#[derive(Default)]
pub(crate) struct Attributes {
    all: bool,
    names: BTreeSet<String>,
}

impl Attributes {
    pub(crate) fn asked(self) -> Asked {
        match self.all {
            true => Asked::All,
            false => Asked::These(self.names.into_iter().map(String::into_bytes).collect()),
        }
    }

    /// All of them: nothing says which.
    pub(crate) fn add_all(&mut self) {
        self.all = true;
    }

    pub(crate) fn add(&mut self, name: &str) {
        self.names.insert(name.to_owned());
    }

    pub(crate) fn add_path(&mut self, path: &Path) {
        self.add(&path.root);
    }

    /// The names of an item, or of what is written by name.
    pub(crate) fn add_members(&mut self, object: Option<&Json>) {
        match object {
            None | Some(Json::Null) => {}
            Some(Json::Object(members)) => members.keys().for_each(|name| self.add(name)),
            Some(_) => self.add_all(),
        }
    }

    /// What the parameters of a request name, or of an element of a transaction.
    pub(crate) fn add_parameters(&mut self, request: &Json) {
        for name in BY_NAME {
            self.add_members(request.get(name));
        }
        if keys::bound(request, |bindings| self.add_expressions(request, bindings)).is_none() {
            self.add_all();
        }
        match request.get("AttributesToGet") {
            None | Some(Json::Null) => {}
            Some(Json::Array(names)) => {
                for name in names {
                    name.as_str()
                        .map_or_else(|| self.all = true, |name| self.names.extend([name.to_owned()]));
                }
            }
            Some(_) => self.add_all(),
        }
    }

    /// What the expressions of a request name; `None` where that cannot be told of one.
    fn add_expressions(&mut self, request: &Json, bindings: &Bindings<'_>) -> Option<()> {
        for kind in [Kind::Condition, Kind::Filter, Kind::KeyCondition, Kind::Projection, Kind::Update] {
            match request.get(kind.parameter()) {
                None | Some(Json::Null) => {}
                Some(text) => self.add_expression(kind, text.as_str()?, bindings)?,
            }
        }
        Some(())
    }

    /// What an expression names; `None` where that cannot be told.
    fn add_expression(&mut self, kind: Kind, text: &str, bindings: &Bindings<'_>) -> Option<()> {
        match kind {
            Kind::Projection => {
                let projection = Projection::read(text, bindings, Checks::Meaning).ok()?;
                projection.paths.iter().for_each(|path| self.add_path(path));
            }
            Kind::Update => {
                let update = Update::parse(text, bindings).ok()?;
                update.targets().for_each(|path| self.add_path(path));
                update.set.iter().for_each(|(_, value)| self.add_assigned(value));
            }
            kind => {
                let condition = Condition::read(kind, text, bindings, Checks::Meaning).ok()?;
                condition.paths().into_iter().for_each(|path| self.add_path(path));
            }
        }
        Some(())
    }

    fn add_assigned(&mut self, value: &Assigned) {
        match value {
            Assigned::Path(path) => self.add_path(path),
            Assigned::Value(_) => {}
            Assigned::IfNotExists(path, default) => {
                self.add_path(path);
                self.add_assigned(default);
            }
            Assigned::ListAppend(a, b) | Assigned::Plus(a, b) | Assigned::Minus(a, b) => {
                self.add_assigned(a);
                self.add_assigned(b);
            }
        }
    }

    /// What a read gives, by what it selects.
    pub(crate) fn add_selected(&mut self, select: &str) {
        if select.starts_with("ALL") {
            self.add_all();
        }
    }

    /// What the position of a page holds, whatever is selected: the keys of the item that it stands
    /// at.
    pub(crate) fn with_position(
        mut self,
        facts: Facts<'_>,
        resource: &Resource,
        index: Option<&str>,
    ) -> Asked {
        let (Some(known), Resource::Table { name, .. }) = (facts, resource) else {
            return if facts.is_none() { Asked::Unread } else { Asked::All };
        };
        match known.get(name).and_then(|table| table.of_position(index)) {
            Some(keys) => keys.for_each(|name| self.add(name)),
            None => self.add_all(),
        }
        self.asked()
    }

    /// What a write gives back, of the item as it was or is.
    pub(crate) fn add_returned(&mut self, request: &Json) {
        let gives_item = |name: &str| match request.get(name) {
            None | Some(Json::Null) => false,
            Some(Json::String(text)) => !["NONE", "UPDATED_OLD", "UPDATED_NEW"].contains(&text.as_str()),
            Some(_) => true,
        };
        if gives_item("ReturnValues") || gives_item("ReturnValuesOnConditionCheckFailure") {
            self.add_all();
        }
    }
}
