//! `heatsink shards`: how many shards a key needs, and what they cost.

use std::io::Write;

use comfy_table::{CellAlignment, Table, presets::UTF8_BORDERS_ONLY};
use heatsink_heat::{Advice, Asked, Row, advise};
use serde_json::json;

use super::Output;
use crate::exit::Exit;

/// What `shards` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Sustained writes of the key a second
    #[arg(long, value_name = "PER_SECOND")]
    writes: f64,
    /// Writes a second at its peak [default: the sustained rate]
    #[arg(long, value_name = "PER_SECOND")]
    peak: Option<f64>,
    /// Reads of a page in order a second, a top 100 for example
    #[arg(long, value_name = "PER_SECOND", default_value_t = 0.0)]
    reads: f64,
    /// Bytes of an item; a write costs a unit for each KB begun
    #[arg(long, value_name = "BYTES", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..=409_600))]
    item_bytes: u32,
    /// Items of a page
    #[arg(long, value_name = "ITEMS", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    page: u32,
    /// The table's partitions, if known (`heatsink partitions`, or capacity / 1,000) [default: those of a table that carries four times this key]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    partitions: Option<u32>,
    /// How likely it may be that some partition is overloaded at the peak, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    risk: f64,
    /// How the result is printed on stdout
    #[arg(long, value_enum, default_value_t)]
    output: Output,
}

/// Runs it.
pub fn run(args: Args) -> Result<(), Exit> {
    let asked = asked(&args)?;
    let advice = advise(asked);
    let mut out = std::io::stdout().lock();
    match args.output {
        Output::Json => writeln!(out, "{}", json(&advice))?,
        Output::Text => text(&advice, &mut out)?,
    }
    out.flush()?;
    Ok(())
}

fn asked(args: &Args) -> Result<Asked, Exit> {
    let peak = args.peak.unwrap_or(args.writes);
    for (name, value) in [("--writes", args.writes), ("--peak", peak), ("--reads", args.reads)] {
        if !(0.0..=1e9).contains(&value) {
            return Err(Exit::usage(format!(
                "{name} is a rate from 0 to 1,000,000,000 a second, not {value}"
            )));
        }
    }
    if peak < args.writes {
        return Err(Exit::usage(format!("--peak ({peak}) is below --writes ({})", args.writes)));
    }
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
    value
}

fn next_steps(advice: &Advice) -> Vec<String> {
    match &advice.recommended {
        Some(row) if row.shards == 1 => vec!["no rule is needed: one partition carries this key".to_owned()],
        Some(row) => vec![format!("strategy = \"calculated\", shards = {} in heatsink.toml, then heatsink config check", row.shards)],
        None => vec!["no shard count up to 1,000 is enough on so few partitions: pre-warm the table, or spread over several keys of your own".to_owned()],
    }
}

fn text(advice: &Advice, out: &mut impl Write) -> std::io::Result<()> {
    let Asked { writes, peak, partitions, risk, .. } = advice.asked;
    match &advice.recommended {
        Some(row) if row.shards == 1 => {
            writeln!(out, "No sharding: one partition carries {peak} writes/s of this size.")?
        }
        Some(row) => writeln!(
            out,
            "{} shards for {writes} writes/s with peaks of {peak}: {:.0} units/s each at the peak.",
            row.shards, row.peak_units
        )?,
        None => writeln!(out, "No shard count up to 1,000 keeps the risk below {:.3} %.", risk * 100.0)?,
    }
    writeln!(
        out,
        "Each write costs {} units. Reckoned with {} partitions{}.\n",
        advice.units_per_write,
        advice.partitions,
        if partitions.is_some() {
            ""
        } else {
            " (unknown: those of a table that carries four times this key; --partitions says otherwise)"
        }
    )?;
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    table.set_header([
        "",
        "shards",
        "units/s each, peak",
        "too many together",
        "key names that throttle",
        "top page, read units",
        "per shard/s",
        "counter read",
    ]);
    let mut rows: Vec<(&str, &Row)> =
        vec![("peak / 1,000", &advice.simple), ("and a fifth", &advice.simple_with_headroom)];
    rows.extend(advice.around.iter().map(|row| {
        let recommended = advice.recommended.as_ref().is_some_and(|best| best.shards == row.shards);
        (if recommended { "recommended" } else { "" }, row)
    }));
    for (name, row) in rows {
        let costs = &row.costs;
        table.add_row([
            name.to_owned(),
            row.shards.to_string(),
            format!("{:.0}", row.peak_units),
            row.too_many_together.to_string(),
            format!("{:.2} %", row.risk * 100.0),
            format!("{} ({} from one key)", costs.page, costs.page_unsharded),
            format!("{:.0}", costs.page_per_shard),
            format!("{}", costs.counter),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    writeln!(out, "{table}")?;
    writeln!(
        out,
        "\nShards are keys that DynamoDB hashes onto partitions: \"key names that throttle\" is for how many of all names so many shards meet on one \
         partition that it is full at the peak. DynamoDB's own split can part two of them, after minutes of throttling. A full read costs {:.0} \
         read units per MB (128 from one key).",
        advice.recommended.as_ref().unwrap_or(&advice.simple).costs.full_read_per_mb
    )?;
    for step in next_steps(advice) {
        writeln!(out, "Next: {step}")?;
    }
    Ok(())
}
