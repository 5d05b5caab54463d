//! The AWS SDK for Rust against Heatsink. Everything is in `tests/`; the Python and JavaScript clients are beside this folder.
