//! How much an expression's names and values may hold together.

use super::scan::Scan;

/// The most bytes of all names and values of one request's expressions (AWS Developer Guide,
/// "Constraints", "Expression parameters": the sum of the lengths of all `ExpressionAttributeNames`
/// and `ExpressionAttributeValues` is at most 2 MB).
const MOST: usize = 2 * 1024 * 1024;

/// The words of DynamoDB Local for it.
pub(super) const TOO_MUCH: &str =
    "Combined size of ExpressionAttributeNames and ExpressionAttributeValues exceeds max size";

/// Whether the raw members hold more than that. Cheap where their JSON is not longer, which holds
/// for every ordinary request.
pub(super) fn exceed(members: &[&[u8]]) -> bool {
    members.iter().map(|raw| raw.len()).sum::<usize>() > MOST
        && members.iter().map(|raw| content(raw)).sum::<usize>() > MOST
}

/// The bytes of the strings in a JSON value, base64 decoded; an escape counts as one.
fn content(raw: &[u8]) -> usize {
    let mut bytes = 0;
    let shown = Scan::new(raw).skip_with(|name, text, _| {
        bytes += if matches!(name, b"B" | b"BS") { text.len() / 4 * 3 } else { length(text) };
    });
    // It has been read as JSON before.
    if shown.is_err() { raw.len() } else { bytes }
}

fn length(text: &[u8]) -> usize {
    let (mut bytes, mut at) = (0, 0);
    while let Some(byte) = text.get(at) {
        at += match (byte, text.get(at + 1)) {
            (b'\\', Some(b'u')) => 6,
            (b'\\', _) => 2,
            _ => 1,
        };
        bytes += 1;
    }
    bytes
}
