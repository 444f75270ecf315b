//! `linerate hosts`: agents by names, so that their URLs stand in no command.

use crate::discovery;
use crate::exit::Failure;
use crate::output::{print, say};
use crate::saved_hosts::{SavedHosts, url_of_variable, urls_of_file};
use clap::Subcommand;
use linerate_model::{AgentUrl, HostName};
use linerate_units::Nanos;
use std::io::{IsTerminal as _, stdin};
use std::path::Path;

/// Save agents by name, and use the names in place of their URLs
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  linerate hosts add rack-1                  asks for the agent URL, and shows none of it
  ssh rack-1 cat agent.url | linerate hosts add rack-1 -
  linerate stream rack-1 rack-2
  linerate hosts list
  linerate hosts discover                    agents nearby, of `linerate serve --announce`

An agent URL is a password. On a command line other users and the shell's history see it. The names are kept in linerate/hosts \
in your data directory, which only you can read. Everywhere a host is named, @FILE also reads agent URLs from a file, one a \
line, and env:NAME one from an environment variable.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Save an agent by a name; one of that name is replaced
    Add {
        /// The name: letters, digits, `-`, `_` and `.`
        name: String,
        /// Where its agent URL is: @FILE, env:NAME, or - for standard input; or the URL itself [default: asked for]
        url: Option<String>,
    },
    /// List the saved agents, without their secrets
    List,
    /// List the agents on the local network that announce themselves (`linerate serve --announce`)
    Discover {
        /// How long to listen for answers
        #[arg(long, value_name = "TIME", default_value = "3s")]
        time: Nanos,
    },
    /// Forget agents
    Remove {
        /// Their names
        #[arg(required = true)]
        names: Vec<String>,
    },
}

pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    let saved = || SavedHosts::read().map_err(Failure::usage);
    match arguments.action {
        Action::Add { name, url } => {
            let mut hosts = saved()?;
            let url = given(url.as_deref()).map_err(Failure::usage)?;
            let (name, address) = (HostName(name), url.address());
            let before = hosts.add(name.clone(), url).map_err(Failure::usage)?;
            let before = before.map(|before| format!(", no longer {}", before.address()));
            say(&format!("linerate: {name} is saved: {address}{}", before.unwrap_or_default()));
        }
        Action::List => {
            let hosts = saved()?;
            let width = hosts.all().keys().map(|name| name.0.len()).max().unwrap_or(0);
            for (name, url) in hosts.all() {
                print(&format!("{name:<width$}  {}", url.address()));
            }
            if hosts.all().is_empty() {
                say("linerate: no hosts are saved; `linerate hosts add NAME` saves one");
            }
        }
        Action::Discover { time } => discover(time)?,
        Action::Remove { names } => {
            let mut hosts = saved()?;
            for name in names {
                let (name, url) = (HostName(name.clone()), hosts.remove(&name.into()).map_err(Failure::usage)?);
                say(&format!("linerate: {name} is forgotten: {}", url.address()));
            }
        }
    }
    Ok(())
}

/// Prints each agent that announces itself as soon as it is found.
fn discover(time: Nanos) -> Result<(), Failure> {
    let found = discovery::discover(time.into(), |agent| {
        let other = if agent.is_of_this_protocol() { "" } else { ", which this version does not work with" };
        print(&format!("{}  {}  linerate {}{other}", agent.name, agent.address, agent.version));
    })
    .map_err(Failure::measure)?;
    say(&match found {
        0 => format!(
            "linerate: no agent announced itself within {time}: start it with `linerate serve --announce`; multicast (UDP port 5353) \
             has to pass between the hosts"
        ),
        _ => String::from(
            "linerate: anyone can send such an announcement: save each agent by its URL, which it printed when it was started, with \
             `linerate hosts add NAME`",
        ),
    });
    Ok(())
}

/// The agent URL, from where it was said to be.
fn given(place: Option<&str>) -> Result<AgentUrl, String> {
    match place {
        None if stdin().is_terminal() => asked(),
        None | Some("-") => line_of_input(),
        Some(text) => match (text.strip_prefix('@'), text.strip_prefix("env:")) {
            (Some(file), _) => match <[AgentUrl; 1]>::try_from(urls_of_file(Path::new(file))?) {
                Ok([url]) => Ok(url),
                Err(urls) => Err(format!("{file} holds {} agent URLs; a name is for one", urls.len())),
            },
            (None, Some(variable)) => url_of_variable(variable),
            (None, None) => text.parse().map_err(|error| format!("{error}")),
        },
    }
}

fn asked() -> Result<AgentUrl, String> {
    let terminal = console::Term::stderr();
    let failed = |error: std::io::Error| format!("cannot read the agent URL: {error}");
    terminal.write_str("Agent URL (not shown): ").map_err(failed)?;
    let line = terminal.read_secure_line().map_err(failed)?;
    line.parse().map_err(|error| format!("{error}"))
}

fn line_of_input() -> Result<AgentUrl, String> {
    let mut line = String::new();
    stdin().read_line(&mut line).map_err(|error| format!("cannot read the agent URL: {error}"))?;
    line.parse().map_err(|error| format!("standard input: {error}"))
}
