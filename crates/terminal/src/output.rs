//! The output formats of a command.

use clap::ValueEnum;

/// How results are printed on stdout, and errors on stderr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Text,
    /// One JSON document; errors as one line of JSON.
    Json,
}
