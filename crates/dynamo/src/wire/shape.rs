//! What a shape table is made of.

/// What a value has to be.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    /// A string.
    Text(&'static Text),
    /// A number, cut to a whole one.
    Whole(&'static Whole),
    /// A boolean; the texts `"true"` and `"false"` pass for one.
    Flag,
    /// An attribute value.
    Value,
    /// An attribute value whose content is judged by who uses it: DynamoDB words the errors
    /// differently by operation.
    LaterValue,
    List(&'static List),
    Map(&'static Map),
    Structure(&'static Structure),
    /// Anything: judged by who carries the request out.
    Any,
}

/// Limits of a string: characters, and the words it must be one of.
pub(super) struct Text {
    pub(super) least: usize,
    pub(super) most: usize,
    pub(super) words: &'static [&'static str],
    pub(super) named: Named,
}

/// What else a string must satisfy, or how its error is worded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    Plain,
    /// A table's name or ARN; an empty one is reported alone, and otherwise than a short one.
    Table,
    /// `ReturnValues` of PutItem and DeleteItem: DynamoDB names neither the value nor the member.
    ReturnValues,
}

/// Limits of a number.
pub(super) struct Whole {
    /// The name of its Java class: `Integer` or `Long`.
    pub(super) class: &'static str,
    pub(super) least: i64,
    pub(super) most: i64,
}

pub(super) struct List {
    pub(super) of: Shape,
    pub(super) least: usize,
    pub(super) most: usize,
    pub(super) wording: Wording,
}

pub(super) struct Map {
    pub(super) of: Shape,
    /// The Java type of its values, as in "Unrecognized collection type
    /// java.util.Map<java.lang.String, …>".
    pub(super) class: &'static str,
    pub(super) least: usize,
    pub(super) most: usize,
    pub(super) total: Total,
}

/// A limit on the elements of all lists of a map together, one list for each member.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Total {
    /// None.
    Any,
    /// BatchGetItem's keys: the longest list is named.
    Keys(usize),
    /// BatchWriteItem's requests: the map is named.
    Writes(usize),
}

/// How the error about a length begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wording {
    /// `Value '[]' at 'attributesToGet'`
    Quoted,
    /// `Value at 'RequestItems.game.member.Keys'`: comes before all others, which are then left
    /// out.
    Unquoted,
}

pub(super) struct Structure {
    /// Its name in the service model.
    pub(super) name: &'static str,
    /// At most 64, in the order in which DynamoDB reports them.
    pub(super) members: &'static [Member],
}

pub(super) struct Member {
    pub(super) name: &'static str,
    pub(super) required: bool,
    pub(super) shape: Shape,
}
