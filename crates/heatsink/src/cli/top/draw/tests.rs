//! The screen at many sizes, of names that would do harm, of a server that is gone.

use heatsink_env::MonotonicInstant;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;

use super::*;
use crate::cli::top::app::tests::{at, heat, press};
use crate::cli::top::told::Told;

fn screen(app: &App, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(app, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y: u16| -> String { (0..width).map(|x| buffer[(x, y)].symbol()).collect() };
    (0..height).map(|y| row(y).trim_end().to_owned() + "\n").collect()
}

pub(super) fn viral() -> App {
    let mut app = App::new("127.0.0.1:8001", at(0));
    for second in 0..30 {
        app.tell(heat(
            1_000 * second,
            &[("game_x", 4_812.0, 2_900.0, 1), ("game_y", 612.0, 0.0, 4), ("lobby", 61.3, 0.0, 1)],
        ));
    }
    let reshards = json!({ "reshards": [
        { "table": "Leaderboards", "key": "game_x", "shards": 16, "phase": "COPY", "moved": 340, "to_move": 1201, "per_second": 320, "ended": null },
        { "table": "Leaderboards", "key": "old", "shards": 4, "phase": null, "ended": { "as": "moved", "text": "" } }] });
    app.tell(Told::Reshards(Ok(serde_json::from_value(reshards).unwrap())));
    let gateways =
        json!({ "gateways": [{ "name": "gw-1, 10.0.0.1:8000" }, { "name": "gw-2", "behind": true }] });
    app.tell(Told::Gateways(Ok(serde_json::from_value(gateways).unwrap())));
    app.tick(MonotonicInstant(400_000_000));
    app
}

#[test]
fn all_of_it_fits_80_by_24() {
    let shown = screen(&viral(), 80, 24);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(
        lines[0].starts_with("heatsink top  127.0.0.1:8001 ") && lines[0].ends_with("live, 0.4 s old"),
        "{shown}"
    );
    assert!(
        lines[1].starts_with("5,012 write and 0 read units/s, 5,012 requests/s, 12 % throttled; 3 keys"),
        "{shown}"
    );
    assert!(
        lines[2].starts_with("KEY") && lines[2].contains("LOAD▼") && lines[2].contains("MINUTE"),
        "{shown}"
    );
    assert!(
        lines[3].starts_with("game_x ")
            && lines[3].contains("4,812")
            && lines[3].contains("60 %")
            && lines[3].contains("!!"),
        "{shown}"
    );
    for part in [
        "90 % of its sort keys only grow",
        "16 shards carry it.",
        "heatsink reshard start Leaderboards 'game_x' --shards 16",
        "Reshard: game_x of Leaderboards to 16 shards; COPY, 340 of 1,201 items, 320/s",
        "Gateways: 2 registered: gw-1, 10.0.0.1:8000; gw-2 (behind)",
        "q quit",
    ] {
        assert!(shown.contains(part), "no {part:?} in\n{shown}");
    }
    assert!(!shown.contains("old of"), "it has ended:\n{shown}");
}

#[test]
fn the_hottest_shard_is_told_where_it_is_measured() {
    let told = |measured: serde_json::Value| {
        let mut app = App::new("s", at(0));
        let key = json!({ "key": { "S": "game_x" }, "units_per_s": 900.0, "requests_per_s": 900.0, "shards": 3, "measured": measured });
        let part =
            json!({ "table": "T", "index": null, "kind": "write", "units_per_s": 900.0, "keys": [key] });
        app.tell(Told::Heat(Ok(serde_json::from_value(json!({ "now_ms": 1, "parts": [part] })).unwrap())));
        screen(&app, 100, 24)
    };
    let shard = |units: f64| json!({ "units_per_s": units, "throttled_per_s": 0.0 });
    let shown = told(json!([shard(200.0), shard(150.0), shard(550.0)]));
    assert!(shown.contains("3 shards, measured: 300 units/s on average, up to 550 (#2)"), "{shown}");
    let shown = told(json!(null));
    assert!(shown.contains("3 shards, 300 units/s for each in equal shares: not measured"), "{shown}");
}

#[test]
fn no_size_is_too_small_or_too_large() {
    let mut app = viral();
    for keys in ["", "/", "\u{1b}?"] {
        press(&mut app, keys);
        for (width, height) in
            [(1, 1), (2, 3), (10, 5), (20, 6), (40, 12), (60, 18), (79, 23), (200, 60), (500, 2)]
        {
            let shown = screen(&app, width, height);
            assert!(shown.lines().count() == usize::from(height), "{width}x{height}");
        }
    }
    press(&mut app, "q");
    let narrow = screen(&app, 40, 10);
    assert!(narrow.contains("game_x") && narrow.contains("4,812"), "{narrow}");
    let low = screen(&app, 80, 4);
    assert!(low.contains("KEY") && low.contains("q quit"), "{low}");
    let empty = App::new("s", at(0));
    assert!(screen(&empty, 80, 24).contains("asking"));
}

#[test]
fn hostile_names_are_inert_everywhere() {
    let long = "k".repeat(2_048);
    let hostile = [
        "\u{1b}[2J\u{1b}]0;owned\u{7}",
        "a\nb\r\tc",
        "\u{202e}txt.exe\u{2066}",
        "z\u{200b}\u{feff}w",
        "<b onload=x>&amp;",
        long.as_str(),
    ];
    let mut app = App::new("\u{1b}[31mhost", at(0));
    let keys: Vec<_> = hostile.iter().map(|name| (*name, 900.0, 9.0, 1)).collect();
    app.tell(heat(1, &keys));
    let reshards = json!({ "reshards": [{ "table": "t\u{1b}[1m", "key": "k\n\u{202e}", "shards": 2, "phase": "\u{1b}", "hindered": "\u{7}" }] });
    app.tell(Told::Reshards(Ok(serde_json::from_value(reshards).unwrap())));
    app.tell(Told::Gateways(Err("\u{1b}[2J\n".to_owned())));
    for _ in 0..hostile.len() {
        for (width, height) in [(80, 24), (200, 40), (30, 20)] {
            let shown = screen(&app, width, height);
            let unseen = |c: char| {
                c != '\n'
                    && (c.is_control() || matches!(c, '\u{202e}' | '\u{2066}' | '\u{200b}' | '\u{feff}'))
            };
            assert!(!shown.contains(unseen), "{shown:?}");
        }
        press(&mut app, "↓");
    }
    let shown = screen(&app, 200, 40);
    for part in [
        r"\u{1b}[2J\u{1b}]0;owned\u{7}",
        r"a\nb\r\tc",
        r"\u{202e}txt.exe\u{2066}",
        r"z\u{200b}\u{feff}w",
        "<b onload=x>&amp;",
        "kkk…kkk",
    ] {
        assert!(shown.contains(part), "no {part} in\n{shown}");
    }
    app.tell(Told::Heat(Err("cannot\u{1b}[31m".to_owned())));
    assert!(!screen(&app, 80, 24).contains('\u{1b}'));
    press(&mut app, "/\u{202e}\u{1b}");
    press(&mut app, "/\u{202e}x");
    assert!(screen(&app, 80, 24).contains(r"/\u{202e}x"));
}

#[test]
fn a_server_that_is_gone_is_said_with_the_age_of_what_is_shown() {
    let mut app = viral();
    app.tick(at(7_300));
    app.tell(Told::Heat(Err("cannot ask the server at 127.0.0.1:8001: Connection refused".to_owned())));
    let shown = screen(&app, 80, 24);
    assert!(shown.contains("no answer, 7.3 s old") && shown.contains("Trying again: cannot ask"), "{shown}");
    assert!(shown.contains("game_x") && shown.contains("4,812"), "what was seen stays:\n{shown}");
    let mut app = App::new("s", at(0));
    app.tick(at(2_000));
    app.tell(Told::Heat(Err("refused".to_owned())));
    assert!(screen(&app, 80, 24).contains("no answer for 2.0 s"));
}

#[test]
fn the_selected_key_is_on_the_screen_and_a_pause_is_said() {
    let mut app = App::new("s", at(0));
    let names: Vec<String> = (0..90).map(|n| format!("key_{n:02}")).collect();
    let keys: Vec<_> = names.iter().map(|name| (name.as_str(), 10.0, 0.0, 1)).collect();
    app.tell(heat(1, &keys));
    for _ in 0..60 {
        press(&mut app, "↓");
    }
    assert!(screen(&app, 80, 24).contains("key_60"));
    press(&mut app, "p/key_7");
    let shown = screen(&app, 80, 24);
    assert!(
        shown.contains("paused") && shown.contains("10 of 90 keys") && shown.contains("/key_7▏"),
        "{shown}"
    );
}
