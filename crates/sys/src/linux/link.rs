//! Making and setting up links: virtual Ethernet pairs, bridge ports, addresses, routes.
//!
//! rtnetlink(7), veth(4); the numbers are those of linux/if_link.h, linux/if_addr.h and linux/rtnetlink.h.

use crate::Error;
use crate::namespace::NetNamespace;
use crate::netlink::{Route, append, zero_ended};
use rtnetlink::packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const RTM_NEWRULE: u16 = 32;
const CREATE: u16 = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;

impl Route {
    /// Makes a pair of virtual Ethernet interfaces: `name` here and `peer` in the namespace `peer_in`.
    pub fn add_veth(&mut self, name: &str, peer: &str, peer_in: &NetNamespace, mtu: u32) -> Result<(), Error> {
        const IFLA_IFNAME: u16 = 3;
        const IFLA_MTU: u16 = 4;
        const IFLA_LINKINFO: u16 = 18;
        const IFLA_NET_NS_FD: u16 = 28;
        const IFLA_INFO_KIND: u16 = 1;
        const IFLA_INFO_DATA: u16 = 2;
        const VETH_INFO_PEER: u16 = 1;

        let end = |name: &str| {
            let mut end = vec![0; 16];
            append(&mut end, IFLA_IFNAME, &zero_ended(name));
            append(&mut end, IFLA_MTU, &mtu.to_ne_bytes());
            end
        };
        let mut far = end(peer);
        append(&mut far, IFLA_NET_NS_FD, &peer_in.as_fd().as_raw_fd().to_ne_bytes());
        let mut data = Vec::new();
        append(&mut data, VETH_INFO_PEER, &far);
        let mut info = Vec::new();
        append(&mut info, IFLA_INFO_KIND, b"veth");
        append(&mut info, IFLA_INFO_DATA, &data);
        let mut near = end(name);
        append(&mut near, IFLA_LINKINFO, &info);
        self.ask("RTM_NEWLINK", format!("veth {name}"), RTM_NEWLINK, CREATE, &near, |_| Some(()))
    }

    /// The number of the interface `name`.
    pub fn index_of(&mut self, name: &str) -> Result<u32, Error> {
        let found = self.links()?.into_iter().find(|link| link.name == name).map(|link| link.index);
        found.ok_or_else(|| Error::new("RTM_GETLINK", format!("interface {name}"), io::ErrorKind::NotFound))
    }

    /// Brings an interface up.
    pub fn set_up(&mut self, link: u32) -> Result<(), Error> {
        self.set_flag_up(link, true)
    }

    /// Takes an interface down: the other end of a pair loses its carrier.
    pub fn set_down(&mut self, link: u32) -> Result<(), Error> {
        self.set_flag_up(link, false)
    }

    fn set_flag_up(&mut self, link: u32, is_up: bool) -> Result<(), Error> {
        let up = libc::IFF_UP as u32;
        let mut body = interface(link);
        body[8..12].copy_from_slice(&if is_up { up } else { 0 }.to_ne_bytes());
        body[12..16].copy_from_slice(&up.to_ne_bytes());
        let call = if is_up { "RTM_NEWLINK(up)" } else { "RTM_NEWLINK(down)" };
        self.ask(call, format!("interface {link}"), RTM_NEWLINK, NLM_F_ACK, &body, |_| Some(()))
    }

    /// Makes an interface a port of `bridge`.
    pub fn set_bridge(&mut self, link: u32, bridge: u32) -> Result<(), Error> {
        const IFLA_MASTER: u16 = 10;
        let mut body = interface(link);
        append(&mut body, IFLA_MASTER, &bridge.to_ne_bytes());
        self.ask("RTM_NEWLINK(master)", format!("interface {link}"), RTM_NEWLINK, NLM_F_ACK, &body, |_| Some(()))
    }

    /// Disables GRO on an interface by IFLA_GRO_MAX_SIZE (Linux 5.19; older kernels go on merging). Unlike ethtool's switch
    /// this leaves a veth interface its receive queue.
    pub fn disable_gro(&mut self, link: u32) -> Result<(), Error> {
        const IFLA_GRO_MAX_SIZE: u16 = 58;
        let mut body = interface(link);
        append(&mut body, IFLA_GRO_MAX_SIZE, &1u32.to_ne_bytes());
        self.ask("RTM_NEWLINK(gro_max_size)", format!("interface {link}"), RTM_NEWLINK, NLM_F_ACK, &body, |_| Some(()))
    }

    /// Makes `program` the XDP program of an interface, in its driver. It stays there for as long as the interface does, so
    /// this is for interfaces that go with their namespace; on others a bpf_link is to hold it.
    pub fn set_xdp(&mut self, link: u32, program: BorrowedFd<'_>) -> Result<(), Error> {
        const IFLA_XDP: u16 = 43;
        const NLA_F_NESTED: u16 = 1 << 15;
        const IFLA_XDP_FD: u16 = 1;
        const IFLA_XDP_FLAGS: u16 = 3;
        const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
        let mut xdp = Vec::new();
        append(&mut xdp, IFLA_XDP_FD, &program.as_raw_fd().to_ne_bytes());
        append(&mut xdp, IFLA_XDP_FLAGS, &XDP_FLAGS_DRV_MODE.to_ne_bytes());
        let mut body = interface(link);
        append(&mut body, NLA_F_NESTED | IFLA_XDP, &xdp);
        self.ask("RTM_NEWLINK(xdp)", format!("interface {link}"), RTM_NEWLINK, NLM_F_ACK, &body, |_| Some(()))
    }

