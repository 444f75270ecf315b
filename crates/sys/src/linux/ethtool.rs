//! What a driver says of its interface, by the ethtool ioctl of linux/ethtool.h: it works on every kernel, and without
//! privilege.

use crate::Error;
use socket2::{Domain, Socket, Type};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsRawFd as _;

/// A way to ask drivers about the interfaces of one network namespace.
pub struct Ethtool {
    socket: Socket,
}

/// What a driver says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Driver {
    /// Its name.
    pub name: String,
    /// Its version; empty if it says none.
    pub version: String,
    /// Version of the card's firmware; empty if it says none.
    pub firmware: String,
    /// Where the card is, as in `0000:03:00.0` on PCI; empty if it says nothing.
    pub bus: String,
}

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_GET_TS_INFO: u32 = 0x41;
const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;
/// The set of the names of statistics.
const ETH_SS_STATS: u32 = 1;
/// Room for statistics of one interface. The kernel writes as many as the driver has at the moment, which may be more than it said
/// before if queues were added: this is more than any driver has. What is not written costs no memory.
const STATISTICS_ROOM: usize = 1 << 15;
/// The set of feature names.
const ETH_SS_FEATURES: u32 = 4;
/// Bytes of one name in a set.
const ETH_GSTRING_LEN: usize = 32;
/// SPEED_UNKNOWN.
const SPEED_UNKNOWN: u32 = u32::MAX;
/// Values of the duplex; any other is DUPLEX_UNKNOWN.
const DUPLEX_HALF: u8 = 0;
const DUPLEX_FULL: u8 = 1;

impl Ethtool {
    /// Opens a socket in the calling thread's network namespace.
    pub fn open() -> Result<Self, Error> {
        Socket::new(Domain::IPV4, Type::DGRAM, None)
            .map(|socket| Self { socket })
            .map_err(|error| Error::new("socket", "AF_INET, SOCK_DGRAM", error))
    }

    /// The driver, and the firmware that it found.
    pub fn driver(&self, interface: &str) -> Result<Driver, Error> {
        // struct ethtool_drvinfo is 196 bytes: behind the command 32 each of the driver's name, its version, the firmware's, and where the card is.
        let mut words = [0; 49];
        words[0] = ETHTOOL_GDRVINFO;
        // SAFETY: the kernel writes at most one struct ethtool_drvinfo, which is what `words` holds.
        unsafe { self.ask("ETHTOOL_GDRVINFO", interface, &mut words)? };
        let bytes = bytes(&words);
        Ok(Driver {
            name: text(&bytes[4..36]),
            version: text(&bytes[36..68]),
            firmware: text(&bytes[68..100]),
            bus: text(&bytes[100..132]),
        })
    }

    /// The speed the driver says the link has, Mbit/s; none if it does not know one.
    pub fn speed_mbps(&self, interface: &str) -> Result<Option<u32>, Error> {
        Ok(Some(self.link_settings(interface)?[1]).filter(|speed| *speed != 0 && *speed != SPEED_UNKNOWN))
    }

    /// Returns whether the driver reports full duplex, or `None` if it does not know.
    pub fn full_duplex(&self, interface: &str) -> Result<Option<bool>, Error> {
        // The byte after command and speed.
        Ok(match self.link_settings(interface)?[2].to_ne_bytes()[0] {
            DUPLEX_HALF => Some(false),
            DUPLEX_FULL => Some(true),
            _ => None,
        })
    }

    /// Returns struct ethtool_link_settings with its masks, in words.
    fn link_settings(&self, interface: &str) -> Result<Vec<u32>, Error> {
        // Asked with no room for link modes, the kernel answers with how many words each of its three masks has, negated.
        let mut words = [0; 12];
        words[0] = ETHTOOL_GLINKSETTINGS;
        // SAFETY: with link_mode_masks_nwords 0 the kernel writes struct ethtool_link_settings alone: 48 bytes.
        unsafe { self.ask("ETHTOOL_GLINKSETTINGS", interface, &mut words)? };
        let masks = i8::from_ne_bytes([words[3].to_ne_bytes()[3]]).unsigned_abs();

        let mut words = vec![0; 12 + 3 * usize::from(masks)];
        words[0] = ETHTOOL_GLINKSETTINGS;
        words[3] = u32::from_ne_bytes([0, 0, 0, masks]);
        // SAFETY: with the kernel's own link_mode_masks_nwords it writes the struct and three masks of so many words each.
        unsafe { self.ask("ETHTOOL_GLINKSETTINGS", interface, &mut words)? };
        Ok(words)
    }

