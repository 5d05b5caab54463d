//! What `serve` prints once it listens: the endpoint, lines to paste, and where the data lies.

use std::io::Write;
use std::net::SocketAddr;

use serde_json::json;

use crate::cli::Output;

/// Where the data lies.
pub enum Place {
    /// In this process.
    Memory,
    /// In a file.
    File(String),
    /// In another DynamoDB endpoint.
    #[cfg_attr(not(feature = "upstream"), allow(dead_code, reason = "constructed by that feature"))]
    Upstream(String),
}

/// Prints on stdout.
pub fn print(address: SocketAddr, place: &Place, output: Output) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match output {
        Output::Text => out.write_all(text(address, place).as_bytes())?,
        Output::Json => {
            let (kind, at) = match place {
                Place::Memory => ("memory", None),
                Place::File(file) => ("file", Some(file)),
                Place::Upstream(url) => ("upstream", Some(url)),
            };
            writeln!(
                out,
                "{}",
                json!({ "endpoint": endpoint(address), "data": { "kind": kind, "at": at } })
            )?;
        }
    }
    out.flush()
}

fn endpoint(address: SocketAddr) -> String {
    format!("http://{address}")
}

fn text(address: SocketAddr, place: &Place) -> String {
    let endpoint = endpoint(address);
    let place = match place {
        Place::Memory => "in memory; it goes with this process (--data FILE keeps it)".to_owned(),
        Place::File(file) => format!("in {file}"),
        Place::Upstream(url) => format!("upstream, at {url}"),
    };
    // The embedded store takes any credentials; SDKs insist on having some.
    let credentials = r#"accessKeyId: "local", secretAccessKey: "local""#;
    format!(
        "Heatsink listens on {endpoint}\n\
         \n  AWS CLI  AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local aws dynamodb list-tables --region us-east-1 --endpoint-url {endpoint}\n\
         \n  boto3    boto3.resource(\"dynamodb\", endpoint_url=\"{endpoint}\", region_name=\"us-east-1\", aws_access_key_id=\"local\", aws_secret_access_key=\"local\")\n\
         \n  JS       new DynamoDBClient({{ endpoint: \"{endpoint}\", region: \"us-east-1\", credentials: {{ {credentials} }} }})\n\
         \nData lies {place}.\n"
    )
}
