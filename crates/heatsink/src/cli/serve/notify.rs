//! Tells systemd how far this process is (`sd_notify(3)`): `Type=notify-reload` waits for it.
//!
//! By hand: one datagram of text to a socket, where a crate would be a dependency more.

use std::os::unix::net::UnixDatagram;
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};

/// Names the socket, where a service manager wants to be told.
const SOCKET: &str = "NOTIFY_SOCKET";

/// It answers clients.
pub fn ready() {
    tell("READY=1");
}

/// It reads its configuration again; [`ready`] ends that.
pub fn reloading() {
    let now = clock_gettime(ClockId::Monotonic);
    let micros = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1_000;
    tell(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
}

/// It is about to end.
pub fn stopping() {
    tell("STOPPING=1");
}

fn tell(what: &str) {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    if let Err(error) = send(what.as_bytes(), Path::new(&socket)) {
        tracing::debug!(%error, "cannot tell the service manager");
    }
}

fn send(what: &[u8], socket: &Path) -> std::io::Result<()> {
    let sender = UnixDatagram::unbound()?;
    #[cfg(target_os = "linux")]
    if let Some(name) = socket.to_str().and_then(|socket| socket.strip_prefix('@')) {
        use std::os::linux::net::SocketAddrExt;

        let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
        return sender.send_to_addr(what, &address).map(drop);
    }
    sender.send_to(what, socket).map(drop)
}
