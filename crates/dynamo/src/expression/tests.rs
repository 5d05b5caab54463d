//! Expressions as DynamoDB reads and words them, by example; random ones are compared with the
//! engine in `tests/oracle`.

use super::*;
use crate::Value;

fn bindings() -> Bindings<'static> {
    Bindings::read(
        Some(br##"{"#n":"name","#p":"pk","#a":"a"}"##),
        Some(br#"{":s":{"S":"x"},":t":{"S":"y"},":n":{"N":"1"},":l":{"L":[]},":ss":{"SS":["x"]},":big":{"N":"9"},":ty":{"S":"Q"}}"#),
    )
    .unwrap()
}

fn refused(kind: Kind, text: &str) -> String {
    let bindings = bindings();
    let error = match kind {
        Kind::Condition | Kind::Filter | Kind::KeyCondition => {
            Condition::parse(kind, text, &bindings).map(|_| ())
        }
        Kind::Projection => Projection::parse(text, &bindings).map(|_| ()),
        Kind::Update => Update::parse(text, &bindings).map(|_| ()),
    };
    let message = error.expect_err(text).message.unwrap();
    message.strip_prefix(&format!("Invalid {}: ", kind.parameter())).unwrap_or(&message).to_owned()
}

#[test]
fn conditions_are_refused_in_dynamodbs_words() {
    for (text, message) in [
        ("", "The expression can not be empty;"),
        ("a = ", "Syntax error; token: \"<EOF>\", near: \"=\""),
        ("   ", "Syntax error; token: \"<EOF>\", near: \"   \""),
        ("a = :s :t", "Syntax error; token: \":t\", near: \":s :t\""),
        ("a ! :s", "Syntax error; token: \"!\", near: \"a ! :s\""),
        ("a", "Syntax error; token: \"<EOF>\", near: \"a\""),
        ("a = NOT (b)", "Syntax error; token: \"NOT\", near: \"= NOT (\""),
        ("((a = :s))", "The expression has redundant parentheses;"),
        ("name = :s", "Attribute name is a reserved keyword; reserved keyword: name"),
        (
            "#x = :s",
            "An expression attribute name used in the document path is not defined; attribute name: #x",
        ),
        ("a = :x", "An expression attribute value used in expression is not defined; attribute value: :x"),
        ("foo(a)", "Invalid function name; function: foo"),
        ("size(a)", "The function is not allowed to be used this way in an expression; function: size"),
        (
            "contains(a, :s) = :s",
            "The function is not allowed to be used this way in an expression; function: contains",
        ),
        (
            "attribute_exists(:s)",
            "Operator or function requires a document path; operator or function: attribute_exists",
        ),
        (
            "attribute_exists(a, b)",
            "Incorrect number of operands for operator or function; operator or function: attribute_exists, number of operands: 2",
        ),
        (
            "attribute_type(a, :ty)",
            "Invalid attribute type name found; type: Q, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}",
        ),
        (
            "attribute_type(a, :n)",
            "Incorrect operand type for operator or function; operator or function: attribute_type, operand type: N",
        ),
        (
            "begins_with(a, :n)",
            "Incorrect operand type for operator or function; operator or function: begins_with, operand type: N",
        ),
        (
            "size(:n) > :n",
            "Incorrect operand type for operator or function; operator or function: size, operand type: N",
        ),
        (
            "a < :l",
            "Incorrect operand type for operator or function; operator or function: <, operand type: L",
        ),
        (
            "a = a",
            "The first operand must be distinct from the remaining operands for this operator or function; operator: =, first operand: [a]",
        ),
        (
            "a BETWEEN :big AND :n",
            "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; lower bound operand: AttributeValue: {N:9}, upper bound operand: AttributeValue: {N:1}",
        ),
        (
            "a BETWEEN :s AND :n",
            "The BETWEEN operator requires same data type for lower and upper bounds; lower bound operand: AttributeValue: {S:x}, upper bound operand: AttributeValue: {N:1}",
        ),
        // Graver mistakes come first wherever they stand.
        ("#x = :s AND foo(a)", "Invalid function name; function: foo"),
        ("#x = :s AND a =", "Syntax error; token: \"<EOF>\", near: \"=\""),
        (
            "a = a AND #x = :s",
            "The first operand must be distinct from the remaining operands for this operator or function; operator: =, first operand: [a]",
        ),
    ] {
        assert_eq!(refused(Kind::Filter, text), message, "{text}");
    }
}

#[test]
fn broken_conditions_are_those_that_no_placeholder_could_mend() {
    for text in ["a = ", "a = :s :t", "a ! :s", "a", "a = :x)", "(a = :x", "   ", "#x = :s AND a ="] {
        assert!(Condition::is_broken(text), "{text}");
    }
    let deep = format!("{}a = :x{}", "(".repeat(200), ")".repeat(200));
    for text in [
        "a = :x",
        "foo(a)",
        "size(a)",
        "name = :s",
        "((a = :s))",
        "#x IN (:a, :b)",
        "",
        &deep,
        &"a".repeat(5_000),
    ] {
        assert!(!Condition::is_broken(text), "{text}");
    }
}

#[test]
fn updates_and_projections_are_refused_in_dynamodbs_words() {
    for (text, message) in [
        ("SET a = :s SET b = :s", "The \"SET\" section can only be used once in an update expression;"),
        ("a = :s", "Syntax error; token: \"a\", near: \"a =\""),
        (
            "SET a = :s, a.b = :s",
            "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [a], path two: [a, b]",
        ),
        (
            "SET a.b = :s, c = :s REMOVE a[0]",
            "Two document paths conflict with each other; must remove or rewrite one of these paths; path one: [a, b], path two: [a, [0]]",
        ),
        (
            "SET a = b + :s",
            "Incorrect operand type for operator or function; operator or function: +, operand type: S",
        ),
        (
            "SET a = list_append(b, :n)",
            "Incorrect operand type for operator or function; operator or function: list_append, operand type: N",
        ),
        (
            "SET a = if_not_exists(:s, :n)",
            "Operator or function requires a document path; operator or function: if_not_exists",
        ),
        (
            "SET a = if_not_exists(b)",
            "Incorrect number of operands for operator or function; operator or function: if_not_exists, number of operands: 1",
        ),
        ("SET a = b + c + d", "Syntax error; token: \"+\", near: \"c + d\""),
        (
            "ADD a :s",
            "Incorrect operand type for operator or function; operator: ADD, operand type: STRING, typeSet: ALLOWED_FOR_ADD_OPERAND",
        ),
        (
            "DELETE a :n",
            "Incorrect operand type for operator or function; operator: DELETE, operand type: NUMBER, typeSet: ALLOWED_FOR_ADD_OPERAND",
        ),
        ("REMOVE name", "Attribute name is a reserved keyword; reserved keyword: name"),
    ] {
        assert_eq!(refused(Kind::Update, text), message, "{text}");
    }
    for (text, message) in [
        (
            "a, b.c, a",
            "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [a], path two: [a]",
        ),
        (
            "a[0].b, a[0]",
            "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [a, [0], b], path two: [a, [0]]",
        ),
        ("a,", "Syntax error; token: \"<EOF>\", near: \",\""),
        (
            "a[99999999999999999999]",
            "List index is not within the allowable range; index: [99999999999999999999]",
        ),
    ] {
        assert_eq!(refused(Kind::Projection, text), message, "{text}");
    }
}

#[test]
fn size_depth_and_operators_are_capped() {
    let many = |count: usize| vec!["a=:n"; count].join(" OR ");
    assert!(Condition::parse(Kind::Filter, &many(150), &bindings()).is_ok());
    assert_eq!(
        refused(Kind::Filter, &many(151)),
        "The expression contains too many operators; operator count: 301"
    );
    assert!(refused(Kind::Filter, &"x".repeat(4097)).starts_with("Expression size has exceeded"));
    let list = |count: usize| format!("a IN ({})", vec![":n"; count].join(","));
    assert!(Condition::parse(Kind::Filter, &list(100), &bindings()).is_ok());
    assert!(refused(Kind::Filter, &list(101)).ends_with("too many operands; number of operands: 101"));
    for deep in ["(".repeat(4000), "NOT ".repeat(1000), "size(".repeat(800), "a=(".repeat(1000)] {
        refused(Kind::Filter, &deep);
    }
    refused(Kind::Update, &format!("SET a = {}", "(".repeat(4000)));
    refused(Kind::Update, &format!("SET a = {}", "list_append(".repeat(300)));
}

#[test]
fn unused_placeholders_are_refused() {
    let bindings = Bindings::read(Some(br##"{"#a":"x","#b":"y"}"##), Some(br#"{":a":{"S":""}}"#)).unwrap();
    assert!(bindings.check_unused(&["#a = :a", "#b"]).is_ok());
    let message = bindings.check_unused(&["#a = :a"]).unwrap_err().message.unwrap();
    assert_eq!(message, "Value provided in ExpressionAttributeNames unused in expressions: keys: {#b}");
    let (names, values) = bindings.rewritten(&["#b"], &Fresh::avoiding(&bindings));
    assert_eq!(names.unwrap(), br##"{"#b":"y"}"##);
    assert_eq!(values, None);
}

#[test]
fn fresh_placeholders_meet_none_that_were_sent() {
    let bindings = Bindings::read(Some(br##"{"#h0":"pk"}"##), Some(br#"{":h0":{"S":"x"}}"#)).unwrap();
    let mut fresh = Fresh::avoiding(&bindings);
    let condition = Condition::parse(Kind::Condition, "#h0 = :h0", &bindings).unwrap();
    assert_eq!(condition.render(&mut fresh), "#h1 = :h1");
    let (names, values) = bindings.rewritten(&[":h0"], &fresh);
    assert_eq!(names.unwrap(), br##"{"#h1":"pk"}"##);
    assert_eq!(values.unwrap(), br#"{":h0":{"S":"x"},":h1":{"S":"x"}}"#);
}

#[test]
fn what_may_be_mentioned_is_never_missed() {
    assert!(may_mention("pk = :x", None, "pk"));
    assert!(may_mention("#k = :x", Some(br##"{"#k":"pk"}"##), "pk"));
    assert!(may_mention("#k = :x", Some(br##"{"#k":"\u0070k"}"##), "pk"));
    assert!(!may_mention("#k = :x", Some(br##"{"#k":"sk"}"##), "pk"));
}

#[test]
fn key_conditions_read_and_render() {
    let key: crate::KeySchema = serde_json::from_str(
        r#"{"partition":{"name":"pk","key_type":"S"},"sort":{"name":"sk","key_type":"S"}}"#,
    )
    .unwrap();
    let read = |text: &str| KeyCondition::parse(text, &bindings(), &key);
    for (text, rendered) in [
        ("pk = :s", "#h0 = :h0"),
        ("(pk = :s) AND (:t >= sk)", "#h0 = :h0 AND #h1 <= :h1"),
        ("sk BETWEEN :s AND :t AND #p = :s", "#h0 = :h0 AND #h1 BETWEEN :h1 AND :h2"),
        ("pk = :s AND begins_with(sk, :t)", "#h0 = :h0 AND begins_with(#h1, :h1)"),
    ] {
        let condition = read(text).unwrap();
        let mut fresh = Fresh::avoiding(&Bindings::default());
        assert_eq!(condition.render(&mut fresh), rendered);
        assert_eq!(condition.partition, [("pk".to_owned(), Value::S("x".into()))]);
    }
    for (text, message) in [
        ("sk = :s", "Query condition missed key schema element: pk"),
        ("pk = :s AND a = :s", "Query condition missed key schema element: sk"),
        ("pk > :s", "Query key condition not supported"),
        (
            "pk = :s AND sk = :n",
            "One or more parameter values were invalid: Condition parameter type does not match schema type",
        ),
        (
            "pk = :s AND sk <> :s",
            "Invalid KeyConditionExpression: Invalid operator used in KeyConditionExpression: <>",
        ),
        (
            "pk = :s OR sk = :s",
            "Invalid KeyConditionExpression: Invalid operator used in KeyConditionExpression: OR",
        ),
        (
            "pk = :s AND pk = :t",
            "Invalid KeyConditionExpression: KeyConditionExpressions must only contain one condition per key",
        ),
        (
            "pk = :s AND sk.a = :t",
            "Invalid KeyConditionExpression: KeyConditionExpressions cannot have conditions on nested attributes",
        ),
        ("pk = :s AND sk = :s AND a = :s", "Conditions can be of length 1 or 2 only"),
    ] {
        assert_eq!(read(text).unwrap_err().message.unwrap(), message, "{text}");
    }
}

#[test]
fn key_conditions_on_several_attributes_read_and_render() {
    let attributes = |names: &[&str]| {
        let attribute = |name: &&str| crate::AttributeDefinition {
            name: (*name).to_owned(),
            key_type: crate::KeyType::S,
        };
        names.iter().map(attribute).collect()
    };
    let key =
        crate::IndexKeySchema { partition: attributes(&["a", "pk"]), sort: attributes(&["x", "y", "sk"]) };
    let read = |text: &str| KeyCondition::parse(text, &bindings(), &key);
    for (text, rendered) in [
        ("pk = :s AND a = :t", "#h0 = :h0 AND #h1 = :h1"),
        ("x = :s AND pk = :s AND y > :t AND a = :t", "#h0 = :h0 AND #h1 = :h1 AND #h2 = :h2 AND #h3 > :h3"),
    ] {
        let condition = read(text).unwrap();
        assert_eq!(condition.render(&mut Fresh::avoiding(&Bindings::default())), rendered);
        assert_eq!(
            condition.partition.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            ["a", "pk"]
        );
    }
    for (text, message) in [
        ("x = :s", "HASH key attributes a, pk must have equality conditions specified in the query"),
        ("pk > :s AND a = :s", "HASH key attributes pk must have equality conditions specified in the query"),
        ("pk = :s AND a = :s AND n = :s", "Query condition missed key schema element: x"),
        (
            "pk = :s AND a = :s AND sk = :s",
            "RANGE key attributes x, y must have equality conditions specified in the query because a condition is present on key attribute sk",
        ),
        (
            "pk = :s AND a = :s AND y = :s AND x > :s",
            "RANGE key attributes x must have equality conditions specified in the query because a condition is present on key attribute y",
        ),
        (
            "pk = :s AND a = :s AND x = :s AND y = :s AND sk = :s AND n = :s",
            "The number of query conditions (6) exceeds the number of key attributes defined in the schema (5)",
        ),
    ] {
        assert_eq!(read(text).unwrap_err().message.unwrap(), message, "{text}");
    }
}

#[test]
fn a_literal_takes_the_place_of_a_key() {
    let physical = Value::S("logical".into());
    for (text, rendered) in [
        ("#p = :s", "attribute_exists(#h0) AND attribute_not_exists(#h0)"),
        ("#p <> :s", "attribute_exists(#h0) OR attribute_not_exists(#h0)"),
        ("#p = a", "attribute_exists(#h0) AND :h0 = #h1"),
        ("#p <> a", "attribute_not_exists(#h0) OR :h0 <> #h1"),
        ("size(#p) > a", "attribute_exists(#h0) AND :h0 > #h1"),
        ("a BETWEEN #p AND :s", "attribute_exists(#h0) AND #h1 BETWEEN :h0 AND :h1"),
        ("a BETWEEN #p AND :n", "attribute_exists(#h0) AND attribute_not_exists(#h0)"),
        ("attribute_not_exists(#p)", "attribute_not_exists(#h0)"),
        ("NOT begins_with(#p, a)", "NOT (attribute_exists(#h0) AND begins_with(:h0, #h1))"),
        ("a = :s", "#h0 = :h0"),
    ] {
        let condition = Condition::parse(Kind::Condition, text, &bindings()).unwrap();
        let mut fresh = Fresh::avoiding(&Bindings::default());
        assert_eq!(condition.substitute("pk", &physical).render(&mut fresh), rendered, "{text}");
    }
}

#[test]
fn filters_keep_off_keys() {
    let key: crate::KeySchema =
        serde_json::from_str(r#"{"partition":{"name":"pk","key_type":"S"},"sort":null}"#).unwrap();
    let check = |text: &str, query: bool| {
        let filter = Condition::parse(Kind::Filter, text, &bindings()).unwrap();
        filter.check_filter_keys(&key, None, query).err().and_then(|error| error.message)
    };
    assert_eq!(check("a = :s", true), None);
    assert_eq!(check("pk = :s", false), None);
    assert!(check("size(#p) > :n", true).unwrap().ends_with("Primary key attribute: pk"));
    assert!(check("#p.a = :n", false).unwrap().ends_with("not allowed: Key: pk"));
}
