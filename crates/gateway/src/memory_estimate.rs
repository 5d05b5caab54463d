//! Estimates how much memory a request body takes while it is parsed.
//!
//! The estimate is high where bodies are dense. It counts the text, the copy that a reader makes, and for every value one allocation with its entry
//! in a list or map. docs/limits.md has measurements.

/// The memory of a value beside its text, in bytes.
const VALUE: usize = 128;

/// The bytes that a body takes in memory while it is parsed. Costs a fast pass over it.
pub(crate) fn memory_estimate(body: &[u8]) -> usize {
    // Every typed value is in braces: {"N":"1"}.
    let values = memchr::memchr_iter(b'{', body).count();
    body.len().saturating_mul(2).saturating_add(values.saturating_mul(VALUE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_of_many_small_values_takes_more_than_one_of_a_long_text() {
        let text = format!(r#"{{"a":{{"S":"{}"}}}}"#, "x".repeat(9_000));
        let list = format!(r#"{{"a":{{"L":[{}]}}}}"#, [r#"{"N":"1"}"#; 900].join(","));
        assert_eq!(memory_estimate(text.as_bytes()), 2 * text.len() + 2 * VALUE);
        assert_eq!(memory_estimate(list.as_bytes()), 2 * list.len() + 902 * VALUE);
    }
}
