//! Asks a running server what it tells operators below `/_heatsink/`: by the socket of its user's
//! commands, or at an admin address.
//!
//! Not here: where the socket lies (`operator_socket`), what is done with the answer.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;

use super::token_file::TOKEN_VARIABLE;
use super::{address, operator_socket, whole_answer};
use crate::exit::{Exit, in_words};

/// Longest wait for the server.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a server says when it refuses.
#[derive(Debug, Deserialize)]
struct Refusal {
    error: String,
}

/// The status and the body at a path below `/_heatsink/`. `server`: the address of clients of a
/// server of this user, its socket, or an admin address on this machine, whose token is read from
/// the environment.
///
/// # Errors
/// Exit 64 for an address beyond loopback, 69 when nobody answers who may.
pub fn get(server: &str, path: &str) -> Result<(u16, String), Exit> {
    if let Some(socket) = operator_socket::named(server) {
        return by_socket(&socket, server, path);
    }
    let addresses = address::loopback("--server", server)?;
    asked(&addresses, server, path, token_of_environment().as_deref())
}

/// The same with a token, of this machine or of another: the admin address beyond loopback asks for
/// one.
///
/// # Errors
/// Exit 64 for an address beyond loopback without a token, 69 when nobody answers who may.
#[cfg(feature = "top")]
pub fn get_with(server: &str, path: &str, token: Option<&str>) -> Result<(u16, String), Exit> {
    if let Some(socket) = operator_socket::named(server) {
        return by_socket(&socket, server, path);
    }
    let addresses = address::any("--server", server)?;
    if token.is_none() && !addresses.iter().all(|address| address.ip().is_loopback()) {
        return Err(Exit::usage(format!(
            "--server {server}: beyond this machine only an admin address answers, to those that have its token: give --token-file FILE, or set {TOKEN_VARIABLE}"
        )));
    }
    asked(&addresses, server, path, token)
}

/// Why the server would not answer its clients now; `None` where it would. By the socket of its
/// user's commands, or else at the admin address, where nobody needs a token for it.
///
/// # Errors
/// As [`get`].
pub fn ready(server: &str) -> Result<Option<String>, Exit> {
    let by_address = || {
        let addresses = address::loopback("--server", server)?;
        if operator_socket::find_at(&addresses).is_some() {
            return Ok(None);
        }
        let answer = patient(connect(&addresses, server)?)
            .and_then(|stream| exchange(stream, server, "/readyz", None));
        answer.map(Some).map_err(|problem| unreachable(server, &problem))
    };
    let (status, body) = match operator_socket::named(server) {
        None => match by_address()? {
            Some((404, _)) => return Err(no_server_of_this_user(server)),
            Some(answer) => answer,
            None => get(server, "ready")?,
        },
        Some(_) => get(server, "ready")?,
    };
    Ok((status != 200).then(|| said(&body)))
}

/// The token of the environment, if it can be one.
pub fn token_of_environment() -> Option<String> {
    std::env::var(TOKEN_VARIABLE).ok().filter(|token| token.bytes().all(|byte| byte.is_ascii_graphic()))
}

fn asked(
    addresses: &[SocketAddr],
    server: &str,
    path: &str,
    token: Option<&str>,
) -> Result<(u16, String), Exit> {
    if let Some(socket) = operator_socket::find_at(addresses) {
        return by_socket(&socket, server, path);
    }
    let answer = patient(connect(addresses, server)?)
        .and_then(|stream| exchange(stream, server, &format!("/_heatsink/{path}"), token));
    match answer.map_err(|problem| unreachable(server, &problem))? {
        // What DynamoDB says at a path that it does not know.
        (404, body) if body.contains("<UnknownOperationException/>") => Err(no_server_of_this_user(server)),
        answer => Ok(answer),
    }
}

fn by_socket(socket: &Path, server: &str, path: &str) -> Result<(u16, String), Exit> {
    let asked = || {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        exchange(stream, "localhost", &format!("/_heatsink/{path}"), None)
    };
    asked().map_err(|problem| unreachable(server, &problem))
}

/// Nobody answers operators at that address of clients.
pub fn no_server_of_this_user(server: &str) -> Exit {
    Exit::unavailable(format!(
        "cannot ask the server at {server}: no server of this user has a socket there; is `heatsink serve` running? Of a server that another user \
         runs, ask the admin address, or run this as that user"
    ))
    .retryable()
}

/// A refusal in the server's words, without its JSON.
pub fn said(body: &str) -> String {
    serde_json::from_str(body).map_or_else(|_| body.trim().to_owned(), |refusal: Refusal| refusal.error)
}

fn connect(addresses: &[SocketAddr], server: &str) -> Result<TcpStream, Exit> {
    let mut last = None;
    for address in addresses {
        match TcpStream::connect_timeout(address, PATIENCE) {
            Ok(stream) => return Ok(stream),
            Err(problem) => last = Some(problem),
        }
    }
    Err(unreachable(server, &last.unwrap_or_else(|| std::io::ErrorKind::NotFound.into())))
}

fn patient(stream: TcpStream) -> std::io::Result<TcpStream> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

fn unreachable(server: &str, problem: &std::io::Error) -> Exit {
    let reason =
        format!("cannot ask the server at {server}: {}; is `heatsink serve` running?", in_words(problem));
    Exit::unavailable(reason).retryable()
}

/// One GET, one answer, the connection closed after it: nothing here needs more of HTTP.
fn exchange(
    mut stream: impl Read + Write,
    server: &str,
    path: &str,
    token: Option<&str>,
) -> std::io::Result<(u16, String)> {
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {server}\r\n{token}Connection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let (status, body) = whole_answer::read(Bytes::from(answer))?;
    let body = String::from_utf8(body.into()).map_err(|_| std::io::Error::other("its answer is no text"))?;
    Ok((status, body))
}
