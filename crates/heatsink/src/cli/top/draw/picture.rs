//! The screen of a real run as SVG, for docs/how-to/monitor-and-alert.md.
//!
//! `HEATSINK_TOP=127.0.0.1:8001 HEATSINK_TOP_PICTURE="$PWD/docs/pictures/top.svg" cargo test
//! --release --workspace --bin heatsink draw::picture -- --ignored` looks at that server for a
//! minute, as `heatsink top` does, and draws the cells that a terminal would have.

use std::fmt::Write;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use heatsink_env::{Env, RealEnv};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

use super::draw;
use crate::cli::top::app::App;
use crate::cli::top::ask::{self, Asked};
use crate::cli::top::{Event, told::Told};

const SIZE: (u16, u16) = (100, 22);
/// Pixels of a cell.
const CELL: (f64, f64) = (8.4, 18.0);
const MARGIN: f64 = 12.0;
const GROUND: &str = "#131119";
const INK: &str = "#ece9f1";

fn ink(style: Style) -> &'static str {
    match style.fg {
        _ if style.add_modifier.contains(Modifier::REVERSED) => GROUND,
        Some(Color::Red) => "#ff6b5e",
        Some(Color::Yellow) => "#f3b74f",
        Some(Color::Green) => "#7fd3a5",
        Some(Color::Cyan) => "#4cc9f0",
        _ if style.add_modifier.contains(Modifier::DIM) => "#a49eb2",
        _ => INK,
    }
}

/// The cells of a row that have one style, from which column on.
fn runs(buffer: &Buffer, y: u16) -> Vec<(u16, Style, String)> {
    let mut runs: Vec<(u16, Style, String)> = Vec::new();
    for x in 0..buffer.area.width {
        let cell = &buffer[(x, y)];
        match runs.last_mut() {
            Some((_, style, text)) if *style == cell.style() => text.push_str(cell.symbol()),
            _ => runs.push((x, cell.style(), cell.symbol().to_owned())),
        }
    }
    runs
}

fn svg(buffer: &Buffer) -> String {
    let (columns, rows) = (f64::from(buffer.area.width), f64::from(buffer.area.height));
    let (width, height) = (columns * CELL.0 + 2.0 * MARGIN, rows * CELL.1 + 2.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
         font-family=\"'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"14\">\n<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{GROUND}\"/>\n"
    );
    for y in 0..buffer.area.height {
        for (x, style, text) in runs(buffer, y) {
            let (left, top) = (MARGIN + f64::from(x) * CELL.0, MARGIN + f64::from(y) * CELL.1);
            let wide = text.chars().count() as f64 * CELL.0;
            let has = |modifier| style.add_modifier.contains(modifier);
            if has(Modifier::REVERSED) {
                let _ = writeln!(
                    svg,
                    "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{wide:.1}\" height=\"{}\" fill=\"{INK}\"/>",
                    CELL.1
                );
            }
            if text.trim().is_empty() {
                continue;
            }
            let bold = if has(Modifier::BOLD) { " font-weight=\"bold\"" } else { "" };
            let line = if has(Modifier::UNDERLINED) { " text-decoration=\"underline\"" } else { "" };
            let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            // The length is given, so that columns stand below each other in any font.
            let _ = writeln!(
                svg,
                "<text x=\"{left:.1}\" y=\"{:.1}\" textLength=\"{wide:.1}\" fill=\"{}\"{bold}{line} xml:space=\"preserve\">{escaped}</text>",
                top + 13.5,
                ink(style)
            );
        }
    }
    svg + "</svg>\n"
}

fn drawn(app: &App) -> String {
    let mut terminal = Terminal::new(TestBackend::new(SIZE.0, SIZE.1)).unwrap();
    terminal.draw(|frame| draw(app, frame)).unwrap();
    svg(terminal.backend().buffer())
}

#[test]
fn a_screen_is_drawn_cell_by_cell_with_its_colours() {
    let picture = drawn(&super::tests::viral());
    for part in ["4,812", "fill=\"#ff6b5e\"", "font-weight=\"bold\"", "live, 0.4 s old", "&apos;game_x"] {
        assert!(picture.contains(&part.replace("&apos;", "'")), "no {part} in {picture}");
    }
}

#[test]
#[ignore = "looks at a running server for a minute; on demand"]
fn the_picture_of_the_pages() {
    let server = std::env::var("HEATSINK_TOP").expect("HEATSINK_TOP: the address of a running server");
    let file = std::env::var("HEATSINK_TOP_PICTURE").expect("HEATSINK_TOP_PICTURE: where the picture goes");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let env: Arc<dyn Env> = Arc::new(RealEnv);
    let mut app = App::new(&server, env.now());
    let (events, heard) = mpsc::channel();
    let asked = Asked::new(&server, None).unwrap();
    runtime.spawn(ask::again_and_again(asked, Duration::from_secs(1), Arc::clone(&env), events));
    let mut looks = 0;
    while looks < 60 {
        if let Event::Told(told) = heard.recv_timeout(Duration::from_secs(30)).unwrap() {
            looks += u32::from(matches!(told, Told::Heat(_)));
            app.tick(env.now());
            app.tell(told);
        }
    }
    runtime.shutdown_background();
    std::fs::write(file, drawn(&app)).unwrap();
}
