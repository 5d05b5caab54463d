//! Asks the server again and again. What it says goes to the screen; that it says nothing does too.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use heatsink_env::Env;
use heatsink_gateway::http::Token;
use serde::de::DeserializeOwned;

use super::event::Event;
use super::told::Told;
use crate::cli::{ask_server, inert, operator_socket, token_file};
use crate::exit::Exit;

/// Between two questions for reshards and gateways. The server reads them from its store.
const SELDOM: Duration = Duration::from_secs(3);

/// A server, and what it wants to be shown.
#[derive(Clone, Debug)]
pub struct Asked {
    /// `HOST:PORT`, or the path of a socket.
    pub server: String,
    token: Option<Arc<str>>,
}

impl Asked {
    /// The server at this address or endpoint, with the token of the file or of the environment.
    ///
    /// # Errors
    /// Exit 64 for a file that cannot be read, or that holds no token.
    pub fn new(written: &str, file: Option<&Path>) -> Result<Self, Exit> {
        let server = operator_socket::host_and_port(written).to_owned();
        let token = match file {
            None => ask_server::token_of_environment(),
            Some(file) => {
                let named =
                    |problem: &str| Exit::usage(format!("--token-file {}: {problem}", file.display()));
                let text = token_file::read(file).map_err(|problem| named(&problem))?;
                Token::new(&text).map_err(|problem| named(&problem))?;
                Some(text.trim().to_owned())
            }
        };
        Ok(Asked { server, token: token.map(Arc::from) })
    }

    /// What is at a path below `/_heatsink/`.
    ///
    /// # Errors
    /// Why it is not to be had: exit 64 for an address that may not be asked, 69 else.
    pub fn get(&self, path: &str) -> Result<String, Exit> {
        let (status, body) = ask_server::get_with(&self.server, path, self.token.as_deref())?;
        match status {
            200 => Ok(body),
            401 if self.token.is_none() => Err(Exit::unavailable(format!(
                "the server at {} wants its token: --token-file FILE, or HEATSINK_ADMIN_TOKEN",
                self.server
            ))),
            401 => Err(Exit::unavailable(format!("the server at {} does not take this token", self.server))),
            _ => {
                let said = inert::visible(&ask_server::said(&body));
                Err(Exit::unavailable(format!("the server at {} says: {said}", self.server)))
            }
        }
    }

    /// The same, read.
    ///
    /// # Errors
    /// As [`get`](Self::get); exit 1 for an answer that cannot be read.
    pub fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, Exit> {
        let body = self.get(path)?;
        serde_json::from_str(&body)
            .map_err(|problem| Exit::failed(format!("the server's answer cannot be read: {problem}")))
    }
}

/// Asks until nobody listens any more.
pub async fn again_and_again(asked: Asked, interval: Duration, env: Arc<dyn Env>, events: Sender<Event>) {
    let mut seldom = None;
    loop {
        let begun = env.now();
        let is_due = seldom.is_none_or(|at| begun.since(at) >= SELDOM);
        let of = asked.clone();
        let telling = tokio::task::spawn_blocking(move || {
            let why = |exit: Exit| exit.to_string();
            let mut told = vec![Told::Heat(of.read("heat").map_err(why))];
            if is_due {
                told.push(Told::Reshards(of.read("reshards").map_err(why)));
                told.push(Told::Gateways(of.read("gateways").map_err(why)));
            }
            told
        });
        if is_due {
            seldom = Some(begun);
        }
        for told in telling.await.unwrap_or_default() {
            if events.send(Event::Told(told)).is_err() {
                return;
            }
        }
        env.sleep(interval).await;
    }
}
