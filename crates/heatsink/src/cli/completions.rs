//! `heatsink completions SHELL`.

use clap::CommandFactory;
use clap_complete::Shell;

use super::print;
use crate::exit::Exit;

/// What `completions` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Prints the script on stdout.
pub fn run<C: CommandFactory>(args: Args) -> Result<(), Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut C::command(), "heatsink", &mut script);
    print::as_it_is(&String::from_utf8_lossy(&script))
}
