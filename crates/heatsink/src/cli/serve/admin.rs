//! The admin address of `serve`: where it is, and who may ask there.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use heatsink_gateway::KeyNames;
use heatsink_gateway::http::{Access, Hosts, Token};
use tokio::net::TcpListener;

use crate::cli::address;
use crate::cli::token_file::{self, TOKEN_VARIABLE};
use crate::exit::Exit;

/// What `serve` takes for it.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Serve the page of heat, metrics and health on this address too; beyond loopback it needs a
    /// token
    #[arg(long = "admin", value_name = "HOST:PORT")]
    address: Option<String>,
    /// The file with the token that those show who ask at the admin address (`Authorization: Bearer
    /// …`); also HEATSINK_ADMIN_TOKEN
    #[arg(long = "admin-token-file", value_name = "FILE", requires = "address")]
    token_file: Option<PathBuf>,
    /// Name the 20 hottest keys in the metrics, as they are or hashed; without it metrics name no
    /// keys
    #[arg(long = "hot-key-metrics", value_enum, value_name = "NAMES")]
    hot_keys: Option<HotKeyNames>,
}

/// How keys are named in metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum HotKeyNames {
    Plain,
    Hashed,
}

/// An admin address that listens.
pub struct Admin {
    pub listener: TcpListener,
    pub access: Access,
}

impl Args {
    /// How metrics name the hottest keys, if they do.
    pub fn hot_keys(&self) -> Option<KeyNames> {
        self.hot_keys.map(|names| match names {
            HotKeyNames::Plain => KeyNames::Plain,
            HotKeyNames::Hashed => KeyNames::Hashed,
        })
    }

    /// Listens on it, if there is to be one. On loopback without a token `hosts` are served, as on
    /// the clients' endpoint.
    ///
    /// # Errors
    /// Exit 64 for an address beyond loopback without a token, and for a token that cannot be used;
    /// 69 for an address that is taken.
    pub async fn listen(&self, hosts: &Hosts) -> Result<Option<Admin>, Exit> {
        let Some(written) = &self.address else { return Ok(None) };
        let addresses = address::any("--admin", written)?;
        let access = match token(self.token_file.as_deref(), std::env::var(TOKEN_VARIABLE).ok())? {
            Some(token) => Access::Token(token),
            None => {
                needs_no_token(written, &addresses)?;
                Access::Hosts(hosts.clone())
            }
        };
        let listener = address::listen("--admin", written, &addresses).await?;
        Ok(Some(Admin { listener, access }))
    }
}

fn needs_no_token(written: &str, addresses: &[SocketAddr]) -> Result<(), Exit> {
    if addresses.iter().all(|address| address.ip().is_loopback()) {
        return Ok(());
    }
    Err(Exit::usage(format!(
        "--admin {written}: beyond loopback (127.0.0.1, [::1], localhost) it needs a token, because anyone who can reach the port could read the keys of all \
         tables: give --admin-token-file FILE, or set {TOKEN_VARIABLE}. `openssl rand -base64 32` makes one"
    )))
}

fn token(file: Option<&Path>, variable: Option<String>) -> Result<Option<Token>, Exit> {
    let (from, text) = match (file, variable) {
        (Some(file), _) => {
            let text = token_file::read(file).map_err(|problem| {
                Exit::usage(format!("--admin-token-file {}: {problem}", file.display()))
            })?;
            (format!("--admin-token-file {}", file.display()), text)
        }
        (None, Some(text)) => (TOKEN_VARIABLE.to_owned(), text),
        (None, None) => return Ok(None),
    };
    Token::new(&text).map(Some).map_err(|problem| Exit::usage(format!("{from}: {problem}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_goes_without_a_token() {
        for (address, goes) in [
            ("127.0.0.1:1", true),
            ("[::1]:1", true),
            ("0.0.0.0:1", false),
            ("10.0.0.7:1", false),
            ("[::]:1", false),
        ] {
            assert_eq!(needs_no_token(address, &[address.parse().unwrap()]).is_ok(), goes, "{address}");
        }
    }

    #[test]
    fn a_token_is_never_silently_missing() {
        let usable = "0123456789abcdef";
        assert!(token(None, None).unwrap().is_none());
        assert!(token(None, Some(usable.to_owned())).unwrap().is_some());
        for unusable in ["", "short"] {
            assert!(token(None, Some(unusable.to_owned())).is_err(), "{unusable:?}");
        }
        assert!(token(Some(Path::new("no such file")), Some(usable.to_owned())).is_err());
    }
}
