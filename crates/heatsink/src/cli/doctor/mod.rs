//! `heatsink doctor`: looks at the configuration, the store and its registry, and says what is
//! wrong with each, and what to do.
//!
//! Not here: the calls that are tried (`rights`), how findings are written (`finding`).

mod finding;
mod rights;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use heatsink_access::Clients;
use heatsink_control::registry::Registry;
use heatsink_control::rules::FenceSettings;
use heatsink_control::{
    Changer, Checked, ClientSettings, Fencing, Rules, Verdict, check, claim, lost_registry,
};
use heatsink_dynamo::{Error, Operation};
use heatsink_env::{Env, RealEnv};
use heatsink_store::Store;
use serde_json::{Value as Json, json};

use super::open::{SET_CREDENTIALS, open_existing};
use super::store_args::StoreArgs;
use super::{print, right_flag, rules, runtime};
use crate::exit::{Exit, without_numbers};
use crate::output::Output;
use finding::{Findings, State};

/// The most tables whose rights are tried.
const TABLES: usize = 20;
/// Clocks of gateways may differ by this without harm to what people read.
const CLOCKS: Duration = Duration::from_secs(60);

/// What `doctor` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The rules [default: heatsink.toml in the working directory, where there is one]
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    #[command(flatten)]
    store: StoreArgs,
    /// How the findings are printed on stdout
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// Runs it. It changes nothing: of each table that it tries it reads an item or two, and sends
/// three writes whose condition never holds, for a write unit each. Exit 1 where there is a fault.
pub fn run(args: Args) -> Result<(), Exit> {
    let findings = runtime::one_thread()?.block_on(examine(&args));
    match args.output {
        Output::Json => print::json(&json!({ "findings": findings.0 }))?,
        Output::Text => print::text(&findings.words())?,
    }
    match (findings.count(State::Fault), findings.count(State::Warning)) {
        (0, _) => Ok(()),
        (faults, warnings) => Err(Exit::failed(format!("faults: {faults}, warnings: {warnings}"))),
    }
}

async fn examine(args: &Args) -> Findings {
    let mut findings = Findings::default();
    let rules = match rules::find(args.rules.as_deref()) {
        Ok(found) => {
            let said = found.file.as_ref().map_or_else(
                || "there is no heatsink.toml here: every request is forwarded".to_owned(),
                |file| format!("{} can be read", file.display()),
            );
            findings.ok("configuration", said);
            of_clients(&mut findings, &found.rules);
            found.rules
        }
        Err(exit) => {
            findings.fault(
                "configuration",
                exit.to_string(),
                "mend that line; docs/reference/rules.md has every field",
            );
            Rules::default()
        }
    };
    let env: Arc<dyn Env> = Arc::new(RealEnv);
    let opened = match open_existing(args.store.data.as_deref(), args.store.upstream.as_deref(), &env).await {
        Ok(opened) => opened,
        Err(exit) => {
            findings.fault("store", exit.to_string(), "without it nothing else can be looked at");
            return findings;
        }
    };
    let (store, fence) = (opened.store, rules.fence().clone());
    if let Some(url) = &args.store.upstream {
        findings.ok("credentials", format!("found; requests are signed for {}", opened.region));
        if let Err(exit) = right_flag::upstream(&*store, &fence.registry, url).await {
            findings.fault("store", exit.to_string(), "look at the store itself");
            return findings;
        }
    }
    let Some(checked) = of_tables(&mut findings, &store, &env, &rules).await else { return findings };
    let registry = fence.registry_in(Arc::clone(&store), Arc::clone(&env));
    of_transactions(&mut findings, &registry).await;
    of_registry(&mut findings, &registry).await;
    if args.store.upstream.is_some() {
        of_backups(&mut findings, &registry).await;
    }
    of_gateways(&mut findings, &store, &env, &fence).await;
    of_rights(&mut findings, &store, &registry, &checked).await;
    findings.not_seen(
        "writers past the gateways",
        "a gateway sees only what goes through it",
        "compare capacity, or read the stream: docs/how-to/monitor-and-alert.md#traffic-past-heatsink",
    );
    findings
}

