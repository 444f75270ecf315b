//! `linerate completions`: the shell's completion script.

use super::help;
use crate::exit::Failure;
use clap_complete::Shell;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  linerate completions bash > /etc/bash_completion.d/linerate")]
pub(crate) struct Arguments {
    /// bash, elvish, fish, powershell or zsh
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut help::command(), "linerate", &mut script);
    crate::output::print(&String::from_utf8_lossy(&script));
    Ok(())
}
