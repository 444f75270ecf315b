//! linerate.
fn main() {}
