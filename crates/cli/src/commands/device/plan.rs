//! What a device test is asked for, made of its options: ports, sizes, and the frames of each direction.

use super::ports::{FoundPort, Ports};
use super::{Common, Engine};
use crate::exit::Failure;
use crate::hosts::Company;
use crate::output::say;
use linerate_agent::Resolve;
use linerate_model::{DevicePlan, DeviceTest, FrameEngine, FrameForm, FrameHeaders, Mac, PortInfo, PortPair};
use linerate_units::{BitRate, FrameSize, Ratio};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A tester's own ceiling is compared with, not reported: no search for it gets narrower.
const CEILING_RESOLUTION: Ratio = Ratio::new(1, 100);
/// The sizes of RFC 2544 section 9.1 for Ethernet.
const SIZES: [u32; 7] = [64, 128, 256, 512, 1024, 1280, 1518];

impl Common {
    /// The ports, as many as the test takes.
    pub(super) fn ports(&self, test: &DeviceTest) -> Result<Ports, Failure> {
        Ports::read(&self.ports, test)
    }

    fn sizes(&self, smallest: FrameSize, mtu: u32) -> Result<Vec<FrameSize>, Failure> {
        let default: Vec<u32> = SIZES.into_iter().filter(|size| *size >= smallest.get()).collect();
        self.sizes_or(&default, smallest, mtu)
    }

    pub(super) fn sizes_or(&self, default: &[u32], smallest: FrameSize, mtu: u32) -> Result<Vec<FrameSize>, Failure> {
        let asked = if self.sizes.is_empty() { default } else { &self.sizes };
        let largest = mtu + 18 + 4 * self.vlan.len() as u32;
        asked
            .iter()
            .map(|size| match FrameSize::with_fcs(*size) {
                Ok(size) if size < smallest => Err(Failure::usage(format!(
                    "--sizes {size}: these frames carry headers and a signature and need {smallest} bytes at least",
                    size = size.get(),
                    smallest = smallest.get()
                ))),
                Ok(size) if size.get() > largest => Err(Failure::usage(format!(
                    "--sizes {}: the ports' MTU of {mtu} allows frames of {largest} bytes; raise it (ip link set PORT mtu \
                     9000) or ask for less",
                    size.get()
                ))),
                Ok(size) => Ok(size),
                Err(error) => Err(Failure::usage(format!("--sizes: {error}"))),
            })
            .collect()
    }

    pub(super) async fn plan(
        &self,
        mut test: DeviceTest,
        ports: &Ports,
        company: &Company,
    ) -> Result<DevicePlan, Failure> {
        let found = ports.find(company, self.force).await?;
        let [first, second, ..] = &found[..] else {
            return Err(Failure::usage("--ports: this test takes two ports"));
        };
        let mut directions = vec![self.direction(first, second, &test).await?];
        if self.both {
            directions.push(self.direction(second, first, &test).await?);
        }
        let line = self.line.or_else(|| first.speed().into_iter().chain(second.speed()).min());
        let smallest = directions[0].headers.smallest_frame();
        let mut sizes = self.sizes(smallest, first.info.mtu.min(second.info.mtu))?;
        match &mut test {
            DeviceTest::Addresses { .. } if self.sizes.len() > 1 => {
                return Err(Failure::usage("--sizes: an address table is tested with frames of one size"));
            }
            DeviceTest::Addresses { learn_rate, .. } if learn_rate.get() == 0 => {
                return Err(Failure::usage("--learn-rate 0 never shows the device an address; leave it out for 10k"));
            }
            DeviceTest::Addresses { .. } => sizes.truncate(1),
            DeviceTest::Hosts { .. } if self.both || self.sizes.len() > 1 => {
                return Err(Failure::usage("--both, --sizes: neighbours are counted one way, with frames of one size"));
            }
            DeviceTest::Hosts { learn_rate, rate, .. } if learn_rate.get().min(rate.get()) == 0 => {
                return Err(Failure::usage(
                    "--learn-rate and --rate must be above 0: no host is reached without a frame",
                ));
            }
            DeviceTest::Hosts { most, .. } => {
                let infos: Vec<PortInfo> = found.iter().map(|port| port.info.clone()).collect();
                *most = self.hosts_in_room(&infos, *most)?;
                sizes.truncate(1);
            }
            DeviceTest::Frames { form, .. } => {
                let parts = form.mix.iter().flat_map(|mix| mix.parts());
                if let Some(part) = parts.into_iter().find(|part| part.size < smallest) {
                    return Err(Failure::usage(format!(
                        "--sizes: these frames carry headers and a signature and need {} bytes at least, not {}",
                        smallest.get(),
                        part.size.get()
                    )));
                }
                if let Some(raw) = &form.raw {
                    // Switches are to learn the address that the frame comes from.
                    directions[0].headers.source_mac = raw.source_mac();
                }
            }
            _ => {}
        }
        if let DeviceTest::Latency { rate: Some(rate) }
        | DeviceTest::Hosts { rate, .. }
        | DeviceTest::Frames { rate: Some(rate), form: FrameForm { mix: None, .. }, .. } = &test
            && let Some(line) = line
            && let Some(size) = sizes.iter().find(|size| size.line_rate(line) < *rate)
        {
            return Err(Failure::usage(format!(
                "--rate {rate}: a line of {line} carries {} frames of {} bytes",
                size.line_rate(line),
                size.get()
            )));
        }
        self.plan_of(test, (ports, line), directions, sizes)
    }

