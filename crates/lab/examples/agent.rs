//! Stands for the program of a lab in tests: as an agent it says where it is and waits; as a path, a slow
//! router, an Open vSwitch or the PAUSE frames of a device it is one.
//!
//! An agent that is asked to end (SIGTERM) says so in a file of its name in the folder of `--copy-directory`, if it has
//! one.

use linerate_lab::{open_vswitch, path, pause, slow_router};
use nix::sys::signal::{SigSet, Signal};
use std::error::Error;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", ..] => agent(&words),
        ["lab", "beside", "path", plan] => Ok(path::serve(&plan.parse()?)?),
        ["lab", "beside", "open-vswitch", limits] => Ok(open_vswitch::serve(&limits.parse()?, None)?),
        ["lab", "beside", "pauses"] => Ok(pause::serve()?),
        ["lab", "beside", "slow-router", plan] => Ok(slow_router::serve(&plan.parse()?)?),
        _ => Err("serve, or lab beside path PLAN".into()),
    }
}

fn agent(words: &[&str]) -> Result<(), Box<dyn Error>> {
    let mut asked = SigSet::empty();
    asked.add(Signal::SIGTERM);
    asked.thread_block()?;
    let option = |name| words.iter().skip_while(|word| **word != name).nth(1);
    let mut file = match (option("--copy-directory"), option("--name")) {
        (Some(folder), Some(name)) => Some(File::create(Path::new(folder).join(name))?),
        _ => None,
    };
    let secret = "0123456789abcdef".repeat(2);
    println!("linerate://127.0.0.1:4747#{secret}.{secret}{secret}");
    asked.wait()?;
    file.as_mut().map_or(Ok(()), |file| file.write_all(b"asked to end"))?;
    Ok(())
}
