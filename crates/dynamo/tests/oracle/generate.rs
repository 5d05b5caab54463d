//! Small random items and expressions: few names and values, so that they meet.

use heatsink_dynamo::expression::{Assigned, Comparator, Condition, Operand, Path, Projection, Step, Update};
use heatsink_dynamo::{Item, Value};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use proptest::sample::select;

fn name() -> impl Strategy<Value = String> {
    select(vec!["a", "b", "c"]).prop_map(str::to_owned)
}

fn text() -> impl Strategy<Value = String> {
    select(vec!["x", "xy", "y", "é", "😀", "x#~1"]).prop_map(str::to_owned)
}

fn number() -> impl Strategy<Value = String> {
    select(vec!["-1", "0", "1", "1.5", "2", "10", "12345678901234567890123456789012345678"])
        .prop_map(str::to_owned)
}

fn bytes() -> impl Strategy<Value = bytes::Bytes> {
    select(vec![&[1_u8][..], &[1, 2], &[255]]).prop_map(bytes::Bytes::from_static)
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        3 => text().prop_map(Value::S),
        3 => number().prop_map(Value::N),
        1 => bytes().prop_map(Value::B),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => Just(Value::Null),
        1 => btree_set(text(), 1..3).prop_map(Value::Ss),
        1 => btree_set(number(), 1..3).prop_map(|set| Value::Ns(set.into_iter().collect())),
        1 => btree_set(bytes(), 1..3).prop_map(Value::Bs),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::L),
            btree_map(name(), inner, 0..3).prop_map(Value::M),
        ]
    })
}

pub fn item() -> impl Strategy<Value = Item> {
    btree_map(name(), value(), 0..4)
}

fn path_from(root: impl Strategy<Value = String>) -> impl Strategy<Value = Path> {
    let step = prop_oneof![name().prop_map(Step::Name), (0_usize..5).prop_map(Step::Index)];
    let rest = prop_oneof![3 => Just(Vec::new()), 2 => vec(step, 1..3)];
    (root, rest).prop_map(|(root, rest)| Path { root, rest })
}

fn path() -> impl Strategy<Value = Path> {
    // Of key attributes only the whole is read: the engine refuses more in some places, and route
    // has no use for it.
    prop_oneof![4 => path_from(name()), 1 => Just(Path::root("pk"))]
}

fn operand() -> impl Strategy<Value = Operand> {
    prop_oneof![
        4 => path().prop_map(Operand::Path),
        4 => value().prop_map(Operand::Value),
        1 => path().prop_map(|path| Operand::Size(Box::new(Operand::Path(path)))),
    ]
}

fn comparator() -> impl Strategy<Value = Comparator> {
    use Comparator::{Eq, Ge, Gt, Le, Lt, Ne};
    select(vec![Eq, Ne, Lt, Le, Gt, Ge])
}

pub fn condition() -> impl Strategy<Value = Condition> {
    let kind = select(vec!["S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"]);
    let leaf = prop_oneof![
        4 => (operand(), comparator(), operand()).prop_map(|(a, how, b)| Condition::Compare(a, how, b)),
        1 => (operand(), operand(), operand()).prop_map(|(a, b, c)| Condition::Between(a, b, c)),
        1 => (operand(), vec(operand(), 1..4)).prop_map(|(a, list)| Condition::In(a, list)),
        1 => path().prop_map(Condition::Exists),
        1 => path().prop_map(Condition::NotExists),
        1 => (path(), kind).prop_map(|(path, kind)| Condition::Type(path, kind.to_owned())),
        1 => (operand(), operand()).prop_map(|(a, b)| Condition::BeginsWith(a, b)),
        1 => (operand(), operand()).prop_map(|(a, b)| Condition::Contains(a, b)),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 2..4).prop_map(Condition::And),
            vec(inner.clone(), 2..4).prop_map(Condition::Or),
            inner.prop_map(|one| Condition::Not(Box::new(one))),
        ]
    })
}

pub fn projection() -> impl Strategy<Value = Projection> {
    vec(path(), 1..5).prop_map(|paths| Projection { paths })
}

fn assigned() -> impl Strategy<Value = Assigned> {
    let leaf = prop_oneof![
        2 => path().prop_map(Assigned::Path),
        3 => value().prop_map(Assigned::Value),
        1 => number().prop_map(|number| Assigned::Value(Value::N(number))),
        1 => vec(value(), 0..3).prop_map(|list| Assigned::Value(Value::L(list))),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        prop_oneof![
            (path(), boxed()).prop_map(|(path, default)| Assigned::IfNotExists(path, default)),
            (boxed(), boxed()).prop_map(|(a, b)| Assigned::ListAppend(a, b)),
            (boxed(), boxed()).prop_map(|(a, b)| Assigned::Plus(a, b)),
            (boxed(), boxed()).prop_map(|(a, b)| Assigned::Minus(a, b)),
        ]
    })
}

pub fn update() -> impl Strategy<Value = Update> {
    let target = || path_from(name());
    let set = vec((target(), assigned()), 0..3);
    let amount = prop_oneof![number().prop_map(Value::N), value()];
    (set, vec(target(), 0..2), vec((target(), amount), 0..2), vec((target(), value()), 0..2))
        .prop_map(|(set, remove, add, delete)| Update { set, remove, add, delete })
        .prop_filter("an update does something", |update| update.targets().next().is_some())
}
