//! What the fields of a `[[client]]` section come to, with the files and variables that they name.

use std::env;

use heatsink_control::{ClientSettings, RightsSettings, RulesError, Secret, SecretSource};
use heatsink_signature::{Client, UnfitClient, check_access_key};
use jiff::Timestamp;

use crate::globs::{self, Globs};
use crate::policy;
use crate::rights::Rights;
use crate::secret_file::{self, Unfit};

/// What a client may do.
pub(crate) fn rights(settings: &ClientSettings, region: &str) -> Result<Rights, RulesError> {
    match &settings.rights {
        RightsSettings::Globs { tables, actions, keys, attributes } => {
            let globs = Globs {
                tables: tables.as_deref(),
                actions: actions.as_deref(),
                keys: keys.as_deref(),
                attributes: attributes.as_deref(),
            };
            globs::rights(settings, &globs)
        }
        RightsSettings::Policy(file) => {
            let fault = |problem: String| settings.fault("policy", format!("{}: {problem}", file.display()));
            let text = secret_file::read_unchanged(file).map_err(|unfit| fault(unfit.to_string()))?;
            policy::read(text.as_bytes(), region).map_err(fault)
        }
    }
}

/// Checks the access key.
pub(crate) fn access_key(settings: &ClientSettings) -> Result<(), RulesError> {
    check_access_key(&settings.id).map_err(|unfit| match unfit {
        UnfitClient::Empty => settings.fault("id", "expected an access key, found an empty text"),
        unfit => settings.fault("id", unfit.to_string()),
    })
}

/// The client of a section that has a secret.
pub(crate) fn client(
    settings: &ClientSettings,
    secret: &Secret,
    expires: Option<u64>,
) -> Result<Client, RulesError> {
    let unfit = |field: &'static str| {
        move |unfit: UnfitClient| match unfit {
            UnfitClient::Empty => settings.fault(field, "what it names is empty"),
            unfit => settings.fault("id", unfit.to_string()),
        }
    };
    let mut client = Client::new(&settings.id, &text(settings, secret)?).map_err(unfit(secret.field))?;
    if let Some(secret) = &settings.former_secret {
        client = client.with_former_secret(&text(settings, secret)?).map_err(unfit(secret.field))?;
    }
    if let Some(token) = &settings.session_token {
        client = client.with_token(&text(settings, token)?).map_err(unfit(token.field))?;
    }
    Ok(match expires {
        Some(expires) => client.expiring(expires),
        None => client,
    })
}

/// Until when a section is of a client, in milliseconds since 1970.
pub(crate) fn expires(settings: &ClientSettings) -> Result<Option<u64>, RulesError> {
    let Some(expires) = &settings.expires else { return Ok(None) };
    let moment: Timestamp = expires.parse().map_err(|_| {
        let problem = format!("expected a moment such as \"2027-01-31T00:00:00Z\", found {expires:?}");
        settings.fault("expires", problem)
    })?;
    Ok(Some(u64::try_from(moment.as_millisecond()).unwrap_or_default()))
}

/// The secret that a field names. What the field holds may be a secret by mistake: it is repeated
/// only where it is the name of a file that is there.
fn text(settings: &ClientSettings, Secret { field, source }: &Secret) -> Result<String, RulesError> {
    let text = match source {
        SecretSource::File(file) => secret_file::read(file).map_err(|unfit| match unfit {
            Unfit::Unreadable(error) => {
                settings.fault(field, format!("the file that it names cannot be read: {}", error.kind()))
            }
            unfit => settings.fault(field, format!("{}: {unfit}", file.display())),
        })?,
        SecretSource::Variable(name) => env::var(name).map_err(|_| {
            settings.fault(field, "the environment variable that it names is not set, or is no text")
        })?,
    };
    // The line end of its file is none of it.
    Ok(text.trim().to_owned())
}
