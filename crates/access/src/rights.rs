//! What a client may do: statements that allow or deny, and the judgement over what a request asks.
//!
//! As in IAM what nothing allows is denied, and what something denies is, whatever allows it. Where
//! a request does not narrow the keys that it uses, a statement with a condition on keys does not
//! allow it, and one that denies keys denies it: IAM's own reading of `ForAllValues`, under which an
//! absent list meets every condition, would open Scans to who may have some keys.

use heatsink_layout::Glob;

use crate::access::{Access, Asked, Resource};
use crate::actions;

/// What a client may do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rights {
    pub(crate) statements: Vec<Statement>,
}

#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) allows: bool,
    pub(crate) actions: Vec<&'static str>,
    pub(crate) resources: Vec<Resources>,
    pub(crate) conditions: Vec<Condition>,
}

/// What a statement is about.
#[derive(Clone, Debug)]
pub(crate) enum Resources {
    Everything,
    /// Paths in ARNs, such as `table/Orders*`.
    Paths(Glob),
    /// Tables, whatever of them is named, and what of the account tells nothing of another table.
    Tables(Glob),
}

/// What has to be so besides: every value asked for is like one of these.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub(crate) on: On,
    pub(crate) patterns: Vec<Pattern>,
    /// Whether it holds where the request has nothing of the kind.
    pub(crate) if_absent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    Keys,
    Attributes,
    Select,
    Returned,
}

#[derive(Clone, Debug)]
pub(crate) enum Pattern {
    Is(Vec<u8>),
    Like(Glob),
}

/// The judgement over one access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    Allowed,
    /// No statement allows it.
    NotAllowed,
    /// A statement denies it.
    Denied,
}

impl Pattern {
    fn matches(&self, value: &[u8]) -> bool {
        match self {
            Pattern::Is(text) => text == value,
            Pattern::Like(glob) => glob.matches(value),
        }
    }
}

impl Resources {
    fn matches(&self, action: &str, resource: &Resource) -> bool {
        match (self, resource) {
            (Resources::Everything, _) => true,
            (Resources::Paths(glob), Resource::Table { path, .. }) => glob.matches(path.as_bytes()),
            (Resources::Paths(_), Resource::Account) => false,
            (Resources::Tables(glob), Resource::Table { name, .. }) => glob.matches(name.as_bytes()),
            (Resources::Tables(glob), Resource::Account) => glob.is_any() || actions::is_of_account(action),
        }
    }

    /// Whether it may be that: what cannot be told may be of each table. What is of the account for
    /// certain is of none.
    fn may_match(&self, action: &str, resource: &Resource) -> bool {
        let is_untold = matches!(resource, Resource::Account) && !actions::is_of_account(action);
        is_untold || self.matches(action, resource)
    }
}

impl Condition {
    /// Whether it is certain to hold for `all` that is asked for; without `all`, whether it may hold
    /// for some of it.
    fn holds(&self, access: &Access, all: bool) -> bool {
        let is_like = |value: &[u8]| self.patterns.iter().any(|pattern| pattern.matches(value));
        let is_any = |pattern: &Pattern| matches!(pattern, Pattern::Like(glob) if glob.is_any());
        match self.asked(access) {
            Of::Many(Asked::Nothing) => self.if_absent,
            // Until it is looked at nothing is refused for it.
            Of::Many(Asked::Unread) => all,
            Of::Many(Asked::All) => !all || self.patterns.iter().any(is_any),
            Of::Many(Asked::These(values)) if all => values.iter().all(|value| is_like(value)),
            Of::Many(Asked::These(values)) => values.iter().any(|value| is_like(value)),
            Of::One(value) => value.map_or(self.if_absent, |value| is_like(value.as_bytes())),
        }
    }

    fn asked<'a>(&self, access: &'a Access) -> Of<'a> {
        match self.on {
            On::Keys => Of::Many(&access.keys),
            On::Attributes => Of::Many(&access.attributes),
            On::Select => Of::One(access.select.as_deref()),
            On::Returned => Of::One(access.returned.as_deref()),
        }
    }
}

enum Of<'a> {
    Many(&'a Asked),
    One(Option<&'a str>),
}

impl Statement {
    fn is_about(&self, access: &Access) -> bool {
        self.actions.contains(&access.action)
            && self.resources.iter().any(|one| match self.allows {
                true => one.matches(access.action, &access.resource),
                false => one.may_match(access.action, &access.resource),
            })
    }

    fn applies(&self, access: &Access) -> bool {
        self.is_about(access) && self.conditions.iter().all(|one| one.holds(access, self.allows))
    }
}

impl Rights {
    /// Whether nothing is denied that anyone could ask for.
    pub(crate) fn are_all(&self) -> bool {
        let is_all = |one: &Statement| {
            one.allows
                && one.conditions.is_empty()
                && one.resources.iter().any(|resources| matches!(resources, Resources::Everything))
                && actions::all().all(|action| one.actions.contains(&action))
        };
        self.statements.iter().any(is_all) && self.statements.iter().all(|one| one.allows)
    }

    /// Whether a statement has a condition on that.
    pub(crate) fn look_at(&self, on: On) -> bool {
        self.statements.iter().flat_map(|one| &one.conditions).any(|condition| condition.on == on)
    }

    /// The judgement over one access.
    pub(crate) fn judge(&self, access: &Access) -> Judgement {
        let applying =
            |allows: bool| self.statements.iter().any(|one| one.allows == allows && one.applies(access));
        match (applying(false), applying(true)) {
            (true, _) => Judgement::Denied,
            (false, true) => Judgement::Allowed,
            (false, false) => Judgement::NotAllowed,
        }
    }

    /// Whether it may do anything with a table.
    pub(crate) fn show(&self, table: &str) -> bool {
        actions::all().any(|action| {
            let resource =
                Resource::Table { name: table.to_owned(), path: format!("table/{table}"), arn: None };
            let unread = Access {
                action,
                resource,
                keys: Asked::Unread,
                attributes: Asked::Unread,
                select: None,
                returned: None,
            };
            let about = |allows| self.statements.iter().filter(move |one| one.allows == allows);
            about(true).any(|one| one.is_about(&unread))
                && !about(false).any(|one| one.is_about(&unread) && one.conditions.is_empty())
        })
    }
}
