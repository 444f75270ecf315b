//! What a device test is asked for, made of its options: ports, sizes, and the frames of each direction.

use super::layout::{Layout, check_addresses};
use super::ports::{FoundPort, Ports};
use super::{Common, PortOptions, UDP};
use crate::exit::Failure;
use crate::hosts::ReachedAgents;
use crate::output::say;
use linerate_control::Resolve;
use linerate_model::{DevicePlan, DeviceTest, FrameHeaders, FramePayload, Mac, PortInfo, PortPair};
use linerate_units::{BitRate, FrameRate, FrameSize, Ratio};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A tester limit is compared with, not reported: no search for it gets narrower.
const TESTER_LIMIT_RESOLUTION: Ratio = Ratio::new(1, 100);
/// The sizes of RFC 2544 section 9.1 for Ethernet.
const SIZES: [u32; 7] = [64, 128, 256, 512, 1024, 1280, 1518];

/// How frames get from one port to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Way {
    /// Straight: there is no router, or the frames have addresses of their own.
    Straight,
    /// By a router, if there is one.
    Any,
    /// By a router, which must be there.
    Routed,
}

impl Way {
    fn of(test: &DeviceTest) -> Self {
        match test {
            DeviceTest::Calibrate => Self::Straight,
            DeviceTest::Hosts { .. } => Self::Routed,
            _ => Self::Any,
        }
    }
}

impl Common {
    fn sizes(&self, smallest: FrameSize, mtu: u32) -> Result<Vec<FrameSize>, Failure> {
        let default: Vec<u32> = SIZES.into_iter().filter(|size| *size >= smallest.get()).collect();
        self.sizes_or(&default, smallest, mtu)
    }

    pub(super) fn sizes_or(&self, default: &[u32], smallest: FrameSize, mtu: u32) -> Result<Vec<FrameSize>, Failure> {
        let asked = if self.sizes.is_empty() { default } else { &self.sizes };
        let with_fcs =
            |size: &u32| FrameSize::with_fcs(*size).map_err(|error| Failure::usage(format!("--sizes: {error}")));
        asked.iter().map(|size| self.between.fitting(with_fcs(size)?, smallest, mtu)).collect()
    }

    pub(super) async fn plan(
        &self,
        mut test: DeviceTest,
        layout: Layout,
        ports: &Ports,
        agents: &ReachedAgents,
    ) -> Result<DevicePlan, Failure> {
        let found = ports.find(agents, self.between.force).await?;
        check_addresses(&found)?;
        self.between.check_priority()?;
        let mut directions = Vec::new();
        for (from, to) in layout.streams(found.len() as u16, &test) {
            let (from, to) = (&found[usize::from(from)], &found[usize::from(to)]);
            directions.push(self.between.direction(from, to, UDP, Way::of(&test)).await?);
        }
        if test == DeviceTest::Broadcast {
            directions[0].copies_to = (2..found.len() as u16).collect();
            directions[0].headers.destination_mac = Mac([0xff; 6]);
        }
        let line = self.line.or_else(|| line_of(&found));
        let smallest = directions[0].headers.smallest_frame();
        let mtu = found.iter().map(|port| port.info.mtu).min().unwrap_or_default();
        let mut sizes = self.sizes(smallest, mtu)?;
        match &mut test {
            DeviceTest::Addresses { .. } if self.sizes.len() > 1 => {
                return Err(Failure::usage("--sizes: an address table is tested with frames of one size"));
            }
            DeviceTest::Addresses { learn_rate, .. } if learn_rate.get() == 0 => {
                return Err(Failure::usage("--learn-rate 0 never shows the device an address; leave it out for 10k"));
            }
            DeviceTest::Addresses { .. } => sizes.truncate(1),
            DeviceTest::Hosts { .. } if self.between.both || self.sizes.len() > 1 => {
                return Err(Failure::usage("--both, --sizes: neighbours are counted one way, with frames of one size"));
            }
            DeviceTest::Hosts { learn_rate, rate, .. } if learn_rate.get().min(rate.get()) == 0 => {
                return Err(Failure::usage(
                    "--learn-rate and --rate must be above 0: no host is reached without a frame",
                ));
            }
            DeviceTest::Congestion | DeviceTest::ForwardPressure if line.is_none() => {
                return Err(Failure::usage(
                    "--line: no port reports the rate of its line, by which this test overloads the device; give it, as in \
                     --line 1Gbit/s",
                ));
            }
            DeviceTest::Errors { .. } if !self.sizes.is_empty() => {
                return Err(Failure::usage("--sizes: errored frames have sizes of their own"));
            }
            DeviceTest::Errors { .. } => sizes.truncate(1),
            DeviceTest::Hosts { most, .. } => {
                let infos: Vec<PortInfo> = found.iter().map(|port| port.info.clone()).collect();
                *most = self.hosts_in_room(&infos, *most)?;
                sizes.truncate(1);
            }
            _ => {}
        }
        if let DeviceTest::Latency { rate: Some(rate) } | DeviceTest::Hosts { rate, .. } = &test {
            sizes.iter().try_for_each(|size| fits_line(*rate, *size, line))?;
        }
        self.plan_of(test, layout, (ports, line), directions, sizes)
    }

