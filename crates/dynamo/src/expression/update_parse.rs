//! The grammar of updates.

use super::ast::{Assigned, Path, Update};
use super::bindings::Bindings;
use super::faults::Grave;
use super::kind::{Checks, Kind};
use super::parse::Parser;
use super::projection::check_overlaps;
use crate::{Error, Value};

impl Update {
    /// Reads an `UpdateExpression` and checks it as DynamoDB does before it looks at the item.
    ///
    /// # Errors
    /// `ValidationException` in DynamoDB's words.
    pub fn parse(text: &str, bindings: &Bindings<'_>) -> Result<Update, Error> {
        let mut parser = Parser::new(Kind::Update, text, bindings)?;
        let mut update = Update::default();
        let mut targets = Vec::new();
        let mut seen = Vec::new();
        while let Some(section) =
            ["SET", "REMOVE", "ADD", "DELETE"].into_iter().find(|word| parser.at_word(word))
        {
            parser.next();
            if seen.contains(&section) {
                let message =
                    format!("The \"{section}\" section can only be used once in an update expression;");
                parser.faults.note(Grave::Section, Kind::Update, &message);
            }
            seen.push(section);
            loop {
                let path = parser.path()?;
                targets.push(path.clone());
                parser.clause(section, path, &mut update)?;
                if !parser.takes(",") {
                    break;
                }
            }
        }
        if seen.is_empty() {
            return Err(parser.syntax_error());
        }
        check_overlaps(&targets.iter().collect::<Vec<_>>(), Kind::Update, &mut parser.faults);
        parser.finish(Checks::All)?;
        Ok(update)
    }
}

impl Parser<'_, '_> {
    fn clause(&mut self, section: &str, path: Path, update: &mut Update) -> Result<(), Error> {
        match section {
            "SET" => {
                self.expect("=")?;
                self.operator()?;
                let value = self.assigned()?;
                update.set.push((path, value));
            }
            "REMOVE" => update.remove.push(path),
            _ => {
                let value = self.takes_value()?.ok_or_else(|| self.syntax_error())?;
                let fits = match value {
                    Value::Ss(_) | Value::Ns(_) | Value::Bs(_) => true,
                    Value::N(_) => section == "ADD",
                    _ => false,
                };
                if !fits {
                    let message = format!(
                        "Incorrect operand type for operator or function; operator: {section}, operand type: {}, typeSet: ALLOWED_FOR_ADD_OPERAND",
                        long_type(&value)
                    );
                    self.faults.note(Grave::Operand, Kind::Update, &message);
                }
                let list = if section == "ADD" { &mut update.add } else { &mut update.delete };
                list.push((path, value));
            }
        }
        Ok(())
    }

    fn assigned(&mut self) -> Result<Assigned, Error> {
        let left = self.assigned_operand()?;
        let sign = if self.takes("+") {
            "+"
        } else if self.takes("-") {
            "-"
        } else {
            return Ok(left);
        };
        self.operator()?;
        let right = self.assigned_operand()?;
        for operand in [&left, &right] {
            self.literal_must_be("N", sign, operand);
        }
        let (left, right) = (Box::new(left), Box::new(right));
        Ok(if sign == "+" { Assigned::Plus(left, right) } else { Assigned::Minus(left, right) })
    }

    fn assigned_operand(&mut self) -> Result<Assigned, Error> {
        if self.takes("(") {
            let inner = self.deeper(Self::assigned)?;
            self.expect(")")?;
            return Ok(inner);
        }
        if let Some(name) = self.takes_call() {
            self.operator()?;
            let mut arguments = vec![self.deeper(Self::assigned_operand)?];
            while self.takes(",") {
                arguments.push(self.deeper(Self::assigned_operand)?);
            }
            self.expect(")")?;
            return Ok(self.update_function(name, arguments));
        }
        if let Some(value) = self.takes_value()? {
            return Ok(Assigned::Value(value));
        }
        Ok(Assigned::Path(self.path()?))
    }

    fn update_function(&mut self, name: &str, arguments: Vec<Assigned>) -> Assigned {
        if !matches!(name, "if_not_exists" | "list_append") {
            self.unknown(name);
            return Assigned::Value(Value::Null);
        }
        let given = arguments.len();
        match (name, <[Assigned; 2]>::try_from(arguments)) {
            ("if_not_exists", Ok([Assigned::Path(path), default])) => {
                Assigned::IfNotExists(path, Box::new(default))
            }
            ("if_not_exists", Ok(_)) => {
                let message =
                    format!("Operator or function requires a document path; operator or function: {name}");
                self.faults.note(Grave::Function, Kind::Update, &message);
                Assigned::Value(Value::Null)
            }
            (_, Ok([first, second])) => {
                for operand in [&first, &second] {
                    self.literal_must_be("L", name, operand);
                }
                Assigned::ListAppend(Box::new(first), Box::new(second))
            }
            (_, Err(_)) => {
                self.wrong_count(name, given);
                Assigned::Value(Value::Null)
            }
        }
    }

    fn literal_must_be(&mut self, wanted: &str, operator: &str, operand: &Assigned) {
        if let Assigned::Value(value) = operand
            && value.type_name() != wanted
        {
            let message = format!(
                "Incorrect operand type for operator or function; operator or function: {operator}, operand type: {}",
                value.type_name()
            );
            self.faults.note(Grave::Function, Kind::Update, &message);
        }
    }
}

fn long_type(value: &Value) -> &'static str {
    match value {
        Value::S(_) => "STRING",
        Value::N(_) => "NUMBER",
        Value::B(_) => "BINARY",
        Value::Bool(_) => "BOOLEAN",
        Value::Null => "NULL",
        Value::L(_) => "LIST",
        Value::M(_) => "MAP",
        Value::Ss(_) | Value::Ns(_) | Value::Bs(_) => "SET",
    }
}
