//! Interfaces, addresses and routes. The name is that of Linux's interface for them.

use super::records;
use crate::Error;
use crate::interface::{Address, Link, LinkCounters};
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::ptr;
use std::slice;

/// Access to the routing part of the system.
pub struct Route(());

impl Route {
    /// Opens it.
    ///
    /// # Errors
    /// None on this system.
    pub fn open() -> Result<Self, Error> {
        Ok(Self(()))
    }

    /// Returns all interfaces with their counters. Drops on the way out are those of the interface's queue.
    ///
    /// # Errors
    /// The call fails.
    pub fn links(&mut self) -> Result<Vec<Link>, Error> {
        let list = List::read()?;
        let counters = Counters::read()?;
        Ok(list.entries().filter_map(|entry| link(entry, &counters)).collect())
    }

    /// All addresses.
    ///
    /// # Errors
    /// The call fails.
    pub fn addresses(&mut self) -> Result<Vec<Address>, Error> {
        let list = List::read()?;
        let numbers: BTreeMap<String, u32> =
            list.entries().filter_map(|entry| Some((name(entry), link_address(entry)?.index))).collect();
        Ok(list.entries().filter_map(|entry| address(entry, *numbers.get(&name(entry))?)).collect())
    }

    /// The number of the interface by which packets to `destination` leave: loopback if that is an address of this host. `None` if there is no
    /// route. It is the owner of the address that a socket connected to `destination` is given.
    ///
    /// # Errors
    /// The call fails.
    pub fn outgoing(&mut self, destination: IpAddr) -> Result<Option<u32>, Error> {
        const ANY_PORT: u16 = 9;
        let addresses = self.addresses()?;
        if destination.is_loopback() || addresses.iter().any(|own| own.address == destination) {
            return Ok(self.links()?.iter().find(|link| link.loopback).map(|link| link.index));
        }
        let any: IpAddr =
            if destination.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let connected = UdpSocket::bind((any, 0)).and_then(|socket| {
            socket.connect((destination, ANY_PORT))?;
            socket.local_addr()
        });
        match connected {
            Ok(local) => Ok(addresses.iter().find(|own| own.address == local.ip()).map(|own| own.link)),
            Err(error) if is_without_route(&error) => Ok(None),
            Err(error) => Err(Error::new("connect", destination.to_string(), error)),
        }
    }
}

fn is_without_route(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable | io::ErrorKind::AddrNotAvailable
    )
}

/// The list of getifaddrs(3): an entry for each interface, of the family AF_LINK, and one for each address.
struct List(*mut libc::ifaddrs);

impl List {
    fn read() -> Result<Self, Error> {
        let mut first = ptr::null_mut();
        // SAFETY: the call writes a pointer into a live variable.
        let result = unsafe { libc::getifaddrs(&raw mut first) };
        if result == 0 { Ok(Self(first)) } else { Err(Error::last("getifaddrs", "interfaces")) }
    }

    fn entries(&self) -> impl Iterator<Item = &libc::ifaddrs> {
        // SAFETY: the list is live until this is dropped, and each entry points to the next one or to none.
        std::iter::successors(unsafe { self.0.as_ref() }, |entry| unsafe { entry.ifa_next.as_ref() })
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: the list is of getifaddrs, and no reference to it is left.
        unsafe { libc::freeifaddrs(self.0) };
    }
}

/// The bytes of a socket address, as many as it says it has. `None` for a null pointer.
fn bytes(address: &*mut libc::sockaddr) -> Option<&[u8]> {
    // SAFETY: the pointers of an entry are null or to socket addresses that live as long as it. The first byte is their length.
    unsafe {
        let length = address.as_ref()?.sa_len;
        Some(slice::from_raw_parts(address.cast::<u8>(), length.into()))
    }
}

fn family(address: &[u8]) -> Option<i32> {
    address.get(1).map(|family| i32::from(*family))
}

fn name(entry: &libc::ifaddrs) -> String {
    // SAFETY: each entry has a name, which ends with a zero.
    unsafe { CStr::from_ptr(entry.ifa_name) }.to_string_lossy().into_owned()
}

/// `struct sockaddr_dl` as far as it is used.
struct LinkAddress {
    index: u32,
    mac: Vec<u8>,
}

