//! Where `serve` listens for clients, and whether it may.
//!
//! Not here: what is served there (`heatsink_gateway::http`), TLS (`tls`).

use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use heatsink_control::ClientLimits;
use heatsink_gateway::http::{Hosts, Listener, Origins, ServerTls, Settings};
use listenfd::ListenFd;
use tokio::net::{TcpListener, TcpSocket, UnixListener};

use crate::cli::address;
use crate::cli::operator_socket::SocketFile;
use crate::cli::place::{self, Place};
use crate::exit::{Exit, in_words};

/// How many connections may wait to be accepted.
const BACKLOG: u32 = 1024;

/// What `serve` takes for it.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Address or host name to listen on, or unix:PATH; a socket of systemd (LISTEN_FDS) goes before.
    /// Beyond loopback it needs --tls-cert, and [[client]] in the rules or --tls-client-ca
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8000")]
    pub listen: String,
    /// Listen beyond loopback all the same: everyone who reaches the port can read and write all data
    #[arg(long)]
    pub insecure_listen: bool,
    /// Share the address with another process (SO_REUSEPORT): the next one starts before this ends
    #[arg(long)]
    pub reuse_port: bool,
    /// Also serve requests for this host name or address (Host header); loopback names are always
    /// served. Can be given again
    #[arg(long, value_name = "NAME")]
    pub allow_host: Vec<String>,
    /// Serve web pages of this origin, such as http://localhost:3000 (CORS); `*`, on loopback only:
    /// of every one. Can be given again
    #[arg(long, value_name = "ORIGIN")]
    pub allow_origin: Vec<String>,
    /// Serve at most so many connections at once [default: 1000]
    #[arg(long, value_name = "N")]
    pub max_connections: Option<usize>,
    /// Process at most so many requests at once [default: 500]
    #[arg(long, value_name = "N")]
    pub max_requests: Option<usize>,
}

/// A socket for clients.
pub struct Opened {
    pub socket: Socket,
    pub place: Place,
    /// Whether no other process can listen there meanwhile.
    pub is_alone: bool,
    /// The file of a Unix socket, which goes when this is dropped.
    pub file: Option<SocketFile>,
}

/// A socket that listens, or will once everything is there to answer: where two processes share an
/// address the system leads clients to whoever listens.
pub enum Socket {
    Listening(Listener),
    Bound(TcpSocket),
}

impl Socket {
    /// Listens.
    ///
    /// # Errors
    /// The system's.
    pub fn listen(self) -> std::io::Result<Listener> {
        match self {
            Socket::Listening(listener) => Ok(listener),
            Socket::Bound(socket) => socket.listen(BACKLOG).map(Listener::from),
        }
    }
}

/// Whether clients may be served at these places: on this machine always; beyond it only where
/// nobody on the way can read along, and every client shows who it is, by its certificate or, where
/// requests are `signed`, by its key. `insecure`: the operator wants it all the same.
///
/// # Errors
/// Exit 64 with what is missing.
pub fn may_listen<'a>(
    written: &str,
    places: impl IntoIterator<Item = &'a Place>,
    tls: Option<&ServerTls>,
    signed: bool,
    insecure: bool,
) -> Result<(), Exit> {
    let Some(outside) = places.into_iter().find(|place| !place.is_local()) else { return Ok(()) };
    let (is_private, knows_clients) = (tls.is_some(), signed || tls.is_some_and(ServerTls::asks_clients));
    if is_private && knows_clients || insecure {
        return Ok(());
    }
    let meaning = match outside.to_string() {
        shown if shown == written => String::new(),
        shown => format!(" ({shown})"),
    };
    let missing = match (is_private, knows_clients) {
        (false, true) => "--tls-cert and --tls-key",
        (false, false) => "--tls-cert and --tls-key, and [[client]] in the rules or --tls-client-ca",
        (true, _) => "[[client]] in the rules or --tls-client-ca",
    };
    Err(Exit::usage(format!(
        "--listen {written}{meaning}: beyond loopback (127.0.0.1, [::1], localhost) it needs {missing}: \
         otherwise anyone who can reach the port, or read along, could read and write all data. --insecure-listen listens all the same"
    )))
}

impl Args {
    /// Listens there, if that may be.
    ///
    /// # Errors
    /// Exit 64 for a place where it may not listen, or not for every web page; 69 for one that is
    /// taken.
    pub async fn open(&self, tls: Option<&ServerTls>, signed: bool) -> Result<Opened, Exit> {
        let opened = match self.passed_on(tls, signed)? {
            Some(opened) => opened,
            None => self.listen(tls, signed).await?,
        };
        let is_loopback = matches!(opened.place, Place::Tcp(address) if address.ip().is_loopback());
        if self.allow_origin.iter().any(|origin| origin == "*") && !is_loopback {
            return Err(Exit::usage(format!(
                "--allow-origin '*': on {}, which others reach, name the origins: every web page that they open could use the data",
                opened.place
            )));
        }
        Ok(opened)
    }

    async fn listen(&self, tls: Option<&ServerTls>, signed: bool) -> Result<Opened, Exit> {
        if let Some(path) = place::unix(&self.listen) {
            return listen_at(path);
        }
        let addresses = address::any("--listen", &self.listen)?;
        let places: Vec<Place> = addresses.iter().copied().map(Place::Tcp).collect();
        may_listen(&self.listen, &places, tls, signed, self.insecure_listen)?;
        let (socket, address) = if self.reuse_port {
            let socket = shared(&addresses)
                .map_err(|error| address::not_listening("--listen", &self.listen, &error))?;
            let address = socket.local_addr()?;
            (Socket::Bound(socket), address)
        } else {
            let listener = address::listen("--listen", &self.listen, &addresses).await?;
            let address = listener.local_addr()?;
            (Socket::Listening(listener.into()), address)
        };
        Ok(Opened { socket, place: Place::Tcp(address), is_alone: !self.reuse_port, file: None })
    }

