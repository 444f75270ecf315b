//! The command line as a user meets it: `--help` has examples and everyday options, `--help-all` has every option in full.

use crate::arguments::{Arguments, EXAMPLES};
use crate::familiar;
use clap::{Arg, ArgAction, Command, CommandFactory as _, FromArgMatches as _};
use std::ffi::OsString;

/// Examples come before options: they are read first.
const TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}{after-help}\n\n{all-args}";

/// The program's own help fits one screen: commands stand in what follows the usage.
const SCREEN_TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}{after-help}\n";

const OPTIONS: &str = "\
Options:
      --lang <LANG>  Language of results and reports: en or ja. CSV and JSON do not depend on it [default: from LC_ALL, \
                     LC_MESSAGES or LANG]
  -h, --help         Print what most people need
      --help-all     Print this
  -V, --version      Print version";

/// Groups of options that few runs need.
const RARE_GROUPS: [&str; 4] = ["Sockets", "The device's load", "Existing NFS server", "SMB server"];

/// Single options that few runs need.
const RARE: [&str; 13] = [
    "affinity",
    "interval",
    "json_stream",
    "lang",
    "max_repeats",
    "no_offload",
    "port",
    "receive_by",
    "resume",
    "sample",
    "send_by",
    "store",
    "zerocopy",
];

/// Returns the command line with all its commands.
pub(crate) fn command() -> Command {
    let whole = Arguments::command();
    let all: String = whole.get_subcommands().map(in_a_line).collect();
    let everything = format!("{EXAMPLES}\n\nCommands:\n{all}\n{OPTIONS}");
    with_help(whole).help_template(SCREEN_TEMPLATE).after_long_help(everything)
}

/// The words of this program's command line, as they are read: what a host alone stands for is written out.
pub(crate) fn words() -> Vec<OsString> {
    completed(std::env::args_os().collect(), &command())
}

fn completed(words: Vec<OsString>, command: &Command) -> Vec<OsString> {
    familiar::completed(words, |word| command.find_subcommand(word).is_some())
}

/// Reads a command line; the first word is the program's.
///
/// # Errors
/// It cannot be read, or asks for help.
pub(crate) fn parse_from(
    words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<Arguments, clap::Error> {
    let mut command = command();
    let words = completed(words.into_iter().map(Into::into).collect(), &command);
    let matches = command.try_get_matches_from_mut(words).map_err(familiar::advised)?;
    Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// A command and what it does.
fn in_a_line(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    format!("  {:<11}  {about}\n", command.get_name())
}

/// The command, and those below it, with both kinds of help.
fn with_help(command: Command) -> Command {
    let is_rare = |arg: &Arg| {
        let group = arg.get_help_heading().is_some_and(|group| RARE_GROUPS.contains(&group));
        group || RARE.contains(&arg.get_id().as_str())
    };
    command
        .disable_help_flag(true)
        .help_template(TEMPLATE)
        .mut_args(|arg| if is_rare(&arg) { arg.hide_short_help(true) } else { arg })
        .next_help_heading(None::<&'static str>)
        .arg(
            Arg::new("help")
                .long("help")
                .short('h')
                .action(ArgAction::HelpShort)
                .help("Print examples and everyday options"),
        )
        .arg(Arg::new("help-all").long("help-all").action(ArgAction::HelpLong).help("Print all options in full"))
        .mut_subcommands(with_help)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(words: &[&str]) -> String {
        let error = parse_from(words).expect_err("help is no command");
        assert_eq!(error.kind(), clap::error::ErrorKind::DisplayHelp, "{error}");
        error.to_string()
    }

    #[test]
    fn help_has_examples_first_and_rare_options_only_if_all_are_asked_for() {
        for help in ["--help", "-h"] {
            let short = shown(&["linerate", "stream", help]);
            let (examples, options) = (short.find("Examples:"), short.find("Options:"));
            assert!(examples.is_some() && examples < options, "{short}");
            assert!(short.contains("--udp") && short.contains("--help-all"), "{short}");
            assert!(!short.contains("--dscp") && !short.contains("--sample"), "{short}");
        }
        let all = shown(&["linerate", "stream", "--help-all"]);
        assert!(all.contains("--dscp") && all.contains("--sample") && all.find("Examples:") < all.find("Options:"));
        assert!(all.lines().count() > shown(&["linerate", "stream", "--help"]).lines().count() * 3 / 2);
    }

    #[test]
    fn the_programs_help_fits_a_screen_and_names_every_command() {
        let screen = command().term_width(80).render_help().to_string();
        let all = shown(&["linerate", "--help-all"]);
        assert!(screen.lines().count() <= 24 && screen.lines().all(|line| line.len() <= 80), "{screen}");
        for command in Arguments::command().get_subcommands() {
            let name = command.get_name();
            assert!(screen.split([' ', '\n']).any(|word| word == name), "{name} is missing in {screen}");
            assert!(all.contains(&format!("\n  {name}  ")), "{name} is missing in {all}");
        }
    }

    #[test]
    fn every_rare_option_exists() {
        fn has(command: &Command, is_meant: &dyn Fn(&Arg) -> bool) -> bool {
            command.get_arguments().any(is_meant) || command.get_subcommands().any(|below| has(below, is_meant))
        }
        let command = Arguments::command();
        for rare in RARE {
            assert!(has(&command, &|arg| arg.get_id() == rare), "{rare}");
        }
        for group in RARE_GROUPS {
            assert!(has(&command, &|arg| arg.get_help_heading() == Some(group)), "{group}");
        }
    }

    /// clap counts an option that has its value from the environment as given, and then shows it as required in a usage line. So the
    /// variables are read elsewhere.
    #[test]
    fn no_option_is_shown_as_required_where_its_variable_is_set() {
        fn check(command: &Command) {
            let read = command.get_arguments().find(|arg| arg.get_env().is_some());
            assert!(read.is_none(), "{}: {read:?}", command.get_name());
            command.get_subcommands().for_each(check);
        }
        let command = Arguments::command();
        check(&command);
        let results = command.find_subcommand("results").expect("a command");
        let store = results.get_arguments().find(|arg| arg.get_id() == "store").expect("an option");
        assert!(!store.is_required_set());
    }
}
