//! Statements read and refused, and what any text does to the parser.

use proptest::prelude::*;

use super::*;
use crate::expression::{Comparator, Path};
use crate::value::read_item;
use crate::{Item, Value};

fn item(json: &str) -> Item {
    read_item(json.as_bytes()).unwrap()
}

fn holds(clause: &str, parameters: &[Value], item: &Item) -> bool {
    let statement = parse(&format!("SELECT * FROM t WHERE {clause}")).unwrap();
    statement.condition.unwrap().meaning(parameters).unwrap().holds(item)
}

#[test]
fn a_select_in_all_its_parts() {
    let text = "select a, \"b.c\".d[2] from \"T\".\"i\" -- note\n where pk = ? and sk between 'a' and 'it''s' order by pk desc, sk;";
    let statement = parse(text).unwrap();
    assert_eq!((statement.table.name.as_str(), &text[statement.table.span.clone()]), ("T", "\"T\""));
    assert_eq!(statement.index.unwrap().name, "i");
    assert_eq!(statement.parameters, 1);
    let Action::Select { shown, order } = statement.action else { panic!("no select") };
    assert_eq!(shown.iter().map(ToString::to_string).collect::<Vec<_>>(), ["[a]", "[b.c, d, [2]]"]);
    assert_eq!(order.iter().map(|order| order.descending).collect::<Vec<_>>(), [true, false]);
    let condition = statement.condition.unwrap();
    let tests = condition.tests();
    assert_eq!(
        tests.iter().map(|test| &text[test.span.clone()]).collect::<Vec<_>>(),
        ["pk = ?", "sk between 'a' and 'it''s'"]
    );
    let TestKind::Compare(Operand::Path(path), Comparator::Eq, Operand::Term(term)) = &tests[0].kind else {
        panic!("no equality")
    };
    assert!(path.is("pk"));
    assert_eq!((&term.kind, &text[term.span.clone()]), (&TermKind::Parameter(0), "?"));
    assert_eq!(condition.conjuncts().len(), 2);
}

#[test]
fn writes_say_what_they_touch() {
    let text = "INSERT INTO T VALUE {'pk': 'a''b', 'n': -1.5e3, 'l': [?, {'x': TRUE}], 's': <<'a','b'>>} IF NOT EXISTS";
    let Action::Insert { item } = parse(text).unwrap().action else { panic!("no insert") };
    assert_eq!(item[0].1.value(&[]), Some(Value::S("a'b".to_owned())));
    assert_eq!(&text[item[0].1.span.clone()], "'a''b'");
    assert_eq!(item[1].1.value(&[]), Some(Value::N("-1.5e3".to_owned())));
    assert_eq!(item[2].1.value(&[]), None);
    assert_eq!(item[2].1.parameters(), [0]);
    let map = Value::M(Item::from([("x".to_owned(), Value::Bool(true))]));
    assert_eq!(item[2].1.value(&[Value::Null]), Some(Value::L(vec![Value::Null, map])));

    let text =
        "UPDATE T SET a.b = list_append(c, [1]), n = n + ? REMOVE d WHERE pk = 'x' RETURNING ALL OLD *";
    let statement = parse(text).unwrap();
    let Action::Update { written, read } = statement.action else { panic!("no update") };
    assert_eq!(written.iter().map(|(path, _)| path.root.as_str()).collect::<Vec<_>>(), ["a", "n", "d"]);
    assert_eq!([&written[1].1, &written[2].1], [&Put::Made, &Put::Nothing]);
    assert_eq!(read, [Path::root("c"), Path::root("n")]);

    assert_eq!(parse("DELETE FROM T WHERE pk = 'x'").unwrap().action, Action::Delete);
    assert_eq!(parse("EXISTS(SELECT * FROM T WHERE pk = 'x' AND a = 1)").unwrap().action, Action::Exists);
    let Action::Update { written, .. } =
        parse("FROM T WHERE pk = 'x' SET a = 1, b = 'x' + 1").unwrap().action
    else {
        panic!("no update")
    };
    assert!(matches!((&written[0].1, &written[1].1), (Put::Value(_), Put::Made)));
}

