//! `heatsink top`: where there is no terminal, in one, and on a server that tells made-up heat.
//! What is on its screen is tested without a process (`cli/top`).

use std::fs::{File, Permissions};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use serde_json::{Value as Json, json};

use crate::heatmap::told;
use crate::process::{Server, heatsink, run, scratch};

const TOKEN: &str = "0123456789abcdef";

#[test]
fn without_a_terminal_it_names_what_there_is_instead() {
    let output = run(&["top", "--server", "127.0.0.1:8001"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(64), &b""[..]), "{stderr}");
    for part in
        ["no terminal", "heatsink top --once", "heatmap --text", "curl http://127.0.0.1:8001/_heatsink/heat"]
    {
        assert!(stderr.contains(part), "no {part:?} in {stderr}");
    }
}

#[test]
fn once_prints_the_table_inert() {
    let keys = json!([
        { "key": { "S": "game_x" }, "units_per_s": 4812.0, "error_units_per_s": 3.0, "sampling_error_units_per_s": 9.0, "requests_per_s": 4812.0,
          "throttled_per_s": 3000.0, "shards": 1, "clients": [{ "client": "team\u{202e}1\u{1b}", "share_percent": 83.0 }] },
        { "key": { "S": "a\n\u{1b}[31m\u{202e}" }, "units_per_s": 12.0 },
    ]);
    let heat = json!({ "now_ms": 1, "parts": [{ "table": "Leaderboards", "index": null, "kind": "write", "keys": keys }], "advice": [] });
    let (output, asked) = told(200, &heat, |server| run(&["top", "--once", "--server", server]));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!((output.status.code(), asked.as_str()), (Some(0), "GET /_heatsink/heat HTTP/1.1"));
    let by = r"game_x, writes of Leaderboards: mostly by team\u{202e}1\u{1b} (83 %)";
    for part in ["game_x", "4,812", "12.0", "481 %", "62 %", r"a\n\u{1b}[31m\u{202e}", by] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
    // For programs the same document, in which nothing acts on a terminal.
    let raw = json!({ "parts": [{ "table": "T", "keys": [{ "key": { "S": "\u{9b}31m\u{202e}evil" } }] }] });
    let (output, _) =
        told(200, &raw, |server| run(&["top", "--once", "--output", "json", "--server", server]));
    let document: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["heat"], raw);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains(['\u{9b}', '\u{202e}']) && text.contains(r"\u009b"), "{text}");
    let (output, _) =
        told(500, &json!({ "error": "x\u{1b}[31m" }), |server| run(&["top", "--once", "--server", server]));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(69) && !stderr.contains('\u{1b}'), "{stderr}");
}

#[test]
fn the_token_of_an_admin_address_is_taken_from_a_file_or_the_environment() {
    let dir = scratch("top-token");
    let (file, short) = (dir.join("token"), dir.join("short"));
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    std::fs::write(&short, "short").unwrap();
    for secret in [&file, &short] {
        std::fs::set_permissions(secret, Permissions::from_mode(0o600)).unwrap();
    }
    let read_by_others = dir.join("read-by-others");
    std::fs::write(&read_by_others, TOKEN).unwrap();
    std::fs::set_permissions(&read_by_others, Permissions::from_mode(0o604)).unwrap();
    let server = Server::start(&["--admin", "127.0.0.1:0", "--admin-token-file", file.to_str().unwrap()]);
    let printed: Json = serde_json::from_str(server.printed()).unwrap();
    let address = printed["admin"].as_str().unwrap();
    let top = |more: &[&str], variable: Option<&str>| {
        let mut command = heatsink();
        let server = if more.contains(&"--server") { &[][..] } else { &["--server", address] };
        command.args(["top", "--output", "json"]).args(server).args(more).env_remove("HEATSINK_ADMIN_TOKEN");
        command.envs(variable.map(|token| ("HEATSINK_ADMIN_TOKEN", token))).output().unwrap()
    };
    let output = top(&["--token-file", file.to_str().unwrap()], None);
    let told: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (output.status.code(), &told["heat"]["parts"], &told["reshards"]),
        (Some(0), &json!([]), &json!([]))
    );
    assert_eq!(top(&[], Some(TOKEN)).status.code(), Some(0));
    for (more, variable, code, reason) in [
        (&[][..], None, 69, "--token-file"),
        (&[], Some("0123456789abcdeF"), 69, "does not take this token"),
        (&["--token-file", short.to_str().unwrap()], None, 64, "at least 16"),
        (&["--token-file", "no-such-file"], None, 64, "no-such-file"),
        (&["--token-file", read_by_others.to_str().unwrap()], None, 64, "mode 0604"),
        (&["--server", "192.0.2.1:8001"], None, 64, "beyond this machine"),
    ] {
        let output = top(more, variable);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(code) && stderr.contains(reason), "{more:?}: {stderr}");
    }
    std::fs::remove_dir_all(dir).unwrap();
}

