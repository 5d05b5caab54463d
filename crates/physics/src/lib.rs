//! DynamoDB's partitions: key ranges, ceilings, token buckets, throttles. Sans-IO, on an injected clock.
//!
//! One model, two clocks: the embedded store runs it in real time, a simulator in virtual time.
