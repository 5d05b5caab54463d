//! What it costs to look into a body, by our own scanner and by three libraries.
//!
//! Three tasks on real bodies: the table's name of a GetItem; the key of a PutItem with an item of
//! about 400 B; span, partition key and sort key of each of 20 (and 200) items of a Query's answer.
//! Libraries get their lazy interface where they have one.

#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark: the bodies are its own")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use heatsink_dynamo::json;
use serde::Deserialize;
use serde_json::value::RawValue;
use simd_json::prelude::ValueIntoString;

fn item(at: usize) -> String {
    format!(
        r#"{{"pk":{{"S":"game_x"}},"sk":{{"S":"{at:010}#player_{at}"}},"name":{{"S":"Player \"{at}\" of the week"}},"score":{{"N":"{at}"}},"level":{{"N":"42"}},"region":{{"S":"eu-west-2"}},"tags":{{"SS":["ranked","season-7"]}},"device":{{"M":{{"os":{{"S":"ios"}},"v":{{"N":"17"}}}}}},"note":{{"S":"{}"}}}}"#,
        "lorem ipsum dolor sit amet ".repeat(5)
    )
}

fn page(items: usize) -> Vec<u8> {
    let list: Vec<String> = (0..items).map(item).collect();
    format!(r#"{{"Count":{items},"Items":[{}],"ScannedCount":{items}}}"#, list.join(",")).into_bytes()
}

#[derive(Deserialize)]
struct Put<'a> {
    #[serde(rename = "TableName")]
    table: String,
    #[serde(rename = "Item", borrow)]
    item: Keys<'a>,
}

#[derive(Deserialize)]
struct Keys<'a> {
    #[serde(borrow)]
    pk: &'a RawValue,
    #[serde(borrow)]
    sk: &'a RawValue,
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(rename = "Items", borrow)]
    items: Vec<&'a RawValue>,
}

fn get_item(c: &mut Criterion) {
    let body = br#"{"TableName":"Leaderboards","Key":{"pk":{"S":"game_x"},"sk":{"S":"0000000123#player_123"}},"ConsistentRead":true,"ReturnConsumedCapacity":"TOTAL"}"#;
    let mut group = c.benchmark_group("GetItem: TableName");
    group.bench_function("own", |b| {
        b.iter(|| json::member(black_box(body), "TableName").unwrap().unwrap().len())
    });
    group.bench_function("sonic-rs", |b| {
        b.iter(|| sonic_rs::get(black_box(&body[..]), ["TableName"]).unwrap().as_raw_str().len())
    });
    group.bench_function("serde_json RawValue", |b| {
        #[derive(Deserialize)]
        struct Named<'a> {
            #[serde(rename = "TableName", borrow)]
            table: &'a RawValue,
        }
        b.iter(|| serde_json::from_slice::<Named<'_>>(black_box(body)).unwrap().table.get().len());
    });
    group.bench_function("simd-json tape", |b| {
        b.iter(|| {
            let mut copy = black_box(body).to_vec();
            let tape = simd_json::to_tape(&mut copy).unwrap();
            tape.as_value().as_object().unwrap().get("TableName").unwrap().into_string().unwrap().len()
        });
    });
    group.finish();
}