#[test]
fn conditions_mean_what_dynamodb_means() {
    let one =
        item(r#"{"s":{"S":"text"},"n":{"N":"5"},"l":{"L":[{"S":"x"}]},"u":{"SS":["a"]},"z":{"NULL":true}}"#);
    for clause in [
        "s = 'text'",
        "s <> 'other'",
        "absent <> 1",
        "NOT absent = 1",
        "n BETWEEN 1 AND 5.0",
        "n NOT BETWEEN 6 AND 7",
        "n IN [4, 5]",
        "n NOT IN (4)",
        "begins_with(s, 'te')",
        "contains(u, 'a')",
        "contains(l, 'x')",
        "size(s) = 4",
        "absent IS MISSING",
        "s IS NOT MISSING",
        "z IS NULL",
        "s IS STRING",
        "n IS NOT STRING",
        "l[0] = 'x'",
        "attribute_type(s, 'S')",
        "attribute_exists(n) AND attribute_not_exists(absent)",
        "3 < n",
        "(n = 1 OR s = 'text') AND NOT (n = 4)",
        "NOT NOT n = 5",
        "s = ?",
    ] {
        assert!(holds(clause, &[Value::S("text".to_owned())], &one), "{clause}");
        let negated = format!("NOT ({clause})");
        assert!(!holds(&negated, &[Value::S("text".to_owned())], &one), "{negated}");
    }
}

#[test]
fn what_is_no_statement_is_not_guessed() {
    for text in [
        "",
        ";",
        "SELECT",
        "SELECT * FROM",
        "SELECT * FROM \"\"",
        "SELECT COUNT(*) FROM t",
        "SELECT * FROM t x",
        "SELECT * FROM t WHERE",
        "SELECT * FROM t WHERE pk",
        "SELECT * FROM t WHERE pk = 'open",
        "SELECT * FROM t; x",
        "INSERT INTO t VALUE ?",
        "INSERT INTO t VALUE {'a': 1",
        "UPDATE t WHERE pk = 1",
        "UPDATE t SET",
        "DROP TABLE t",
        "SELECT * FROM t WHERE a = MISSING",
        "SELECT * FROM t WHERE f(a) = 1",
        "SELECT * FROM t /* open",
        "DELETE t",
        "SELECT * FROM t WHERE a LIKE 'x'",
        "INSERT INTO t VALUE {'a': <<1, 'b'>>}",
        "SELECT * FROM t WHERE a = `1`",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
    for deep in ["(", "NOT (", "size("] {
        let text = format!("SELECT * FROM t WHERE {}a = 1", deep.repeat(8192 / deep.len()));
        assert!(parse(&text).is_err());
    }
    assert!(parse(&format!("INSERT INTO t VALUE {{'a': {}", "[".repeat(8000))).is_err());
}

/// Words that meet each other's grammar often.
fn soup() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "SELECT",
        "*",
        "FROM",
        "t",
        "\"T\"",
        "WHERE",
        "pk",
        "=",
        "'a'",
        "AND",
        "OR",
        "NOT",
        "(",
        ")",
        "?",
        "1",
        ",",
        "INSERT INTO",
        "VALUE",
        "{",
        "}",
        ":",
        "[",
        "]",
        "<",
        ">",
        "<<",
        ">>",
        "UPDATE",
        "SET",
        "REMOVE",
        "DELETE",
        "IN",
        "BETWEEN",
        "IS",
        "MISSING",
        "size(",
        "contains(",
        ".",
        "'",
        "\"",
        "--",
        "/*",
        "*/",
        "é",
        "-",
        ".5",
        "RETURNING ALL OLD *",
        "ORDER BY",
        "EXISTS",
        ";",
    ]);
    prop::collection::vec(word, 0..40).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in prop_oneof![".{0,200}", soup()]) {
        if let Ok(statement) = parse(&text) {
            prop_assert!(text.get(statement.table.span.clone()).is_some());
            prop_assert!(tables(&text).contains(&statement.table.name), "{:?}", tables(&text));
            for test in statement.condition.iter().flat_map(Condition::tests) {
                prop_assert!(text.get(test.span.clone()).is_some());
                prop_assert!(test.parameters().iter().all(|number| *number < statement.parameters));
            }
        }
    }

    /// A string put into a statement by its rule comes back, wherever it stands.
    #[test]
    fn strings_come_back(value in ".{0,40}", name in "[^\"]{1,20}") {
        let literal = format!("'{}'", value.replace('\'', "''"));
        let text = format!("SELECT * FROM t WHERE \"{name}\" = {literal} AND x = 1");
        let statement = parse(&text).unwrap();
        let condition = statement.condition.unwrap();
        let TestKind::Compare(Operand::Path(path), _, Operand::Term(term)) = &condition.tests()[0].kind else {
            panic!("no comparison")
        };
        prop_assert!(path.is(&name));
        prop_assert_eq!(&text[term.span.clone()], literal);
        prop_assert_eq!(term.value(&[]), Some(Value::S(value)));
    }
}
