//! The addresses that a path has learnt, as a switch does.

use std::collections::HashMap;

/// Addresses that are learnt; frames to others go to every port.
const MAXIMUM: usize = 65_536;

type Mac = [u8; 6];

/// Ports of the learnt addresses.
#[derive(Debug, Default)]
pub(super) struct Stations {
    port_of: HashMap<Mac, usize>,
    /// Last lookup: source, destination, port and result. Most frames are of one conversation.
    last: Option<(Mac, Mac, usize, Option<usize>)>,
}

impl Stations {
    /// Learns that `source` is at port `from`. Returns the port of `to`, or `None` if it is a group or unknown.
    pub(super) fn find(&mut self, source: Mac, to: Mac, from: usize) -> Option<usize> {
        if let Some((.., port)) = self.last.filter(|last| (last.0, last.1, last.2) == (source, to, from)) {
            return port;
        }
        if !is_group(source) && (self.port_of.len() < MAXIMUM || self.port_of.contains_key(&source)) {
            self.port_of.insert(source, from);
        }
        let port = self.port_of.get(&to).copied().filter(|_| !is_group(to));
        self.last = Some((source, to, from, port));
        port
    }
}

fn is_group(mac: Mac) -> bool {
    mac[0] & 1 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Mac = [2, 0, 0, 0, 0, 1];
    const B: Mac = [2, 0, 0, 0, 0, 2];
    const ALL: Mac = [0xff; 6];

    #[test]
    fn addresses_are_learnt_and_move() {
        let mut stations = Stations::default();
        assert_eq!(stations.find(A, B, 0), None);
        assert_eq!(stations.find(B, A, 1), Some(0));
        assert_eq!(stations.find(A, B, 0), Some(1));
        assert_eq!(stations.find(A, B, 0), Some(1));
        // A has moved.
        assert_eq!(stations.find(A, B, 2), Some(1));
        assert_eq!(stations.find(B, A, 1), Some(2));
    }

    #[test]
    fn groups_are_neither_learnt_nor_known() {
        let mut stations = Stations::default();
        assert_eq!(stations.find(ALL, A, 0), None);
        assert_eq!(stations.find(A, ALL, 1), None);
    }

    #[test]
    fn a_full_table_still_knows_who_moves() {
        let mut stations = Stations::default();
        let mac = |number: usize| [2, 1, (number >> 16) as u8, (number >> 8) as u8, number as u8, 0];
        for number in 0..=MAXIMUM {
            stations.find(mac(number), ALL, 0);
        }
        assert_eq!(stations.find(A, mac(MAXIMUM), 1), None);
        assert_eq!(stations.find(mac(5), mac(6), 1), Some(0));
        assert_eq!(stations.find(mac(6), mac(5), 0), Some(1));
    }
}
