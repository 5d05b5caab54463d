//! What requests send is what the table of the protocol says (`heatsink_reshard::act`), in every
//! phase, for every kind of access, below and above the high water: the model searches the orders
//! of what that table says.
//!
//! Not here: which puts are blind (`main`), Scans, which read keys that move by themselves
//! (`scan_apart`).

use heatsink_reshard::{Access, Act, Rules, act};

use super::*;

/// What was sent, in the words of the table. Of a store that holds the item in its old slot alone.
fn sent(moves: &Moves, operation: Operation, body: &str) -> Vec<Act> {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let plan = match Router::new().plan(operation, &body, moves) {
        Ok(plan) => plan,
        Err(error) => {
            assert_eq!(error.origin, Origin::Held, "{error}");
            return vec![Act::Wait];
        }
    };
    let mut calls = Vec::new();
    let answer = run(plan, |asks, body| {
        let text = String::from_utf8(body.to_vec()).unwrap();
        let answer = match asks {
            Operation::GetItem if operation != Operation::GetItem => format!(r#"{{"Item":{{{KEY}}}}}"#),
            Operation::Query => r#"{"Items":[],"Count":0,"ScannedCount":0}"#.to_owned(),
            Operation::BatchWriteItem => r#"{"UnprocessedItems":{}}"#.to_owned(),
            _ => "{}".to_owned(),
        };
        calls.push((asks, text));
        Ok(Bytes::from(answer))
    });
    answer.map_err(|error: Error| error.to_string()).unwrap();
    let new = |text: &str| text.contains("game#~1");
    let old = |text: &str| text.contains(r#""game""#) || text.contains("'game'");
    let side = |(_, text): &(Operation, String)| match (new(text), old(text)) {
        (true, true) => Act::ReadBoth,
        (true, false) => Act::New,
        (false, true) => Act::Old,
        (false, false) => panic!("{text}"),
    };
    let own: Vec<Act> = calls.iter().map(side).collect();
    let pull = [Operation::GetItem, Operation::TransactWriteItems, Operation::TransactWriteItems];
    let asked: Vec<Operation> = calls.iter().map(|(asks, _)| *asks).collect();
    match asked.strip_prefix(&pull) {
        Some([_]) => vec![Act::PullThenNew, own[3]],
        _ => own,
    }
}

/// What is sent where the table says this.
fn expected(says: Act) -> Vec<Vec<Act>> {
    match says {
        Act::PullThenNew => vec![vec![Act::PullThenNew, Act::New]],
        // The new slot, the old one, the new one again; or both in one transaction.
        Act::ReadBoth => vec![vec![Act::New, Act::Old, Act::New], vec![Act::ReadBoth]],
        Act::NewIf(..) => panic!("no request is tried under a guard yet"),
        says => vec![vec![says]],
    }
}

#[test]
fn requests_send_what_the_table_of_the_protocol_says() {
    let key = format!("{{{KEY}}}");
    let of_key = format!(r#"{{"TableName":"Tab","Key":{key}}}"#);
    let get = format!(r#"{{"Get":{of_key}}}"#);
    let update = r#","UpdateExpression":"SET a = :a","ExpressionAttributeValues":{":a":{"S":"b"}}"#;
    let update = format!(r#"{{"TableName":"Tab","Key":{key}{update}}}"#);
    let where_key = "WHERE pk = 'game' AND sk = '0000123#player_7'";
    let statement = |text: &str| format!(r#"{{"Statement":"{text}"}}"#);
    let change = statement(&format!(r#"UPDATE \"Tab\" SET a = 1 {where_key}"#));
    let values = r#"{":p":{"S":"game"},":s":{"S":"0000123#player_7"}}"#;
    let query = format!(
        r#"{{"TableName":"Tab","KeyConditionExpression":"pk = :p AND sk = :s","ExpressionAttributeValues":{values}}}"#
    );
    let select = statement(&format!(r#"SELECT * FROM \"Tab\" {where_key}"#));
    let batch = |write: &str| format!(r#"{{"RequestItems":{{"Tab":[{write}]}}}}"#);
    let transact = |action: &str| format!(r#"{{"TransactItems":[{action}]}}"#);
    let condition = r#","ConditionExpression":"attribute_not_exists(pk)""#;
    let blind = |leaves_ttl| Access::BlindPut { leaves_ttl };
    // Updates and deletes bring the item first, whatever they say: guards and deletes of their own
    // are the model's.
    let requests = [
        (Operation::PutItem, put(KEY, ""), blind(false)),
        (Operation::PutItem, put(EXPIRING, ""), blind(true)),
        (Operation::PutItem, put(KEY, condition), Access::Dependent),
        (Operation::UpdateItem, update.clone(), Access::Dependent),
        (Operation::DeleteItem, of_key.clone(), Access::Delete),
        (Operation::BatchWriteItem, batch(&format!(r#"{{"PutRequest":{{"Item":{key}}}}}"#)), blind(false)),
        (
            Operation::BatchWriteItem,
            batch(&format!(r#"{{"DeleteRequest":{{"Key":{key}}}}}"#)),
            Access::Delete,
        ),
        (
            Operation::TransactWriteItems,
            transact(&format!(r#"{{"Put":{}}}"#, put(KEY, ""))),
            Access::Dependent,
        ),
        (Operation::TransactWriteItems, transact(&format!(r#"{{"Update":{update}}}"#)), Access::Dependent),
        (Operation::TransactWriteItems, transact(&format!(r#"{{"Delete":{of_key}}}"#)), Access::Dependent),
        (Operation::ExecuteStatement, change.clone(), Access::Dependent),
        (Operation::BatchExecuteStatement, format!(r#"{{"Statements":[{change}]}}"#), Access::Dependent),
        (Operation::ExecuteTransaction, format!(r#"{{"TransactStatements":[{change}]}}"#), Access::Dependent),
        (Operation::GetItem, of_key.clone(), Access::Read),
        (
            Operation::BatchGetItem,
            format!(r#"{{"RequestItems":{{"Tab":{{"Keys":[{key}]}}}}}}"#),
            Access::Read,
        ),
        (Operation::TransactGetItems, transact(&get), Access::Read),
        (Operation::Query, query, Access::Read),
        (Operation::ExecuteStatement, select, Access::Read),
    ];
    for (operation, body, access) in &requests {
        for phase in [Phase::Reserve, Phase::Prepare, Phase::Hold, Phase::Check, Phase::Move] {
            // Below it, at it, above it; it is on record in MOVE alone.
            let marks: &[_] = match phase {
                Phase::Move => &[None, Some("0000123#player_7"), Some("0000123#player_6")],
                _ => &[None],
            };
            for high_water in marks {
                let moves = Moves { phase, expires: Some("gone"), high_water: *high_water };
                let says = act(phase, *access, *high_water == Some("0000123#player_6"), Rules::ALL);
                let sent = sent(&moves, *operation, body);
                let sides = expected(says);
                assert!(
                    sides.contains(&sent),
                    "{phase:?}, {high_water:?}, {} {body}: {sent:?} where the table says {says:?}",
                    operation.name()
                );
            }
        }
    }
}
