//! Streams of a test: its pattern, and what the test makes of it.

use super::ports::FoundPort;
use crate::exit::Failure;
use linerate_model::{DeviceTest, Mac, PortPairs, PortPattern};

/// Streams that a command asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::commands) struct Layout {
    pub(in crate::commands) pattern: PortPattern,
    /// Opposite streams, too.
    pub(in crate::commands) both: bool,
    /// Streams of a backbone that do not leave their device, too.
    pub(super) local: bool,
}

impl Layout {
    /// Checks the number of ports of a test.
    ///
    /// # Errors
    /// The test or the pattern takes another number of ports.
    pub(super) fn check(self, ports: usize, test: &DeviceTest) -> Result<(), Failure> {
        let (is_fit, example) = match test {
            DeviceTest::Addresses { .. } => {
                (ports == 3, "three ports (test, learning, monitoring), as in eth1,eth2,eth3")
            }
            DeviceTest::Hosts { .. } => {
                ((2..=3).contains(&ports), "two ports, or three to listen for what floods, as in eth1,eth2")
            }
            DeviceTest::Echo { .. } => (ports == 1, "one port, as in eth1"),
            DeviceTest::Congestion => (
                ports > 0 && ports.is_multiple_of(4),
                "groups of four ports (two senders, uncongested, congested), as in eth1,eth2,eth3,eth4",
            ),
            DeviceTest::ForwardPressure => {
                ((2..=3).contains(&ports), "one or two sending ports and the receiving one, as in eth1,eth2,eth3")
            }
            DeviceTest::Errors { .. } => (ports == 2, "two ports, as in eth1,eth2"),
            DeviceTest::Broadcast => (ports >= 2, "the sending port and the receiving ones, as in eth1,eth2,eth3"),
            _ if self.pattern.is_halved() => {
                (ports >= 2 && ports.is_multiple_of(2), "two ports, as in eth1,eth2, or another even number")
            }
            _ => (ports >= 2, "two or more ports for this pattern, as in eth1,eth2,eth3"),
        };
        if is_fit {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "--ports takes {example}; {ports} were given{}",
            if matches!(test, DeviceTest::Throughput) && self.pattern == PortPattern::Pairs {
                " (--pattern full-mesh takes any number of ports)"
            } else {
                ""
            }
        )))
    }

    /// Returns the streams of a test.
    pub(super) fn streams(self, ports: u16, test: &DeviceTest) -> PortPairs {
        match test {
            DeviceTest::Congestion => (0..ports)
                .step_by(4)
                .flat_map(|first| [(first, first + 2), (first, first + 3), (first + 1, first + 3)])
                .collect(),
            DeviceTest::ForwardPressure => (0..ports - 1).map(|from| (from, ports - 1)).collect(),
            DeviceTest::Broadcast | DeviceTest::Errors { .. } => vec![(0, 1)],
            _ => self.pattern.streams(ports, self.both, self.local),
        }
    }
}

/// Checks that all ports have addresses of their own.
///
/// # Errors
/// Two ports have the same Ethernet address.
pub(super) fn check_addresses(ports: &[FoundPort<'_>]) -> Result<(), Failure> {
    let mut addresses: Vec<(Mac, &str)> = Vec::with_capacity(ports.len());
    for port in ports {
        if let Some((_, other)) = addresses.iter().find(|(mac, _)| *mac == port.info.mac) {
            return Err(Failure::usage(format!(
                "--ports: {other} and {} have the same Ethernet address {}: a switch cannot tell them apart; change one \
                 (ip link set PORT address 02:...)",
                port.info.interface, port.info.mac
            )));
        }
        addresses.push((port.info.mac, &port.info.interface));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn congestion_takes_groups_of_four() {
        let layout = Layout::default();
        let is_fit = |ports, test: &DeviceTest| layout.check(ports, test).is_ok();
        assert!(is_fit(4, &DeviceTest::Congestion) && is_fit(8, &DeviceTest::Congestion));
        assert!(!is_fit(6, &DeviceTest::Congestion) && !is_fit(0, &DeviceTest::Congestion));
        assert_eq!(layout.streams(4, &DeviceTest::Congestion), [(0, 2), (0, 3), (1, 3)]);
        assert_eq!(layout.streams(3, &DeviceTest::ForwardPressure), [(0, 2), (1, 2)]);
    }

    #[test]
    fn pattern_decides_the_number_of_ports() {
        let layout = |pattern| Layout { pattern, ..Layout::default() };
        let throughput = DeviceTest::Throughput;
        assert!(layout(PortPattern::Pairs).check(4, &throughput).is_ok());
        assert!(layout(PortPattern::Pairs).check(3, &throughput).is_err());
        assert!(layout(PortPattern::FullMesh).check(3, &throughput).is_ok());
        assert!(layout(PortPattern::FullMesh).check(1, &throughput).is_err());
        assert!(layout(PortPattern::Backbone).check(5, &throughput).is_err());
    }
}
