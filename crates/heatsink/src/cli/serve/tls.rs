//! The files of TLS: certificate, key, and the CA of clients' certificates.
//!
//! Not here: what is in them (`heatsink_gateway::http`), when they are read again (`reload`).

use std::path::{Path, PathBuf};

use heatsink_env::Env;
use heatsink_gateway::http::{PemFile, ServerTls, TlsFiles};

use crate::cli::token_file;
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
    /// DNS name, says who they are
    #[arg(long = "tls-client-ca", value_name = "FILE", requires = "cert")]
    client_ca: Option<PathBuf>,
}

impl Args {
    /// The files, to notice that they change.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.cert, &self.key, &self.client_ca].into_iter().flatten()
    }

    /// TLS as the files say now; `None` where it is not asked for.
    ///
    /// # Errors
    /// One line with flag, file, line and what to do.
    pub fn read(&self, env: &dyn Env) -> Result<Option<ServerTls>, String> {
        let (Some(cert), Some(key)) = (&self.cert, &self.key) else { return Ok(None) };
        let (cert, cert_text) = text("--tls-cert", cert)?;
        let key_name = format!("--tls-key {}", key.display());
        let key_text = token_file::read(key).map_err(|problem| format!("{key_name}: {problem}"))?;
        let client_ca = self.client_ca.as_deref().map(|file| text("--tls-client-ca", file)).transpose()?;
        let files = TlsFiles {
            cert: PemFile { name: &cert, text: &cert_text },
            key: PemFile { name: &key_name, text: &key_text },
            client_ca: client_ca.as_ref().map(|(name, text)| PemFile { name, text }),
        };
        ServerTls::read(files, env.unix_millis()).map(Some)
    }
}

fn text(flag: &str, file: &Path) -> Result<(String, String), String> {
    let name = format!("{flag} {}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| format!("{name}: {}", in_words(&error)))?;
    Ok((name, text))
}
