//! The AWS SDK for Rust against Heatsink. Everything is in `tests/`, and in `examples/` a client
//! that `clients/fence` starts; the Python and JavaScript clients are beside this folder.
