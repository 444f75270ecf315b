//! A bench alone, for tests and for trying other tools on it: `bench AGENT-PROGRAM BENCH [keep]`.
//!
//! Says `up`, then takes lines `HOST COMMAND`, runs each by a shell in that host and says its exit status. At the end
//! of its input the bench comes down, or stays with `keep`.

use linerate_lab::{Bench, Lab, LabOptions, enter_user_namespace};
use linerate_model::HostName;
use std::error::Error;
use std::io::stdin;
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    enter_user_namespace()?;
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [program, bench, keep @ ..] = &arguments[..] else { return Err("bench AGENT-PROGRAM BENCH [keep]".into()) };
    let options = LabOptions { program: program.into(), keep: !keep.is_empty(), folders: Vec::new() };
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let lab = runtime.block_on(Lab::up(&Bench::find(bench)?, &options))?;
    println!("up");
    for line in stdin().lines() {
        let line = line?;
        let Some((host, command)) = line.split_once(' ') else { continue };
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command);
        println!("{}", lab.run_in(&HostName::from(host), shell)?.wait()?);
    }
    if options.keep {
        lab.keep()?;
    } else {
        runtime.block_on(lab.down());
    }
    Ok(())
}
