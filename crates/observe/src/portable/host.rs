//! Description of a host.

use crate::sources::Sources;
use crate::{HostOptions, ObserveError, capabilities};
use linerate_model::{Host, Nic};
use linerate_sys::interface::{Address, Link};
use linerate_sys::netlink::Route;
use linerate_sys::system;
use std::collections::BTreeMap;

/// Describes this host.
pub fn host(options: &HostOptions) -> Result<Host, ObserveError> {
    let mut route = Route::open()?;
    let links = route.links()?;
    let addresses = route.addresses()?;
    Ok(Host {
        name: options.name.clone(),
        version: options.version.clone(),
        protocol: options.protocol,
        system: system::version(),
        cpu_model: system::processor().unwrap_or_else(|| format!("unknown {}", std::env::consts::ARCH)),
        cores: Sources::open().cores().unwrap_or_default().count(),
        core_groups: Vec::new(),
        memory_bytes: system::memory_bytes()?,
        boot_id: system::boot_id()?,
        // The congestion control belongs to the system, not to a socket.
        congestion_controls: Vec::new(),
        nics: links.iter().filter(|link| !link.loopback).map(|link| nic(link, &addresses, options)).collect(),
        data_addresses: options.data_addresses.clone(),
        capabilities: capabilities(),
    })
}

fn nic(link: &Link, addresses: &[Address], options: &HostOptions) -> Nic {
    Nic {
        name: link.name.clone(),
        driver: link.kind.clone(),
        speed: options.link_speeds.get(&link.name).copied(),
        duplex: options.link_duplexes.get(&link.name).copied(),
        mtu: link.mtu,
        up: link.up,
        mac: link.mac.iter().map(|octet| format!("{octet:02x}")).collect::<Vec<_>>().join(":"),
        addresses: addresses.iter().filter(|own| own.link == link.index).map(|own| own.address).collect(),
        offloads: BTreeMap::new(),
        qdisc: String::new(),
        driver_version: String::new(),
        firmware: String::new(),
        slot: None,
    }
}
