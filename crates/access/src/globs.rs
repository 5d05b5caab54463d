//! Rights as the globs of a section.

use heatsink_control::{ClientSettings, RulesError};
use heatsink_layout::Glob;

use crate::actions;
use crate::rights::{Condition, On, Pattern, Resources, Rights, Statement};

/// The globs of a section; `None` for a field that is not there.
pub(crate) struct Globs<'a> {
    pub(crate) tables: Option<&'a [String]>,
    pub(crate) actions: Option<&'a [String]>,
    pub(crate) keys: Option<&'a [String]>,
    pub(crate) attributes: Option<&'a [String]>,
}

/// The rights that they give.
///
/// # Errors
/// For a glob of actions that names none.
pub(crate) fn rights(settings: &ClientSettings, globs: &Globs<'_>) -> Result<Rights, RulesError> {
    let mut named = Vec::new();
    for text in globs.actions.unwrap_or(&["*".to_owned()]) {
        let found = matching(text);
        if found.is_empty() {
            let problem = format!(
                "{text:?} names no action; expected IAM's names without dynamodb:, such as GetItem, Query or PartiQLSelect, or globs of them"
            );
            return Err(settings.fault("actions", problem));
        }
        named.extend(found);
    }
    let like = |globs: &[String]| globs.iter().map(|glob| Pattern::Like(Glob::new(glob))).collect();
    let condition = |on: On, globs: Option<&[String]>| {
        globs.map(|globs| Condition { on, patterns: like(globs), if_absent: true })
    };
    let conditions = [condition(On::Keys, globs.keys), condition(On::Attributes, globs.attributes)];
    let statement = Statement {
        allows: true,
        actions: named,
        resources: match globs.tables {
            None => vec![Resources::Everything],
            Some(tables) => tables.iter().map(|table| of_tables(Glob::new(table))).collect(),
        },
        conditions: conditions.into_iter().flatten().collect(),
    };
    Ok(Rights { statements: vec![statement] })
}

fn of_tables(glob: Glob) -> Resources {
    if glob.is_any() { Resources::Everything } else { Resources::Tables(glob) }
}

/// The actions that a glob names, in any case of letters, as in IAM.
pub(crate) fn matching(text: &str) -> Vec<&'static str> {
    let glob = Glob::new(&text.to_ascii_lowercase());
    actions::all().filter(|action| glob.matches(action.to_ascii_lowercase().as_bytes())).collect()
}
