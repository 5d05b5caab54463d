//! Our reading of DynamoDB's expressions against the embedded engine's, on random items and
//! expressions.
//!
//! Every expression is generated as a tree, rendered, given to the engine, parsed again and
//! evaluated here: so the renderer, the parser and the evaluator are tested at once.

#![allow(clippy::unwrap_used, reason = "a test")]

mod engine;
mod generate;

use engine::{Engine, Outcome};
use generate::{condition, item, projection, update};
use heatsink_dynamo::expression::{Bindings, Condition, Fresh, Kind, Projection, Update};
use heatsink_dynamo::value::same_items;
use heatsink_dynamo::{Item, Value};
use proptest::prelude::*;

/// An expression's text with its placeholders, as a request carries them.
struct Sent {
    text: String,
    names: Option<Vec<u8>>,
    values: Option<Vec<u8>>,
}

impl Sent {
    fn new(render: impl FnOnce(&mut Fresh) -> String) -> Sent {
        let bindings = Bindings::default();
        let mut fresh = Fresh::avoiding(&bindings);
        let text = render(&mut fresh);
        let (names, values) = bindings.rewritten(&[], &fresh);
        Sent { text, names, values }
    }

    fn bindings(&self) -> Bindings<'_> {
        Bindings::read(self.names.as_deref(), self.values.as_deref()).unwrap()
    }
}

fn with_key(mut item: Item, key: &str) -> Item {
    item.insert("pk".to_owned(), Value::S(key.to_owned()));
    item
}

/// What we refuse as AWS does though the engine lets it pass (observed on AWS by the dynalite
/// project).
fn stricter_than_the_engine(message: &str) -> bool {
    message.contains("must be distinct")
        || message.contains("Incorrect operand type for operator or function")
        || message.contains("The BETWEEN operator requires")
        || message.contains("Two document paths conflict")
}

