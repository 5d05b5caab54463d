//! Which ranges of its sort key a key is to lie in: those that `--split-at` names, or those that
//! divide its items equally.

use heatsink_control::reshard_intent::WantedLayout;
use heatsink_control::rules::split_point;
use heatsink_layout::SplitPoints;
use heatsink_workers::{TableContext, quantiles};

use super::args::{Start, in_ranges};
use super::told::exit;
use crate::exit::Exit;

/// What is wanted of a key, with its ranges where these are asked for.
pub(super) async fn with_ranges(
    context: &TableContext,
    key: &[u8],
    start: &Start,
    wanted: WantedLayout,
) -> Result<WantedLayout, Exit> {
    if !in_ranges(start) || wanted.shards == 1 {
        return Ok(wanted);
    }
    let points = match named(context, start)? {
        Some(points) => points,
        None => quantiles(context, key, wanted.shards, start.how.rate).await.map_err(exit)?,
    };
    Ok(WantedLayout { split_at: Some(points), ..wanted })
}

/// The ranges that the command names.
fn named(context: &TableContext, start: &Start) -> Result<Option<SplitPoints>, Exit> {
    if start.split_at.is_empty() {
        return Ok(None);
    }
    let Some(sort) = &context.table().key.sort else {
        return Err(Exit::usage(format!(
            "Table {} has no sort key, whose ranges a key could lie in",
            start.table
        )));
    };
    let wrong = |why: String| Exit::usage(format!("--split-at: {why}"));
    let points = start.split_at.iter().map(|text| split_point(text, sort.key_type)).collect::<Result<_, _>>();
    SplitPoints::new(points.map_err(wrong)?).map(Some).map_err(|bad| wrong(bad.to_string()))
}
