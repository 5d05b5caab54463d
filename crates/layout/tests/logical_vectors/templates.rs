//! Rows of keys that templates write.

use heatsink_dynamo::KeyType;
use heatsink_layout::{Bucket, Granularity, Slot};
use serde_json::{Value as Json, json};

use crate::logical_vectors::forms;
use crate::logical_vectors::keys::{bytes, of_table};

pub fn rows() -> Vec<Json> {
    use Granularity::{Day, Hour, Month, Week};
    let (one, two) = (Slot::shard(1), Slot::shard(2));
    let slot = |granularity, shard| Slot { bucket: Bucket::at(1_782_090_000, granularity), shard };
    let day = |text: &str, shards| vec![forms::template(text, "*", shards, Some(Day))];
    let plain = |text: &str, shards| vec![forms::template(text, "*", shards, None)];
    type Case<'a> = (Vec<(heatsink_layout::KeyLayout, Json)>, Vec<(&'a str, Slot)>, Vec<&'a str>);
    let cases: Vec<Case<'_>> = vec![
        (
            vec![forms::template("{pk}#{shard}", "user-*", 10, None)],
            vec![("user-1", two), ("user-1#3", two), ("config", Slot::default()), ("user-é\n", one)],
            vec![
                "user-1#10",
                "user-1#03",
                "user-1#",
                "config#3",
                "#3",
                "user-1#3\n",
                "user-1#٣",
                "user-#9",
                "user-1#123456",
            ],
        ),
        (
            plain("{pk}.{shard+1}", 10),
            vec![("k", two), ("k.3", one)],
            vec!["k.0", "k.11", "k.1", ".1", "k.10"],
        ),
        (
            plain("{shard}#{pk}", 4),
            vec![("k", one), ("2#k", two)],
            vec!["4#k", "3#", "03#k", "#k", "-1#k", "123456#k"],
        ),
        (
            plain("s{shard+1:03d}/{pk}/x", 1_000),
            vec![("k", two), ("/", Slot::shard(999))],
            vec!["s1/k/x", "s0001/k/x", "s001/k/y", "s001//x", "s001/x"],
        ),
        (
            plain("{pk}ü({shard:02}]", 20),
            vec![("k+", two), ("é", Slot::shard(12))],
            vec!["kü(2]", "kü(002]", "kü(20]", "ku(02]"],
        ),
        (
            day("{pk}#{bucket}#{shard}", 5),
            vec![("k", slot(Day, 4)), ("k#2026-06-22", slot(Day, 0))],
            vec!["k#2026-02-30#1", "k#2026-06-22#5", "k#2026-06-22", "#2026-06-22#1", "k#2026-W26#1"],
        ),
        (
            day("{pk}-{bucket:%d.%m.%Y}", 1),
            vec![("k", slot(Day, 0))],
            vec!["k-22.06.2026", "k-31.06.2026", "k-22x06.2026", "k-29.02.2000", "k-29.02.2100"],
        ),
        (
            vec![forms::template("{bucket:%G%V}#{pk}.{shard}", "*", 3, Some(Week))],
            vec![("k", slot(Week, 2))],
            vec!["202653#k.0", "202053#k.0", "202000#k.1", "2026#k.1"],
        ),
        (
            vec![forms::template("{pk}/{bucket}", "*", 1, Some(Hour))],
            vec![("k", slot(Hour, 0))],
            vec!["k/2026-06-22T24", "k/2026-06-22", "k/2026-06-22T00"],
        ),
        (
            vec![forms::template("{pk}|{bucket:%Y%m}|{shard}", "*", 2, Some(Month))],
            vec![("k", slot(Month, 1))],
            vec!["k|202613|0", "k|202612|0", "k|20261|0"],
        ),
        (
            vec![
                forms::whole("user-1#7"),
                forms::template("{pk}#{shard}", "user-*", 4, None),
                forms::template("{pk}.{shard}", "u*", 4, None),
                forms::template("{shard}:{pk}", "*", 4, None),
            ],
            vec![("user-1", two), ("uu", one), ("k", one), ("user-1#7", Slot::default())],
            vec!["user-1.2", "user-1#7#2", "uu#2", "3:k", "3:user-1", "3:uu.1", "3:user-1#1", "k#1", "k.1"],
        ),
    ];
    let mut rows = Vec::new();
    for (rules, written, others) in cases {
        let (layouts, words): (Vec<_>, Vec<_>) = rules.into_iter().unzip();
        let form = json!({ "kind": "templates", "rules": words });
        let written: Vec<_> = written.iter().map(|(key, slot)| (key.as_bytes(), *slot)).collect();
        rows.extend(of_table(&form, &forms::table(KeyType::S, layouts.clone()), &written, &bytes(&others)));
    }
    let (layout, words) = forms::template("{pk}é{shard}", "*", 4, None);
    let form = json!({ "kind": "templates", "rules": [words] });
    let raw: [&[u8]; 3] = [b"\xff\xc3\xa91", b"\xff\xa91", b"\x00\xc3\xa94"];
    rows.extend(of_table(&form, &forms::table(KeyType::B, vec![layout]), &[(b"\xff\n", two)], &raw));
    rows
}
