//! `heatsink init`: writes a configuration that changes nothing, and says what could be in it.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use serde_json::json;

use super::print;
use crate::exit::{Exit, in_words};
use crate::output::Output;

/// The configuration. Lines that begin with `#` and no blank are settings to choose from.
const TEMPLATE: &str = include_str!("init.toml");

/// What `init` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file to write; `-` is stdout
    #[arg(default_value = "heatsink.toml", value_name = "FILE")]
    file: PathBuf,
    /// How the result is printed on stdout
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// Runs it. Exit 64 when the file is there already: it is left as it is.
pub fn run(args: Args) -> Result<(), Exit> {
    if args.file.as_os_str() == "-" {
        return print::text(TEMPLATE);
    }
    let shown = args.file.display();
    let written = OpenOptions::new().write(true).create_new(true).open(&args.file);
    match written.and_then(|mut file| file.write_all(TEMPLATE.as_bytes())) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(Exit::usage(format!(
                "{shown} is there already, and is left as it is; name another file, or `-` to read what would be in it"
            )));
        }
        Err(error) => return Err(Exit::failed(format!("{shown}: {}", in_words(&error)))),
    }
    let next = format!("heatsink config check --rules {shown}");
    match args.output {
        Output::Json => print::json(&json!({ "file": args.file, "next_steps": [next] })),
        Output::Text => print::text(&format!("{shown} is written, and changes nothing yet. Next: {next}\n")),
    }
}

#[cfg(test)]
mod tests {
    use heatsink_control::Rules;

    use super::TEMPLATE;

    #[test]
    fn it_changes_nothing_and_all_that_it_offers_is_right() {
        let as_it_is: Rules = Rules::read("init.toml", TEMPLATE).unwrap();
        assert!(
            as_it_is.is_empty() && as_it_is.automatics().next().is_none() && as_it_is.clients().is_empty()
        );
        let chosen: Vec<&str> = TEMPLATE
            .lines()
            .map(|line| {
                line.strip_prefix('#').filter(|rest| rest.starts_with(|c: char| c != ' ')).unwrap_or(line)
            })
            .collect();
        let all: Rules = Rules::read("init.toml", &chosen.join("\n")).unwrap();
        assert_eq!((all.iter().count(), all.automatics().count(), all.clients().len()), (1, 1, 1));
        assert!(all.webhook().is_some() && as_it_is.webhook().is_none());
    }
}