    /// Offloads and other features by the kernel's names, on or off.
    pub fn features(&self, interface: &str) -> Result<BTreeMap<String, bool>, Error> {
        let names = self.feature_names(interface)?;

        // Each block of 32 features has four words: available, requested, active, never changed.
        let blocks = names.len().div_ceil(32);
        let mut states = vec![0; 2 + 4 * blocks];
        states[..2].copy_from_slice(&[ETHTOOL_GFEATURES, blocks as u32]);
        // SAFETY: the kernel writes 8 bytes and no more blocks of 16 bytes than the request has room for by its own word.
        unsafe { self.ask("ETHTOOL_GFEATURES", interface, &mut states)? };

        let named = names.into_iter().enumerate().map(|(bit, name)| {
            let active = states[2 + 4 * (bit / 32) + 2];
            (name, active & (1 << (bit % 32)) != 0)
        });
        Ok(named.filter(|(name, _)| !name.is_empty()).collect())
    }

    /// The names of the driver's statistics (`ethtool -S`), in their order; none if it has none.
    pub fn statistic_names(&self, interface: &str) -> Result<Vec<String>, Error> {
        let count = self.set_length(interface, ETH_SS_STATS)?;
        if count == 0 || count > STATISTICS_ROOM {
            return Ok(Vec::new());
        }
        let mut names = vec![0; 3 + STATISTICS_ROOM * ETH_GSTRING_LEN / 4];
        names[..3].copy_from_slice(&[ETHTOOL_GSTRINGS, ETH_SS_STATS, count as u32]);
        // SAFETY: the kernel writes 12 bytes and the driver's names of 32 bytes, of which there is room for `STATISTICS_ROOM`.
        unsafe { self.ask("ETHTOOL_GSTRINGS", interface, &mut names)? };
        let count = (names[2] as usize).min(STATISTICS_ROOM);
        let all = names[3..].chunks_exact(ETH_GSTRING_LEN / 4).take(count);
        Ok(all.map(|name| text(&bytes(name))).collect())
    }

    /// The values of the driver's statistics, in the order of their names. Fewer or more than the names if queues came or went.
    pub fn statistics(&self, interface: &str) -> Result<Vec<u64>, Error> {
        let count = self.set_length(interface, ETH_SS_STATS)?;
        if count == 0 || count > STATISTICS_ROOM {
            return Ok(Vec::new());
        }
        let mut values = vec![0; 2 + 2 * STATISTICS_ROOM];
        values[..2].copy_from_slice(&[ETHTOOL_GSTATS, count as u32]);
        // SAFETY: the kernel writes 8 bytes and the driver's values of 8 bytes, of which there is room for `STATISTICS_ROOM`.
        unsafe { self.ask("ETHTOOL_GSTATS", interface, &mut values)? };
        let count = (values[1] as usize).min(STATISTICS_ROOM);
        let value = |pair: &[u32]| {
            let ([a, b, c, d], [e, f, g, h]) = (pair[0].to_ne_bytes(), pair[1].to_ne_bytes());
            u64::from_ne_bytes([a, b, c, d, e, f, g, h])
        };
        Ok(values[2..2 + 2 * count].chunks_exact(2).map(value).collect())
    }

    /// How many entries a set has.
    fn set_length(&self, interface: &str, set: u32) -> Result<usize, Error> {
        let mut words = [0; 5];
        words[0] = ETHTOOL_GSSET_INFO;
        let mask = (1u64 << set).to_ne_bytes();
        words[2] = u32::from_ne_bytes([mask[0], mask[1], mask[2], mask[3]]);
        words[3] = u32::from_ne_bytes([mask[4], mask[5], mask[6], mask[7]]);
        // SAFETY: struct ethtool_sset_info is 16 bytes and one count follows, since one set was asked for: 20 bytes.
        unsafe { self.ask("ETHTOOL_GSSET_INFO", interface, &mut words)? };
        Ok(words[4] as usize)
    }