    /// Gives an interface an address, usable at once: duplicates are not looked for.
    pub fn add_address(&mut self, link: u32, address: IpAddr, prefix: u8) -> Result<(), Error> {
        const IFA_ADDRESS: u16 = 1;
        const IFA_LOCAL: u16 = 2;
        const IFA_F_NODAD: u8 = 2;
        let (family, octets) = family_and_octets(address);
        let mut body = vec![family, prefix, IFA_F_NODAD, 0];
        body.extend_from_slice(&link.to_ne_bytes());
        append(&mut body, IFA_LOCAL, &octets);
        append(&mut body, IFA_ADDRESS, &octets);
        self.ask("RTM_NEWADDR", format!("{address}/{prefix}"), RTM_NEWADDR, CREATE, &body, |_| Some(()))
    }

    /// Sends what has no better route to `gateway`.
    pub fn add_default_route(&mut self, gateway: IpAddr) -> Result<(), Error> {
        let unspecified = match gateway {
            IpAddr::V4(_) => IpAddr::from([0; 4]),
            IpAddr::V6(_) => IpAddr::from([0; 16]),
        };
        self.add_route(unspecified, 0, &[gateway], None)
    }

    /// Adds a route to a network. Several gateways share the flows. `source` becomes the address of packets that this host
    /// sends on the route, unless their socket has another.
    pub fn add_route(
        &mut self,
        destination: IpAddr,
        prefix: u8,
        gateways: &[IpAddr],
        source: Option<IpAddr>,
    ) -> Result<(), Error> {
        const RTA_DST: u16 = 1;
        const RTA_GATEWAY: u16 = 5;
        const RTA_PREFSRC: u16 = 7;
        const RTA_MULTIPATH: u16 = 9;
        const RT_TABLE_MAIN: u8 = 254;
        const RTPROT_STATIC: u8 = 4;
        const RTN_UNICAST: u8 = 1;
        let (family, octets) = family_and_octets(destination);
        let mut body = vec![family, prefix, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, 0, RTN_UNICAST, 0, 0, 0, 0];
        if prefix > 0 {
            append(&mut body, RTA_DST, &octets);
        }
        if let Some(source) = source {
            append(&mut body, RTA_PREFSRC, &family_and_octets(source).1);
        }
        if let [gateway] = gateways {
            append(&mut body, RTA_GATEWAY, &family_and_octets(*gateway).1);
        } else {
            let mut hops = Vec::new();
            for gateway in gateways {
                let mut attribute = Vec::new();
                append(&mut attribute, RTA_GATEWAY, &family_and_octets(*gateway).1);
                // struct rtnexthop: length, flags, weight less 1, interface (the kernel finds it by the gateway).
                hops.extend((8 + attribute.len() as u16).to_ne_bytes());
                hops.extend([0; 6]);
                hops.extend(attribute);
            }
            append(&mut body, RTA_MULTIPATH, &hops);
        }
        let object = format!("{destination}/{prefix} via {gateways:?}");
        self.ask("RTM_NEWROUTE", object, RTM_NEWROUTE, CREATE, &body, |_| Some(()))
    }

    /// Drops ICMP packets that this host itself sends, in one family. Packets that it forwards pass, and so does neighbour
    /// discovery, which looks up no route.
    pub fn drop_own_icmp(&mut self, v6: bool) -> Result<(), Error> {
        const FRA_IIFNAME: u16 = 3;
        const FRA_IP_PROTO: u16 = 22;
        const FR_ACT_BLACKHOLE: u8 = 6;
        let family = if v6 { libc::AF_INET6 } else { libc::AF_INET };
        let protocol = if v6 { libc::IPPROTO_ICMPV6 } else { libc::IPPROTO_ICMP };
        let mut body = vec![family as u8, 0, 0, 0, 0, 0, 0, FR_ACT_BLACKHOLE, 0, 0, 0, 0];
        // The kernel counts its own packets as coming from the loopback interface.
        append(&mut body, FRA_IIFNAME, &zero_ended("lo"));
        append(&mut body, FRA_IP_PROTO, &[protocol as u8]);
        self.ask("RTM_NEWRULE", String::from("iif lo ipproto icmp blackhole"), RTM_NEWRULE, CREATE, &body, |_| Some(()))
    }
}

/// struct ifinfomsg of an existing interface.
fn interface(link: u32) -> Vec<u8> {
    let mut body = vec![0; 16];
    body[4..8].copy_from_slice(&link.to_ne_bytes());
    body
}

/// Returns the family of an address and its bytes.
fn family_and_octets(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(v4) => (libc::AF_INET as u8, v4.octets().to_vec()),
        IpAddr::V6(v6) => (libc::AF_INET6 as u8, v6.octets().to_vec()),
    }
}