/// Who may send requests. Secrets are where the gateway runs.
fn of_clients(findings: &mut Findings, rules: &Rules) {
    const CHECK: &str = "clients";
    if let Err(fault) = Clients::check(rules.clients(), "") {
        return findings.fault(CHECK, fault.to_string(), "mend that line");
    }
    let (all, shown) = (rules.clients(), |client: &&ClientSettings| !client.certificates.is_empty());
    let certified = all.iter().filter(shown).count();
    match all.len() {
        0 => findings.ok(CHECK, "none are named: whoever is let in may do all"),
        many => findings.ok(CHECK, format!("named: {many}, of which {certified} show a certificate")),
    }
    if certified > 0 {
        findings.not_seen(
            CHECK,
            "whether the gateway asks for certificates is not seen from here",
            "start it with --tls-cert, --tls-key and --tls-client-ca; without them it refuses to start",
        );
    }
}

/// The rules against the tables; `None` where the tables cannot be read.
async fn of_tables(
    findings: &mut Findings,
    store: &Arc<dyn Store>,
    env: &Arc<dyn Env>,
    rules: &Rules,
) -> Option<Checked> {
    const CHECK: &str = "tables and rules";
    let checked = match check(Arc::clone(store), Arc::clone(env), rules).await {
        Ok(checked) => checked,
        Err(error) => {
            failed(findings, CHECK, &error);
            return None;
        }
    };
    for (table, verdict) in &checked.tables {
        match verdict {
            Verdict::Refused(_) => findings.fault(
                CHECK,
                format!("table {table}: {verdict}"),
                format!("`heatsink adopt {table}`, or take it out of the rules"),
            ),
            Verdict::Contradicted(..) | Verdict::Waiting(..) | Verdict::Outlived(..) => findings.warning(
                CHECK,
                format!("table {table}: {verdict}"),
                format!("`heatsink adopt {table} --dry-run` says what would change it"),
            ),
            Verdict::Forwarded(_) | Verdict::Sharded(_) | Verdict::Empty(_) => {}
        }
    }
    for (rule, named) in rules.iter().zip(&checked.rules) {
        if named.tables.is_empty() {
            let said = format!("rule {} (line {}) matches no table", rule.number, rule.line);
            findings.warning(CHECK, said, "make the table, or mend the name");
        }
    }
    let sharded = checked.tables.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Sharded(_))).count();
    findings
        .ok(CHECK, format!("tables: {}, of which {sharded} are sharded and on record", checked.tables.len()));
    Some(checked)
}

async fn of_transactions(findings: &mut Findings, registry: &Registry) {
    const CHECK: &str = "transactions";
    match claim::is_possible(registry).await {
        Ok(true) => findings.ok(CHECK, "the store has TransactWriteItems"),
        Ok(false) => findings.warning(
            CHECK,
            "the store has no TransactWriteItems: requests are served, and no key gets other shards, and no table is adopted",
            "use a store that has them, or shard new tables by rules alone",
        ),
        Err(error) => failed(findings, CHECK, &error),
    }
}

async fn of_registry(findings: &mut Findings, registry: &Registry) {
    const CHECK: &str = "registry";
    let name = registry.name();
    match registry.describe(name).await {
        Ok(Some(_)) => {}
        Ok(None) => {
            return match lost_registry::of_store(registry).await {
                Ok(Some(lost)) => findings.fault(CHECK, lost, "docs/how-to/recover.md#the-registry-is-lost"),
                Ok(None) => findings.ok(CHECK, format!("there is no {name}, and no sign that there was one")),
                Err(error) => failed(findings, CHECK, &error),
            };
        }
        Err(error) => return failed(findings, CHECK, &error),
    }
    findings.ok(CHECK, format!("{name} is there"));
    match lost_registry::is_unprotected(registry).await {
        Ok(true) => findings.warning(
            CHECK,
            format!("{name} can be deleted, and without it items of sharded tables are not found"),
            format!("aws dynamodb update-table --table-name {name} --deletion-protection-enabled"),
        ),
        Ok(false) => {}
        Err(error) => failed(findings, CHECK, &error),
    }
}

/// Whether the registry comes back if somebody damages it.
async fn of_backups(findings: &mut Findings, registry: &Registry) {
    const CHECK: &str = "registry";
    let name = registry.name();
    let table = json!({ "TableName": name });
    let backups = registry.call(Operation::DescribeContinuousBackups, table).await;
    let status = |answer: &Json| {
        let described = &answer["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"];
        described["PointInTimeRecoveryStatus"].as_str().map(str::to_owned)
    };
    let turn_on = format!(
        "aws dynamodb update-continuous-backups --table-name {name} --point-in-time-recovery-specification PointInTimeRecoveryEnabled=true"
    );
    match backups.as_ref().map(status) {
        // There is no registry.
        Err(error)
            if ["TableNotFoundException", "ResourceNotFoundException"].contains(&error.code.name()) => {}
        Ok(Some(status)) if status == "ENABLED" => findings.ok(CHECK, "it has point-in-time recovery"),
        Ok(Some(_)) => findings.warning(CHECK, "it has no point-in-time recovery", turn_on),
        _ => findings.not_seen(CHECK, "whether it has point-in-time recovery is not told here", &turn_on),
    }
}

