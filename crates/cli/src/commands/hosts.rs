//! `linerate hosts`: agents by names, so that their URLs stand in no command.

use crate::exit::Failure;
use crate::interrupt;
use crate::output::{print, say};
use crate::prompt;
use crate::saved_hosts::{SavedHosts, check_name, url_of_variable, urls_of_file};
use clap::Subcommand;
use linerate_control::PROTOCOL;
use linerate_control::pairing::{PairingCode, pair};
use linerate_model::{AgentUrl, HostName};
use linerate_units::Nanos;
use std::io::stdin;
use std::net::IpAddr;
use std::path::Path;
use tokio::sync::watch;

/// Save agents by name, and use the names in place of their URLs
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  linerate hosts add rack-1                     asks for the agent URL
  linerate hosts add rack-1 --pair 192.0.2.5    asks for its pairing code
  ssh rack-1 cat agent.url | linerate hosts add rack-1 -
  linerate stream rack-1 rack-2
  linerate hosts discover                       agents nearby

An agent URL is a password. On a command line other users and the shell's
history see it. The names are kept in linerate/hosts in your data directory,
which only you can read. Everywhere a host is named, @FILE also reads agent URLs
from a file, one a line, and env:NAME one from an environment variable.")]
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
        /// @FILE, env:NAME, - (standard input), or the agent URL
        ///
        /// Where its agent URL is, or the URL itself. It is asked for if this is not given.
        url: Option<String>,
        /// Pair with the agent there by its code
        ///
        /// The agent at HOST or HOST:PORT shows a pairing code (`linerate serve --pair`). The code is asked for, or read from
        /// standard input.
        #[arg(long, value_name = "HOST", conflicts_with = "url")]
        pair: Option<String>,
    },
    /// List the saved agents, without their secrets
    List,
    /// List the agents on the local network that announce themselves
    ///
    /// Those are agents of `linerate serve --announce`.
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

pub(crate) async fn run(arguments: Arguments, mut cancel: watch::Receiver<bool>) -> Result<(), Failure> {
    let saved = || SavedHosts::read().map_err(Failure::usage);
    match arguments.action {
        Action::Add { name, url, pair } => {
            let mut hosts = saved()?;
            check_name(&HostName(name.clone())).map_err(Failure::usage)?;
            let url = match (pair, url) {
                (Some(place), _) => paired(&place, &mut cancel).await?,
                (None, None) if prompt::can_ask() => {
                    let line = prompt::ask("Agent URL", true, &mut cancel).await?;
                    line.parse().map_err(Failure::usage)?
                }
                (None, url) => {
                    let given = interrupt::unless_asked(&mut cancel, move || given(url.as_deref()));
                    given.await?.map_err(Failure::usage)?
                }
            };
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
        Action::Discover { time } => interrupt::unless_asked(&mut cancel, move || discover(time)).await??,
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
    let found = linerate_discovery::discover(time.into(), |agent| {
        let is_compatible = agent.protocol == PROTOCOL.to_string();
        let other = if is_compatible { "" } else { ", which this version does not work with" };
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
    let url = |text: &str| text.parse().map_err(|error| format!("{error}"));
    match place {
        None | Some("-") => line_of_input("the agent URL")
            .and_then(|line| line.parse().map_err(|error| format!("standard input: {error}"))),
        Some(text) => match (text.strip_prefix('@'), text.strip_prefix("env:")) {
            (Some(file), _) => match <[AgentUrl; 1]>::try_from(urls_of_file(Path::new(file))?) {
                Ok([url]) => Ok(url),
                Err(urls) => Err(format!("{file} holds {} agent URLs; a name is for one", urls.len())),
            },
            (None, Some(variable)) => url_of_variable(variable),
            (None, None) => url(text),
        },
    }
}

/// The URL of the agent at `place`, from its pairing code.
async fn paired(place: &str, cancel: &mut watch::Receiver<bool>) -> Result<AgentUrl, Failure> {
    let (host, port) = host_and_port(place).map_err(Failure::usage)?;
    let code = match prompt::can_ask() {
        true => prompt::ask("Pairing code", false, cancel).await?,
        false => {
            let line = interrupt::unless_asked(cancel, || line_of_input("the pairing code"));
            line.await?.map_err(Failure::usage)?
        }
    };
    let code: PairingCode = code.parse().map_err(Failure::usage)?;
    pair(&host, port, &code).await.map_err(Failure::measure)
}

/// Reads HOST or HOST:PORT; an IPv6 address with a port stands in brackets.
fn host_and_port(text: &str) -> Result<(String, u16), String> {
    let wrong = || format!("`{text}` is no host: write it like 192.0.2.5, rack-1:4747 or [2001:db8::5]:4747");
    let address = text.split_once('%').map_or(text, |(address, _)| address);
    if address.parse::<IpAddr>().is_ok() {
        return Ok((text.to_owned(), AgentUrl::PORT));
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().map_err(|_| wrong())?),
        None => (text, AgentUrl::PORT),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match AgentUrl::host_of(host) {
        Some(host) if port != 0 => Ok((host, port)),
        _ => Err(wrong()),
    }
}

fn line_of_input(what: &str) -> Result<String, String> {
    let mut line = String::new();
    stdin().read_line(&mut line).map_err(|error| format!("cannot read {what}: {error}"))?;
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_agents_are_read() {
        for (text, host, port) in [
            ("192.0.2.5", "192.0.2.5", 4_747),
            ("rack-1", "rack-1", 4_747),
            ("rack-1.example:5000", "rack-1.example", 5_000),
            ("2001:db8::5", "2001:db8::5", 4_747),
            ("[2001:db8::5]:5000", "2001:db8::5", 5_000),
            ("fe80::5%eth0", "fe80::5%eth0", 4_747),
            ("[fe80::5%eth0]:5000", "fe80::5%eth0", 5_000),
        ] {
            assert_eq!(host_and_port(text), Ok((host.to_owned(), port)), "{text}");
        }
        for wrong in ["", ":4747", "rack 1", "rack-1:", "rack-1:0", "rack-1:70000", "http://rack-1", "[rack", "a/b"] {
            assert!(host_and_port(wrong).is_err_and(|error| error.contains("192.0.2.5")), "{wrong}");
        }
    }
}
