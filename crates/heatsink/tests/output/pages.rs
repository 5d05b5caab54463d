//! Pages of docs/reference that are generated: `cli.md`, `cli-tables.md`, `cli-reshard.md` and
//! `cli-lab.md` from the commands' help, `errors.md` from [`crate::error_index`].
//!
//! A page that is not what the program says fails; `HEATSINK_BLESS=1` writes it anew. `metrics.md`
//! is written beside the table of metrics (`cli/serve/metric_help.rs`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::command::{HEATSINK, LAB, TestDir, text};

/// The pages of commands, with their titles, programs and commands. All other commands of a program
/// are on its first.
const PAGES: [(&str, &str, &str, &[&str]); 4] = [
    ("cli.md", "Commands: the server, and what it shows", HEATSINK, &[]),
    (
        "cli-tables.md",
        "Commands on tables",
        HEATSINK,
        &["adopt", "audit", "freeze", "gateways", "shards", "stream", "verify"],
    ),
    ("cli-reshard.md", "Commands that reshard keys", HEATSINK, &["leave", "reshard", "status"]),
    ("cli-lab.md", "Commands of the laboratory", LAB, &[]),
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

/// The short help of a command, with a long usage broken.
fn help(place: &TestDir, program: &str, command: &[&str]) -> String {
    let mut asked = place.command_of(program, &[command, &["-h"]].concat());
    let done = asked.env("COLUMNS", "98").output().unwrap();
    assert!(done.status.success(), "{command:?}: {}", text(&done.stderr));
    let said = text(&done.stdout);
    let lines = said.lines().map(|line| match line.starts_with("Usage:") {
        true => wrapped(line, "         "),
        false => format!("{}\n", line.trim_end()),
    });
    lines.collect::<String>().trim_end().to_owned()
}

/// The commands that a help text lists, without `help` itself.
fn listed(help: &str) -> Vec<String> {
    let after = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = after.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// An option as one line of the page: its name, and the first sentence of what it does.
fn option(block: &str) -> String {
    let (name, about) = block.trim_start().split_once("  ").unwrap_or((block.trim(), ""));
    let about = about.split_whitespace().collect::<Vec<_>>().join(" ");
    let default = about.split_once("[default: ").map(|(_, rest)| rest.split(']').next().unwrap_or(""));
    let first = about.split(" [").next().unwrap_or("").split("; ").next().unwrap_or("");
    let first = first.split(". ").next().unwrap_or("").trim_end_matches('.');
    let default = default.map(|default| format!(" [{default}]")).unwrap_or_default();
    wrapped(&format!("  {}  {first}{default}", name.trim()), "      ")
}

/// A line broken at 98 columns; what follows is indented.
fn wrapped(line: &str, indent: &str) -> String {
    let (mut page, mut width) = (String::new(), 0);
    for word in line.split_inclusive(' ') {
        if width + word.trim_end().len() > 98 {
            page.truncate(page.trim_end().len());
            page = page + "\n" + indent;
            width = indent.len();
        }
        page.push_str(word);
        width += word.len();
    }
    page.trim_end().to_owned() + "\n"
}

/// The help in short: usage, and the options that the page has not explained yet. The others are
/// named at the end.
fn short(said: &str, seen: &mut BTreeSet<String>) -> String {
    let (head, options) = said.split_once("\nOptions:\n").unwrap_or((said, ""));
    let head = head.lines().filter(|line| !line.starts_with("  help  "));
    let mut page: String = head.map(|line| format!("{line}\n")).collect();
    page.push('\n');
    let (mut also, mut blocks) = (Vec::new(), Vec::<String>::new());
    // An option begins in one of the first columns; a text that goes on may begin with one, too.
    let begins = |line: &str| line.find(|char| char != ' ').is_some_and(|column| column < 8);
    for line in options.lines() {
        match blocks.last_mut() {
            Some(block) if !begins(line) => *block = format!("{block} {}", line.trim()),
            _ => blocks.push(line.to_owned()),
        }
    }
    for block in blocks.iter().filter(|block| !block.contains("--help")) {
        let line = option(block);
        if seen.insert(line.clone()) {
            page += &line;
        } else if let Some(flag) = line.split_whitespace().find(|word| word.starts_with("--")) {
            also.push(flag.to_owned());
        }
    }
    if !also.is_empty() {
        page += &wrapped(&format!("  as above: {}", also.join(" ")), "      ");
    }
    page.trim_end().to_owned() + "\n"
}

fn section(place: &TestDir, program: &str, command: &[&str], seen: &mut BTreeSet<String>, page: &mut String) {
    let said = help(place, program, command);
    *page += &format!("\n## {program} {}\n\n```text\n{}```\n", command.join(" "), short(&said, seen));
    // Nobody operates by a demonstration: its options are for who runs it, and `--help` has them.
    for sub in listed(&said).iter().filter(|_| command != ["demo"]) {
        section(place, program, &[command, &[sub]].concat(), seen, page);
    }
}

#[test]
fn the_pages_of_commands_are_what_they_say_of_themselves() {
    let place = TestDir::new("cli-pages");
    for (nth, (file, title, program, names)) in PAGES.iter().enumerate() {
        let all = listed(&help(&place, program, &[]));
        assert!(names.iter().all(|name| all.iter().any(|one| one == name)), "{file}: {all:?}");
        let others = PAGES.iter().filter(|(other, ..)| other != file);
        let others: Vec<String> = others.map(|(other, title, ..)| format!("[{title}]({other})")).collect();
        let mut page = format!(
            "# {title}\n\n<!-- Generated: HEATSINK_BLESS=1 cargo test --workspace --test output -->\n\n\
             Of each option the first sentence, and the default; `{program} COMMAND --help` says all. More:\n{}.\n",
            others.join(",\n")
        );
        let mut seen = BTreeSet::new();
        let first = PAGES.iter().position(|page| page.2 == *program);
        for name in &all {
            let named = PAGES.iter().position(|page| page.2 == *program && page.3.contains(&name.as_str()));
            if named.or(first) == Some(nth) {
                section(&place, program, &[name], &mut seen, &mut page);
            }
        }
        hold(file, &page);
    }
}
