//! Turning segmentation offloads off.

use crate::Error;
use crate::ethtool::Ethtool;

const ETHTOOL_SFEATURES: u32 = 0x3b;

/// An interface with one of these takes or makes packets longer than a frame.
fn lengthens(feature: &str) -> bool {
    feature.ends_with("-segmentation")
        || ["tx-gso-list", "rx-gro", "rx-gro-list", "rx-gro-hw", "rx-lro"].contains(&feature)
}

impl Ethtool {
    /// Turns off what makes an interface take or make packets longer than a frame: segmentation on sending, joining on
    /// receipt. Features that a driver has fixed stay.
    pub fn turn_off_segmentation(&self, interface: &str) -> Result<(), Error> {
        let names = self.feature_names(interface)?;
        let blocks = names.len().div_ceil(32);
        // struct ethtool_sfeatures: two words a block of 32 features, which are meant and what they are to be (off).
        let mut words = vec![0; 2 + 2 * blocks];
        words[..2].copy_from_slice(&[ETHTOOL_SFEATURES, blocks as u32]);
        for bit in names.iter().enumerate().filter(|(_, name)| lengthens(name)).map(|(bit, _)| bit) {
            words[2 + 2 * (bit / 32)] |= 1 << (bit % 32);
        }
        // SAFETY: the kernel reads 8 bytes and as many blocks of 8 bytes as the request says, and writes no more.
        unsafe { self.ask("ETHTOOL_SFEATURES", interface, &mut words) }
    }
}
