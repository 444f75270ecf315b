//! Interfaces, addresses and routes. The name is that of Linux's interface for them.

use super::status::check;
use crate::Error;
use crate::interface::{Address, Link, LinkCounters};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::{mem, ptr, slice};
use windows_sys::Win32::NetworkManagement::IpHelper::{
    FreeMibTable, GetBestInterfaceEx, GetIfTable2, GetUnicastIpAddressTable, IF_TYPE_SOFTWARE_LOOPBACK, MIB_IF_ROW2,
    MIB_IF_TABLE2, MIB_UNICASTIPADDRESS_TABLE,
};
use windows_sys::Win32::NetworkManagement::Ndis::IfOperStatusUp;
use windows_sys::Win32::Networking::WinSock::{AF_INET, AF_INET6, AF_UNSPEC, SOCKADDR_INET};

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

    /// All interfaces with their counters.
    ///
    /// # Errors
    /// The call fails.
    pub fn links(&mut self) -> Result<Vec<Link>, Error> {
        let mut table: *mut MIB_IF_TABLE2 = ptr::null_mut();
        // SAFETY: the system writes a pointer into a live variable.
        check("GetIfTable2", unsafe { GetIfTable2(&raw mut table) })?;
        // SAFETY: the call succeeded, so the table is live and has this number of rows behind its head, until it is freed below.
        let rows = unsafe {
            slice::from_raw_parts((&raw const (*table).Table).cast::<MIB_IF_ROW2>(), (*table).NumEntries as usize)
        };
        let links = rows.iter().map(link).collect();
        // SAFETY: the table is the system's, and no reference to it is left.
        unsafe { FreeMibTable(table.cast()) };
        Ok(links)
    }

    /// All addresses.
    ///
    /// # Errors
    /// The call fails.
    pub fn addresses(&mut self) -> Result<Vec<Address>, Error> {
        let mut table: *mut MIB_UNICASTIPADDRESS_TABLE = ptr::null_mut();
        // SAFETY: the system writes a pointer into a live variable.
        check("GetUnicastIpAddressTable", unsafe { GetUnicastIpAddressTable(AF_UNSPEC, &raw mut table) })?;
        // SAFETY: as in `links`.
        let rows = unsafe { slice::from_raw_parts((&raw const (*table).Table).cast(), (*table).NumEntries as usize) };
        let addresses = rows
            .iter()
            .filter_map(|row: &windows_sys::Win32::NetworkManagement::IpHelper::MIB_UNICASTIPADDRESS_ROW| {
                let address = ip(&row.Address)?;
                let local_scope = match address {
                    IpAddr::V4(address) => address.is_loopback() || address.is_link_local(),
                    IpAddr::V6(address) => address.is_loopback() || address.is_unicast_link_local(),
                };
                Some(Address { link: row.InterfaceIndex, address, prefix: row.OnLinkPrefixLength, local_scope })
            })
            .collect();
        // SAFETY: the table is the system's, and no reference to it is left.
        unsafe { FreeMibTable(table.cast()) };
        Ok(addresses)
    }

    /// The number of the interface by which packets to `destination` leave: loopback if that is an address of this host. `None` if there is no
    /// route.
    ///
    /// # Errors
    /// The call fails.
    pub fn outgoing(&mut self, destination: IpAddr) -> Result<Option<u32>, Error> {
        const ERROR_NETWORK_UNREACHABLE: u32 = 1231;
        const ERROR_NOT_FOUND: u32 = 1168;
        if destination.is_loopback() || self.addresses()?.iter().any(|own| own.address == destination) {
            return Ok(self.links()?.iter().find(|link| link.loopback).map(|link| link.index));
        }
        let address = socket2::SockAddr::from(SocketAddr::new(destination, 0));
        let mut index = 0;
        // SAFETY: the system reads a live address of the family that it names, and writes a live integer.
        match unsafe { GetBestInterfaceEx(address.as_ptr().cast(), &raw mut index) } {
            ERROR_NETWORK_UNREACHABLE | ERROR_NOT_FOUND => Ok(None),
            status => check("GetBestInterfaceEx", status).map(|()| Some(index)),
        }
    }
}

fn link(row: &MIB_IF_ROW2) -> Link {
    let length = (row.PhysicalAddressLength as usize).min(row.PhysicalAddress.len());
    let up = row.OperStatus == IfOperStatusUp;
    Link {
        index: row.InterfaceIndex,
        name: text(&row.Alias),
        mtu: row.Mtu,
        up,
        running: up,
        loopback: row.Type == IF_TYPE_SOFTWARE_LOOPBACK,
        mac: row.PhysicalAddress[..length].to_vec(),
        counters: LinkCounters {
            rx_packets: row.InUcastPkts + row.InNUcastPkts,
            tx_packets: row.OutUcastPkts + row.OutNUcastPkts,
            rx_bytes: row.InOctets,
            tx_bytes: row.OutOctets,
            rx_errors: row.InErrors,
            tx_errors: row.OutErrors,
            rx_dropped: row.InDiscards,
            tx_dropped: row.OutDiscards,
            ..LinkCounters::default()
        },
        ..Link::default()
    }
}

fn text(wide: &[u16]) -> String {
    let characters: Vec<u16> = wide.iter().copied().take_while(|character| *character != 0).collect();
    String::from_utf16_lossy(&characters)
}

fn ip(address: &SOCKADDR_INET) -> Option<IpAddr> {
    const _: () = assert!(mem::size_of::<SOCKADDR_INET>() == 28);
    // SAFETY: every variant of the union begins with the family, and all bytes of it are integers that the system has written.
    unsafe {
        match address.si_family {
            AF_INET => Some(Ipv4Addr::from(address.Ipv4.sin_addr.S_un.S_addr.to_ne_bytes()).into()),
            AF_INET6 => Some(Ipv6Addr::from(address.Ipv6.sin6_addr.u.Byte).into()),
            _ => None,
        }
    }
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
        assert_eq!((address.link, address.local_scope), (loopback.index, true));
        assert_eq!(route.outgoing(own).expect("a route"), Some(loopback.index));
    }
}
