//! `heatsink simulate`: a scenario in virtual time, its remedies side by side.

mod draw;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets::UTF8_BORDERS_ONLY};
use heatsink_simulate::numbers::{grouped, percent};
use heatsink_simulate::scenario::Loaded;
use heatsink_simulate::{Report, shipped, simulate};
use indicatif::{ProgressBar, ProgressStyle};

use super::Output;
use crate::exit::Exit;

/// What `simulate` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A scenario's file, or the name of a shipped one; without it, lists those
    #[arg(value_name = "SCENARIO.toml | NAME")]
    scenario: Option<String>,
    /// Leave out the lines of traces that cannot be read, and count them
    #[arg(long)]
    skip_bad: bool,
    /// Draw the result to this file: SVG or PNG, by its ending
    #[arg(long, value_name = "FILE", value_parser = picture)]
    picture: Option<PathBuf>,
    /// How the result is printed on stdout
    #[arg(long, value_enum, default_value_t)]
    output: Output,
}

/// A file name that says what kind of picture it is.
fn picture(file: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(file);
    let known = path.extension().is_some_and(|extension| extension == "svg" || extension == "png");
    if known { Ok(path) } else { Err("expected a name that ends in .svg or .png".to_owned()) }
}

/// Runs a scenario and prints what it comes to.
pub fn run(args: Args) -> Result<(), Exit> {
    let Some(scenario) = &args.scenario else { return list(args.output) };
    let loaded = load(scenario, args.skip_bad)?;
    let bar = progress();
    let report = simulate(&loaded, &mut |share| bar.set_position(thousandths(share)));
    bar.finish_and_clear();
    if let Some(file) = &args.picture {
        draw::write(&report.svg(), file)?;
    }
    let mut out = std::io::stdout().lock();
    match args.output {
        Output::Json => {
            let json =
                serde_json::to_string_pretty(&report).map_err(|error| Exit::software(error.to_string()))?;
            writeln!(out, "{json}")?;
        }
        Output::Text => out.write_all(words(&report).as_bytes())?,
    }
    out.flush()?;
    Ok(())
}

/// A file if there is one of that name or it says `.toml`; else a shipped scenario.
fn load(scenario: &str, skip_bad: bool) -> Result<Loaded, Exit> {
    let path = Path::new(scenario);
    if !path.is_file() && path.extension().is_none_or(|extension| extension != "toml") {
        return match shipped::shipped(scenario) {
            Some(loaded) => loaded.map_err(|fault| Exit::software(fault.to_string())),
            None => Err(Exit::usage(format!(
                "there is no file and no shipped scenario named {scenario}; `heatsink simulate` lists the shipped ones"
            ))),
        };
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| Exit::usage(format!("cannot read {scenario}: {error}")))?;
    let folder = path.parent().map(PathBuf::from).unwrap_or_default();
    let mut open = |name: &str| std::fs::read_to_string(folder.join(name));
    Loaded::read(scenario, &text, &mut open, skip_bad).map_err(|fault| Exit::usage(fault.to_string()))
}

fn list(output: Output) -> Result<(), Exit> {
    let mut out = std::io::stdout().lock();
    let mut names = Vec::new();
    for (name, _) in shipped::SHIPPED {
        let about = shipped::shipped(name).and_then(Result::ok).map(|loaded| loaded.scenario.about);
        names.push((*name, about.unwrap_or_default()));
    }
    if output == Output::Json {
        let list: Vec<_> = names
            .iter()
            .map(|(name, about)| serde_json::json!({ "scenario": name, "about": about }))
            .collect();
        writeln!(out, "{}", serde_json::json!(list))?;
        return Ok(out.flush()?);
    }
    let mut table = table();
    for (name, about) in names {
        table.add_row([name.to_owned(), about]);
    }
    writeln!(
        out,
        "{table}\nRun one: heatsink simulate {}",
        shipped::SHIPPED.first().map_or("NAME", |(name, _)| name)
    )?;
    Ok(out.flush()?)
}

/// On stderr, when that is a terminal.
fn progress() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {percent:>3} %  {eta} left");
    ProgressBar::new(thousandths(1.0)).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share from 0 to 1")]
fn thousandths(share: f64) -> u64 {
    (share * 1_000.0) as u64
}

fn table() -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table
}

fn words(report: &Report) -> String {
    let mut table = table();
    let loads = report.runs.first().map(|run| run.workloads.as_slice()).unwrap_or_default();
    let mut header = vec!["remedy".to_owned()];
    header.extend(
        loads.iter().flat_map(|load| [format!("{}: throttled", load.name), "p99 (model)".to_owned()]),
    );
    header
        .extend(["write units/s", "read units/s", "$/month", "partitions", "what breaks"].map(str::to_owned));
    table.set_header(header);
    for run in &report.runs {
        let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
        let mut row = vec![Cell::new(&run.name)];
        let p99 = |ms: Option<f64>| ms.map_or_else(String::new, milliseconds);
        row.extend(
            run.workloads
                .iter()
                .flat_map(|load| [right(percent(load.throttled_share)), right(p99(load.p99_ms))]),
        );
        row.extend([
            right(grouped(run.write_units_per_s)),
            right(grouped(run.read_units_per_s)),
            right(grouped(run.usd_per_month)),
            right(run.partitions.to_string()),
            Cell::new(&run.breaks),
        ]);
        table.add_row(row);
    }
    let mut text = format!("{}\n{table}\n", report.about);
    let mut told: Vec<(&str, Vec<&str>)> = Vec::new();
    for run in &report.runs {
        match told.iter_mut().find(|(diagnosis, _)| *diagnosis == run.diagnosis) {
            Some((_, names)) => names.push(&run.name),
            None => told.push((&run.diagnosis, vec![&run.name])),
        }
    }
    for (diagnosis, names) in told {
        text.push_str(&format!("{}: {diagnosis}\n", names.join(", ")));
    }
    if report.skipped_lines > 0 {
        text.push_str(&format!(
            "{} lines of traces could not be read and were left out.\n",
            report.skipped_lines
        ));
    }
    text
}

fn milliseconds(ms: f64) -> String {
    if ms < 1_000.0 { format!("{ms:.1} ms") } else { format!("{:.1} s", ms / 1_000.0) }
}
