//! HTTP in and out: the wire's headers, limits, deadlines, draining.
