//! `heatsink-lab plan`: the remedies for a key whose rates are known or feared, simulated side by
//! side, and one recommendation.
//!
//! Not here: the simulation (`heatsink-simulate`), the recommendation (`heatsink_heat::advice`).

use heatsink_heat::advice::{Action, Diagnosis, Observed, Spread, diagnose};
use heatsink_heat::{Asked, DEFAULT_RISK, advise, assess, units_per_write};
use heatsink_layout::MOST_RANGES;
use heatsink_simulate::numbers::{grouped, percent};
use heatsink_simulate::scenario::{Loaded, MAX_RATE};
use heatsink_simulate::{Report, Run};
use heatsink_terminal::rates::{rate, rates};
use serde_json::{Value as Json, json};

use super::print;
use super::simulate::{milliseconds, simulated};
use crate::exit::Exit;
use crate::output::Output;
use crate::screen;

/// Days of a month, as prices are told.
const DAYS: f64 = 730.0 / 24.0;

/// What `plan` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Sustained writes of the key a second
    #[arg(long, value_name = "PER_SECOND", default_value_t = 0.0, value_parser = rate)]
    writes: f64,
    /// Writes a second at its peaks, half a minute in each five [default: the sustained rate]
    #[arg(long, value_name = "PER_SECOND", value_parser = rate)]
    peak: Option<f64>,
    /// Reads of a page in order a second, a top 100 for example
    #[arg(long, value_name = "PER_SECOND", default_value_t = 0.0, value_parser = rate)]
    reads: f64,
    /// Items of a page
    #[arg(long, value_name = "ITEMS", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    page: u32,
    /// Bytes of an item; a write costs a unit for each KB begun
    #[arg(long, value_name = "BYTES", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..=409_600))]
    item: u32,
    /// The table's partitions, if known (`heatsink partitions`) [default: those of a table that
    /// carries four times this key]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(4..=3_333))]
    partitions: Option<u32>,
    /// Sort keys only grow, as times and counters do: DynamoDB does not split such a key
    #[arg(long)]
    growing: bool,
    /// The table's name, for the rule and the command
    #[arg(long, default_value = "TABLE")]
    table: String,
    /// The key, for the rule and the command; its name decides which of its shards share a
    /// partition
    #[arg(long, default_value = "KEY")]
    key: String,
    /// How the result is printed on stdout
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// Runs it.
pub fn run(args: Args) -> Result<(), Exit> {
    let plan = Plan::of(&args)?;
    let scenario = plan.scenario(&args);
    let loaded = Loaded::read("plan", &scenario, &mut |_| Err(std::io::ErrorKind::NotFound.into()), false)
        .map_err(|fault| Exit::usage(fault.to_string()))?;
    let report = simulated(&loaded, args.output);
    match args.output {
        Output::Json => print::json(&plan.json(&args, &report)),
        Output::Text => print::text(&plan.text(&args, &report)),
    }
}

/// What is asked, and what is advised.
struct Plan {
    asked: Asked,
    partitions: u32,
    diagnosis: Diagnosis,
}

impl Plan {
    fn of(args: &Args) -> Result<Plan, Exit> {
        let peak = rates(args.writes, args.peak, args.reads)?;
        if args.writes + args.reads <= 0.0 {
            return Err(Exit::usage("expected --writes, --reads or both"));
        }
        if peak.max(args.reads) > MAX_RATE {
            return Err(Exit::usage(
                "--writes, --peak and --reads: at most 10,000,000 a second are simulated",
            ));
        }
        let mut asked = Asked {
            writes: args.writes,
            peak,
            reads: args.reads,
            item_bytes: args.item,
            page: args.page,
            partitions: args.partitions,
            risk: DEFAULT_RISK,
        };
        // As many as the scenario can have.
        let partitions = advise(asked).partitions.clamp(4, 3_333);
        asked.partitions = Some(partitions);
        let unit = units_per_write(args.item);
        let diagnosis = diagnose(&Observed {
            writes: args.writes * unit,
            peak_writes: peak * unit,
            reads: assess(&asked, 1).costs.page * args.reads,
            queries: args.reads,
            page: args.page,
            item_bytes: args.item,
            growing: if args.growing { 1.0 } else { 0.0 },
            divides: !args.growing,
            shards: 1,
            sort_key: true,
            partitions: Some(partitions),
            ..Observed::default()
        });
        Ok(Plan { asked, partitions, diagnosis })
    }

