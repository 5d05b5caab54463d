//! What the commands print, as an operator and a script read it: widths, closed pipes, errors in
//! words and in JSON, exit codes, and one recommended shard count everywhere.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "processes and sockets keep real time")]

mod advice;
mod audit_beside;
mod audit_files;
mod audit_trace;
mod command;
mod doctor;
mod error_index;
mod errors;
mod operator;
mod pages;
mod pipes;
mod plan;
mod rules;
mod status;
mod widths;
