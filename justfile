# What people do daily. `just` lists it.

_list:
    @just --list --unsorted

# Build heatsink, optimised
build:
    cargo build --release

# Run every Rust test, in the profile that users get
test:
    cargo test --release

# Check format and lints as CI does
lint:
    cargo fmt --all --check
    cargo clippy --release --workspace --all-targets -- -D warnings

# Check the lints without features, and with each alone
features:
    .ci/features each

# Check licences, sources, duplicates and advisories of all dependencies
deny:
    .ci/deny

# Run every command of the README as written, and check the links of all pages (`just readme --links`: those alone)
readme *arguments:
    clients/install
    .ci/readme {{ arguments }}

# Run the client libraries of Python and JavaScript against a fresh server: `just clients --upstream local`
clients *arguments:
    clients/run {{ arguments }}

# Fuzz every target for SECONDS each, or those named (needs cargo-fuzz)
fuzz *arguments:
    fuzz/run {{ arguments }}

# Ten million random calls, sharded against unsharded
differential steps="10000000" seed="1000000":
    HEATSINK_SEED={{ seed }} HEATSINK_STEPS={{ steps }} cargo test --release --workspace --test differential sharded_answers -- --nocapture

# A million random calls, sharded over DynamoDB Local against DynamoDB Local (needs Java); ends after five failures, and says how to go on
differential-local steps="1000000" seed="1":
    clients/local-judge {{ steps }} {{ seed }}

# Layout changes under load with real processes, ten minutes (needs Java)
fence *arguments:
    clients/fence {{ arguments }}

# Leave each rule of the fence out of the product's own code, and see the simulation catch it
without *arguments:
    crates/heatsink/tests/simulation/without/run {{ arguments }}

# Measure what route's own tests catch, by a seeded sample of mutants (needs cargo-mutants): `just mutants --seed 15 --count 60`
mutants *arguments:
    crates/route/mutants {{ arguments }}

# A key burns, and the gateways cool it by themselves: hundreds of random loads in virtual time, then judged by the clock, on a quiet machine
closed-loop:
    cargo test --release -p heatsink-heat --test policy -- --ignored --nocapture
    cargo test --release --workspace --test lab closed_loop -- --ignored --test-threads 1 --nocapture

# Measure how gateways relieve hot keys by themselves, load by load: `just loop --load ten-keys --slow 4`
loop *arguments:
    cargo build --release --bin heatsink-lab
    benches/loop {{ arguments }}

# Run the public conformance suite from a checkout of it
conformance checkout:
    benches/conformance {{ checkout }}

# Measure, and print the tables of docs/explain/performance.md
bench *arguments:
    benches/run {{ arguments }}

# Show a system before and after its rule; without a name, list them: `just demo ops-log`
demo *arguments:
    cargo run --release --bin heatsink-lab -- demo {{ arguments }}

# Build the API documentation
docs:
    cargo doc --workspace --no-deps

# What takes hours and gates no change; without names, everything: `just nightly fence mutants`
nightly *steps:
    .ci/nightly {{ steps }}

# Everything CI does
ci:
    .ci/run
