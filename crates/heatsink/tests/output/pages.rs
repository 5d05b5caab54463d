//! Pages of docs/reference that are generated: `cli.md`, `cli-tables.md` and `cli-reshard.md` from the commands' help, `errors.md` from
//! [`crate::error_index`].
//!
//! A page that is not what the program says fails; `HEATSINK_BLESS=1` writes it anew. `metrics.md` is written beside the table of
//! metrics (`cli/serve/metric_help.rs`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::command::{TestDir, text};

/// The pages of commands, with their titles and commands. All other commands are on the first.
const PAGES: [(&str, &str, &[&str]); 3] = [
    ("cli.md", "Commands: the server, and what it shows", &[]),
    ("cli-tables.md", "Commands on tables", &["adopt", "audit", "freeze", "gateways", "shards", "verify"]),
    ("cli-reshard.md", "Commands that reshard keys", &["reshard"]),
];

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

/// The help without the options that the page explains already; those are named at the end.
fn unseen(said: &str, seen: &mut BTreeSet<String>) -> String {
    let (mut page, mut block, mut also) = (String::new(), String::new(), Vec::new());
    let mut end = |block: &mut String, page: &mut String| {
        let words: Vec<&str> = block.split_whitespace().collect();
        if words.is_empty() {
        } else if seen.insert(words.join(" ")) {
            *page += block;
        } else if let Some(flag) = words.iter().find(|word| word.starts_with("--")) {
            also.push(flag.trim_end_matches(',').to_owned());
        }
        block.clear();
    };
    let mut options = false;
    for line in said.lines() {
        options |= line == "Options:";
        let starts = line.trim_start().starts_with('-');
        if options && (starts || line.is_empty()) {
            end(&mut block, &mut page);
        }
        let to = if options && (starts || !block.is_empty()) { &mut block } else { &mut page };
        *to += &format!("{line}\n");
    }
    end(&mut block, &mut page);
    if !also.is_empty() {
        page += &format!("  also, as above: {}\n", also.join(" "));
    }
    page
}

fn section(place: &TestDir, command: &[&str], seen: &mut BTreeSet<String>, page: &mut String) {
    let said = help(place, command);
    *page += &format!("\n## heatsink {}\n\n```text\n{}```\n", command.join(" "), unseen(&said, seen));
    for sub in listed(&said) {
        section(place, &[command, &[&sub]].concat(), seen, page);
    }
}

#[test]
fn the_pages_of_commands_are_what_they_say_of_themselves() {
    let place = TestDir::new("cli-pages");
    let all = listed(&help(&place, &[]));
    for (nth, (file, title, names)) in PAGES.iter().enumerate() {
        assert!(names.iter().all(|name| all.iter().any(|one| one == name)), "{file}: {all:?}");
        let others = PAGES.iter().filter(|(other, ..)| other != file);
        let others: Vec<String> = others.map(|(other, title, _)| format!("[{title}]({other})")).collect();
        let mut page = format!(
            "# {title}\n\n<!-- Generated: HEATSINK_BLESS=1 cargo test --workspace --test output -->\n\n\
             What `heatsink COMMAND -h` prints, in a build with default features. `--help` says more of some\n\
             options. Other commands:\n{}.\n",
            others.join(",\n")
        );
        let mut seen = BTreeSet::new();
        for name in &all {
            let named = |page: &(&str, &str, &[&str])| page.2.contains(&name.as_str());
            if PAGES.iter().position(named).unwrap_or(0) == nth {
                section(&place, &[name], &mut seen, &mut page);
            }
        }
        hold(file, &page);
    }
}