    /// The plan with what all tests are told.
    pub(super) fn plan_of(
        &self,
        test: DeviceTest,
        layout: Layout,
        (ports, line): (&Ports, Option<BitRate>),
        directions: Vec<PortPair>,
        sizes: Vec<FrameSize>,
    ) -> Result<DevicePlan, Failure> {
        if self.time.get() == 0 || self.search_time.get() == 0 {
            return Err(Failure::usage("--time and --search-time must be longer than 0"));
        }
        if self.resolution.part * 2 > self.resolution.of {
            return Err(Failure::usage("--resolution is at most 50%: a search that ends at once finds nothing"));
        }
        let calibrates = test == DeviceTest::Calibrate;
        Ok(DevicePlan {
            test,
            host: ports.home().clone(),
            ports: ports.names.clone(),
            pattern: layout.pattern,
            directions,
            sizes,
            line,
            search_time: self.search_time.min(self.time),
            final_time: self.time,
            settle: self.settle,
            loss: self.loss,
            width: if calibrates && self.resolution < TESTER_LIMIT_RESOLUTION {
                TESTER_LIMIT_RESOLUTION
            } else {
                self.resolution
            },
            engine: self.between.engine,
        })
    }
}

impl PortOptions {
    /// The ports, as many as the test takes.
    pub(super) fn ports(&self, test: &DeviceTest, layout: Layout) -> Result<Ports, Failure> {
        Ports::read(&self.ports, test, layout)
    }

    /// Returns the streams of a command that takes any pattern.
    pub(in crate::commands) fn layout(&self) -> Layout {
        Layout { pattern: self.pattern.unwrap_or_default(), both: self.both, local: false }
    }

    /// `size`, if these frames can be so short and the ports can carry them.
    pub(in crate::commands) fn fitting(
        &self,
        size: FrameSize,
        smallest: FrameSize,
        mtu: u32,
    ) -> Result<FrameSize, Failure> {
        let largest = mtu + 18 + 4 * self.vlan.len() as u32;
        if size < smallest {
            return Err(Failure::usage(format!(
                "--sizes {}: these frames carry headers and a signature and need {} bytes at least",
                size.get(),
                smallest.get()
            )));
        }
        if size.get() > largest {
            return Err(Failure::usage(format!(
                "--sizes {}: the ports' MTU of {mtu} allows frames of {largest} bytes; raise it (ip link set PORT mtu 9000) or \
                 ask for less",
                size.get()
            )));
        }
        Ok(size)
    }

    /// Returns the streams between the ports.
    pub(in crate::commands) async fn directions(
        &self,
        ports: &[FoundPort<'_>],
        payload: FramePayload,
        way: Way,
    ) -> Result<Vec<PortPair>, Failure> {
        check_addresses(ports)?;
        self.check_priority()?;
        let mut directions = Vec::new();
        for (from, to) in self.layout().streams(ports.len() as u16, &DeviceTest::Throughput) {
            directions.push(self.direction(&ports[usize::from(from)], &ports[usize::from(to)], payload, way).await?);
        }
        Ok(directions)
    }

    /// The frames of one direction: straight to the other port, or by a router.
    async fn direction(
        &self,
        from: &FoundPort<'_>,
        to: &FoundPort<'_>,
        payload: FramePayload,
        way: Way,
    ) -> Result<PortPair, Failure> {
        let (source, destination) = (&from.info, &to.info);
        let (client, from, to) = (&from.agent.client, from.number, to.number);
        let ipv6 = self.family.is_v6();
        let own = address(from, source, ipv6);
        let gateway = match self.gateway.get(usize::from(from)).or(self.gateway.first()) {
            _ if way == Way::Straight => None,
            Some(gateway) => Some(*gateway),
            None => self.router_between(source, destination),
        };
        let destination_mac: Mac = match gateway {
            None if way == Way::Routed => return Err(no_router_between(source, destination)),
            None => destination.mac,
            Some(target) => {
                self.check_untagged()?;
                let ask = Resolve { interface: source.interface.clone(), mac: source.mac, own, target };
                say(&format!("linerate: {} sends through the router {target}", source.interface));
                client.resolve(&ask).await.map_err(Failure::measure)?
            }
        };
        let headers = FrameHeaders {
            source_mac: source.mac,
            destination_mac,
            vlans: self.vlan.clone(),
            priority: self.priority,
            dscp: self.dscp,
            source: own,
            destination: address(to, destination, ipv6),
            payload,
        };
        Ok(PortPair { from, to, copies_to: Vec::new(), headers })
    }

    /// Refuses a priority of frames without a tag that has it.
    fn check_priority(&self) -> Result<(), Failure> {
        if self.priority == 0 || !self.vlan.is_empty() {
            return Ok(());
        }
        Err(Failure::usage("--priority is in the VLAN tag: give --vlan too"))
    }

    /// Refuses tags where a neighbour is asked for its address: the question has none, so nobody in the VLAN would hear it.
    pub(super) fn check_untagged(&self) -> Result<(), Failure> {
        if self.vlan.is_empty() {
            return Ok(());
        }
        Err(Failure::usage(
            "--vlan: a router or a target is asked for its Ethernet address outside of the VLAN; make the ports members of it",
        ))
    }

    /// The first address of the sending port's network, if the receiving port is in another one.
    fn router_between(&self, source: &PortInfo, destination: &PortInfo) -> Option<IpAddr> {
        if self.family.is_v6() {
            let ((own, prefix), (other, _)) = (source.ipv6?, destination.ipv6?);
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            let network = u128::from(own) & mask;
            return (network != u128::from(other) & mask).then(|| Ipv6Addr::from(network + 1).into());
        }
        let ((own, prefix), (other, _)) = (source.ipv4?, destination.ipv4?);
        let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
        let network = u32::from(own) & mask;
        (network != u32::from(other) & mask).then(|| Ipv4Addr::from(network + 1).into())
    }
}

/// The port's own address, or one of those set aside for benchmarks (RFC 2544 appendix C.2.2, RFC 5180 section 8).
pub(super) fn address(index: u16, port: &PortInfo, ipv6: bool) -> IpAddr {
    let host = index + 1;
    if ipv6 {
        let benchmark = Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, host);
        return port.ipv6.map_or(benchmark, |(address, _)| address).into();
    }
    let benchmark = Ipv4Addr::new(198, 18, 0, host as u8);
    port.ipv4.map_or(benchmark, |(address, _)| address).into()
}