    /// The kernel's names of the features, in the order of their bits.
    pub(crate) fn feature_names(&self, interface: &str) -> Result<Vec<String>, Error> {
        let count = self.set_length(interface, ETH_SS_FEATURES)?;
        let mut names = vec![0; 3 + count * ETH_GSTRING_LEN / 4];
        names[..3].copy_from_slice(&[ETHTOOL_GSTRINGS, ETH_SS_FEATURES, count as u32]);
        // SAFETY: the kernel writes 12 bytes and its feature names of 32 bytes; their count is a constant of the kernel,
        // just asked for.
        unsafe { self.ask("ETHTOOL_GSTRINGS", interface, &mut names)? };
        Ok(bytes(&names[3..]).chunks_exact(ETH_GSTRING_LEN).map(text).collect())
    }

    /// The NIC stamps packets with its own clock on sending and on receipt.
    pub fn stamps_in_hardware(&self, interface: &str) -> Result<bool, Error> {
        // struct ethtool_ts_info: command, capabilities, clock index, transmit types, 3 reserved, receive filters, 3 reserved.
        let mut words = [0; 11];
        words[0] = ETHTOOL_GET_TS_INFO;
        // SAFETY: the kernel writes at most one struct ethtool_ts_info: 44 bytes.
        unsafe { self.ask("ETHTOOL_GET_TS_INFO", interface, &mut words)? };
        let both = libc::SOF_TIMESTAMPING_TX_HARDWARE | libc::SOF_TIMESTAMPING_RX_HARDWARE;
        Ok(words[1] & both == both)
    }

    /// Asks the driver; the request and its answer share `words`.
    ///
    /// # Safety
    /// `words` holds a whole request of linux/ethtool.h, with room for all that the kernel answers to it.
    pub(crate) unsafe fn ask(&self, call: &'static str, interface: &str, words: &mut [u32]) -> Result<(), Error> {
        let object = || format!("interface {interface}");
        if interface.len() >= libc::IFNAMSIZ || interface.contains('\0') {
            return Err(Error::new(call, object(), io::Error::from_raw_os_error(libc::ENODEV)));
        }
        let mut name = [0; libc::IFNAMSIZ];
        for (to, from) in name.iter_mut().zip(interface.bytes()) {
            *to = from as libc::c_char;
        }
        let mut request = libc::ifreq {
            ifr_name: name,
            ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_data: words.as_mut_ptr().cast() },
        };
        // SAFETY: `request` is a valid ifreq that outlives the call; its data are `words`, large enough as the caller
        // promises.
        let answer = unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
        if answer < 0 { Err(Error::last(call, object())) } else { Ok(()) }
    }
}

fn bytes(words: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(4 * words.len());
    words.iter().for_each(|word| bytes.extend_from_slice(&word.to_ne_bytes()));
    bytes
}

fn text(zero_ended: &[u8]) -> String {
    String::from_utf8_lossy(zero_ended.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_known_by_its_features() {
        let features = Ethtool::open().expect("a socket").features("lo").expect("lo has features");
        // Both are fixed for loopback on every kernel (drivers/net/loopback.c).
        assert_eq!(features.get("loopback"), Some(&true), "{features:?}");
        assert_eq!(features.get("rx-checksum"), Some(&true), "{features:?}");
        assert!(features.len() > 40, "{features:?}");
    }

    #[test]
    fn a_missing_interface_is_named() {
        let ethtool = Ethtool::open().expect("a socket");
        for interface in ["nonesuch0", "a name longer than any", "nul\0inside"] {
            let error = ethtool.driver(interface).expect_err(interface);
            assert!(error.to_string().starts_with("ETHTOOL_GDRVINFO on interface "), "{error}");
            assert_eq!(error.source.raw_os_error(), Some(libc::ENODEV));
        }
    }
}