    /// The plan with what all tests are told.
    pub(super) fn plan_of(
        &self,
        test: DeviceTest,
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
            directions,
            sizes,
            line,
            search_time: self.search_time.min(self.time),
            final_time: self.time,
            settle: self.settle,
            loss: self.loss,
            width: if calibrates && self.resolution < CEILING_RESOLUTION {
                CEILING_RESOLUTION
            } else {
                self.resolution
            },
            engine: match self.engine {
                Engine::Auto => FrameEngine::Auto,
                Engine::Xdp => FrameEngine::Xdp,
                Engine::Packet => FrameEngine::PacketSocket,
            },
        })
    }

    /// The frames of one direction: straight to the other port, or by a router.
    async fn direction(
        &self,
        from: &FoundPort<'_>,
        to: &FoundPort<'_>,
        test: &DeviceTest,
    ) -> Result<PortPair, Failure> {
        let (source, destination) = (&from.info, &to.info);
        let (client, from, to) = (&from.peer.client, from.number, to.number);
        let own = address(from, source, self.ipv6);
        let gateway = match self.gateway.get(usize::from(from)).or(self.gateway.first()) {
            _ if *test == DeviceTest::Calibrate || is_raw(test) => None,
            Some(gateway) => Some(*gateway),
            None => self.router_between(source, destination),
        };
        let destination_mac: Mac = match gateway {
            None if matches!(test, DeviceTest::Hosts { .. }) => {
                return Err(Failure::usage(format!(
                    "no router is between {} and {}, which are in one network, or have no address: give them the addresses                      of two networks that the router joins, or name it (--gateway)",
                    source.interface, destination.interface
                )));
            }
            None => destination.mac,
            Some(target) => {
                let ask = Resolve { interface: source.interface.clone(), mac: source.mac, own, target };
                say(&format!("linerate: {} sends through the router {target}", source.interface));
                client.resolve(&ask).await.map_err(Failure::measure)?
            }
        };
        let headers = FrameHeaders {
            source_mac: source.mac,
            destination_mac,
            vlans: self.vlan.clone(),
            source: own,
            destination: address(to, destination, self.ipv6),
            payload: self.payload,
        };
        Ok(PortPair { from, to, headers })
    }

    /// The first address of the sending port's network, if the receiving port is in another one.
    fn router_between(&self, source: &PortInfo, destination: &PortInfo) -> Option<IpAddr> {
        if self.ipv6 {
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

/// Whether the frames have addresses of their own.
fn is_raw(test: &DeviceTest) -> bool {
    matches!(test, DeviceTest::Frames { form, .. } if form.raw.is_some())
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
        assert_eq!(common.router_between(&here, &there), Some(IpAddr::from([198, 18, 1, 1])));
        assert_eq!(common.router_between(&here, &port([198, 18, 1, 3], 24)), None);
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
