//! The command `completions SHELL`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::exit::Exit;
use crate::print;

/// What `completions` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Prints the script on stdout.
///
/// # Errors
/// Exit 69 where stdout cannot be written to.
pub fn run<C: CommandFactory>(args: Args) -> Result<(), Exit> {
    let mut script = Vec::new();
    let mut command = C::command();
    let name = command.get_name().to_owned();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    print::as_it_is(&String::from_utf8_lossy(&script))
}
