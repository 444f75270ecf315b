//! Service to a fleet: the agent dials out to NATS.

use crate::exit::Failure;
use crate::fleet_folder::FleetFolder;
use crate::output::say;
use linerate_agent::Agent;
use linerate_bus::{Bus, BusError, Credentials, Role};
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::watch;

/// Pause before another attempt to connect for the first time.
const PAUSE: Duration = Duration::from_secs(5);

/// Files that a connection is made with: names of hosts, and certificate authorities.
pub(super) const READS: [&str; 7] = [
    "/etc/hosts",
    "/etc/resolv.conf",
    "/etc/nsswitch.conf",
    "/etc/ssl",
    "/etc/pki",
    "/usr/share/ca-certificates",
    "/run/systemd/resolve",
];

/// Reads the agent's credentials of a fleet.
///
/// # Errors
/// There are none, or they are of another role.
pub(super) fn credentials(directory: Option<PathBuf>) -> Result<Credentials, Failure> {
    let credentials = FleetFolder::of(directory).credentials()?;
    if credentials.role == Role::Agent {
        return Ok(credentials);
    }
    Err(Failure::usage(format!(
        "the credentials of {} are of the role {}, and an agent needs its own: enrol this host with `linerate fleet enrol CODE`, \
         in another directory with --dir, and name that directory to `linerate serve --fleet DIR`",
        credentials.name,
        credentials.role.name()
    )))
}

/// Connects `agent` to its fleet. A server that does not answer is tried again until the program is cancelled.
///
/// # Errors
/// The server refuses the credentials, or another process serves with them.
pub(super) async fn join(
    agent: &mut Agent,
    credentials: Credentials,
    cancel: &mut watch::Receiver<bool>,
) -> Result<(), Failure> {
    let mut is_reported = false;
    loop {
        match Bus::connect(credentials.clone()).await {
            Ok(bus) => return agent.join_fleet(bus).await.map_err(Failure::measure),
            Err(error @ BusError::Unreachable { .. }) => {
                if !std::mem::replace(&mut is_reported, true) {
                    say(&format!("linerate: {error}; it is tried again every {} s", PAUSE.as_secs()));
                }
            }
            Err(error) => return Err(Failure::measure(error)),
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            _ = cancel.wait_for(|asked| *asked) => return Ok(()),
        }
    }
}
