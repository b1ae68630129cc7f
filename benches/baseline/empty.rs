//! The least a Rust program can cost: `cargo xtask bench` runs it beside `ringer`, so that a figure is
//! a ratio taken on one machine in one minute and not a number of milliseconds that means nothing elsewhere.

fn main() {}
