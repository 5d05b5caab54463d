//! The rule that is proposed for a pattern of keys, as heatsink.toml has it.
//!
//! Not here: whether there should be one ([`verdict`](super::verdict)).

use heatsink_dynamo::display::is_inert;

use super::collected::Collected;
use super::pattern;
use super::seen::{LARGE, Seen};

/// The rule. `buckets`: by the times of these items, of which a key gets so many bytes a day.
pub(super) fn rule(seen: &Seen<'_>, buckets: Option<(&Collected, f64)>, shards: Option<u16>) -> String {
    let mut rule = format!("[[rule]]\ntable    = {}\n", quoted(seen.context.table));
    if let Some(index) = seen.context.recorded.and_then(|recorded| recorded.index) {
        rule += &format!("index    = {}\n", quoted(index));
    }
    rule += &format!("keys     = {}\n", quoted(&pattern::glob(seen.pattern)));
    match buckets {
        None => rule += "strategy = \"calculated\"\n",
        Some((of, a_day)) => {
            let bucket = if a_day * 30.0 > LARGE { "day" } else { "month" };
            rule += &format!("strategy = \"bucket\"\nbucket   = \"{bucket}\"\n");
            if let Some(prefix) = of.prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
                rule += &format!("time     = {{ prefix = {} }}\n", quoted(prefix));
            } else if of.milliseconds {
                rule += "time     = { epoch = \"milliseconds\" }\n";
            }
        }
    }
    if let Some(shards) = shards {
        rule += &format!("shards   = {shards}\n");
    }
    rule
}

/// A text as TOML writes it, with escapes for all that is not shown as it is.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if is_inert(c) => quoted.push(c),
            c if u32::from(c) < 0x1_0000 => quoted += &format!("\\u{:04X}", u32::from(c)),
            c => quoted += &format!("\\U{:08X}", u32::from(c)),
        }
    }
    quoted.push('"');
    quoted
}