/// What the engine refuses and DynamoDB Local 1.11.478 does not: sizes may be compared with
/// themselves.
fn stricter_than_we<T>(theirs: &Outcome<T>, text: &str) -> bool {
    text.contains("contains(size(")
        && matches!(theirs, Outcome::Refused(message) if message.contains("must be distinct"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn filters_hold_for_the_same_items(items in prop::collection::vec(item(), 1..5), tree in condition()) {
        let engine = Engine::shared();
        let items: Vec<Item> = items.into_iter().enumerate().map(|(at, item)| with_key(item, &at.to_string())).collect();
        engine.fill(&items);
        let sent = Sent::new(|fresh| tree.render(fresh));
        let theirs = engine.scan(&sent);
        if stricter_than_we(&theirs, &sent.text) {
            return Ok(());
        }
        match Condition::parse(Kind::Filter, &sent.text, &sent.bindings()) {
            Ok(parsed) => {
                let ours = items.iter().filter(|item| parsed.holds(item)).map(|item| item["pk"].clone()).collect();
                prop_assert_eq!(Outcome::Done(ours), theirs, "{}", sent.text);
            }
            Err(error) => {
                let message = error.message.unwrap();
                prop_assert!(
                    stricter_than_the_engine(&message) || theirs == Outcome::Refused(message.clone()),
                    "{}: {} / {:?}", sent.text, message, theirs
                );
            }
        }
    }

    #[test]
    fn conditions_hold_for_the_same_items(item in prop::option::of(item()), tree in condition()) {
        let engine = Engine::shared();
        let item = item.map(|item| with_key(item, "k"));
        engine.fill(item.as_slice());
        let sent = Sent::new(|fresh| tree.render(fresh));
        if let Ok(parsed) = Condition::parse(Kind::Condition, &sent.text, &sent.bindings()) {
            let theirs = engine.check("k", &sent);
            let ours = Outcome::Done(parsed.holds(&item.unwrap_or_default()));
            prop_assert!(stricter_than_we(&theirs, &sent.text) || ours == theirs, "{}: {:?} / {:?}", sent.text, ours, theirs);
        }
    }

    #[test]
    fn a_substituted_condition_means_what_the_client_wrote(item in prop::option::of(item()), tree in condition()) {
        let engine = Engine::shared();
        let stored = item.clone().map(|item| with_key(item, "x#~1"));
        engine.fill(stored.as_slice());
        let logical = item.map(|item| with_key(item, "x")).unwrap_or_default();
        let sent = Sent::new(|fresh| tree.render(fresh));
        if let Ok(parsed) = Condition::parse(Kind::Condition, &sent.text, &sent.bindings()) {
            let substituted = parsed.substitute("pk", &Value::S("x".into()));
            let rewritten = Sent::new(|fresh| substituted.render(fresh));
            let (ours, theirs) = (Outcome::Done(parsed.holds(&logical)), engine.check("x#~1", &rewritten));
            prop_assert!(
                stricter_than_we(&theirs, &rewritten.text) || ours == theirs,
                "{} -> {}: {:?} / {:?}", sent.text, rewritten.text, ours, theirs
            );
        }
    }

    #[test]
    fn projections_give_the_same(item in item(), tree in projection()) {
        let engine = Engine::shared();
        let item = with_key(item, "k");
        engine.fill(std::slice::from_ref(&item));
        let sent = Sent::new(|fresh| tree.render(fresh));
        let ours = match Projection::parse(&sent.text, &sent.bindings()) {
            Ok(parsed) => Outcome::Done(parsed.apply(&item)),
            Err(error) => Outcome::Refused(error.message.unwrap()),
        };
        match (ours, engine.get("k", &sent)) {
            (Outcome::Refused(_), Outcome::Refused(_)) => {}
            (Outcome::Refused(message), _) if stricter_than_the_engine(&message) => {}
            (Outcome::Done(ours), Outcome::Done(theirs)) => {
                prop_assert!(same_items(&ours, &theirs), "{} of {:?}: {:?} / {:?}", sent.text, item, ours, theirs);
            }
            (ours, theirs) => prop_assert!(false, "{} of {:?}: {:?} / {:?}", sent.text, item, ours, theirs),
        }
    }

    #[test]
    fn updates_do_the_same(item in prop::option::of(item()), tree in update()) {
        let engine = Engine::shared();
        let item = item.map(|item| with_key(item, "k"));
        engine.fill(item.as_slice());
        let sent = Sent::new(|fresh| tree.render(fresh));
        // A new item starts as its key.
        let before = with_key(item.unwrap_or_default(), "k");
        let ours = Update::parse(&sent.text, &sent.bindings()).and_then(|parsed| parsed.apply(&before));
        match (ours, engine.update("k", &sent)) {
            (Ok(after), Outcome::Done(theirs)) => {
                prop_assert!(same_items(&after, &theirs), "{} of {:?}: {:?} / {:?}", sent.text, before, after, theirs);
            }
            (Err(ours), Outcome::Refused(theirs)) => {
                let ours = ours.message.unwrap();
                let theirs = theirs.strip_prefix("1 validation error detected: ").unwrap_or(&theirs);
                // Of several mistakes either may tell another: in the text, or a sum of too many
                // digits.
                let in_text = |message: &str| message.starts_with("Invalid UpdateExpression: ");
                let either = in_text(&ours) && in_text(theirs)
                    || stricter_than_the_engine(&ours)
                    || ours.contains("38 significant digits");
                prop_assert!(ours == theirs || either, "{}: {} / {}", sent.text, ours, theirs);
            }
            (Err(ours), Outcome::Done(_)) if stricter_than_the_engine(&ours.to_string()) => {}
            (ours, theirs) => prop_assert!(false, "{} of {:?}: {:?} / {:?}", sent.text, before, ours, theirs),
        }
    }

    #[test]
    fn a_resolved_update_does_the_same_to_its_item(item in item(), tree in update()) {
        let engine = Engine::shared();
        let before = with_key(item, "k");
        let sent = Sent::new(|fresh| tree.render(fresh));
        let Ok(parsed) = Update::parse(&sent.text, &sent.bindings()) else { return Ok(()) };
        match (parsed.resolved(&before), parsed.apply(&before)) {
            (Ok(resolved), Ok(after)) => {
                let resolved = Sent::new(|fresh| resolved.render(fresh));
                engine.fill(std::slice::from_ref(&before));
                match engine.update("k", &resolved) {
                    Outcome::Done(theirs) => prop_assert!(
                        same_items(&after, &theirs),
                        "{} -> {} of {:?}: {:?} / {:?}", sent.text, resolved.text, before, after, theirs
                    ),
                    Outcome::Refused(why) => prop_assert!(
                        false, "{} -> {} of {:?}: {}", sent.text, resolved.text, before, why
                    ),
                }
            }
            // What cannot be worked out cannot be applied. A path that leads nowhere is found when
            // it is.
            (Err(_), Ok(_)) => prop_assert!(false, "{} of {:?}", sent.text, before),
            (_, Err(_)) => {}
        }
    }
}
