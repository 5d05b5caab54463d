//! Trees back to text, under fresh placeholders only.
//!
//! The text can come out longer than what was read, and a wrapped condition has more operators:
//! DynamoDB's limits (4 KB, 300 operators) then refuse what was close to them.

use super::ast::{Assigned, Condition, Operand, Path, Projection, Step, Update};
use super::bindings::Fresh;
use crate::Value;

impl Condition {
    /// The expression's text.
    pub fn render(&self, fresh: &mut Fresh) -> String {
        match self {
            Condition::Compare(left, comparator, right) => {
                format!("{} {} {}", operand(left, fresh), comparator.symbol(), operand(right, fresh))
            }
            Condition::Between(value, low, high) => {
                format!(
                    "{} BETWEEN {} AND {}",
                    operand(value, fresh),
                    operand(low, fresh),
                    operand(high, fresh)
                )
            }
            Condition::In(value, list) => {
                let value = operand(value, fresh);
                let list: Vec<String> = list.iter().map(|one| operand(one, fresh)).collect();
                format!("{value} IN ({})", list.join(", "))
            }
            Condition::Exists(path) => format!("attribute_exists({})", path_text(path, fresh)),
            Condition::NotExists(path) => format!("attribute_not_exists({})", path_text(path, fresh)),
            Condition::Type(path, name) => {
                let path = path_text(path, fresh);
                format!("attribute_type({path}, {})", fresh.value(Value::S(name.clone())))
            }
            Condition::BeginsWith(text, prefix) => {
                format!("begins_with({}, {})", operand(text, fresh), operand(prefix, fresh))
            }
            Condition::Contains(whole, part) => {
                format!("contains({}, {})", operand(whole, fresh), operand(part, fresh))
            }
            Condition::And(all) => self.chain(all, " AND ", fresh),
            Condition::Or(all) => self.chain(all, " OR ", fresh),
            Condition::Not(inner) => format!("NOT {}", inner.within(fresh)),
        }
    }

    fn chain(&self, all: &[Condition], word: &str, fresh: &mut Fresh) -> String {
        let parts: Vec<String> = all.iter().map(|one| one.within(fresh)).collect();
        parts.join(word)
    }

    /// As a part of a larger condition: in parentheses where it needs them, never in two pairs.
    fn within(&self, fresh: &mut Fresh) -> String {
        match self {
            Condition::And(all) | Condition::Or(all) if all.len() == 1 => {
                all.iter().map(|one| one.within(fresh)).collect()
            }
            Condition::And(_) | Condition::Or(_) | Condition::Not(_) => format!("({})", self.render(fresh)),
            predicate => predicate.render(fresh),
        }
    }
}

impl Projection {
    /// The expression's text.
    pub fn render(&self, fresh: &mut Fresh) -> String {
        let paths: Vec<String> = self.paths.iter().map(|path| path_text(path, fresh)).collect();
        paths.join(", ")
    }
}

impl Update {
    /// The expression's text.
    pub fn render(&self, fresh: &mut Fresh) -> String {
        let mut clauses = Vec::new();
        let mut clause = |word: &str, parts: Vec<String>| {
            if !parts.is_empty() {
                clauses.push(format!("{word} {}", parts.join(", ")));
            }
        };
        let set = self
            .set
            .iter()
            .map(|(path, value)| format!("{} = {}", path_text(path, fresh), assigned(value, fresh)));
        clause("SET", set.collect());
        clause("REMOVE", self.remove.iter().map(|path| path_text(path, fresh)).collect());
        for (word, list) in [("ADD", &self.add), ("DELETE", &self.delete)] {
            let parts = list.iter().map(|(path, value)| {
                let path = path_text(path, fresh);
                format!("{path} {}", fresh.value(value.clone()))
            });
            clause(word, parts.collect());
        }
        clauses.join(" ")
    }
}

pub(super) fn path_text(path: &Path, fresh: &mut Fresh) -> String {
    let mut text = fresh.name(&path.root);
    for step in &path.rest {
        match step {
            Step::Name(name) => {
                text.push('.');
                text.push_str(&fresh.name(name));
            }
            Step::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

fn operand(operand_: &Operand, fresh: &mut Fresh) -> String {
    match operand_ {
        Operand::Path(path) => path_text(path, fresh),
        Operand::Value(value) => fresh.value(value.clone()),
        Operand::Size(inner) => format!("size({})", operand(inner, fresh)),
    }
}

fn assigned(value: &Assigned, fresh: &mut Fresh) -> String {
    let within = |value: &Assigned, fresh: &mut Fresh| match value {
        Assigned::Plus(..) | Assigned::Minus(..) => format!("({})", assigned(value, fresh)),
        _ => assigned(value, fresh),
    };
    match value {
        Assigned::Path(path) => path_text(path, fresh),
        Assigned::Value(value) => fresh.value(value.clone()),
        Assigned::IfNotExists(path, default) => {
            let path = path_text(path, fresh);
            format!("if_not_exists({path}, {})", within(default, fresh))
        }
        Assigned::ListAppend(a, b) => format!("list_append({}, {})", within(a, fresh), within(b, fresh)),
        Assigned::Plus(a, b) => format!("{} + {}", within(a, fresh), within(b, fresh)),
        Assigned::Minus(a, b) => format!("{} - {}", within(a, fresh), within(b, fresh)),
    }
}