async fn of_gateways(
    findings: &mut Findings,
    store: &Arc<dyn Store>,
    env: &Arc<dyn Env>,
    fence: &FenceSettings,
) {
    const CHECK: &str = "gateways";
    let changer = Changer::beside(Arc::clone(store), Arc::clone(env), Fencing::observing(fence));
    let list = match changer.gateways().await {
        Ok(None) => return findings.ok(CHECK, "none has registered: there is no registry"),
        Ok(Some((_, list))) => list,
        Err(error) => return failed(findings, CHECK, &error),
    };
    let now = env.unix_millis();
    for gateway in &list {
        let (one, name) = (&gateway.registration, &gateway.name);
        let silent = Duration::from_millis(now.saturating_sub(gateway.heard));
        let ahead = Duration::from_millis(gateway.heard.saturating_sub(now));
        if gateway.is_dead(now) {
            findings.warning(
                CHECK,
                format!("{name} was last heard {} s ago, and changes wait for it", silent.as_secs()),
                format!(
                    "if it is dead, and none of its requests is in flight: heatsink gateways --remove {}",
                    one.gateway
                ),
            );
        }
        if ahead > CLOCKS {
            findings.warning(
                CHECK,
                format!("the clock of {name} is {} s ahead of this machine's", ahead.as_secs()),
                "set both by NTP: signatures and times in reports depend on them",
            );
        }
    }
    let mut builds: Vec<&str> = list.iter().map(|gateway| gateway.build.as_str()).collect();
    builds.sort_unstable();
    builds.dedup();
    if builds.len() > 1 {
        let said = format!("several versions serve: {}", builds.join(", "));
        findings.warning(CHECK, said, "bring them to one: docs/how-to/upgrade.md");
    }
    findings.ok(CHECK, format!("registered: {}", list.len()));
}

/// Tries what gateways ask of the registry, and of the tables that have a rule or a record.
async fn of_rights(findings: &mut Findings, store: &Arc<dyn Store>, registry: &Registry, checked: &Checked) {
    const CHECK: &str = "rights";
    let is_forwarded = |verdict: &Verdict| matches!(verdict, Verdict::Forwarded(_));
    let sharded =
        checked.tables.iter().filter(|(_, verdict)| !is_forwarded(verdict)).map(|(table, _)| table.as_str());
    let all: Vec<&str> = std::iter::once(registry.name()).chain(sharded).collect();
    let mut whole = 0;
    for table in all.iter().take(TABLES) {
        let described = match registry.describe(table).await {
            Ok(Some(described)) => described,
            Ok(None) => continue,
            Err(error) => {
                failed(findings, CHECK, &error);
                continue;
            }
        };
        let rights::Tried { denied, failed } = rights::tried(store, &described.schema).await;
        if !denied.is_empty() {
            findings.fault(
                CHECK,
                format!("table {table}: {} not allowed", denied.join(", ")),
                "allow them to the gateway: docs/how-to/deploy.md has the policy",
            );
        }
        for said in &failed {
            findings.warning(CHECK, format!("table {table}: {said}"), "see what the store says");
        }
        whole += usize::from(denied.is_empty() && failed.is_empty());
    }
    if whole > 0 {
        findings.ok(
            CHECK,
            format!("reads and writes are allowed; tried on {whole} of the registry and of tables with a rule or a record"),
        );
    }
    if let Some(left) = all.len().checked_sub(TABLES).filter(|left| *left > 0) {
        findings.not_seen(
            CHECK,
            format!("{left} more tables were not tried"),
            "name fewer in the rules, to try those",
        );
    }
}

/// A call that failed: not allowed, or something else.
fn failed(findings: &mut Findings, check: &'static str, error: &Error) {
    let said = without_numbers(&error.to_string());
    match error.is_denied() {
        true => findings.fault(
            check,
            format!("the store refuses it: {said}"),
            format!("{SET_CREDENTIALS}; or allow it: docs/how-to/deploy.md has the policy"),
        ),
        false => findings.fault(check, said, "look at the store and the network; then run this again"),
    }
}