fn put_item(c: &mut Criterion) {
    let body =
        format!(r#"{{"TableName":"Leaderboards","Item":{},"ReturnValues":"NONE"}}"#, item(7)).into_bytes();
    let mut group =
        c.benchmark_group(format!("PutItem: TableName and key of an item of {} B", item(7).len()));
    group.bench_function("own", |b| {
        b.iter(|| {
            let [table, item] = json::attributes_of(black_box(&body), ["TableName", "Item"]).unwrap();
            let [pk, sk] = json::attributes_of(item.unwrap(), ["pk", "sk"]).unwrap();
            table.unwrap().len() + pk.unwrap().len() + sk.unwrap().len()
        });
    });
    group.bench_function("sonic-rs", |b| {
        b.iter(|| {
            let body = black_box(&body[..]);
            let table = sonic_rs::get(body, ["TableName"]).unwrap().as_raw_str().len();
            let item = sonic_rs::get(body, ["Item"]).unwrap();
            let item = item.as_raw_str();
            let mut keys = 0;
            for member in sonic_rs::to_object_iter(item) {
                let (name, value) = member.unwrap();
                if name == "pk" || name == "sk" {
                    keys += value.as_raw_str().len();
                }
            }
            table + keys
        });
    });
    group.bench_function("serde_json RawValue", |b| {
        b.iter(|| {
            let put: Put<'_> = serde_json::from_slice(black_box(&body)).unwrap();
            put.table.len() + put.item.pk.get().len() + put.item.sk.get().len()
        });
    });
    group.bench_function("simd-json tape", |b| {
        b.iter(|| {
            let mut copy = black_box(&body).clone();
            let tape = simd_json::to_tape(&mut copy).unwrap();
            let body = tape.as_value().as_object().unwrap();
            let item = body.get("Item").unwrap().as_object().unwrap();
            let key = |name: &str| {
                item.get(name).unwrap().as_object().unwrap().get("S").unwrap().into_string().unwrap().len()
            };
            body.get("TableName").unwrap().into_string().unwrap().len() + key("pk") + key("sk")
        });
    });
    group.finish();
}

fn query(c: &mut Criterion) {
    for items in [20, 200] {
        let body = page(items);
        let mut group =
            c.benchmark_group(format!("Query: span and key of {items} items, {} B in all", body.len()));
        group.bench_function("own", |b| {
            b.iter(|| json::page(black_box(&body), "Items", ["pk", "sk"]).unwrap().items.unwrap().len());
        });
        group.bench_function("sonic-rs", |b| {
            b.iter(|| {
                let list = sonic_rs::get(black_box(&body[..]), ["Items"]).unwrap();
                let mut found = Vec::new();
                for item in sonic_rs::to_array_iter(list.as_raw_str()) {
                    let item = item.unwrap();
                    let (mut pk, mut sk) = (0, 0);
                    for member in sonic_rs::to_object_iter(item.as_raw_str()) {
                        let (name, value) = member.unwrap();
                        match name.as_ref() {
                            "pk" => pk = value.as_raw_str().len(),
                            "sk" => sk = value.as_raw_str().len(),
                            _ => {}
                        }
                    }
                    found.push((item.as_raw_str().len(), pk, sk));
                }
                found.len()
            });
        });
        group.bench_function("serde_json RawValue", |b| {
            b.iter(|| {
                let page: Page<'_> = serde_json::from_slice(black_box(&body)).unwrap();
                let keys = page.items.iter().map(|item| {
                    let keys: Keys<'_> = serde_json::from_str(item.get()).unwrap();
                    (item.get().len(), keys.pk.get().len(), keys.sk.get().len())
                });
                keys.collect::<Vec<_>>().len()
            });
        });
        group.bench_function("simd-json tape (no spans)", |b| {
            b.iter(|| {
                let mut copy = black_box(&body).clone();
                let tape = simd_json::to_tape(&mut copy).unwrap();
                let list = tape.as_value().as_object().unwrap().get("Items").unwrap().as_array().unwrap();
                let mut found = Vec::new();
                for item in list.iter() {
                    let item = item.as_object().unwrap();
                    let key = |name: &str| {
                        item.get(name)
                            .unwrap()
                            .as_object()
                            .unwrap()
                            .get("S")
                            .unwrap()
                            .into_string()
                            .unwrap()
                            .len()
                    };
                    found.push((key("pk"), key("sk")));
                }
                found.len()
            });
        });
        group.finish();
    }
}

criterion_group!(benches, get_item, put_item, query);
criterion_main!(benches);