/// Returns the rate of the slowest line. Returns `None` if no port reports one.
pub(in crate::commands) fn line_of(ports: &[FoundPort<'_>]) -> Option<BitRate> {
    ports.iter().filter_map(FoundPort::speed).min()
}

/// Refuses a rate that a line does not carry.
pub(in crate::commands) fn fits_line(rate: FrameRate, size: FrameSize, line: Option<BitRate>) -> Result<(), Failure> {
    match line {
        Some(line) if size.line_rate(line) < rate => Err(Failure::usage(format!(
            "--rate {rate}: a line of {line} carries {} frames of {} bytes",
            size.line_rate(line),
            size.get()
        ))),
        _ => Ok(()),
    }
}

fn no_router_between(source: &PortInfo, destination: &PortInfo) -> Failure {
    Failure::usage(format!(
        "no router is between {} and {}, which are in one network, or have no address: give them addresses of two networks that \
         the router joins, or name it (--gateway)",
        source.interface, destination.interface
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(address: [u8; 4], prefix: u8) -> PortInfo {
        let ipv4 = Some((Ipv4Addr::from(address), prefix));
        PortInfo {
            interface: "p0".to_owned(),
            mac: Mac([2, 0, 0, 0, 0, 1]),
            ipv4,
            ipv6: None,
            mtu: 1500,
            meets: vec!["p0".to_owned()],
        }
    }

    fn common(arguments: &[&str]) -> Common {
        #[derive(clap::Parser)]
        struct Only {
            #[command(flatten)]
            common: Common,
        }
        let words = ["x"].iter().chain(arguments);
        <Only as clap::Parser>::try_parse_from(words).expect("good arguments").common
    }

    #[test]
    fn a_router_is_between_ports_of_different_networks() {
        let common = common(&["--ports", "a,b"]);
        let (here, there) = (port([198, 18, 1, 2], 24), port([198, 18, 2, 2], 24));
        let common = common.between;
        assert_eq!(common.router_between(&here, &there), Some(IpAddr::from([198, 18, 1, 1])));
        assert_eq!(common.router_between(&here, &port([198, 18, 1, 3], 24)), None);
    }

    #[test]
    fn a_router_that_is_missing_is_said_in_one_line() {
        let said = no_router_between(&port([198, 18, 1, 2], 24), &port([198, 18, 1, 3], 24)).to_string();
        assert!(said.contains("p0") && !said.contains("  ") && !said.contains('\n'), "{said}");
    }

    #[test]
    fn sizes_must_hold_the_headers_and_pass_the_mtu() {
        let smallest = FrameSize::with_fcs(84).expect("a size");
        let sizes = |arguments: &[&str]| {
            let all = [&["--ports", "a,b"], arguments].concat();
            common(&all).sizes(smallest, 1500).ok().map(|sizes| sizes.len())
        };
        assert_eq!(sizes(&[]), Some(6));
        assert_eq!(sizes(&["--sizes", "84,1518"]), Some(2));
        assert_eq!(sizes(&["--sizes", "64"]), None);
        assert_eq!(sizes(&["--sizes", "1522"]), None);
        assert_eq!(sizes(&["--sizes", "1522", "--vlan", "7"]), Some(1));
    }
}
