//! One thing that a request asks for: to do that, with these keys and attributes of that table.

/// What a request names of something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// There is nothing of the kind in such a request.
    Nothing,
    /// Not looked at yet.
    Unread,
    /// Nothing narrows it: all of them.
    All,
    /// These alone.
    These(Vec<Vec<u8>>),
}

/// What is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    /// A table, or a part of one such as an index: the table's name, its path in an ARN, such as
    /// `table/Orders/index/by-day`, and the ARN's beginning where the request names it by one.
    Table { name: String, path: String, arn: Option<String> },
    /// What is of no table; or of none that can be told, so that it may be of each.
    Account,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// IAM's name, without `dynamodb:`.
    pub(crate) action: &'static str,
    pub(crate) resource: Resource,
    /// Logical partition keys.
    pub(crate) keys: Asked,
    /// Top-level attributes that it names, or that its answer may hold.
    pub(crate) attributes: Asked,
    /// What a read selects, by its parameter or without it.
    pub(crate) select: Option<String>,
    /// What a write returns, likewise.
    pub(crate) returned: Option<String>,
}

impl Access {
    /// One whose keys and attributes are all there are.
    pub(crate) fn whole(action: &'static str, resource: Resource) -> Self {
        Access { action, resource, keys: Asked::All, attributes: Asked::All, select: None, returned: None }
    }

    /// The table's name, where it is of one.
    pub(crate) fn table(&self) -> Option<&str> {
        match &self.resource {
            Resource::Table { name, .. } => Some(name),
            Resource::Account => None,
        }
    }
}
