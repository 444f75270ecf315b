//! A command line of linerate inside another one: of a study, or of a comparison.

use super::command_line::{Command, CommandLine};
use super::help;
use crate::exit::Failure;
use crate::options::{Results, typed};
use clap::{ArgMatches, FromArgMatches as _};

/// Reads a command that measures, and that leaves its results to the outer one. `place` is where it stands, and where options
/// for results belong.
///
/// # Errors
/// It cannot be read, measures nothing, or has an option that belongs to the outer command.
pub(crate) fn measuring(words: &[String], place: (&str, &str)) -> Result<Command, Failure> {
    let (mut command, given) = read(words.iter().map(String::as_str))?;
    if command.results_mut().is_none() {
        return Err(Failure::usage(
            "it measures nothing; expected one of stream, transact, rpc, nfs, copy, device, frames",
        ));
    }
    // The sampling period is the inner command's own.
    match typed::<Results>(&given).into_iter().find(|(id, _)| id != "sample") {
        Some((_, option)) => {
            let (place, remedy) = place;
            Err(Failure::usage(format!("{option} does not go into {place}: {remedy}")))
        }
        None => Ok(command),
    }
}

/// Whether a command asks how often it is run. None for one that cannot: `--repeats` of a device test is about the searches of
/// one run.
///
/// # Errors
/// It cannot be read.
pub(crate) fn asks_for_repeats(words: &[String]) -> Result<Option<bool>, Failure> {
    let (command, given) = read(words.iter().map(String::as_str))?;
    if let Command::Device(_) = command {
        return Ok(None);
    }
    let asks = |option: &str| is_option(&given, option) && given.value_source(option).is_some();
    Ok(is_option(&given, "repeats").then(|| ["repeats", "confidence", "within"].into_iter().any(asks)))
}

/// Reads a command line, and what was given for the innermost command.
///
/// # Errors
/// It cannot be read.
pub(crate) fn read<'a>(words: impl Iterator<Item = &'a str>) -> Result<(Command, ArgMatches), Failure> {
    let refused = |error: clap::Error| Failure::usage(error.to_string().trim_end());
    let matches = help::command().try_get_matches_from(std::iter::once("linerate").chain(words)).map_err(refused)?;
    let line = CommandLine::from_arg_matches(&matches).map_err(refused)?;
    let mut given = matches;
    while let Some((_, inner)) = given.remove_subcommand() {
        given = inner;
    }
    Ok((line.command, given))
}

fn is_option(given: &ArgMatches, option: &str) -> bool {
    given.try_contains_id(option).is_ok()
}