    /// A table on demand with so many partitions, and a quarter of an hour of the key's load.
    fn scenario(&self, args: &Args) -> String {
        let Asked { writes, peak, reads, item_bytes, page, .. } = self.asked;
        let key = quoted(&args.key);
        let mut scenario = format!(
            "about = \"plan\"\nduration = \"15m\"\nstep = \"10s\"\nstrict_keys = true\n\n[[table]]\nname = \"T\"\nmode = \"on-demand\"\n\
             warm_read = {}\nwarm_write = {}\nitem_bytes = {item_bytes}\n",
            self.partitions * 3_000,
            self.partitions * 1_000
        );
        if writes > 0.0 {
            let sort = if args.growing { "ascending" } else { "random" };
            scenario += &format!(
                "\n[[workload]]\nname = \"writes\"\ntable = \"T\"\noperation = \"put\"\nrate = {writes}\nkey = {key}\nsort = \"{sort}\"\n\
                 part = {{ uniform = {{ prefix = \"part_\", keys = 100_000 }} }}\nitem_bytes = {item_bytes}\n"
            );
            if peak > writes {
                scenario += &format!("burst = {{ rate = {peak}, every = \"5m\", lasts = \"30s\" }}\n");
            }
        }
        if reads > 0.0 {
            scenario += &format!(
                "\n[[workload]]\nname = \"reads\"\ntable = \"T\"\noperation = \"query\"\nrate = {reads}\nkey = {key}\nlimit = {page}\nitem_bytes = {item_bytes}\n"
            );
        }
        let caches = reads > 0.0;
        for (kind, fits) in [
            ("nothing", true),
            ("split", true),
            ("read-cache", caches),
            ("gateway-cache", caches),
            ("bucket", true),
            ("range", !args.growing),
            ("advised", true),
        ] {
            if fits {
                scenario += &format!("\n[[remedy]]\nkind = \"{kind}\"\n");
            }
            if fits && kind == "range" {
                scenario += &format!("shards = {}\n", self.ranges());
            }
        }
        scenario
    }

    /// As many ranges as shards, to compare them; those of the writes alone where none are advised.
    fn ranges(&self) -> u16 {
        let of_writes = || advise(Asked { reads: 0.0, ..self.asked }).recommended.map(|row| row.shards);
        self.diagnosis.shards().or_else(of_writes).unwrap_or(MOST_RANGES).clamp(2, MOST_RANGES)
    }

    /// What to do, in a sentence.
    fn sentence(&self) -> String {
        let Diagnosis { action, sentence, .. } = &self.diagnosis;
        match action {
            Action::Leave => format!("Leave it alone. {sentence}."),
            Action::Wait { shards } => format!(
                "Wait for DynamoDB's own split if minutes of throttling do no harm; otherwise {shards} {}. {sentence}.",
                self.parts()
            ),
            Action::Shard { shards } => format!("Give the key {shards} {}. {sentence}.", self.parts()),
            Action::Cache => format!("Let the gateways answer it from memory. {sentence}."),
            Action::ChangeItem | Action::SeveralKeys => format!("Change the keys. {sentence}."),
        }
    }

