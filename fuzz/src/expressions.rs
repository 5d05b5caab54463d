//! Expressions: what is read is written again with the same meaning. The first byte chooses the
//! kind.

use heatsink_dynamo::Item;
use heatsink_dynamo::expression::{
    Bindings, Checks, Condition, Fresh, KeyCondition, Kind, Projection, Update,
};
use heatsink_dynamo::value::read_item;

use crate::layouts::schema;

const NAMES: &[u8] = br##"{"#p":"pk","#s":"sk","#a":"a","#b":"b c"}"##;
const VALUES: &[u8] = br#"{":s":{"S":"x"},":n":{"N":"-1.50"},":b":{"B":"AA=="},":l":{"L":[{"N":"1"}]},":ss":{"SS":["a","b"]},":t":{"BOOL":true}}"#;
const ITEM: &[u8] = br#"{"pk":{"S":"x"},"sk":{"S":"y"},"a":{"L":[{"M":{"b":{"N":"1"}}},{"S":"x"}]},"b c":{"N":"-1.5"},"t":{"SS":["a"]}}"#;

/// Any text is refused, or means the same when it is read again as it was written.
pub fn expressions(data: &[u8]) {
    let Some((choice, text)) = data.split_first() else { return };
    let (Ok(text), Ok(bindings)) = (std::str::from_utf8(text), Bindings::read(Some(NAMES), Some(VALUES)))
    else {
        return;
    };
    let item: Item = read_item(ITEM).expect("an item");
    match choice % 5 {
        0 | 1 => {
            let kind = if choice % 5 == 0 { Kind::Condition } else { Kind::Filter };
            for checks in [Checks::All, Checks::Meaning] {
                let Ok(read) = Condition::read(kind, text, &bindings, checks) else { continue };
                let (written, names, values) = again(&bindings, |fresh| read.render(fresh));
                let rebound =
                    Bindings::read(names.as_deref(), values.as_deref()).expect("bindings of our own");
                let reread = Condition::read(kind, &written, &rebound, Checks::Meaning)
                    .unwrap_or_else(|error| panic!("{text} was written as {written}: {error}"));
                assert_eq!(read.holds(&item), reread.holds(&item), "{text} was written as {written}");
                assert_eq!(read.roots(), reread.roots(), "{text} was written as {written}");
            }
        }
        2 => {
            if let Ok(read) = Update::parse(text, &bindings) {
                let (written, names, values) = again(&bindings, |fresh| read.render(fresh));
                let rebound =
                    Bindings::read(names.as_deref(), values.as_deref()).expect("bindings of our own");
                let reread = Update::parse(&written, &rebound)
                    .unwrap_or_else(|error| panic!("{text} was written as {written}: {error}"));
                assert_eq!(read, reread, "{text} was written as {written}");
            }
        }
        3 => {
            if let Ok(read) = Projection::parse(text, &bindings) {
                let shown = read.apply(&item);
                let asked = |name: &String| read.paths.iter().any(|path| path.root == *name);
                assert!(shown.keys().all(asked), "{text} shows what was not asked for");
            }
        }
        _ => {
            let schema = schema("S").expect("a table");
            if let Ok(read) = KeyCondition::parse(text, &bindings, &schema.key) {
                assert_eq!(read.partition[0].0, "pk");
            }
        }
    }
}

type Written = (String, Option<Vec<u8>>, Option<Vec<u8>>);

fn again(bindings: &Bindings<'_>, render: impl FnOnce(&mut Fresh) -> String) -> Written {
    let mut fresh = Fresh::avoiding(bindings);
    let written = render(&mut fresh);
    let (names, values) = bindings.rewritten(&[], &fresh);
    (written, names, values)
}
