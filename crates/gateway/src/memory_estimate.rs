//! How much memory a request body takes while it is read.
//!
//! An estimate, on the safe side where bodies are dense: the text itself, the copy of it that a reader makes, and for every value an allocation
//! with its place in a list or map. docs/limits.md has what was measured.

/// What a value takes beside its text, in bytes.
const VALUE: usize = 128;

/// The bytes that a body takes in memory while somebody reads it. Costs a fast pass over it.
pub(crate) fn memory_estimate(body: &[u8]) -> usize {
    // Every typed value stands in braces: {"N":"1"}.
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
