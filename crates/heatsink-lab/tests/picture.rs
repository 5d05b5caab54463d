//! The pictures of `heatsink-lab simulate`: a shipped scenario drawn as SVG and as PNG shows what
//! its report says.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking; the command is a process"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use resvg::tiny_skia::{Pixmap, PremultipliedColorU8, Rect};
use resvg::usvg::{Node, Options, Paint, Tree};
use serde_json::Value as Json;

const ACCEPTED: [u8; 3] = [0x3b, 0x7d, 0xd8];
const THROTTLED: [u8; 3] = [0xe4, 0x57, 0x2e];
const GRID: [u8; 3] = [0xe3, 0xe7, 0xec];

/// Pixels of the PNG for each of the SVG's.
const SCALE: f32 = 2.0;

/// Runs a scenario of three remedies, draws it to `file`, and gives the report.
fn drawn(file: &Path) -> Json {
    let done = Command::new(env!("CARGO_BIN_EXE_heatsink-lab"))
        .args(["simulate", "votes", "--output", "json", "--picture"])
        .arg(file)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("heatsink-picture-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Where areas and lines of a colour lie. The legend's squares, which are rectangles of 11 pixels,
/// are left out.
fn shapes(tree: &Tree, colour: [u8; 3]) -> Vec<Rect> {
    let mut found = Vec::new();
    for node in tree.root().children() {
        let Node::Path(path) = node else { continue };
        let fill = path.fill().map(|fill| fill.paint());
        let stroke = path.stroke().map(|stroke| stroke.paint());
        for paint in fill.into_iter().chain(stroke) {
            let Paint::Color(of) = paint else { continue };
            let place = path.abs_bounding_box();
            if [of.red, of.green, of.blue] == colour && (place.width(), place.height()) != (11.0, 11.0) {
                found.push(place);
            }
        }
    }
    found
}

/// Whether a run has such requests at all.
fn any(run: &Json, what: &str) -> bool {
    run["series"].as_array().unwrap().iter().any(|point| point[what].as_f64().unwrap() > 0.0)
}

/// Charts of the report that show `what`: `accepted` or `throttled`, of writes and of reads.
fn charts(report: &Json, what: &str) -> usize {
    let runs = report["runs"].as_array().unwrap().iter();
    runs.map(|run| ["writes", "reads"].iter().filter(|kind| any(run, &format!("{kind}_{what}"))).count())
        .sum()
}

#[test]
fn a_picture_shows_every_remedy_its_axes_and_what_was_throttled() {
    let folder = scratch("svg");
    let file = folder.join("votes.svg");
    let report = drawn(&file);
    let text = std::fs::read_to_string(&file).unwrap();
    let tree = Tree::from_str(&text, &Options::default()).unwrap();
    let runs = report["runs"].as_array().unwrap();
    assert!(runs.len() >= 3, "several remedies");
    for run in runs {
        assert!(text.contains(&format!(">{}</text>", run["name"].as_str().unwrap())), "{}", run["name"]);
    }
    let (accepted, throttled) = (shapes(&tree, ACCEPTED), shapes(&tree, THROTTLED));
    assert_eq!(accepted.len(), charts(&report, "accepted"), "an area for each series");
    assert_eq!(throttled.len(), charts(&report, "throttled"), "and one where something was throttled");
    // Three lines with their values for each chart, and times below each run.
    assert_eq!(shapes(&tree, GRID).len() % 3, 0);
    assert!(shapes(&tree, GRID).len() >= 3 * accepted.len());
    assert!(text.matches(" min</text>").count() >= runs.len(), "times");
    assert!(text.contains(">writes/s</text>") && text.contains(">reads/s</text>"));
    // An area is as high as what it stands for: the most that was throttled in a step, over the
    // most that was accepted.
    let most = |what: &str| {
        let series = runs[0]["series"].as_array().unwrap().iter();
        series.map(|point| point[what].as_f64().unwrap()).fold(0.0, f64::max)
    };
    let (said, shown) =
        (most("writes_throttled") / most("writes_accepted"), throttled[0].height() / accepted[0].height());
    assert!((f64::from(shown) / said - 1.0).abs() < 0.1, "{shown} shown, {said} said");
    let last = throttled.last().unwrap();
    assert!(last.height() < throttled[0].height() / 2.0, "a remedy helps, and it shows: {last:?}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_png_has_the_same_areas_in_pixels() {
    let folder = scratch("png");
    let file = folder.join("votes.png");
    let report = drawn(&file);
    let pixels = Pixmap::load_png(&file).unwrap();
    let svg = folder.join("votes.svg");
    assert_eq!(drawn(&svg), report, "one seed, one result");
    let tree = Tree::from_str(&std::fs::read_to_string(&svg).unwrap(), &Options::default()).unwrap();
    let size = tree.size().to_int_size();
    assert_eq!((pixels.width(), pixels.height()), (2 * size.width(), 2 * size.height()));
    for colour in [ACCEPTED, THROTTLED] {
        let areas: Vec<Rect> =
            shapes(&tree, colour).into_iter().filter(|place| place.height() > 4.0).collect();
        assert!(!areas.is_empty());
        for place in areas {
            let share = share(&pixels, &place, colour);
            assert!(share > 0.2, "{share} of {place:?} has the colour {colour:?}");
        }
    }
    // Names and figures are drawn too: there is ink above the first chart, in no colour of a chart.
    let first = shapes(&tree, ACCEPTED)[0];
    let above = Rect::from_ltrb(first.left(), 20.0, first.right(), 45.0).unwrap();
    assert!((0.001..0.5).contains(&share(&pixels, &above, [0x1d, 0x23, 0x29])), "the title");
    std::fs::remove_dir_all(folder).unwrap();
}

/// How much of a place of the SVG has this colour in the PNG.
fn share(pixels: &Pixmap, place: &Rect, colour: [u8; 3]) -> f64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the picture")]
    let at = |edge: f32| (edge * SCALE) as u32;
    let of = |pixel: PremultipliedColorU8| [pixel.red(), pixel.green(), pixel.blue()];
    let (mut all, mut same) = (0u32, 0u32);
    for y in at(place.top())..at(place.bottom()).min(pixels.height()) {
        for x in at(place.left())..at(place.right()).min(pixels.width()) {
            all += 1;
            same += u32::from(pixels.pixel(x, y).is_some_and(|pixel| of(pixel) == colour));
        }
    }
    f64::from(same) / f64::from(all.max(1))
}

#[test]
fn a_picture_of_another_kind_is_refused_before_anything_runs() {
    let done = Command::new(env!("CARGO_BIN_EXE_heatsink-lab"))
        .args(["simulate", "votes", "--picture", "votes.gif"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(64));
    assert!(done.stdout.is_empty() && String::from_utf8_lossy(&done.stderr).contains(".svg or .png"));
}

#[test]
fn a_picture_of_another_command_becomes_a_png() {
    let folder = scratch("convert");
    let (svg, png) = (folder.join("heat.svg"), folder.join("heat.png"));
    let square = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"4\" height=\"3\"><rect width=\"4\" height=\"3\"/></svg>";
    std::fs::write(&svg, square).unwrap();
    let convert = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heatsink-lab"));
        command.arg("picture").arg(&svg).arg(&png).stdin(Stdio::null()).output().unwrap()
    };
    let done = convert();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let pixels = Pixmap::load_png(&png).unwrap();
    assert_eq!((pixels.width(), pixels.height()), (8, 6));
    std::fs::remove_file(&svg).unwrap();
    let done = convert();
    assert_eq!(done.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&done.stderr).contains("No such file"), "{done:?}");
    std::fs::remove_dir_all(folder).unwrap();
}
