//! Whether the kernel cuts and joins packets on an interface.

use crate::Error;
use crate::ethtool::Ethtool;

const ETHTOOL_SFEATURES: u32 = 0x3b;

/// An interface with one of these takes packets longer than a frame to send.
fn cuts(feature: &str) -> bool {
    feature.ends_with("-segmentation") || feature == "tx-gso-list"
}

/// Joins what was received, frame by frame, for the sake of the stack above.
const JOINS: &str = "rx-gro";

impl Ethtool {
    /// Makes an interface send frame by frame, and join on receipt. Features that a driver has fixed stay.
    ///
    /// Joining is what gives a veth interface a receive queue of its own. Without it each core has one for all, frames
    /// overtake each other whenever a core is late, and TCP takes that for loss.
    pub fn send_frame_by_frame(&self, interface: &str) -> Result<(), Error> {
        self.turn(interface, |name| match name {
            JOINS => Some(true),
            _ => cuts(name).then_some(false),
        })
    }

    /// Makes an interface send frames with their checksums in them. Those that are left to the receiving end are lost where
    /// an XDP program takes the frame on.
    pub fn send_whole_checksums(&self, interface: &str) -> Result<(), Error> {
        self.turn(interface, |name| name.starts_with("tx-checksum-").then_some(false))
    }

    /// Makes an interface neither take packets longer than a frame to send, nor join what it receives. Features that a driver
    /// has fixed stay.
    pub fn disable_offloads(&self, interface: &str) -> Result<(), Error> {
        let joins = |name: &str| name.starts_with(JOINS) || name == "rx-lro";
        self.turn(interface, |name| (cuts(name) || joins(name)).then_some(false))
    }

    /// Turns features on or off as `wanted` says by their names; where it says nothing, and where the driver has fixed them,
    /// they stay.
    fn turn(&self, interface: &str, wanted: impl Fn(&str) -> Option<bool>) -> Result<(), Error> {
        let names = self.feature_names(interface)?;
        let blocks = names.len().div_ceil(32);
        // struct ethtool_sfeatures: two words a block of 32 features, which are meant and what they are to be.
        let mut words = vec![0; 2 + 2 * blocks];
        words[..2].copy_from_slice(&[ETHTOOL_SFEATURES, blocks as u32]);
        for (bit, name) in names.iter().enumerate() {
            let Some(on) = wanted(name) else { continue };
            words[2 + 2 * (bit / 32)] |= 1 << (bit % 32);
            words[3 + 2 * (bit / 32)] |= u32::from(on) << (bit % 32);
        }
        // SAFETY: the kernel reads 8 bytes and as many blocks of 8 bytes as the request says, and writes no more.
        unsafe { self.ask("ETHTOOL_SFEATURES", interface, &mut words) }
    }
}
