//! Runs one target under libFuzzer: the one that `LINERATE_FUZZ_TARGET` names. One program serves all of them, so that
//! it is built and linked once.

#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_fuzz::{Target, find};
use std::sync::LazyLock;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("LINERATE_FUZZ_TARGET").expect("LINERATE_FUZZ_TARGET names a target");
    find(&name).unwrap_or_else(|| panic!("there is no target `{name}`"))
});

fuzz_target!(|bytes: &[u8]| (TARGET.run)(bytes));
