//! `--device-snmp`, `--device-agent` and `--server-agent`: from whom the own load of a device or a server is read.

use crate::exit::Failure;
use crate::hosts::{HostArguments, HostBook, ReachedAgents};
use crate::output::say;
use clap::Args;
use linerate_observe::snmp::{Target, Watcher};
use linerate_runner::{Agents as _, DeviceWatch};

/// The device's load.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "The device's load")]
pub(crate) struct LoadSource {
    /// Read the device's CPU use and interfaces by SNMP: snmp://HOST, snmp://COMMUNITY@HOST:PORT, or
    /// snmp+v3://USER@HOST?auth=sha256:PASSWORD&priv=aes128:PASSWORD. Devices update these figures every few seconds:
    /// give --time 10s or longer. Set LINERATE_DEVICE_SNMP instead to hide the password from process lists
    // Not a `Target`: a text that is none would be printed, with the secrets in it.
    #[arg(long, value_name = "TARGET", conflicts_with = "device_agent", hide_short_help = true)]
    device_snmp: Option<String>,

    /// Read them from the linerate agent on the device: its agent URL, a saved name, or a lab host's name
    #[arg(long, value_name = "HOST", hide_short_help = true)]
    device_agent: Option<String>,
}

/// The server's load.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "The server's load")]
pub(crate) struct ServerLoadSource {
    /// Read the CPU and disk use of the file server from the linerate agent on it: its agent URL, a saved name, or a lab
    /// host's name
    #[arg(long, value_name = "HOST", hide_short_help = true)]
    server_agent: Option<String>,
}

impl ServerLoadSource {
    /// Reaches the agent on the server, if one is named. `clients` are the hosts that ask the server.
    pub(crate) async fn watch(
        &self,
        book: &HostBook,
        agents: &mut ReachedAgents,
        clients: &HostArguments,
    ) -> Result<Option<DeviceWatch>, Failure> {
        match &self.server_agent {
            Some(host) => by_agent("--server-agent", "server", host, book, agents, clients).await.map(Some),
            None => Ok(None),
        }
    }

    /// The option, if it is given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        self.server_agent.as_ref().map(|_| "--server-agent")
    }
}

/// Reaches the agent `host` on the device or server that `option` names. `testers` are the hosts that measure.
async fn by_agent(
    option: &str,
    what: &str,
    host: &str,
    book: &HostBook,
    agents: &mut ReachedAgents,
    testers: &HostArguments,
) -> Result<DeviceWatch, Failure> {
    let name = book.admit(host, agents).await?;
    if testers.has(&name) {
        return Err(Failure::usage(format!(
            "{option} {name}: that is the tester itself; give the agent that runs on the {what}"
        )));
    }
    let device = agents.find(&name)?;
    let hosts = agents.control.hosts();
    Ok(DeviceWatch::of_agent(device, hosts.iter().filter(|host| testers.has(&host.name))))
}

impl LoadSource {
    /// Reaches the device, if it is to be watched. `testers` are the hosts whose ports test it.
    pub(crate) async fn watch(
        &self,
        book: &HostBook,
        agents: &mut ReachedAgents,
        testers: &HostArguments,
    ) -> Result<Option<DeviceWatch>, Failure> {
        let of_environment = || std::env::var("LINERATE_DEVICE_SNMP").ok().filter(|target| !target.is_empty());
        let snmp = self.device_snmp.clone().or_else(|| of_environment().filter(|_| self.device_agent.is_none()));
        if let Some(target) = snmp {
            let target: Target = target.parse().map_err(|error| Failure::usage(format!("--device-snmp: {error}")))?;
            let watcher = Watcher::open(&target).await.map_err(Failure::measure)?;
            say(&format!("linerate: the device is read by SNMP at {target}: {}", watcher.device().name));
            return Ok(Some(DeviceWatch::Snmp(Box::new(watcher))));
        }
        let Some(host) = &self.device_agent else { return Ok(None) };
        by_agent("--device-agent", "device", host, book, agents, testers).await.map(Some)
    }
}
