//! Values back to JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Item, Value};
use crate::json::write_string;

/// Writes an item, attributes sorted by name.
pub fn write_item(item: &Item, out: &mut Vec<u8>) {
    out.push(b'{');
    for (at, (name, value)) in item.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_string(out, name);
        out.push(b':');
        value.write(out);
    }
    out.push(b'}');
}

impl Value {
    /// Writes the value as it stands on the wire: `{"S":"a"}`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"");
        out.extend_from_slice(self.type_name().as_bytes());
        out.extend_from_slice(b"\":");
        match self {
            Value::S(text) | Value::N(text) => write_string(out, text),
            Value::B(bytes) => write_binary(out, bytes),
            Value::Bool(true) | Value::Null => out.extend_from_slice(b"true"),
            Value::Bool(false) => out.extend_from_slice(b"false"),
            Value::Ss(set) => list(out, set, |out, text| write_string(out, text)),
            Value::Ns(set) => list(out, set, |out, text| write_string(out, text)),
            Value::Bs(set) => list(out, set, |out, bytes| write_binary(out, bytes)),
            Value::L(values) => list(out, values, |out, value| value.write(out)),
            Value::M(item) => write_item(item, out),
        }
        out.push(b'}');
    }

    /// The value as JSON.
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }
}

pub(crate) fn write_binary(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    out.extend_from_slice(STANDARD.encode(bytes).as_bytes());
    out.push(b'"');
}

fn list<T>(out: &mut Vec<u8>, elements: impl IntoIterator<Item = T>, write: impl Fn(&mut Vec<u8>, T)) {
    out.push(b'[');
    for (at, element) in elements.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(out, element);
    }
    out.push(b']');
}
