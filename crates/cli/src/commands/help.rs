//! Help and parsing of the command line. `--help` has examples and everyday options, a line each; `--help-all` has all options in
//! full. An option with `hide_short_help` at its field is in `--help-all` only. The second paragraph of an option's text is too.

use super::command_line::{CommandLine, EXAMPLES};
use super::familiar;
use clap::{Arg, ArgAction, Command, CommandFactory as _, FromArgMatches as _};
use std::ffi::OsString;

/// Examples come before options: they are read first. What clap writes before the help comes last.
const TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}{after-help}\n\n{all-args}\n\n{before-help}";

/// The last line of `--help`.
const MORE: &str = "All options: --help-all";

/// The program's own help fits one screen: commands stand in what follows the usage.
const SCREEN_TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}{after-help}\n";

const OPTIONS: &str = "\
Options:
      --lang <LANG>  Language of results and reports: en or ja. CSV and JSON do not depend on it [default: from LC_ALL, \
                     LC_MESSAGES or LANG]
  -h, --help         Print what most people need
      --help-all     Print this
  -V, --version      Print version";

/// Returns the command line with all its commands.
pub(crate) fn command() -> Command {
    let whole = CommandLine::command();
    let all: String = whole.get_subcommands().map(in_a_line).collect();
    let everything = format!("{EXAMPLES}\n\nCommands:\n{all}\n{OPTIONS}");
    with_help(whole).help_template(SCREEN_TEMPLATE).after_long_help(everything)
}

/// The words of this program's command line, as they are read: what a host alone stands for is written out.
pub(crate) fn words() -> Vec<OsString> {
    completed(std::env::args_os().collect(), &command())
}

fn completed(words: Vec<OsString>, command: &Command) -> Vec<OsString> {
    familiar::completed(words, command)
}

/// Reads a command line; the first word is the program's.
///
/// # Errors
/// It cannot be read, or asks for help.
pub(crate) fn parse_from(
    words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<CommandLine, clap::Error> {
    let mut command = command();
    let words = completed(words.into_iter().map(Into::into).collect(), &command);
    if words.iter().any(|word| word == "--help" || word == "-h") {
        command = short(command);
    }
    let matches = command.try_get_matches_from_mut(words).map_err(familiar::advised)?;
    CommandLine::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// A command and what it does.
fn in_a_line(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    format!("  {:<11}  {about}\n", command.get_name())
}

/// The command for `--help`: the line of an option says which values it takes, and what each means is in `--help-all`.
pub(crate) fn short(command: Command) -> Command {
    // A flag's own two values are its being there or not.
    let has_values = |arg: &Arg| arg.get_action().takes_values() && !arg.get_possible_values().is_empty();
    command.mut_args(|arg| if has_values(&arg) { arg.hide_possible_values(true) } else { arg }).mut_subcommands(short)
}

/// Adds both kinds of help to a command and its subcommands.
fn with_help(command: Command) -> Command {
    // What follows the examples only in the whole help.
    let whole =
        command.get_after_help().zip(command.get_after_long_help()).map(|(first, rest)| format!("{first}\n\n{rest}"));
    let command = match whole {
        Some(whole) => command.after_long_help(whole),
        None => command,
    };
    command
        .disable_help_flag(true)
        .help_template(TEMPLATE)
        .before_help(MORE)
        .before_long_help("")
        .next_help_heading(None::<&'static str>)
        .arg(
            Arg::new("help")
                .long("help")
                .short('h')
                .action(ArgAction::HelpShort)
                .hide_short_help(true)
                .help("Print examples and everyday options"),
        )
        .arg(
            Arg::new("help-all")
                .long("help-all")
                .action(ArgAction::HelpLong)
                .hide_short_help(true)
                .help("Print all options in full"),
        )
        .mut_subcommands(with_help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

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
        for command in CommandLine::command().get_subcommands() {
            let name = command.get_name();
            assert!(screen.split([' ', '\n']).any(|word| word == name), "{name} is missing in {screen}");
            assert!(all.contains(&format!("\n  {name}  ")), "{name} is missing in {all}");
        }
    }

    /// Calls `check` with each command, called by its words.
    fn each(command: &Command, words: &str, check: &mut dyn FnMut(&Command, &str)) {
        check(command, words);
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            each(below, format!("{words} {}", below.get_name()).trim_start(), check);
        }
    }

    /// The command line on a terminal of this many columns.
    fn on_terminal(columns: usize, command: Command) -> Command {
        let mut command = command.term_width(columns);
        command.build();
        command
    }

    #[test]
    fn the_help_of_every_command_fits_two_screens_and_each_option_a_line() {
        const LINES: usize = 48;
        let (narrow, wide) = (on_terminal(80, short(command())), on_terminal(300, short(command())));
        let mut lines_if_wide = BTreeMap::new();
        each(&wide, "", &mut |command, words| {
            lines_if_wide.insert(words.to_owned(), command.clone().render_help().to_string().lines().count());
        });
        let mut unfit = String::new();
        each(&narrow, "", &mut |command, words| {
            let help = command.clone().render_help().to_string();
            let lines = help.lines().count();
            let fits = lines <= LINES && help.lines().all(|line| line.chars().count() <= 80);
            // What the program does takes two lines, and its options stand in a text.
            let is_whole =
                words.is_empty() || (lines == lines_if_wide[words] && help.ends_with(&format!("\n\n{MORE}\n")));
            if !fits || !is_whole {
                unfit.push_str(&format!("linerate {words}: {lines} lines\n{help}\n"));
            }
        });
        assert_eq!(unfit, "", "too long, or a text does not fit its line");
    }

    #[test]
    fn every_option_is_in_the_whole_help() {
        each(&on_terminal(80, command()), "", &mut |command, words| {
            let all = command.clone().render_long_help().to_string();
            // The program's own help names its few options by itself.
            for option in command.get_arguments().filter(|arg| !arg.is_positional() && !arg.is_hide_set()) {
                let long = format!("--{}", option.get_long().expect("an option has a long name"));
                let is_there = all.split([' ', '\n', '[', '=']).any(|word| word == long);
                assert!(is_there, "linerate {words}: {long}\n{all}");
            }
        });
    }

    #[test]
    fn the_line_of_an_option_names_the_values_that_it_takes() {
        each(&on_terminal(80, short(command())), "", &mut |command, words| {
            for arg in command.get_arguments().filter(|arg| !arg.is_hide_short_help_set() && !arg.is_hide_set()) {
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                // A flag's own two values are its being there or not.
                for value in arg.get_possible_values().iter().filter(|_| arg.get_action().takes_values()) {
                    assert!(help.contains(value.get_name()), "linerate {words}: {} in {help}", value.get_name());
                }
            }
        });
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
        let command = CommandLine::command();
        check(&command);
        let results = command.find_subcommand("results").expect("a command");
        let store = results.get_arguments().find(|arg| arg.get_id() == "store").expect("an option");
        assert!(!store.is_required_set());
    }
}
