//! Where a server's clients connect, as it is written and shown: `127.0.0.1:8000`, `unix:/PATH`.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// How the address of a Unix socket begins.
const UNIX: &str = "unix:";

/// Where clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// An address of TCP.
    Tcp(SocketAddr),
    /// The file of a Unix socket.
    Unix(PathBuf),
}

/// The file of a Unix socket, if an address names one.
pub fn unix(written: &str) -> Option<&Path> {
    written.strip_prefix(UNIX).map(Path::new)
}

impl Place {
    /// Whether only this machine reaches it.
    pub fn is_local(&self) -> bool {
        match self {
            Place::Tcp(address) => address.ip().is_loopback(),
            Place::Unix(_) => true,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Tcp(address) => address.fmt(f),
            Place::Unix(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}
