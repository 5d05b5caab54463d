//! `heatsink completions SHELL`.

use clap::CommandFactory;
use clap_complete::Shell;

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
    std::io::Write::write_all(&mut std::io::stdout().lock(), &script)?;
    Ok(())
}
