//! What a request names: a table by its name or its ARN, or a part of one.

use heatsink_dynamo::is_table_name;
use heatsink_route::table_name;

use crate::access::Resource;

/// What a text names, with `part` of it, such as an index. What names no table that may exist is of
/// the account: who may not use all may not use that.
pub(crate) fn resource(text: &str, part: Option<(&str, &str)>) -> Resource {
    let name = table_name(text);
    if !is_table_name(name) {
        return Resource::Account;
    }
    let (arn, path) = match text.starts_with("arn:") {
        false => (None, format!("table/{name}")),
        true => {
            let at = text.match_indices(':').nth(4).map(|(at, _)| at);
            let Some((arn, path)) = at.and_then(|at| Some((text.get(..at)?, text.get(at + 1..)?))) else {
                return Resource::Account;
            };
            let path = path.split('|').next().unwrap_or(path);
            // Both readings of the ARN have to be the same.
            let rest = path.strip_prefix("table/").and_then(|rest| rest.strip_prefix(name));
            if !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
                return Resource::Account;
            }
            (Some(arn.to_owned()), path.to_owned())
        }
    };
    let path = match part {
        Some((kind, part)) => format!("table/{name}/{kind}/{part}"),
        None => path,
    };
    Resource::Table { name: name.to_owned(), path, arn }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_named_by_name_or_arn() {
        let table = |path: &str, arn: Option<&str>| Resource::Table {
            name: "Orders".to_owned(),
            path: path.to_owned(),
            arn: arn.map(str::to_owned),
        };
        let prefix = "arn:aws:dynamodb:eu-west-1:1";
        assert_eq!(resource("Orders", None), table("table/Orders", None));
        assert_eq!(resource("Orders", Some(("index", "i"))), table("table/Orders/index/i", None));
        assert_eq!(resource(&format!("{prefix}:table/Orders"), None), table("table/Orders", Some(prefix)));
        let stream = format!("{prefix}:table/Orders/stream/2024-01-01T00:00:00.000");
        assert_eq!(
            resource(&stream, None),
            table("table/Orders/stream/2024-01-01T00:00:00.000", Some(prefix))
        );
        assert_eq!(
            resource(&format!("{stream}|1|AAAA"), None),
            table("table/Orders/stream/2024-01-01T00:00:00.000", Some(prefix))
        );
        for text in [
            "",
            "a b",
            "arn:",
            "arn:aws:dynamodb:eu-west-1:1:global-table/Orders",
            "arn:aws:dynamodb:table/Orders:1:table/Other",
            "arn:aws:dynamodb:eu-west-1:1:1:table/Orders",
            "arn:aws:dynamodb:eu-west-1:1:table/Orders|x:table/Other",
        ] {
            let found = resource(text, None);
            let is_orders = matches!(&found, Resource::Table { name, .. } if name == "Orders");
            assert!(found == Resource::Account || is_orders && text.contains('|'), "{text}: {found:?}");
        }
    }
}
