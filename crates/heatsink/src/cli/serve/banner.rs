//! The output of `serve` once it listens: the endpoint, lines to paste, the location of the data,
//! and the rules in force.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::json;

use crate::cli::place::Place;
use crate::cli::print;
use crate::cli::rules::Found;
use crate::cli::store::DataLocation;
use crate::exit::Exit;
use crate::output::Output;

/// Rules that are printed; of a longer file the rest is counted.
const SHOWN: usize = 20;

/// The rules in force, in words.
pub struct Rules {
    file: Option<String>,
    words: Vec<String>,
    /// What is done when a key is hot.
    automatic: Vec<String>,
    /// Who may send requests; none where everyone may.
    clients: Vec<String>,
}

impl Rules {
    /// Those of a command.
    pub fn of(found: &Found) -> Self {
        Rules {
            file: found.file.as_ref().map(|file| file.display().to_string()),
            words: found.rules.iter().map(ToString::to_string).collect(),
            automatic: found.rules.automatics().map(ToString::to_string).collect(),
            clients: found.rules.clients().iter().map(ToString::to_string).collect(),
        }
    }

    fn text(&self) -> String {
        let Some(file) = &self.file else {
            return "No rules: every request is forwarded as it is, but for tables that are on record as sharded. (./heatsink.toml or --rules FILE)\n".to_owned();
        };
        let number = match self.words.len() {
            0 => "no rules".to_owned(),
            1 => "1 rule".to_owned(),
            many => format!("{many} rules"),
        };
        let mut text = format!("Rules in force: {number}, from {file}\n");
        for all in [&self.words, &self.automatic, &self.clients] {
            for words in all.iter().take(SHOWN) {
                text.push_str(&format!("  {words}\n"));
            }
            if all.len() > SHOWN {
                text.push_str(&format!(
                    "  and {} more; `heatsink config check` shows all\n",
                    all.len() - SHOWN
                ));
            }
        }
        text
    }
}

/// Where it listens.
pub struct Addresses {
    /// For clients.
    pub clients: Place,
    /// Whether clients speak TLS.
    pub is_tls: bool,
    /// For operators and scrapers, if there is such an address.
    pub admin: Option<SocketAddr>,
    /// For commands of this user, if there is such a socket.
    pub socket: Option<PathBuf>,
}

/// Prints on stdout.
pub fn print(
    at: &Addresses,
    region: &str,
    place: &DataLocation,
    rules: &Rules,
    output: Output,
) -> Result<(), Exit> {
    match output {
        // Not wrapped: most of it is to be pasted.
        Output::Text => print::as_it_is(&(text(at, region, place, rules) + &rules.text())),
        Output::Json => {
            let (kind, location) = match place {
                DataLocation::Memory => ("memory", None),
                DataLocation::File(file) => ("file", Some(file)),
                DataLocation::Upstream(url) => ("upstream", Some(url)),
            };
            print::json(&json!({
                "endpoint": at.endpoint(),
                "region": region,
                "admin": at.admin.map(admin),
                "socket": at.socket,
                "data": { "kind": kind, "at": location },
                "rules": {
                    "file": rules.file,
                    "rules": rules.words,
                    "automatic": rules.automatic,
                    "clients": rules.clients,
                },
            }))
        }
    }
}

fn admin(address: SocketAddr) -> String {
    format!("http://{address}")
}

impl Addresses {
    /// What clients are configured with.
    fn endpoint(&self) -> String {
        match &self.clients {
            Place::Tcp(address) if self.is_tls => format!("https://{address}"),
            Place::Tcp(address) => format!("http://{address}"),
            unix => unix.to_string(),
        }
    }
}

fn text(at: &Addresses, region: &str, place: &DataLocation, rules: &Rules) -> String {
    let admin = at.admin.map(|at| format!("Heat, metrics and health are at {}/\n", admin(at)));
    let endpoint = at.endpoint();
    let place = match place {
        DataLocation::Memory => "in memory; it goes with this process (--data FILE keeps it)".to_owned(),
        DataLocation::File(file) => format!("in {file}"),
        DataLocation::Upstream(url) => format!("upstream, at {url}"),
    };
    // Where no clients are known any credentials do; SDKs insist on having some.
    let to_paste = if rules.clients.is_empty() {
        let credentials = r#"accessKeyId: "local", secretAccessKey: "local""#;
        format!(
            "\n  AWS CLI  AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local aws dynamodb list-tables --region {region} --endpoint-url {endpoint}\n\
             \n  boto3    boto3.resource(\"dynamodb\", endpoint_url=\"{endpoint}\", region_name=\"{region}\", aws_access_key_id=\"local\", aws_secret_access_key=\"local\")\n\
             \n  JS       new DynamoDBClient({{ endpoint: \"{endpoint}\", region: \"{region}\", credentials: {{ {credentials} }} }})\n"
        )
    } else {
        format!(
            "\nRequests are signed by a client, for the region {region}:\n  aws dynamodb list-tables --region {region} --endpoint-url {endpoint}\n"
        )
    };
    format!("Heatsink listens on {endpoint}\n{to_paste}\nData lies {place}.\n{}", admin.unwrap_or_default())
}
