//! Nothing: the benchmark in `benches/` is all there is.
