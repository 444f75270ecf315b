//! IP version and socket settings.

use clap::Args;
use linerate_model::{IpVersion, SocketOptions};
use linerate_units::ByteCount;
use std::net::{IpAddr, ToSocketAddrs as _};

/// Which IP.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Family {
    /// Use IPv6
    #[arg(short = '6', long = "ipv6", conflicts_with = "ipv4", hide_short_help = true)]
    ipv6: bool,

    /// Use IPv4 [default: IPv6 if all other hosts of a trial are reached by it; else, and for raw frames, IPv4]
    #[arg(short = '4', long = "ipv4", hide_short_help = true)]
    ipv4: bool,
}

impl Family {
    pub(crate) fn of(ip: IpVersion) -> Self {
        Self { ipv6: ip == IpVersion::V6, ipv4: ip == IpVersion::V4 }
    }

    pub(crate) fn ip(self) -> IpVersion {
        if self.ipv6 { IpVersion::V6 } else { IpVersion::V4 }
    }

    pub(crate) fn is_v6(self) -> bool {
        self.ipv6
    }

    /// Whether either was asked for.
    pub(crate) fn is_given(self) -> bool {
        self.ipv4 || self.ipv6
    }
}

/// Socket settings.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sockets")]
pub(crate) struct Sockets {
    #[command(flatten)]
    pub(crate) family: Family,

    /// TCP congestion control at both ends, for example cubic or bbr
    #[arg(long, short = 'C', value_name = "NAME", hide_short_help = true)]
    congestion: Option<String>,

    /// Differentiated services code point, 0 to 63
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=63), hide_short_help = true)]
    dscp: Option<u8>,

    /// The same as the whole byte of the type of service, as in 0xb8 for DSCP 46
    #[arg(long, short = 'S', value_name = "BYTE", value_parser = dscp_of_tos, conflicts_with = "dscp", hide_short_help = true)]
    tos: Option<u8>,

    /// SO_SNDBUF of the sending sockets
    #[arg(long, value_name = "BYTES", conflicts_with = "window", hide_short_help = true)]
    send_buffer: Option<ByteCount>,

    /// SO_RCVBUF of the receiving sockets
    #[arg(long, value_name = "BYTES", conflicts_with = "window", hide_short_help = true)]
    receive_buffer: Option<ByteCount>,

    /// Both buffers
    #[arg(long, short = 'w', value_name = "BYTES", hide_short_help = true)]
    window: Option<ByteCount>,

    /// TCP maximum segment size (MSS), bytes of payload
    #[arg(long, short = 'M', value_name = "BYTES", value_parser = clap::value_parser!(u16).range(88..), hide_short_help = true)]
    mss: Option<u16>,

    /// Local address, name or interface of the client, as in 192.0.2.1, eth1 or 192.0.2.1%eth1
    #[arg(long = "bind", short = 'B', value_name = "ADDRESS", value_parser = LocalEnd::read, hide_short_help = true)]
    bind: Option<LocalEnd>,

    /// Interface of the client (SO_BINDTODEVICE)
    #[arg(long = "bind-device", value_name = "IF", value_parser = interface, hide_short_help = true)]
    bind_device: Option<String>,

    /// Cores to pin the sender's threads to, in turn
    #[arg(long, value_name = "CORE", value_delimiter = ',', hide_short_help = true)]
    cpus_sender: Vec<u32>,

    /// Cores to pin the receiver's threads to, in turn
    #[arg(long, value_name = "CORE", value_delimiter = ',', hide_short_help = true)]
    cpus_receiver: Vec<u32>,
}

/// Where a client's sockets are bound: an address of each family, an interface, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LocalEnd {
    addresses: Vec<IpAddr>,
    interface: Option<String>,
}

impl LocalEnd {
    /// Reads `ADDRESS`, `NAME`, `IF`, `ADDRESS%IF` or `NAME%IF`. A word that is no name of a host is an interface, perhaps of another host.
    fn read(text: &str) -> Result<Self, String> {
        let (host, zone) = text.split_once('%').map_or((text, None), |(host, zone)| (host, Some(zone)));
        let zone = zone.map(interface).transpose()?;
        if let Ok(address) = host.parse() {
            return Ok(Self { addresses: vec![address], interface: zone });
        }
        let is_own = zone.is_none() && std::path::Path::new("/sys/class/net").join(host).exists();
        let addresses: Vec<IpAddr> = match (is_own, (host, 0).to_socket_addrs()) {
            (false, Ok(found)) => found.map(|address| address.ip()).collect(),
            _ => Vec::new(),
        };
        match (addresses.is_empty(), zone) {
            (false, zone) => Ok(Self { addresses, interface: zone }),
            (true, None) => Ok(Self { addresses, interface: Some(interface(host)?) }),
            (true, Some(_)) => Err(format!("`{host}` is no address, and no address is known for it as a name")),
        }
    }

    /// Returns the address of that family, else any: the host that is to have it refuses the latter with the reason.
    fn address(&self, ip: IpVersion) -> Option<IpAddr> {
        let wanted = |address: &&IpAddr| address.is_ipv4() == (ip == IpVersion::V4);
        self.addresses.iter().find(wanted).or(self.addresses.first()).copied()
    }
}

/// The name of an interface, as the kernel allows them (dev_valid_name() in net/core/dev.c).
fn interface(text: &str) -> Result<String, String> {
    const MOST_BYTES: usize = 15;
    let plain = |c: char| c.is_ascii_graphic() && c != '/' && c != ':';
    if text.is_empty() || text.len() > MOST_BYTES || !text.chars().all(plain) {
        return Err(format!(
            "`{}` is no address, no name of a host, and no interface, as in 192.0.2.1, eth1 or 192.0.2.1%eth1",
            text.escape_debug()
        ));
    }
    Ok(text.to_owned())
}

/// The DSCP in a type of service, decimal or hexadecimal: its upper six bits (RFC 2474 section 3).
fn dscp_of_tos(text: &str) -> Result<u8, String> {
    let byte = match text.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16),
        None => text.parse(),
    };
    match byte {
        Ok(byte) if byte & 3 == 0 => Ok(byte >> 2),
        Ok(_) => Err("its lower two bits are those of ECN, which TCP sets: expected a multiple of 4".to_owned()),
        Err(_) => Err("expected a byte, as in 184 or 0xb8".to_owned()),
    }
}

impl Sockets {
    pub(crate) fn ip(&self) -> IpVersion {
        self.family.ip()
    }

    /// Binds the client to an interface, which a server's link-local address names, unless another is given.
    pub(crate) fn reach_by(&mut self, interface: Option<String>) {
        if self.bind_device.is_none() && self.bind.as_ref().is_none_or(|end| end.interface.is_none()) {
            self.bind_device = interface;
        }
    }

    pub(crate) fn options(&self) -> SocketOptions {
        SocketOptions {
            congestion: self.congestion.clone(),
            dscp: self.dscp.or(self.tos),
            send_buffer: self.send_buffer.or(self.window),
            receive_buffer: self.receive_buffer.or(self.window),
            mss: self.mss,
            bind_address: self.bind.as_ref().and_then(|end| end.address(self.ip())),
            bind_device: self.bind_device.clone().or_else(|| self.bind.as_ref()?.interface.clone()),
            sender_cpus: self.cpus_sender.clone(),
            receiver_cpus: self.cpus_receiver.clone(),
        }
    }
}
