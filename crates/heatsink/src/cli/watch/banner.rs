//! What `watch` says before it forwards anything: what it sends by itself, and how an application
//! gets there.

use std::net::SocketAddr;

use serde_json::json;

use crate::cli::print;
use crate::exit::Exit;
use crate::output::Output;
use crate::screen;

/// What is said.
pub struct Banner<'a> {
    pub address: SocketAddr,
    pub upstream: &'a str,
    pub region: &'a str,
    /// The registry that must not be there.
    pub registry: &'a str,
    /// Whether the file that names it has rules too.
    pub has_rules: bool,
    pub seconds: Option<u64>,
}

impl Banner<'_> {
    /// Prints it on stdout.
    ///
    /// # Errors
    /// Stdout cannot be written.
    pub fn print(&self, output: Output) -> Result<(), Exit> {
        match output {
            Output::Text => print::as_it_is(&self.text()),
            Output::Json => print::json(&json!({
                "event": "watching", "endpoint": self.endpoint(), "upstream": self.upstream, "region": self.region, "seconds": self.seconds,
                "sends_by_itself": [
                    { "operation": "DescribeTable", "of": "each table that requests name" },
                    { "operation": "DescribeTable", "of": self.registry }, { "operation": "GetItem", "of": self.registry },
                ],
                "writes": false,
            })),
        }
    }

    fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    fn text(&self) -> String {
        let Banner { upstream, region, registry, seconds, .. } = self;
        let ends = match seconds {
            Some(seconds) => format!("It ends after {seconds} s, or with Ctrl-C, and reports."),
            None => "Ctrl-C ends it, and it reports.".to_owned(),
        };
        let rules = if self.has_rules { " The rules of heatsink.toml are not applied." } else { "" };
        let said = format!(
            "Heatsink watches on {endpoint} and forwards every request to {upstream}, byte for byte, and asks what some of them cost.{rules}\n\
             \n\
             It writes nothing to the store, and changes no key. By itself it sends: one DescribeTable for each table that requests name, because the names of \
             keys are in no request; and one DescribeTable, then a GetItem every 5 s, for the table {registry}. That table is not there. If another Heatsink \
             makes it, in order to shard, this one refuses every request and ends.\n\
             \n\
             All is signed with the credentials of the standard AWS chain of this process, for the region {region}, whoever sends it to {endpoint}.\n\
             \n\
             Point an application here, without a change of its code:\n",
            endpoint = self.endpoint()
        );
        let wrapped = |text: &str| screen::wrapped(text, screen::columns());
        let ends = format!("{ends} Nothing listens here afterwards: take the variable away again.\n\n");
        format!(
            "{}\n  export AWS_ENDPOINT_URL_DYNAMODB={}\n\n{}",
            wrapped(&said),
            self.endpoint(),
            wrapped(&ends)
        )
    }
}
