//! Ports that a trial can use.

use crate::FrameError;
use crate::linux::meets::meets;
use linerate_model::{Mac, PortInfo};
use linerate_sys::interface::Link;
use linerate_sys::netlink::Route;
use std::net::IpAddr;

/// Returns the properties of the port `interface`, which must be an Ethernet interface, up, with a carrier.
pub fn port(interface: &str) -> Result<PortInfo, FrameError> {
    let mut route = Route::open()?;
    let links = route.links()?;
    let link = usable(&links, interface)?;
    let mut port = PortInfo {
        interface: interface.to_owned(),
        mac: mac(&link)?,
        ipv4: None,
        ipv6: None,
        mtu: link.mtu,
        meets: meets(link.index, &links),
    };
    for address in route.addresses()?.into_iter().filter(|address| address.link == link.index && !address.local_scope) {
        match address.address {
            IpAddr::V4(v4) => port.ipv4 = port.ipv4.or(Some((v4, address.prefix))),
            IpAddr::V6(v6) => port.ipv6 = port.ipv6.or(Some((v6, address.prefix))),
        }
    }
    Ok(port)
}

/// Returns the interface, if it can carry frames.
pub(crate) fn usable(links: &[Link], interface: &str) -> Result<Link, FrameError> {
    let Some(link) = links.iter().find(|link| link.name == interface) else {
        let present: Vec<&str> = links.iter().filter(|link| !link.loopback).map(|link| link.name.as_str()).collect();
        let present = if present.is_empty() { String::from("none but loopback") } else { present.join(", ") };
        return Err(FrameError::NoSuchPort { interface: interface.to_owned(), present });
    };
    mac(link)?;
    if !link.up {
        return Err(FrameError::Down(interface.to_owned()));
    }
    Ok(link.clone())
}

/// Returns its Ethernet address.
pub(crate) fn mac(link: &Link) -> Result<Mac, FrameError> {
    match <[u8; 6]>::try_from(link.mac.as_slice()) {
        Ok(mac) if !link.loopback => Ok(Mac(mac)),
        _ => Err(FrameError::NotEthernet(link.name.clone())),
    }
}
