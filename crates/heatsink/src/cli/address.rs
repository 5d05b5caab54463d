//! Addresses on this machine, as an operator writes them: `127.0.0.1:8000`, `localhost:8000`,
//! `[::1]:8000`.

use std::net::{SocketAddr, ToSocketAddrs};

use tokio::net::TcpListener;

use crate::exit::{Exit, in_words};

/// The addresses that `HOST:PORT` means, IPv4 first: that is what most clients try first under
/// `localhost`. `flag` is named in errors.
///
/// All of them are loopback: of a name that also means an address of the network none is taken,
/// since which one is used would be chance.
pub fn loopback(flag: &str, written: &str) -> Result<Vec<SocketAddr>, Exit> {
    only_loopback(flag, written, resolved(flag, written)?)
}

/// The same, of this machine or of others.
pub fn any(flag: &str, written: &str) -> Result<Vec<SocketAddr>, Exit> {
    in_order(flag, written, resolved(flag, written)?)
}

/// Listens on the first of them that it can. `flag` and `written` say which, in the error.
///
/// # Errors
/// Exit 69 where none is free.
pub async fn listen(flag: &str, written: &str, addresses: &[SocketAddr]) -> Result<TcpListener, Exit> {
    TcpListener::bind(addresses).await.map_err(|error| not_listening(flag, written, &error))
}

/// Why nothing listens there.
pub fn not_listening(flag: &str, written: &str, error: &std::io::Error) -> Exit {
    Exit::unavailable(format!(
        "cannot listen on {written}: {}; choose another address with {flag}",
        in_words(error)
    ))
}

fn resolved(flag: &str, written: &str) -> Result<Vec<SocketAddr>, Exit> {
    if let Some((scheme, _)) = written.split_once("://") {
        return Err(Exit::usage(format!("{flag} {written}: expected HOST:PORT, without {scheme}://")));
    }
    let port = written.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    if port.is_none() {
        return Err(Exit::usage(format!(
            "{flag} {written}: expected HOST:PORT, such as 127.0.0.1:8000 or localhost:8000"
        )));
    }
    let found = written.to_socket_addrs().map_err(|error| {
        Exit::usage(format!("{flag} {written}: the host name cannot be resolved: {}", in_words(&error)))
    })?;
    Ok(found.collect())
}

fn only_loopback(flag: &str, written: &str, found: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, Exit> {
    if let Some(outside) = found.iter().find(|address| !address.ip().is_loopback()) {
        let meaning =
            if outside.to_string() == written { String::new() } else { format!(" ({})", outside.ip()) };
        return Err(Exit::usage(format!(
            "{flag} {written}{meaning}: only loopback addresses are served (127.0.0.1, [::1], localhost), because signatures are not checked yet: \
             anyone who can reach the port could read and write all data"
        )));
    }
    in_order(flag, written, found)
}

fn in_order(flag: &str, written: &str, mut found: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, Exit> {
    if found.is_empty() {
        return Err(Exit::usage(format!("{flag} {written}: the host name has no address")));
    }
    found.sort_by_key(SocketAddr::is_ipv6);
    found.dedup();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(addresses: &[&str]) -> Result<Vec<String>, Exit> {
        let found = addresses.iter().map(|address| address.parse().unwrap()).collect();
        only_loopback("--listen", "box:80", found)
            .map(|found| found.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_name_is_taken_when_all_its_addresses_are_loopback() {
        assert_eq!(
            taken(&["[::1]:80", "127.0.0.1:80", "127.0.0.1:80"]).unwrap(),
            ["127.0.0.1:80", "[::1]:80"]
        );
        for outside in [&["127.0.0.1:80", "10.0.0.7:80"][..], &["[fe80::1]:80"], &["0.0.0.0:80"], &[]] {
            assert!(taken(outside).is_err(), "{outside:?}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for wrong in ["", "9500", ":", "localhost", "localhost:", "localhost:99999", "http://localhost:80"] {
            assert!(loopback("--listen", wrong).is_err(), "{wrong}");
        }
        assert!(
            loopback("--listen", "localhost:9500").unwrap().iter().all(|address| address.ip().is_loopback())
        );
    }
}
