//! `heatsink top`: the hot keys of a running server in the terminal, live.
//!
//! What is known and chosen is in `app`, without a terminal; `draw` draws it; `terminal` reads keys
//! and gives the terminal back; `ask` asks the server.

mod app;
mod ask;
mod columns;
mod draw;
mod event;
mod history;
mod once;
mod terminal;
mod told;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use heatsink_env::{Env, RealEnv};

use super::serve::Signals;
use super::{address, operator_socket};
use crate::exit::Exit;
use crate::output::Output;
use app::App;
use ask::Asked;
use event::Event;

/// What `top` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The running server: the address of its clients, if it is this user's, or its socket; or its
    /// admin address, beyond this machine with its token
    #[arg(long, value_name = "HOST:PORT|SOCKET", default_value = "127.0.0.1:8000")]
    server: String,
    /// The file with the token of the server's admin address; also HEATSINK_ADMIN_TOKEN
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Time between two looks, such as 1s or 500ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// Print the table once, and end: for pipes and scripts
    #[arg(long)]
    once: bool,
    /// How it is printed on stdout: `json` is what the server tells, once
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// Shows the server until it is left.
///
/// # Errors
/// Exit 64 where stdout is no terminal and `--once` is missing, and for an address that may not be
/// asked; 69 if `--once` gets no answer.
pub fn run(args: Args) -> Result<(), Exit> {
    let asked = Asked::new(&args.server, args.token_file.as_deref())?;
    if args.once || args.output == Output::Json {
        return once::run(&asked, args.output);
    }
    if !std::io::stdout().is_terminal() {
        return Err(Exit::usage(format!(
            "stdout is no terminal: `heatsink top --once` prints the table, `heatsink heatmap --text --server {0}` draws the heat over time, and, of \
             an admin address, `curl http://{0}/_heatsink/heat` gives it as JSON",
            asked.server
        )));
    }
    // What cannot become right later is said before the screen is taken.
    if !operator_socket::is_path(&asked.server) {
        address::any("--server", &asked.server)?;
    }
    if let Err(exit) = asked.get("heat")
        && !exit.is_retryable()
    {
        return Err(exit);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let env: Arc<dyn Env> = Arc::new(RealEnv);
    let (events, heard) = mpsc::channel();
    let mut signals = {
        let _inside = runtime.enter();
        Signals::catch()?
    };
    let stop = events.clone();
    runtime.spawn(async move {
        signals.next().await;
        let _ = stop.send(Event::Stop);
    });
    runtime.spawn(ask::again_and_again(asked.clone(), args.interval, Arc::clone(&env), events));
    let mut app = App::new(&asked.server, env.now());
    let shown = terminal::show(&mut app, &heard, &*env);
    runtime.shutdown_background();
    shown
}

/// `1s`, `500ms`, or a number of seconds.
fn interval(written: &str) -> Result<Duration, String> {
    let (number, unit) = match (written.strip_suffix("ms"), written.strip_suffix('s')) {
        (Some(number), _) => (number, 1),
        (None, Some(number)) => (number, 1_000),
        (None, None) => (written, 1_000),
    };
    let millis = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    match millis {
        Some(millis @ 100..=3_600_000) => Ok(Duration::from_millis(millis)),
        _ => Err("expected a time from 100ms to 3600s, such as 1s or 500ms".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals() {
        for (written, millis) in [("1s", 1_000), ("500ms", 500), ("2", 2_000)] {
            assert_eq!(interval(written), Ok(Duration::from_millis(millis)), "{written}");
        }
        for wrong in
            ["", "0s", "99ms", "s", "1m", "-1s", "1.5s", "99999999999999999999s", "18446744073709551615"]
        {
            assert!(interval(wrong).is_err(), "{wrong}");
        }
    }
}
