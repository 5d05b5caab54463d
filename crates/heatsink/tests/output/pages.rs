//! Pages of docs/reference that are generated: `cli.md` and `cli-tables.md` from `--help`, `errors.md` from [`crate::error_index`].
//!
//! A page that is not what the program says fails; `HEATSINK_BLESS=1` writes it anew. `metrics.md` is written beside the table of
//! metrics (`cli/serve/metric_help.rs`).

use std::path::{Path, PathBuf};

use crate::command::{TestDir, text};

/// Commands that read or change a table. They have a page of their own.
const OF_TABLES: [&str; 7] = ["adopt", "audit", "freeze", "gateways", "reshard", "shards", "verify"];

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Holds a page against what it should say, or writes it.
pub fn hold(page: &str, expected: &str) {
    let path = root().join("docs/reference").join(page);
    if std::env::var_os("HEATSINK_BLESS").is_some() {
        std::fs::write(&path, expected).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    let line = published.lines().zip(expected.lines()).position(|(is, should)| is != should);
    assert!(
        published == expected,
        "docs/reference/{page} is stale (first at line {:?}); write it anew: HEATSINK_BLESS=1 cargo test --workspace --test output",
        line.map(|line| line + 1)
    );
}

/// The short help of a command, with its long lines broken.
fn help(place: &TestDir, command: &[&str]) -> String {
    let done = place.command(&[command, &["-h"]].concat()).env("COLUMNS", "98").output().unwrap();
    assert!(done.status.success(), "{command:?}: {}", text(&done.stderr));
    let mut page = String::new();
    for line in text(&done.stdout).lines() {
        let mut width = 0;
        let indent = line.len() - line.trim_start().len();
        page.push_str(&line[..indent]);
        for word in line.trim_start().split_inclusive(' ') {
            if width + word.trim_end().len() > 98 - indent {
                page.truncate(page.trim_end().len());
                page.push_str("\n         ");
                width = 9;
            }
            page.push_str(word);
            width += word.len();
        }
        page.truncate(page.trim_end_matches(' ').len());
        page.push('\n');
    }
    page.trim_end().to_owned()
}

/// The commands that a help text lists, without `help` itself.
fn listed(help: &str) -> Vec<String> {
    let after = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = after.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

fn section(place: &TestDir, command: &[&str], page: &mut String) {
    let said = help(place, command);
    *page += &format!("\n## heatsink {}\n\n```text\n{said}\n```\n", command.join(" "));
    for sub in listed(&said) {
        section(place, &[command, &[&sub]].concat(), page);
    }
}

#[test]
fn the_pages_of_commands_are_what_they_say_of_themselves() {
    let place = TestDir::new("cli-pages");
    let all = listed(&help(&place, &[]));
    assert!(OF_TABLES.iter().all(|name| all.iter().any(|one| one == name)), "{all:?}");
    let about = "<!-- Generated: HEATSINK_BLESS=1 cargo test --workspace --test output -->\n\n\
                 What `heatsink COMMAND -h` prints, in a build with default features. `--help` says more of some options.\n";
    let (mut server, mut tables) = (
        format!(
            "# Commands: the server, and what it shows\n\n{about}Commands on tables: [cli-tables.md](cli-tables.md).\n"
        ),
        format!("# Commands on tables\n\n{about}The server and what it shows: [cli.md](cli.md).\n"),
    );
    for name in &all {
        let page = if OF_TABLES.contains(&name.as_str()) { &mut tables } else { &mut server };
        section(&place, &[name], page);
    }
    hold("cli.md", &server);
    hold("cli-tables.md", &tables);
}
