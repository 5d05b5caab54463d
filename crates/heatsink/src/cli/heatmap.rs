//! `heatsink heatmap`: the heat of keys over time, as a running server has seen it: in a terminal,
//! or as a picture.
//!
//! Not here: how it is drawn (`heatsink-terminal`), PNG of it (`heatsink-lab picture`).

use std::path::PathBuf;

use clap::ValueEnum;
use heatsink_terminal::heatmap::{DEFAULT_ROWS, Map, svg, text};

use super::{ask_server, operator_socket, print};
use crate::exit::{Exit, in_words};
use crate::output::Output;
use crate::screen;

/// Columns of text where nothing tells the width: stdout is a file or a pipe.
const DEFAULT_COLUMNS: u16 = 120;

/// What `heatmap` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The running server: the address of its clients, if it is this user's, or its socket; or its
    /// admin address on this machine
    #[arg(long, value_name = "HOST:PORT|SOCKET", default_value = "127.0.0.1:8000")]
    server: String,
    /// The time that is drawn: by the second, the minute, ten minutes, the hour
    #[arg(long, value_enum, default_value = "10m")]
    span: Span,
    /// So many keys, the hottest ones
    #[arg(long, value_name = "N", default_value_t = DEFAULT_ROWS)]
    rows: usize,
    /// Draw it to this file as SVG (`heatsink-lab picture` makes PNG of that)
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    svg: Option<PathBuf>,
    /// Draw it in letters on stdout (what it does without --svg)
    #[arg(long)]
    text: bool,
    /// How it is printed on stdout: `json` is what the server tells
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// The spans that a server keeps.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Span {
    #[value(name = "10m")]
    TenMinutes,
    #[value(name = "6h")]
    SixHours,
    #[value(name = "4d")]
    FourDays,
    #[value(name = "28d")]
    FourWeeks,
}

/// Asks the server and draws what it says. Exit 69 when there is no server or it measures no heat.
pub fn run(args: Args) -> Result<(), Exit> {
    let server = operator_socket::host_and_port(&args.server);
    let span = args.span.to_possible_value();
    let path =
        format!("heat/map?span={}", span.as_ref().map_or("10m", clap::builder::PossibleValue::get_name));
    let (status, body) = ask_server::get(server, &path)?;
    if status != 200 {
        let reason = format!("the server at {server} gives no map: {}", ask_server::said(&body));
        return Err(Exit::unavailable(reason));
    }
    let map: Map = serde_json::from_str(&body)
        .map_err(|problem| Exit::failed(format!("the server's answer cannot be read: {problem}")))?;
    if let Some(file) = &args.svg {
        std::fs::write(file, svg::draw(&map, args.rows)).map_err(|error| {
            Exit::unavailable(format!("cannot write {}: {}", file.display(), in_words(&error)))
        })?;
    }
    match args.output {
        Output::Json => print::as_it_is(&format!(
            "{}
",
            body.trim_end()
        )),
        Output::Text if args.svg.is_some() => Ok(()),
        Output::Text => {
            let columns = screen::columns().unwrap_or(DEFAULT_COLUMNS);
            print::as_it_is(&text::draw(&map, args.rows, usize::from(columns)))
        }
    }
}
