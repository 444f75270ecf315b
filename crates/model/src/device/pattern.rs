//! Patterns in which streams connect the ports of a device test.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Pattern of the streams between the ports of a test (RFC 2889 sections 5.1 to 5.4).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PortPattern {
    /// The first port sends to the second, the third to the fourth, and so on.
    #[default]
    Pairs,
    /// Every port sends to every other port.
    FullMesh,
    /// The first port sends to every other port.
    OneToMany,
    /// Every other port sends to the first port.
    ManyToOne,
    /// Every port of the first half sends to every port of the second half.
    Unidirectional,
    /// As `FullMesh`, between two devices: the first half of the ports is at one, the second half at the other.
    Backbone,
}

/// Streams between ports, each as the indices of its sender and its receiver.
pub type PortPairs = Vec<(u16, u16)>;

impl PortPattern {
    /// Names of all patterns.
    pub const NAMES: [(&'static str, Self); 6] = [
        ("pairs", Self::Pairs),
        ("full-mesh", Self::FullMesh),
        ("one-to-many", Self::OneToMany),
        ("many-to-one", Self::ManyToOne),
        ("unidirectional", Self::Unidirectional),
        ("backbone", Self::Backbone),
    ];

    /// Returns the name of the pattern.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, pattern)| *pattern == self).map_or("", |(name, _)| name)
    }

    /// Returns whether the pattern takes an even number of ports.
    pub fn is_halved(self) -> bool {
        matches!(self, Self::Pairs | Self::Unidirectional | Self::Backbone)
    }

    /// Returns the streams between `ports` ports. The receivers of a sender are in the order in which it sends to them:
    /// senders begin with different receivers, so that no receiver is overloaded at any time (RFC 2889 section 5.1.3).
    /// `both` adds the opposite streams. `local` keeps the streams of a backbone that do not leave their device.
    pub fn streams(self, ports: u16, both: bool, local: bool) -> PortPairs {
        let mut streams = PortPairs::new();
        let half = ports / 2;
        match self {
            Self::Pairs => {
                for first in (0..ports.saturating_sub(1)).step_by(2) {
                    streams.push((first, first + 1));
                    if both {
                        streams.push((first + 1, first));
                    }
                }
                return streams;
            }
            Self::OneToMany => streams.extend((1..ports).map(|to| (0, to))),
            Self::ManyToOne => streams.extend((1..ports).map(|from| (from, 0))),
            Self::Unidirectional => {
                for from in 0..half {
                    streams.extend((0..half).map(|step| (from, half + (from + step) % half)));
                }
            }
            Self::FullMesh | Self::Backbone => {
                for from in 0..ports {
                    for step in 1..ports {
                        let to = (from + step) % ports;
                        let is_local = (from < half) == (to < half);
                        if self == Self::FullMesh || local || !is_local {
                            streams.push((from, to));
                        }
                    }
                }
                return streams;
            }
        }
        if both {
            let opposite: Vec<_> = streams.iter().map(|(from, to)| (*to, *from)).collect();
            streams.extend(opposite);
        }
        streams
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ports_are_one_stream_or_both() {
        assert_eq!(PortPattern::Pairs.streams(2, false, false), [(0, 1)]);
        assert_eq!(PortPattern::Pairs.streams(2, true, false), [(0, 1), (1, 0)]);
        assert_eq!(PortPattern::Pairs.streams(4, false, false), [(0, 1), (2, 3)]);
        assert_eq!(PortPattern::FullMesh.streams(2, false, false), [(0, 1), (1, 0)]);
    }

    #[test]
    fn receivers_follow_the_order_of_the_rfc() {
        assert_eq!(PortPattern::FullMesh.streams(3, false, false), [(0, 1), (0, 2), (1, 2), (1, 0), (2, 0), (2, 1)]);
        assert_eq!(PortPattern::Unidirectional.streams(4, false, false), [(0, 2), (0, 3), (1, 3), (1, 2)]);
        assert_eq!(PortPattern::OneToMany.streams(3, true, false), [(0, 1), (0, 2), (1, 0), (2, 0)]);
        assert_eq!(PortPattern::ManyToOne.streams(3, false, false), [(1, 0), (2, 0)]);
    }

    #[test]
    fn backbone_carries_local_streams_on_request_only() {
        let across = PortPattern::Backbone.streams(8, false, false);
        assert!(across.iter().all(|(from, to)| (*from < 4) != (*to < 4)));
        assert_eq!(across.len(), 32);
        assert_eq!(PortPattern::Backbone.streams(8, false, true), PortPattern::FullMesh.streams(8, false, false));
    }

    #[test]
    fn no_receiver_is_overloaded_in_a_turn() {
        for (pattern, ports) in [(PortPattern::FullMesh, 8), (PortPattern::Unidirectional, 8)] {
            let streams = pattern.streams(ports, false, false);
            let senders = streams.iter().map(|(from, _)| *from).collect::<std::collections::BTreeSet<_>>();
            let turns = streams.len() / senders.len();
            for turn in 0..turns {
                let mut receivers: Vec<u16> = streams.chunks(turns).map(|of_sender| of_sender[turn].1).collect();
                receivers.sort_unstable();
                receivers.dedup();
                assert_eq!(receivers.len(), senders.len(), "{pattern:?}, turn {turn}");
            }
        }
    }
}