/// The command in a terminal of its own, and that terminal's settings before it.
struct InTerminal {
    child: Child,
    screen: File,
    terminal: File,
    before: LocalModes,
    shown: String,
}

impl InTerminal {
    fn start(server: &str) -> Self {
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&screen).unwrap();
        unlockpt(&screen).unwrap();
        let name = ptsname(&screen, Vec::new()).unwrap().into_string().unwrap();
        let terminal = File::options().read(true).write(true).open(name).unwrap();
        tcsetwinsize(&terminal, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let before = tcgetattr(&terminal).unwrap().local_modes;
        let end = || Stdio::from(terminal.try_clone().unwrap());
        let mut command = heatsink();
        let child = command.args(["top", "--server", server]).env("TERM", "xterm");
        let child = child.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        InTerminal { child, screen: File::from(screen), terminal, before, shown: String::new() }
    }

    /// Reads what it draws until that text is there.
    fn until(&mut self, text: &str) {
        while !self.shown.contains(text) {
            let mut some = [0; 4_096];
            let read = self.screen.read(&mut some).unwrap();
            // It draws its age for ever.
            assert!(read > 0 && self.shown.len() < 200_000, "no {text} in {}", self.shown);
            self.shown += &String::from_utf8_lossy(&some[..read]);
        }
    }

    /// Waits for its end, and checks that the terminal is as it was.
    fn ended(mut self) -> Option<i32> {
        let taken = tcgetattr(&self.terminal).unwrap().local_modes;
        self.until("\u{1b}[?1049l");
        let code = self.child.wait().unwrap().code();
        let after = tcgetattr(&self.terminal).unwrap().local_modes;
        assert_eq!(after, self.before, "echo and lines, as before; meanwhile {taken:?}");
        code
    }
}

#[test]
fn the_terminal_is_given_back_by_q_and_by_sigterm() {
    let server = Server::start(&[]);
    for end in ["q", "TERM", "INT"] {
        let mut top = InTerminal::start(&server.address());
        top.until("live");
        let raw = tcgetattr(&top.terminal).unwrap().local_modes;
        assert!(
            top.before.contains(LocalModes::ICANON) && !raw.contains(LocalModes::ICANON),
            "it takes keys one by one"
        );
        match end {
            "q" => top.screen.write_all(b"q").unwrap(),
            signal => {
                let id = top.child.id().to_string();
                assert!(Command::new("kill").args([&format!("-{signal}"), &id]).status().unwrap().success());
            }
        }
        assert_eq!(top.ended(), Some(0), "{end}");
    }
}

#[test]
fn a_server_that_goes_and_comes_is_asked_again() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut top = InTerminal::start(&address);
    top.until("Trying again");
    let server = Server::of(heatsink().args(["serve", "--listen", &address, "--output", "json"]));
    top.until("live");
    assert_eq!(server.stop("TERM").0, Some(0));
    top.until("no answer, ");
    top.screen.write_all(b"\x03").unwrap();
    assert_eq!(top.ended(), Some(0));
}
