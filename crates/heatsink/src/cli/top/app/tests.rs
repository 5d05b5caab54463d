//! Rows, order, filter and time, without a terminal.

use serde_json::json;

use super::*;

/// Heat with these keys: name, write units, requests throttled, shards.
pub fn heat(now_ms: u64, keys: &[(&str, f64, f64, u16)]) -> Told {
    let keys: Vec<_> = keys
        .iter()
        .map(|(key, units, throttled, shards)| {
            json!({ "key": { "S": key }, "units_per_s": units, "error_units_per_s": 4.0, "requests_per_s": units, "throttled_per_s": throttled,
                "shards": shards, "growing_sort_share": 0.9 })
        })
        .collect();
    let part = json!({ "table": "Leaderboards", "index": null, "kind": "write", "units_per_s": 5_012.0, "requests_per_s": 5_012.0,
        "throttled_per_s": 602.0, "keys": keys });
    let advice = json!({ "table": "Leaderboards", "key": "game_x", "sentence": "Key \"game_x\" of table Leaderboards: 16 shards carry it.",
        "diagnosis": {}, "command": "heatsink reshard start Leaderboards 'game_x' --shards 16" });
    Told::Heat(
        serde_json::from_value(json!({ "now_ms": now_ms, "parts": [part], "advice": [advice] }))
            .map_err(|_| String::new()),
    )
}

pub fn at(millis: u64) -> MonotonicInstant {
    MonotonicInstant(millis * 1_000_000)
}

pub fn press(app: &mut App, keys: &str) {
    for one in keys.chars() {
        let code = match one {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            '\u{8}' => KeyCode::Backspace,
            '↓' => KeyCode::Down,
            '↑' => KeyCode::Up,
            '→' => KeyCode::Right,
            one => KeyCode::Char(one),
        };
        app.press(KeyEvent::new(code, KeyModifiers::NONE));
    }
}

fn names(app: &App) -> Vec<String> {
    app.rows().iter().map(|key| key.key.clone()).collect()
}

fn three() -> App {
    let mut app = App::new("127.0.0.1:8000", at(0));
    app.tell(heat(1, &[("game_x", 900.0, 90.0, 1), ("Tenant", 4_000.0, 0.0, 8), ("game_y", 10.0, 0.0, 1)]));
    app
}

#[test]
fn rows_are_sorted_by_each_column_and_filtered() {
    let mut app = three();
    assert_eq!(names(&app), ["game_x", "Tenant", "game_y"], "of what its partitions give");
    press(&mut app, "s");
    assert_eq!((app.sort, names(&app)[0].as_str()), (Column::Throttled, "game_x"));
    press(&mut app, "s");
    assert_eq!(names(&app), ["Tenant", "game_x", "game_y"], "shards");
    press(&mut app, "→");
    assert_eq!(
        (names(&app), app.is_rising()),
        (vec!["Tenant".into(), "game_x".into(), "game_y".into()], true)
    );
    press(&mut app, "r");
    assert_eq!(
        (names(&app), app.is_rising()),
        (vec!["game_y".into(), "game_x".into(), "Tenant".into()], false)
    );
    press(&mut app, "ss");
    assert_eq!((app.sort, names(&app)[0].as_str()), (Column::Units, "Tenant"));
    press(&mut app, "/GAME_z\u{8}\n");
    assert_eq!((names(&app), app.mode), (vec!["game_x".into(), "game_y".into()], Mode::Keys));
    press(&mut app, "/q");
    assert!(names(&app).is_empty() && !app.is_done, "q is a letter there");
    press(&mut app, "\u{1b}");
    assert_eq!((names(&app).len(), app.keys().len()), (3, 3));
    press(&mut app, "/leader");
    assert_eq!(names(&app).len(), 3, "the table counts too");
}

#[test]
fn the_selection_follows_its_key() {
    let mut app = three();
    press(&mut app, "↓");
    assert_eq!(app.rows()[app.selected_row(&app.rows())].key, "Tenant");
    press(&mut app, "ss");
    assert_eq!(app.rows()[app.selected_row(&app.rows())].key, "Tenant");
    press(&mut app, "↓↓↓↓");
    assert_eq!(app.selected_row(&app.rows()), 2);
    press(&mut app, "↑");
    assert_eq!(app.selected_row(&app.rows()), 1);
    app.tell(heat(2, &[("other", 1.0, 0.0, 1)]));
    assert_eq!(app.selected_row(&app.rows()), 0, "it is gone");
    app.tell(heat(3, &[]));
    press(&mut app, "↓↑");
    assert!(app.rows().is_empty());
}

#[test]
fn a_pause_holds_what_is_shown_and_a_silence_is_said_with_its_age() {
    let mut app = three();
    press(&mut app, "p");
    app.tick(at(2_000));
    app.tell(heat(2, &[("new", 1.0, 0.0, 1)]));
    assert_eq!((names(&app).len(), app.age()), (3, Duration::from_secs(2)));
    app.tell(Told::Heat(Err("connection refused".to_owned())));
    assert_eq!(app.problem.as_deref(), Some("connection refused"));
    press(&mut app, "p");
    app.tell(heat(3, &[("new", 1.0, 0.0, 1)]));
    assert_eq!(
        (names(&app), app.age(), app.problem.is_none()),
        (vec!["new".to_owned()], Duration::ZERO, true)
    );
    app.tell(Told::Reshards(Err("no".to_owned())));
    assert!(app.reshards.is_err() && app.problem.is_none());
}

#[test]
fn it_is_left_by_q_and_by_ctrl_c_in_every_mode() {
    for before in ["", "/", "?"] {
        let mut app = three();
        press(&mut app, before);
        app.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert!(app.is_done);
    }
    let mut app = three();
    press(&mut app, "?q");
    assert!(!app.is_done && app.mode == Mode::Keys, "any key leaves the help");
    press(&mut app, "q");
    assert!(app.is_done);
}
