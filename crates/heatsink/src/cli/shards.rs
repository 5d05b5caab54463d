//! `heatsink shards`: how many shards a key needs, and what they cost.

use comfy_table::ColumnConstraint;
use heatsink_heat::{Advice, Asked, Cause, DEFAULT_RISK, Row, advise};
use heatsink_physics::PARTITION_READS;
use heatsink_terminal::rates::{rate, rates};
use serde::Serialize;
use serde_json::json;

use super::print;
use crate::exit::Exit;
use crate::output::Output;
use crate::screen;

/// What `shards` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Sustained writes of the key a second
    #[arg(long, value_name = "PER_SECOND", value_parser = rate)]
    writes: f64,
    /// Writes a second at its peak [default: the sustained rate]
    #[arg(long, value_name = "PER_SECOND", value_parser = rate)]
    peak: Option<f64>,
    /// Reads of a page in order a second, a top 100 for example
    #[arg(long, value_name = "PER_SECOND", default_value_t = 0.0, value_parser = rate)]
    reads: f64,
    /// Bytes of an item; a write costs a unit for each KB begun
    #[arg(long, value_name = "BYTES", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..=409_600))]
    item_bytes: u32,
    /// Items of a page
    #[arg(long, value_name = "ITEMS", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    page: u32,
    /// The table's partitions, if known (`heatsink partitions`, or capacity / 1,000) [default:
    /// those of a table that carries four times this key]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    partitions: Option<u32>,
    /// How likely it may be that some partition is overloaded at the peak, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = DEFAULT_RISK * 100.0)]
    risk: f64,
    /// How the result is printed on stdout
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// Runs it.
pub fn run(args: Args) -> Result<(), Exit> {
    let asked = asked(&args)?;
    let advice = advise(asked);
    match args.output {
        Output::Json => print::json(&json(&advice)),
        Output::Text => print::text(&text(&advice)),
    }
}

fn asked(args: &Args) -> Result<Asked, Exit> {
    let peak = rates(args.writes, args.peak, args.reads)?;
    if !(args.risk > 0.0 && args.risk < 100.0) {
        return Err(Exit::usage(format!("--risk is a percentage between 0 and 100, not {}", args.risk)));
    }
    Ok(Asked {
        writes: args.writes,
        peak,
        reads: args.reads,
        item_bytes: args.item_bytes,
        page: args.page,
        partitions: args.partitions,
        risk: args.risk / 100.0,
    })
}

fn json(advice: &Advice) -> serde_json::Value {
    let mut value = json!(advice);
    value["next_steps"] = json!(next_steps(advice));
    value["ranges"] = json!(Ranges::of(advice));
    value
}

/// What reads cost where the shards are ranges of the sort key.
#[derive(Debug, Serialize)]
struct Ranges {
    /// Read units of a page in order, from the range that holds it.
    page: f64,
    /// Read units a second of the one range that all pages are read from, where all are of the
    /// newest or highest items.
    page_per_range: f64,
    /// Whether that is within what a partition takes.
    fits: bool,
}

impl Ranges {
    fn of(advice: &Advice) -> Ranges {
        let page = advice.simple.costs.page_unsharded;
        let page_per_range = page * advice.asked.reads;
        Ranges { page, page_per_range, fits: page_per_range <= PARTITION_READS as f64 }
    }
}

/// What pages cost in ranges, and when those are right.
fn in_ranges(advice: &Advice) -> String {
    let Ranges { page, page_per_range, fits } = Ranges::of(advice);
    let at_one_end = if advice.asked.reads <= 0.0 {
        String::new()
    } else if fits {
        format!(", {page_per_range:.0} units/s of one range if all pages are at one end")
    } else {
        format!(
            ", but {page_per_range:.0} units/s of one range if all pages are at one end, of the {PARTITION_READS} that it takes: not then"
        )
    };
    format!(
        "In ranges of the sort key (strategy = \"range\", at most 64) a page costs {page} read units, from the range that holds it{at_one_end}. \
         Right where pages and writes fall all over the sort key; wrong where sort keys grow.\n"
    )
}

fn next_steps(advice: &Advice) -> Vec<String> {
    let step = match (&advice.recommended, advice.cause) {
        (Some(row), _) if row.shards == 1 => "no rule is needed: one partition carries this key".to_owned(),
        (Some(row), _) => {
            format!(
                "strategy = \"calculated\", shards = {} in heatsink.toml, then heatsink config check",
                row.shards
            )
        }
        (None, Cause::TableTooSmall) => {
            "raise the table's capacity or pre-warm it, so that it has more partitions, and ask again"
                .to_owned()
        }
        (None, Cause::EveryRead) => {
            "put a cache before the reads, or spread over several keys of your own".to_owned()
        }
        (None, Cause::Risk) => "allow more with --risk, or give the table more partitions".to_owned(),
        (None, _) => "spread over several keys of your own, each with its shards".to_owned(),
    };
    vec![step]
}

