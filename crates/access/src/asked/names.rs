//! What a request names: a table by its name or its ARN, or a part of one.

use heatsink_dynamo::is_table_name;
use heatsink_route::table_name;

use crate::access::Resource;

/// The table that a text names as a whole. What names no table that may exist, and the ARN of a
/// part of one, is of the account: who may not use all may not use that. Stores differ in whether
/// such an ARN is the table's.
pub(crate) fn table(text: &str) -> Resource {
    of(text, |path, table| path == table)
}

/// A part of the table that a text names as a whole, such as an index.
pub(crate) fn part(text: &str, kind: &str, part: &str) -> Resource {
    match table(text) {
        Resource::Table { name, path, arn } => {
            Resource::Table { path: format!("{path}/{kind}/{part}"), name, arn }
        }
        Resource::Account => Resource::Account,
    }
}

/// The part of a table that an ARN names, such as a stream.
pub(crate) fn arn_of_part(text: &str, kind: &str) -> Resource {
    let is_part = |path: &str, table: &str| {
        let part = path.strip_prefix(table).and_then(|rest| rest.strip_prefix('/'));
        let part = part.and_then(|rest| rest.strip_prefix(kind)?.strip_prefix('/'));
        part.is_some_and(|part| !part.is_empty() && !part.contains('/'))
    };
    of(text, is_part)
}

/// What a text names, if its path is the one that is wanted beside that of its table.
fn of(text: &str, is_wanted: impl Fn(&str, &str) -> bool) -> Resource {
    let name = table_name(text);
    if !is_table_name(name) {
        return Resource::Account;
    }
    let table = format!("table/{name}");
    let (arn, path) = match text.starts_with("arn:") {
        false => (None, table.as_str()),
        true => {
            let at = text.match_indices(':').nth(4).map(|(at, _)| at);
            let Some((arn, path)) = at.and_then(|at| Some((text.get(..at)?, text.get(at + 1..)?))) else {
                return Resource::Account;
            };
            (Some(arn.to_owned()), path)
        }
    };
    match is_wanted(path, &table) {
        true => Resource::Table { name: name.to_owned(), path: path.to_owned(), arn },
        false => Resource::Account,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_named_by_name_or_arn() {
        let named = |path: &str, arn: Option<&str>| Resource::Table {
            name: "Orders".to_owned(),
            path: path.to_owned(),
            arn: arn.map(str::to_owned),
        };
        let prefix = "arn:aws:dynamodb:eu-west-1:1";
        let orders = format!("{prefix}:table/Orders");
        assert_eq!(table("Orders"), named("table/Orders", None));
        assert_eq!(part("Orders", "index", "i"), named("table/Orders/index/i", None));
        assert_eq!(table(&orders), named("table/Orders", Some(prefix)));
        assert_eq!(part(&orders, "index", "i"), named("table/Orders/index/i", Some(prefix)));
        let label = "stream/2024-01-01T00:00:00.000";
        let stream = format!("{orders}/{label}");
        assert_eq!(arn_of_part(&stream, "stream"), named(&format!("table/Orders/{label}"), Some(prefix)));
        for text in [
            "",
            "a b",
            "arn:",
            "Orders/index/i",
            "arn:aws:dynamodb:eu-west-1:1:global-table/Orders",
            "arn:aws:dynamodb:table/Orders:1:table/Other",
            "arn:aws:dynamodb:eu-west-1:1:1:table/Orders",
            "arn:aws:dynamodb:eu-west-1:1:table/Orders|x:table/Other",
            "arn:aws:dynamodb:eu-west-1:1:table/Orders/",
            stream.as_str(),
        ] {
            assert_eq!(table(text), Resource::Account, "{text}");
            assert_eq!(part(text, "index", "i"), Resource::Account, "{text}");
        }
        for text in [
            "Orders",
            &orders,
            &format!("{orders}/stream"),
            &format!("{orders}/stream/"),
            &format!("{stream}/x"),
        ] {
            assert_eq!(arn_of_part(text, "stream"), Resource::Account, "{text}");
        }
        assert_eq!(arn_of_part(&stream, "backup"), Resource::Account);
    }
}