    /// The first socket that the service manager passes on, if it does.
    fn passed_on(&self, tls: Option<&ServerTls>, signed: bool) -> Result<Option<Opened>, Exit> {
        let mut passed = ListenFd::from_env();
        if passed.len() == 0 {
            return Ok(None);
        }
        let refused = |error: std::io::Error| {
            Exit::usage(format!("LISTEN_FDS: the socket cannot be used: {}", in_words(&error)))
        };
        let opened = |listener: Listener, place: Place| Opened {
            socket: Socket::Listening(listener),
            place,
            is_alone: false,
            file: None,
        };
        if let Ok(Some(listener)) = passed.take_tcp_listener(0) {
            listener.set_nonblocking(true)?;
            let listener = TcpListener::from_std(listener).map_err(refused)?;
            let place = Place::Tcp(listener.local_addr()?);
            may_listen(&place.to_string(), [&place], tls, signed, self.insecure_listen)?;
            return Ok(Some(opened(listener.into(), place)));
        }
        let listener = passed.take_unix_listener(0).map_err(refused)?;
        let Some(listener) = listener else { return Ok(None) };
        listener.set_nonblocking(true)?;
        let path = listener.local_addr()?.as_pathname().map(Path::to_path_buf).unwrap_or_default();
        let listener = UnixListener::from_std(listener).map_err(refused)?;
        Ok(Some(opened(listener.into(), Place::Unix(path))))
    }

    /// What is in force with these flags, that TLS and those limits of the rules file. Flags go
    /// before the file.
    ///
    /// # Errors
    /// For a name that no request can ask for.
    pub fn settings(&self, tls: Option<ServerTls>, limits: ClientLimits) -> Result<Settings, String> {
        let mut names = self.allow_host.clone();
        // Who listens at a name or address is asked by it.
        if place::unix(&self.listen).is_none()
            && let Some((host, _)) = self.listen.rsplit_once(':')
            && Hosts::and(&[host]).is_ok()
        {
            names.push(host.to_owned());
        }
        let hosts = Hosts::and(&names).map_err(|problem| format!("--allow-host: {problem}"))?;
        let hosts = hosts.certified(tls.as_ref().map(ServerTls::names).unwrap_or_default());
        let origins =
            Origins::of(&self.allow_origin).map_err(|problem| format!("--allow-origin: {problem}"))?;
        let usual = heatsink::Limits::default();
        Ok(Settings {
            hosts,
            origins,
            tls,
            connections: self.max_connections.or(limits.connections).unwrap_or(usual.connections),
            requests: self.max_requests.or(limits.requests).unwrap_or(usual.requests),
        })
    }
}

/// Takes the first address that is free, or that another process shares too.
fn shared(addresses: &[SocketAddr]) -> std::io::Result<TcpSocket> {
    let bind = |address: &SocketAddr| {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.set_reuseport(true)?;
        socket.bind(*address)?;
        Ok(socket)
    };
    let mut last = std::io::ErrorKind::AddrNotAvailable.into();
    for address in addresses {
        match bind(address) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Listens on a Unix socket. What a killed server has left behind goes.
fn listen_at(path: &Path) -> Result<Opened, Exit> {
    let cannot = |error: std::io::Error| {
        Exit::unavailable(format!(
            "cannot listen on unix:{}: {}; choose another path with --listen",
            path.display(),
            in_words(&error)
        ))
    };
    match UnixStream::connect(path) {
        Ok(_) => return Err(cannot(std::io::ErrorKind::AddrInUse.into())),
        Err(_) if path.symlink_metadata().is_ok_and(|about| about.file_type().is_socket()) => {
            std::fs::remove_file(path).map_err(cannot)?;
        }
        // There is none, or what is there is no socket: listening says so.
        Err(_) => {}
    }
    let path = std::path::absolute(path).map_err(cannot)?;
    let listener = UnixListener::bind(&path).map_err(cannot)?;
    let file = SocketFile::of(&path).map_err(cannot)?;
    Ok(Opened {
        socket: Socket::Listening(listener.into()),
        place: Place::Unix(path),
        is_alone: true,
        file: Some(file),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may(places: &[&str], tls: Option<&ServerTls>, insecure: bool) -> bool {
        let places: Vec<Place> = places.iter().map(|place| Place::Tcp(place.parse().unwrap())).collect();
        may_listen("box:80", &places, tls, false, insecure).is_ok()
    }

    #[test]
    fn a_name_is_taken_when_all_its_addresses_are_loopback() {
        assert!(may(&["[::1]:80", "127.0.0.1:80"], None, false));
        for outside in [&["127.0.0.1:80", "10.0.0.7:80"][..], &["[fe80::1]:80"], &["0.0.0.0:80"], &["[::]:1"]]
        {
            assert!(!may(outside, None, false), "{outside:?}");
            assert!(may(outside, None, true), "{outside:?}");
        }
        assert!(may_listen("unix:/x", [&Place::Unix("/x".into())], None, false, false).is_ok());
    }
}
