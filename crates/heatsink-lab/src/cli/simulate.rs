//! `heatsink-lab simulate`: runs a scenario in virtual time, its remedies side by side.

use std::path::{Path, PathBuf};
use std::time::Duration;

use heatsink_simulate::numbers::{grouped, percent};
use heatsink_simulate::scenario::{Fault, Loaded};
use heatsink_simulate::{Report, scenario_of_trace, shipped, simulate};

use super::{print, progress, trace_file};
use crate::draw;
use crate::exit::{Exit, in_words};
use crate::output::Output;
use crate::screen;

/// What `simulate` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A scenario's file, or the name of a shipped one; without it, lists those
    #[arg(value_name = "SCENARIO.toml | NAME")]
    scenario: Option<String>,
    /// Replay what `heatsink serve --record` recorded, under each remedy that acts on recorded
    /// requests
    #[arg(long, value_name = "FILE", conflicts_with = "scenario")]
    trace: Option<PathBuf>,
    /// Print the scenario that is made of the trace, to be changed, and do not run it
    #[arg(long, requires = "trace")]
    print_scenario: bool,
    /// Leave out the lines of traces that cannot be read, and count them
    #[arg(long)]
    skip_bad: bool,
    /// Draw the result to this file: SVG or PNG, by its ending
    #[arg(long, value_name = "FILE", value_parser = picture)]
    picture: Option<PathBuf>,
    /// How the result is printed on stdout
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// A file name that says what kind of picture it is.
fn picture(file: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(file);
    let known = path.extension().is_some_and(|extension| extension == "svg" || extension == "png");
    if known { Ok(path) } else { Err("expected a name that ends in .svg or .png".to_owned()) }
}

/// Runs a scenario and prints what it comes to.
pub fn run(args: Args) -> Result<(), Exit> {
    let loaded = match (&args.trace, &args.scenario) {
        (Some(trace), _) => {
            let file = trace.display().to_string();
            let text = trace_file::text(trace, args.skip_bad)
                .map_err(|error| Exit::usage(format!("{file}: {}", in_words(&error))))?;
            let scenario = scenario_of_trace(&file, &text, args.skip_bad).map_err(at_fault)?;
            if args.print_scenario {
                return print::as_it_is(&scenario);
            }
            let mut text = Some(text);
            let mut open = |_: &str| text.take().ok_or_else(|| std::io::ErrorKind::NotFound.into());
            Loaded::read(&file, &scenario, &mut open, args.skip_bad).map_err(at_fault)?
        }
        (None, Some(scenario)) => load(scenario, args.skip_bad)?,
        (None, None) => return list(args.output),
    };
    let report = simulated(&loaded, args.output);
    if let Some(file) = &args.picture {
        draw::write(&report.svg(), file)?;
    }
    match args.output {
        Output::Json => print::pretty_json(&report),
        Output::Text => print::text(&words(&report)),
    }
}

/// Runs it, with a bar where that takes more than a second and stderr is a terminal.
pub(super) fn simulated(loaded: &Loaded, output: Output) -> Report {
    let bar = progress::bar(output, Some(thousandths(1.0)), "{bar:40} {percent:>3} %  {eta} left");
    let report = simulate(loaded, &mut |share| {
        if bar.elapsed() >= Duration::from_secs(1) {
            bar.set_position(thousandths(share));
        }
    });
    bar.finish_and_clear();
    report
}

fn at_fault(fault: Fault) -> Exit {
    Exit::usage(fault.to_string())
}

/// A file if there is one of that name or it says `.toml`; else a shipped scenario.
fn load(scenario: &str, skip_bad: bool) -> Result<Loaded, Exit> {
    let path = Path::new(scenario);
    if !path.is_file() && path.extension().is_none_or(|extension| extension != "toml") {
        return match shipped::shipped(scenario) {
            Some(loaded) => loaded.map_err(|fault| Exit::software(fault.to_string())),
            None => Err(Exit::usage(format!(
                "there is no file and no shipped scenario named {scenario}; `heatsink-lab simulate` lists the shipped ones"
            ))),
        };
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| Exit::usage(format!("cannot read {scenario}: {}", in_words(&error))))?;
    let folder = path.parent().map(PathBuf::from).unwrap_or_default();
    let mut open = |name: &str| trace_file::text(&folder.join(name), skip_bad);
    Loaded::read(scenario, &text, &mut open, skip_bad).map_err(at_fault)
}

fn list(output: Output) -> Result<(), Exit> {
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
        return print::json(&list);
    }
    let mut table = screen::table::<&str>([]);
    for (name, about) in names {
        table.add_row([name.to_owned(), about]);
    }
    let first = shipped::SHIPPED.first().map_or("NAME", |(name, _)| name);
    print::text(&format!("{}Run one: heatsink-lab simulate {first}\n", screen::drawn(table, &[])))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share from 0 to 1")]
fn thousandths(share: f64) -> u64 {
    (share * 1_000.0) as u64
}

/// One row for each remedy and load, so that the width does not grow with the loads.
fn words(report: &Report) -> String {
    let mut table = screen::table([
        "remedy",
        "load",
        "throttled",
        "p99 (model)",
        "write units/s",
        "read units/s",
        "$/month",
        "partitions",
    ]);
    for run in &report.runs {
        for (nth, load) in run.workloads.iter().enumerate() {
            let of_run = |text: String| if nth == 0 { text } else { String::new() };
            table.add_row([
                of_run(run.name.clone()),
                load.name.clone(),
                percent(load.throttled_share),
                load.p99_ms.map_or_else(String::new, milliseconds),
                of_run(grouped(run.write_units_per_s)),
                of_run(grouped(run.read_units_per_s)),
                of_run(grouped(run.usd_per_month)),
                of_run(run.partitions.to_string()),
            ]);
        }
    }
    let mut text = format!("{}\n{}", report.about, screen::drawn(table, &[2, 3, 4, 5, 6, 7]));
    if let Some(measured) = &report.measured {
        text.push_str(&format!("Measured: {measured}.\n"));
    }
    let mut told: Vec<(&str, Vec<&str>)> = Vec::new();
    for run in &report.runs {
        match told.iter_mut().find(|(diagnosis, _)| *diagnosis == run.diagnosis) {
            Some((_, names)) => names.push(&run.name),
            None => told.push((&run.diagnosis, vec![&run.name])),
        }
    }
    text.push_str("What each remedy changes, and what it breaks:\n");
    for run in &report.runs {
        text.push_str(&format!("  {}: {}\n", run.name, run.breaks));
    }
    text.push_str("Where the heat is:\n");
    for (diagnosis, names) in told {
        text.push_str(&format!("  {}: {diagnosis}\n", names.join(", ")));
    }
    if report.skipped_lines > 0 {
        text.push_str(&format!(
            "{} lines of traces could not be read and were left out.\n",
            report.skipped_lines
        ));
    }
    if report.late_lines > 0 {
        text.push_str(&format!(
            "{} lines of traces come after the end of the run, at {} s, and were not offered.\n",
            report.late_lines, report.seconds
        ));
    }
    text
}

pub(super) fn milliseconds(ms: f64) -> String {
    if ms < 1_000.0 { format!("{ms:.1} ms") } else { format!("{:.1} s", ms / 1_000.0) }
}
