//! `linerate man`: the manual pages, generated from the help texts.

use super::help;
use crate::exit::Failure;
use std::path::PathBuf;

/// Write the manual pages to a directory
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  linerate man /usr/local/share/man/man1 && man linerate-stream")]
pub(crate) struct Arguments {
    /// The directory; it is made if it is missing
    directory: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let shown = arguments.directory.display();
    std::fs::create_dir_all(&arguments.directory)
        .and_then(|()| clap_mangen::generate_to(help::command(), &arguments.directory))
        .map_err(|error| {
            Failure::usage(format!(
                "cannot write manual pages into {shown}: {error}; name a directory that you may write to"
            ))
        })
}
