//! Asks before a command does what cannot be taken back by itself.

use std::io::{IsTerminal, Write};

use crate::exit::Exit;

/// Whether there is somebody to ask.
pub fn is_possible() -> bool {
    std::io::stdin().is_terminal()
}

/// Asks whether that is as it should be, unless `--yes` has said so.
pub fn ask(yes: bool, about: &str) -> Result<(), Exit> {
    if yes {
        return Ok(());
    }
    if !is_possible() {
        return Err(Exit::usage(format!(
            "there is no terminal to ask on; say --yes if this is as it should be. {about}"
        )));
    }
    let mut err = std::io::stderr().lock();
    write!(err, "{about}\nGo on? [y/N] ")?;
    err.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        Ok(())
    } else {
        Err(Exit::usage("not confirmed; nothing was changed"))
    }
}
