//! The files of TLS: certificate, key, and the CA of clients' certificates.
//!
//! Not here: what is in them (`heatsink_gateway::http`), when they are read again (`reload`).

use std::path::{Path, PathBuf};

use heatsink_access::secret_file::{self, Unfit};
use heatsink_control::{ClientSettings, RulesError};
use heatsink_env::Env;
use heatsink_gateway::http::{PemFile, ServerTls, TlsFiles};

use crate::exit::in_words;

/// What `serve` takes for it.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Serve clients over TLS with the certificate chain in this PEM file; read again when it changes
    #[arg(long = "tls-cert", value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The certificate's private key, in PEM; others must not be able to read the file
    #[arg(long = "tls-key", value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Serve only clients with a certificate by a CA in this PEM file; its first URI, else its first
    /// DNS name, is what a [[client]] in the rules names as its certificate
    #[arg(long = "tls-client-ca", value_name = "FILE", requires = "cert")]
    client_ca: Option<PathBuf>,
}

impl Args {
    /// The files, to notice that they change.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.cert, &self.key, &self.client_ca].into_iter().flatten()
    }

    /// TLS as the files say now; `None` where it is not asked for. Where the server's own certificate
    /// or key cannot be used, that of `in_force` is, with what is wrong: it says nothing of what
    /// clients may do, and what takes rights away must not wait for it.
    ///
    /// # Errors
    /// One line with flag, file, line and what to do.
    pub fn read(&self, env: &dyn Env, in_force: Option<&ServerTls>) -> Result<Read, String> {
        let (Some(cert), Some(key)) = (&self.cert, &self.key) else { return Ok(Read::default()) };
        let client_ca = self.client_ca.as_deref().map(trusted).transpose()?;
        let client_ca = client_ca.as_ref().map(|(name, text)| PemFile { name, text });
        match (own(cert, key, client_ca, env), in_force) {
            (Ok(tls), _) => Ok(Read { tls: Some(tls), kept: None }),
            (Err(why), None) => Err(why),
            (Err(why), Some(tls)) => {
                let tls = tls.with_client_ca(client_ca, env.unix_millis())?;
                Ok(Read { tls: Some(tls), kept: Some(why) })
            }
        }
    }
}

/// TLS as it was read.
#[derive(Default)]
pub struct Read {
    pub tls: Option<ServerTls>,
    /// Why the certificate in force is kept.
    pub kept: Option<String>,
}

fn own(cert: &Path, key: &Path, client_ca: Option<PemFile<'_>>, env: &dyn Env) -> Result<ServerTls, String> {
    let (cert, cert_text) =
        text("--tls-cert", cert, |file| secret_file::read_any(file).map(|read| read.text))?;
    let (key, key_text) = text("--tls-key", key, secret_file::read)?;
    let files = TlsFiles {
        cert: PemFile { name: &cert, text: &cert_text },
        key: PemFile { name: &key, text: &key_text },
        client_ca,
    };
    ServerTls::read(files, env.unix_millis())
}

/// Whether a listener with that TLS can know these clients.
///
/// # Errors
/// The first client that has a certificate, where none is asked for.
pub fn can_know(clients: &[ClientSettings], tls: Option<&ServerTls>) -> Result<(), RulesError> {
    let needs = clients.iter().find(|client| !client.certificates.is_empty());
    match needs.filter(|_| !tls.is_some_and(ServerTls::asks_clients)) {
        Some(client) => Err(client.fault(
            "certificate",
            "no certificate is asked for: start with --tls-cert, --tls-key and --tls-client-ca",
        )),
        None => Ok(()),
    }
}

/// The text of a file by which clients are known. Whoever could change it could be each of them.
fn trusted(file: &Path) -> Result<(String, String), String> {
    text("--tls-client-ca", file, secret_file::read_unchanged)
}

/// The name of a file, for errors, and its text.
fn text(
    flag: &str,
    file: &Path,
    read: impl FnOnce(&Path) -> Result<String, Unfit>,
) -> Result<(String, String), String> {
    let name = format!("{flag} {}", file.display());
    let text = read(file).map_err(|unfit| match unfit {
        Unfit::Unreadable(error) => format!("{name}: {}", in_words(&error)),
        unfit => format!("{name}: {unfit}"),
    })?;
    Ok((name, text))
}
