//! `heatsink partitions TABLE`: the partitions of a table in a running server, as bars of heat.

use std::fmt::Write as _;

use heatsink_dynamo::display::inert;
use serde::Deserialize;

use super::{ask_server, operator_socket, print};
use crate::exit::Exit;
use crate::output::Output;

/// Width of a bar that stands for one full ceiling.
const FULL: f64 = 15.0;

/// What `partitions` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The table
    table: String,
    /// The running server: the address or endpoint of its clients, if it is this user's, or its
    /// socket; or its admin address on this machine
    #[arg(long, value_name = "HOST:PORT|SOCKET", default_value = "127.0.0.1:8000")]
    server: String,
    /// How they are printed on stdout
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

#[derive(Debug, Deserialize)]
struct Table {
    resources: Vec<Resource>,
}

#[derive(Debug, Deserialize)]
struct Resource {
    index: Option<String>,
    mode: String,
    read_units_per_s: u64,
    write_units_per_s: u64,
    partitions: Vec<Partition>,
}

#[derive(Debug, Deserialize)]
struct Partition {
    id: u64,
    first_position: String,
    first_sort_key: String,
    state: String,
    splits_in_s: Option<u64>,
    not_split_because: Option<String>,
    read_units_per_s: f64,
    write_units_per_s: f64,
    throttled_per_s: u64,
    lag_ms: u64,
}

/// Asks the server and prints what it says. Exit 69 when there is no server or it has no
/// partitions, 64 when it knows no such table.
pub fn run(args: Args) -> Result<(), Exit> {
    let server = operator_socket::host_and_port(&args.server);
    let (status, body) = ask_server::get(server, &format!("partitions?table={}", escaped(&args.table)))?;
    if status != 200 {
        return Err(refused(server, status, &body));
    }
    if args.output == Output::Json {
        return print::as_it_is(&format!("{}\n", body.trim_end()));
    }
    let table: Table = serde_json::from_str(&body)
        .map_err(|problem| Exit::failed(format!("the server's answer cannot be read: {problem}")))?;
    let pictures: Vec<String> =
        table.resources.iter().map(|resource| picture(&args.table, resource)).collect();
    print::text(&pictures.concat())
}

/// A refusal in the server's words, without its JSON.
fn refused(server: &str, status: u16, body: &str) -> Exit {
    let said = ask_server::said(body);
    let reason = format!("the server at {server} says: {said}");
    match (status, said.starts_with("there is no table")) {
        (404, true) => Exit::usage(reason),
        (404 | 403, _) => Exit::unavailable(reason),
        _ => Exit::failed(reason),
    }
}

/// Table names are letters, digits, `_`, `-` and `.`; whatever else was typed is escaped.
fn escaped(table: &str) -> String {
    table.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.') {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

/// A line per partition: writes and reads as shares of their ceilings of 1,000 and 3,000 units per
/// second.
fn picture(table: &str, resource: &Resource) -> String {
    let mut text = String::new();
    let name = resource.index.as_deref().map_or(table.to_owned(), |index| format!("{table} / {index}"));
    let _ = writeln!(
        text,
        "{name}: {}, {} read and {} write units/s, {} partitions",
        resource.mode,
        resource.read_units_per_s,
        resource.write_units_per_s,
        resource.partitions.len()
    );
    for partition in &resource.partitions {
        let sort = match partition.first_sort_key.as_str() {
            "" => String::new(),
            sort => format!(" from \"{}\"", inert(sort)),
        };
        let mut notes = Vec::new();
        if partition.throttled_per_s > 0 {
            notes.push(format!("{} throttled/s", partition.throttled_per_s));
        }
        match (&partition.splits_in_s, &partition.not_split_because) {
            (Some(seconds), _) => notes.push(format!("splits in {seconds} s")),
            (None, Some(why)) => notes.push(format!("{}: {why}", partition.state)),
            (None, None) => {}
        }
        if partition.lag_ms > 0 {
            notes.push(format!("{} ms behind", partition.lag_ms));
        }
        let _ = writeln!(
            text,
            "{:>5}  {}…  W {} {:>6.0}  R {} {:>6.0}  {}{sort}",
            partition.id,
            &partition.first_position[..4.min(partition.first_position.len())],
            bar(partition.write_units_per_s / 1_000.0),
            partition.write_units_per_s,
            bar(partition.read_units_per_s / 3_000.0),
            partition.read_units_per_s,
            notes.join(", "),
        );
    }
    text
}

fn bar(share: f64) -> String {
    // A float to integer cast saturates; a bar is never longer than its full width.
    #[allow(clippy::cast_possible_truncation, reason = "clamped to the bar's width")]
    let (filled, width) = ((share.clamp(0.0, 1.0) * FULL).round() as usize, FULL as usize);
    format!("{}{}", "█".repeat(filled), "·".repeat(width - filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_and_notes() {
        let partition = |id, writes: f64, throttled| Partition {
            id,
            first_position: "8000000000000000".into(),
            first_sort_key: String::new(),
            state: "stuck".into(),
            splits_in_s: None,
            not_split_because: (throttled > 0).then(|| "single-item".into()),
            read_units_per_s: 0.0,
            write_units_per_s: writes,
            throttled_per_s: throttled,
            lag_ms: 0,
        };
        let resource = Resource {
            index: None,
            mode: "on-demand".into(),
            read_units_per_s: 12_000,
            write_units_per_s: 4_000,
            partitions: vec![partition(0, 0.0, 0), partition(1, 1_000.0, 3_000)],
        };
        let text = picture("votes", &resource);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "votes: on-demand, 12000 read and 4000 write units/s, 2 partitions");
        assert!(lines[1].contains(&"·".repeat(15)) && lines[2].contains(&"█".repeat(15)));
        assert!(lines[2].contains("3000 throttled/s, stuck: single-item"), "{}", lines[2]);
    }
}
