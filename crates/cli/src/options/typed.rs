//! Which options of a group the command line has, as clap knows them.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches, Id};

/// Returns the options of a group that the command line has: their ids, and the options as they are typed.
pub(crate) fn typed<T: Args>(matches: &ArgMatches) -> Vec<(String, String)> {
    let group = T::augment_args(Command::new("group"));
    let mut options = Vec::new();
    for arg in group.get_arguments() {
        let id = arg.get_id().as_str();
        let is_known = matches.try_contains_id(id).is_ok();
        if is_known && matches.value_source(id) == Some(ValueSource::CommandLine) {
            options.push((id.to_owned(), format!("--{}", arg.get_long().unwrap_or(id))));
        }
    }
    options
}

/// The options of a group, and the names of those that the command line has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Typed<T> {
    pub(crate) options: T,
    pub(crate) names: Vec<String>,
}

impl<T: Args> Args for Typed<T> {
    fn group_id() -> Option<Id> {
        T::group_id()
    }

    fn augment_args(command: Command) -> Command {
        T::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args_for_update(command)
    }
}

impl<T: Args> FromArgMatches for Typed<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let names = typed::<T>(matches).into_iter().map(|(_, name)| name).collect();
        Ok(Self { options: T::from_arg_matches(matches)?, names })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