/// Reads the link's own address. `None` for an entry of another family.
fn link_address(entry: &libc::ifaddrs) -> Option<LinkAddress> {
    use libc::sockaddr_dl;
    use std::mem::offset_of;
    let bytes = bytes(&entry.ifa_addr).filter(|bytes| family(bytes) == Some(libc::AF_LINK))?;
    let index = bytes.get(offset_of!(sockaddr_dl, sdl_index)..)?.first_chunk()?;
    let length = |at: usize| bytes.get(at).map(|length| usize::from(*length));
    // The data has the name and the address, one after the other.
    let start = offset_of!(sockaddr_dl, sdl_data) + length(offset_of!(sockaddr_dl, sdl_nlen))?;
    let end = start + length(offset_of!(sockaddr_dl, sdl_alen))?;
    let mac = bytes.get(start..end).unwrap_or_default().to_vec();
    Some(LinkAddress { index: u16::from_ne_bytes(*index).into(), mac })
}

fn link(entry: &libc::ifaddrs, counters: &Counters) -> Option<Link> {
    let LinkAddress { index, mac } = link_address(entry)?;
    let flags = entry.ifa_flags.cast_signed();
    let running = flags & libc::IFF_RUNNING != 0;
    let details = details(entry, index, counters);
    Some(Link {
        index,
        name: name(entry),
        mtu: details.mtu,
        up: flags & libc::IFF_UP != 0 && running && !details.without_carrier,
        running,
        loopback: flags & libc::IFF_LOOPBACK != 0,
        mac,
        counters: details.counters,
        ..Link::default()
    })
}

/// What an interface says about itself.
#[derive(Default)]
struct Details {
    mtu: u32,
    without_carrier: bool,
    counters: LinkCounters,
}

/// FreeBSD has the counters in the list.
#[cfg(target_os = "freebsd")]
struct Counters;

#[cfg(target_os = "freebsd")]
impl Counters {
    fn read() -> Result<Self, Error> {
        Ok(Self)
    }
}

#[cfg(target_os = "freebsd")]
fn details(entry: &libc::ifaddrs, _: u32, _: &Counters) -> Details {
    // SAFETY: the data of an entry of the family AF_LINK is null or a `struct if_data` that lives as long as the entry.
    let Some(data) = (unsafe { entry.ifa_data.cast::<libc::if_data>().as_ref() }) else { return Details::default() };
    Details {
        mtu: data.ifi_mtu,
        without_carrier: i32::from(data.ifi_link_state) == libc::LINK_STATE_DOWN,
        counters: LinkCounters {
            rx_packets: data.ifi_ipackets,
            tx_packets: data.ifi_opackets,
            rx_bytes: data.ifi_ibytes,
            tx_bytes: data.ifi_obytes,
            rx_errors: data.ifi_ierrors,
            tx_errors: data.ifi_oerrors,
            rx_dropped: data.ifi_iqdrops,
            tx_dropped: data.ifi_oqdrops,
            ..LinkCounters::default()
        },
    }
}

/// Counters by the number of the interface. Those in the list of macOS have 32 bits.
#[cfg(target_os = "macos")]
struct Counters(Vec<(u32, LinkCounters)>);

#[cfg(target_os = "macos")]
impl Counters {
    fn read() -> Result<Self, Error> {
        super::sysctl::interface_list().map(|messages| Self(records::interface_counters(&messages)))
    }
}

#[cfg(target_os = "macos")]
fn details(entry: &libc::ifaddrs, index: u32, counters: &Counters) -> Details {
    // SAFETY: the data of an entry of the family AF_LINK is null or a `struct if_data` that lives as long as the entry.
    let data = unsafe { entry.ifa_data.cast::<libc::if_data>().as_ref() };
    let own = counters.0.iter().find(|(number, _)| *number == index);
    Details {
        mtu: data.map_or(0, |data| data.ifi_mtu),
        without_carrier: false,
        counters: own.map(|(_, counters)| *counters).unwrap_or_default(),
    }
}

fn address(entry: &libc::ifaddrs, link: u32) -> Option<Address> {
    let own = bytes(&entry.ifa_addr)?;
    let v6 = match family(own)? {
        libc::AF_INET => false,
        libc::AF_INET6 => true,
        _ => return None,
    };
    let address = records::address(own, v6)?;
    let local_scope = match address {
        IpAddr::V4(address) => address.is_loopback() || address.is_link_local(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unicast_link_local(),
    };
    let prefix = bytes(&entry.ifa_netmask).map_or(0, |mask| records::prefix_length(mask, v6));
    Some(Address { link, address, prefix, local_scope })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_its_address_and_its_route() {
        let mut route = Route::open().expect("always");
        let loopback =
            route.links().expect("links").into_iter().find(|link| link.loopback).expect("a loopback interface");
        let own: IpAddr = Ipv4Addr::LOCALHOST.into();
        let address = route.addresses().expect("addresses").into_iter().find(|known| known.address == own);
        let address = address.expect("the loopback address");
        assert_eq!((address.link, address.prefix, address.local_scope), (loopback.index, 8, true));
        assert_eq!(route.outgoing(own).expect("a route"), Some(loopback.index));
    }
}