fn text(advice: &Advice) -> String {
    let Asked { writes, peak, partitions, .. } = advice.asked;
    let mut text = match &advice.recommended {
        Some(row) if row.shards == 1 => {
            format!("No sharding: one partition carries {peak} writes/s of this size{}.\n", reads(advice))
        }
        Some(row) => format!(
            "{} shards for {writes} writes/s with peaks of {peak}{}: {:.0} units/s each at the peak.\n",
            row.shards,
            reads(advice),
            row.peak_units
        ),
        None => "No shard count up to 1,000 is enough.\n".to_owned(),
    };
    text += &because(advice);
    text += &format!(
        "Each write costs {} write unit{}. Reckoned with {} partitions{}.\n\n",
        advice.units_per_write,
        if advice.units_per_write == 1.0 { "" } else { "s" },
        advice.partitions,
        if partitions.is_some() {
            ""
        } else {
            " (unknown: those of a table that carries four times this key; --partitions says otherwise)"
        }
    );
    text += &rows(advice);
    let recommended = advice.recommended.as_ref().unwrap_or(&advice.simple);
    text += &format!(
        "\nShards are keys that DynamoDB hashes onto partitions: \"key names that throttle\" is for how many of all names so many shards meet on one \
         partition that it is full at the peak. DynamoDB's own split can part two of them, after minutes of throttling. A page in order costs \
         {} read units from one key; a full read costs {:.0} per MB over the shards, and 128 from one key.\n",
        recommended.costs.page_unsharded, recommended.costs.full_read_per_mb
    );
    if recommended.shards > 1 {
        text += &in_ranges(advice);
    }
    for step in next_steps(advice) {
        text += &format!("Next: {step}\n");
    }
    text
}

/// The reads that were asked for, if any.
fn reads(advice: &Advice) -> String {
    match advice.asked.reads {
        reads if reads > 0.0 => format!(" and {reads} reads/s"),
        _ => String::new(),
    }
}

/// Why that many, or why none.
fn because(advice: &Advice) -> String {
    let peak = advice.asked.peak * advice.units_per_write;
    let too_few = |ceiling: &str| {
        let (Some(fewer), allowed) = (&advice.one_less, advice.asked.risk * 100.0) else {
            return String::new();
        };
        let meet = match fewer.too_many_together {
            1 => "one of them alone reaches".to_owned(),
            many => format!("{many} of them on one partition reach"),
        };
        format!(
            "{} shards would be too few: {meet} its {ceiling} units/s, for {} of all key names. Allowed is {allowed} %.\n",
            fewer.shards,
            percent(fewer.risk)
        )
    };
    match advice.cause {
        Cause::OnePartition => String::new(),
        Cause::Writes => too_few("1,000 write"),
        Cause::Reads => too_few("3,000 read"),
        Cause::TableTooSmall => format!(
            "The table's {} partitions take {} write units/s together, and the peak is {peak}.\n",
            advice.partitions,
            u64::from(advice.partitions) * 1_000
        ),
        Cause::MostShards => format!(
            "1,000 shards, the most that a rule may have, take 1,000,000 write units/s on a partition each, and the peak is {peak}.\n"
        ),
        Cause::EveryRead => format!(
            "{} reads/s ask every shard for at least half a unit each, and a partition takes 3,000 read units/s.\n",
            advice.asked.reads
        ),
        Cause::Risk => format!(
            "Every count overloads some partition for more than {} % of all key names.\n",
            advice.asked.risk * 100.0
        ),
    }
}

/// The counts in order, each once, with what is to be said of it.
fn rows(advice: &Advice) -> String {
    let mut rows: Vec<(Vec<&str>, &Row)> = Vec::new();
    let named = [("peak / 1,000", &advice.simple), ("and a fifth", &advice.simple_with_headroom)];
    let recommended = advice.recommended.iter().map(|row| ("recommended", row));
    for (name, row) in named.into_iter().chain(recommended).chain(advice.around.iter().map(|row| ("", row))) {
        match rows.iter_mut().find(|(_, known)| known.shards == row.shards) {
            Some((names, _)) => names.push(name),
            None => rows.push((vec![name], row)),
        }
    }
    rows.sort_by_key(|(_, row)| row.shards);
    let mut table = screen::table([
        "",
        "shards",
        "units/s each, peak",
        "fill one partition",
        "key names that throttle",
        "page, read units",
        "page, units/s of a shard",
        "counter, read units",
    ]);
    for (names, row) in rows {
        let costs = &row.costs;
        let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
        table.add_row([
            names.join("\n"),
            row.shards.to_string(),
            format!("{:.0}", row.peak_units),
            if row.too_many_together > u32::from(row.shards) {
                "none".to_owned()
            } else {
                row.too_many_together.to_string()
            },
            percent(row.risk),
            costs.page.to_string(),
            format!("{:.0}", costs.page_per_shard),
            costs.counter.to_string(),
        ]);
    }
    if let Some(names) = table.column_mut(0) {
        names.set_constraint(ColumnConstraint::ContentWidth);
    }
    screen::drawn(table, &[1, 2, 3, 4, 5, 6, 7])
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}
