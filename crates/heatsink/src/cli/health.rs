//! `heatsink health`: whether a running server would answer its clients, as an exit code. For
//! images without a shell, and for scripts.

use serde_json::json;

use super::{ask_server, print};
use crate::exit::Exit;
use crate::output::Output;

/// What `health` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server: the address of its clients (HOST:PORT or unix:PATH), if this user runs it, or
    /// its admin address
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8000")]
    server: String,
    /// How the result is printed on stdout
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// Runs it. Exit 1 when the server is there and not ready, 69 when it is not there.
pub fn run(args: Args) -> Result<(), Exit> {
    let server = super::operator_socket::host_and_port(&args.server);
    let why = ask_server::ready(server)?;
    match (args.output, &why) {
        (Output::Json, why) => print::json(&json!({ "ready": why.is_none(), "why": why }))?,
        (Output::Text, None) => print::text("ready\n")?,
        (Output::Text, Some(_)) => {}
    }
    why.map_or(Ok(()), |why| Err(Exit::failed(format!("not ready: {why}")).retryable()))
}