    /// What the advised strategy makes of a key.
    fn parts(&self) -> &'static str {
        if self.diagnosis.strategy == Some(Spread::Range) { "ranges" } else { "shards" }
    }

    fn rule(&self, args: &Args) -> Option<String> {
        // In a rule these are patterns.
        if args.key.contains(['*', '?', '[']) {
            return None;
        }
        // Its points are sort keys, which only the command can look at.
        if self.diagnosis.strategy == Some(Spread::Range) {
            return None;
        }
        let shards = self.diagnosis.shards()?;
        let (table, key) = (quoted(&args.table), quoted(&args.key));
        Some(format!(
            "[[rule]]\ntable    = {table}\nkeys     = {key}\nstrategy = \"calculated\"\nshards   = {shards}\n"
        ))
    }

    /// The command for a shell; `None` for names that a terminal would not show as they are.
    fn command(&self, args: &Args) -> Option<String> {
        let plain =
            |name: &str| name.chars().all(|c| c.is_ascii_graphic() || c == ' ' || c.is_alphanumeric());
        let shell = |name: &str| {
            if name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')) {
                return name.to_owned();
            }
            format!("'{}'", name.replace('\'', r"'\''"))
        };
        let shards = self.diagnosis.shards()?;
        let strategy = if self.diagnosis.strategy == Some(Spread::Range) { " --strategy range" } else { "" };
        (plain(&args.table) && plain(&args.key)).then(|| {
            format!(
                "heatsink reshard start {} {}{strategy} --shards {shards} --upstream URL",
                shell(&args.table),
                shell(&args.key)
            )
        })
    }

    fn more_a_month(&self) -> Option<f64> {
        self.diagnosis.dollars_more_a_day.map(|dollars| dollars * DAYS)
    }

    fn json(&self, args: &Args, report: &Report) -> Json {
        let remedy = |run: &Run| {
            let of = |name: &str| {
                run.workloads.iter().find(|load| load.name == name).map(|load| load.throttled_share)
            };
            json!({
                "name": run.name, "throttled_share": run.throttled_share, "writes_throttled_share": of("writes"),
                "reads_throttled_share": of("reads"), "p99_ms": run.p99_ms, "usd_per_month": run.usd_per_month, "breaks": run.breaks,
            })
        };
        json!({
            "asked": self.asked, "partitions": self.partitions, "remedies": report.runs.iter().map(remedy).collect::<Vec<_>>(),
            "recommendation": {
                "diagnosis": self.diagnosis, "sentence": self.sentence(), "rule": self.rule(args), "command": self.command(args),
                "usd_more_per_month": self.more_a_month(),
            },
        })
    }

    fn text(&self, args: &Args, report: &Report) -> String {
        let Asked { writes, peak, reads, page, item_bytes, .. } = self.asked;
        let mut text = format!(
            "{} writes/s of {item_bytes} bytes, peaks of {}, and {} reads/s of {page} items, on one key of a table on demand with {} partitions:\n",
            grouped(writes),
            grouped(peak),
            grouped(reads),
            self.partitions
        );
        let mut table = screen::table([
            "remedy",
            "writes throttled",
            "reads throttled",
            "p99 (model)",
            "$/month, served",
        ]);
        for run in &report.runs {
            let of = |name: &str| {
                let load = run.workloads.iter().find(|load| load.name == name);
                load.map_or_else(String::new, |load| percent(load.throttled_share))
            };
            table.add_row([
                run.name.clone(),
                of("writes"),
                of("reads"),
                run.p99_ms.map_or_else(String::new, milliseconds),
                grouped(run.usd_per_month),
            ]);
        }
        text += &screen::drawn(table, &[1, 2, 3, 4]);
        text += "What is throttled costs nothing, so a remedy that serves more costs more.\n\n";
        text += &format!("{}\n", self.sentence());
        if let Some(more) = self.more_a_month().filter(|more| *more >= 0.5) {
            text +=
                &format!("Reads then cost ${} a month more than all of them from one key.\n", grouped(more));
        }
        if let Some(rule) = self.rule(args) {
            text += &format!("\nFor an empty table, in heatsink.toml:\n{rule}");
        }
        if let Some(command) = self.command(args) {
            text += &format!("\nFor a table in use, whose store is at URL:\n{command}\n");
        }
        text
    }
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    // JSON's strings are TOML's, but for this character.
    json!(text).to_string().replace('\u{7f}', "\\u007f")
}
