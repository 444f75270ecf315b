//! The connections that a device test must not cut: the user's own SSH session, and the one to the tester's agent.
//!
//! A test fills its ports. Where one of them carries the session, or is joined by a bridge, bond or VLAN to what carries
//! it, the user would be shut out of the machine half-way.

use crate::exit::Failure;
use crate::hosts::LOCAL;
use crate::output::say;
use linerate_model::{Nic, PortInfo};
use linerate_runner::AgentHandle;
use linerate_sys::process;
use std::net::{IpAddr, ToSocketAddrs as _};

/// Where sshd(8) tells a session who is connected: client address and port, server address and port.
const VARIABLE: &str = "SSH_CONNECTION";

/// A connection into the tester's host.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Connection {
    /// Whose it is, in words.
    whose: String,
    /// The host's own address in it.
    address: IpAddr,
    /// The interface by which its answers leave, where that is known.
    interface: Option<String>,
}

/// Refuses ports that carry a connection of the user's, unless `force`.
pub(crate) fn spare(agent: &AgentHandle, ports: &[PortInfo], force: bool) -> Result<(), Failure> {
    let connections = if agent.host.name.0 == LOCAL { ssh().into_iter().collect() } else { control(agent) };
    let Some(why) = connections.iter().find_map(|connection| conflict(connection, ports, &agent.host.nics)) else {
        return Ok(());
    };
    if force {
        say(&format!("linerate: {why}; the test goes on, as --force asks"));
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{why}: the test would cut it off; take ports set apart for the test, or give --force if you can reach this host \
         by another way"
    )))
}

/// Which port would cut `connection`, and how it is joined to it.
fn conflict(connection: &Connection, ports: &[PortInfo], nics: &[Nic]) -> Option<String> {
    let carries = |name: &String| {
        connection.interface.as_ref() == Some(name)
            || nics.iter().any(|nic| nic.name == *name && nic.addresses.contains(&connection.address))
    };
    ports.iter().find_map(|port| {
        let by = port.meets.iter().find(|name| carries(name))?;
        let Connection { whose, address, .. } = connection;
        Some(if *by == port.interface {
            format!("port {by} carries {whose} ({address})")
        } else {
            format!("port {} is joined to {by}, which carries {whose} ({address})", port.interface)
        })
    })
}

/// The SSH session that this program was started from.
fn ssh() -> Option<Connection> {
    // sudo(8) takes the variable away; a parent process still has it.
    let variable = std::env::var(VARIABLE).ok().or_else(|| process::variable_of_ancestor(VARIABLE))?;
    let (client, address, zone) = endpoints(&variable)?;
    let interface = zone.or_else(|| linerate_observe::interface_towards(client));
    Some(Connection { whose: "your SSH session".to_owned(), address, interface })
}

/// Client and server address of the variable's text, and the interface of an address that is the link's own.
fn endpoints(text: &str) -> Option<(IpAddr, IpAddr, Option<String>)> {
    let mut fields = text.split_whitespace().step_by(2).map(|field| field.split_once('%').unwrap_or((field, "")));
    let ((client, zone), (server, _)) = (fields.next()?, fields.next()?);
    let address = |text: &str| text.parse::<IpAddr>().ok().map(|address| address.to_canonical());
    Some((address(client)?, address(server)?, Some(zone.to_owned()).filter(|zone| !zone.is_empty())))
}

/// The connection to the tester's agent.
fn control(agent: &AgentHandle) -> Vec<Connection> {
    let addresses = agent.client.address().to_socket_addrs().into_iter().flatten();
    let whose = format!("the connection to the agent of {}", agent.host.name);
    addresses
        .map(|address| Connection { whose: whose.clone(), address: address.ip().to_canonical(), interface: None })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::Mac;
    use std::collections::BTreeMap;

    fn port(interface: &str, meets: &[&str]) -> PortInfo {
        let meets = meets.iter().map(|name| (*name).to_owned()).collect();
        PortInfo { interface: interface.to_owned(), mac: Mac::default(), ipv4: None, ipv6: None, mtu: 1500, meets }
    }

    fn nic(name: &str, address: &str) -> Nic {
        Nic {
            name: name.to_owned(),
            driver: String::new(),
            speed: None,
            duplex: None,
            mtu: 1500,
            up: true,
            mac: String::new(),
            addresses: address.parse().into_iter().collect(),
            offloads: BTreeMap::new(),
            qdisc: String::new(),
            driver_version: String::new(),
            firmware: String::new(),
            slot: None,
        }
    }

    fn session(interface: Option<&str>) -> Connection {
        let interface = interface.map(str::to_owned);
        Connection { whose: "your SSH session".into(), address: "192.0.2.7".parse().expect("an address"), interface }
    }

    #[test]
    fn a_port_that_carries_the_session_is_named_with_how() {
        let nics = [nic("eth0", ""), nic("br0", "192.0.2.7"), nic("eth1", "198.18.0.1")];
        let found = |ports: &[PortInfo], interface| conflict(&session(interface), ports, &nics);
        let free = port("eth1", &["eth1"]);
        assert_eq!(found(std::slice::from_ref(&free), None), None);
        let bridged = port("eth0", &["eth0", "br0"]);
        let why = found(&[free.clone(), bridged], None).expect("the bridge has the address");
        assert_eq!(why, "port eth0 is joined to br0, which carries your SSH session (192.0.2.7)");
        // The address may be another interface's, as loopback's: then the route to the client tells.
        let why = found(&[free], Some("eth1")).expect("the answers leave there");
        assert_eq!(why, "port eth1 carries your SSH session (192.0.2.7)");
    }

    #[test]
    fn the_variable_is_read_as_sshd_writes_it() {
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let v4 = endpoints("192.0.2.9 51000 192.0.2.7 22");
        assert_eq!(v4, Some((address("192.0.2.9"), address("192.0.2.7"), None)));
        let link = endpoints("fe80::9%eth3 51000 fe80::7%eth3 22");
        assert_eq!(link, Some((address("fe80::9"), address("fe80::7"), Some("eth3".to_owned()))));
        for broken in ["", "here there", "192.0.2.9 51000"] {
            assert_eq!(endpoints(broken), None, "{broken}");
        }
    }
}
