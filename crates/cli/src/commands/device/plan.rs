//! What a device test is asked for, made of its options: ports, sizes, and the frames of each direction.

use super::{Common, Engine};
use crate::exit::Failure;
use crate::hosts::Company;
use crate::output::say;
use crate::session;
use linerate_agent::Resolve;
use linerate_model::{DevicePlan, DeviceTest, FrameEngine, FrameForm, FrameHeaders, HostName, Mac, PortInfo, PortPair};
use linerate_units::{BitRate, FrameSize, Ratio};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The sizes of RFC 2544 section 9.1 for Ethernet.
const SIZES: [u32; 7] = [64, 128, 256, 512, 1024, 1280, 1518];

impl Common {
    /// The host as given, which may be a join line, and its interfaces, as many as the test takes.
    pub(super) fn ports(&self, test: &DeviceTest) -> Result<(String, Vec<String>), Failure> {
        let read = |text: &String| match text.rsplit_once(':') {
            Some((host, interface)) => (host.to_owned(), interface.to_owned()),
            None => (crate::hosts::LOCAL.to_owned(), text.clone()),
        };
        let (hosts, ports): (Vec<String>, Vec<String>) = self.ports.iter().map(read).unzip();
        if hosts.iter().any(String::is_empty) || !ports.iter().all(|port| may_be_interface(port)) {
            // Not what was given: a join line holds a secret.
            return Err(Failure::usage(
                "--ports takes names of interfaces, or HOST:INTERFACE; a join line too wants its interface behind it, as in \
                 'linerate://...:eth1'",
            ));
        }
        let (wanted, example) = match test {
            DeviceTest::Addresses { .. } => (3..=3, "three ports (test, learning, monitoring), as in eth1,eth2,eth3"),
            DeviceTest::Hosts { .. } => (2..=3, "two ports, or three to listen for what floods, as in eth1,eth2"),
            DeviceTest::Echo { .. } => (1..=1, "one port, as in eth1"),
            _ => (2..=2, "two ports, as in eth1,eth2"),
        };
        if !wanted.contains(&ports.len()) {
            return Err(Failure::usage(format!("--ports takes {example}; {} were given", ports.len())));
        }
        for (index, port) in ports.iter().enumerate() {
            if hosts[index] != hosts[0] {
                return Err(Failure::usage(format!(
                    "--ports: {} and {port} are of different hosts: all ports must be of one host, whose clock times the \
                     frames",
                    ports[0]
                )));
            }
            if ports[..index].contains(port) {
                return Err(Failure::usage(format!(
                    "--ports: {port} is there twice; a device is tested from port to port"
                )));
            }
        }
        Ok((hosts[0].clone(), ports))
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
        host: &HostName,
        company: &Company,
    ) -> Result<DevicePlan, Failure> {
        let (_, ports) = self.ports(&test)?;
        let peer = company.peers.find(host).map_err(Failure::measure)?;
        let found = peer.client.ports(&ports).await.map_err(Failure::measure)?;
        let [first, second, ..] = &found[..] else {
            return Err(Failure::measure("the agent described other ports than were asked for"));
        };
        session::spare(peer, &found, self.force)?;
        let mut directions = vec![self.direction(company, host, (0, first), (1, second), &test).await?];
        if self.both {
            directions.push(self.direction(company, host, (1, second), (0, first), &test).await?);
        }
        let speed = |port: &PortInfo| peer.host.nics.iter().find(|nic| nic.name == port.interface)?.speed;
        let line = self.line.or_else(|| speed(first).into_iter().chain(speed(second)).min());
        let smallest = directions[0].headers.smallest_frame();
        let mut sizes = self.sizes(smallest, first.mtu.min(second.mtu))?;
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
                *most = self.hosts_in_room(&found, *most)?;
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
        self.plan_of(test, host, (ports, line), directions, sizes)
    }

    /// The plan with what all tests are told.
    pub(super) fn plan_of(
        &self,
        test: DeviceTest,
        host: &HostName,
        (ports, line): (Vec<String>, Option<BitRate>),
        directions: Vec<PortPair>,
        sizes: Vec<FrameSize>,
    ) -> Result<DevicePlan, Failure> {
        if self.time.get() == 0 || self.search_time.get() == 0 {
            return Err(Failure::usage("--time and --search-time must be longer than 0"));
        }
        let calibrates = test == DeviceTest::Calibrate;
        Ok(DevicePlan {
            test,
            host: host.clone(),
            ports,
            directions,
            sizes,
            line,
            search_time: self.search_time.min(self.time),
            final_time: self.time,
            settle: self.settle,
            loss: self.loss,
            // A ceiling is compared with, not reported: it need not be as sharp.
            width: if calibrates { Ratio::new(1, 100) } else { Ratio::new(1, 500) },
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
        company: &Company,
        host: &HostName,
        (from, source): (u16, &PortInfo),
        (to, destination): (u16, &PortInfo),
        test: &DeviceTest,
    ) -> Result<PortPair, Failure> {
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
                let peer = company.peers.find(host).map_err(Failure::measure)?;
                say(&format!("linerate: {} sends through the router {target}", source.interface));
                peer.client.resolve(&ask).await.map_err(Failure::measure)?
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

/// Whether Linux would take it for an interface's name.
fn may_be_interface(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| "/:#".contains(c) || c.is_whitespace() || c.is_control())
}

/// Whether the frames have addresses of their own.
fn is_raw(test: &DeviceTest) -> bool {
    matches!(test, DeviceTest::Frames { form, .. } if form.raw.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::{FrameRate, Nanos};
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

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

    /// Whatever is given, what is taken for ports are two names of one host; and no part of a join line is shown.
    #[test]
    fn any_ports_are_read_or_refused() {
        let pieces = ["tester", "eth1", "p0", ":", ",", "/", "#5ecret", "linerate://", "192.0.2.7", " ", "\u{e9}", "-"];
        let mut random = SmallRng::seed_from_u64(2544);
        let (mut read, mut refused) = (0, 0);
        for _ in 0..20_000 {
            let words = (0..random.random_range(1..9)).map(|_| pieces[random.random_range(0..pieces.len())]);
            let text = words.collect::<String>();
            match common(&[&format!("--ports={text}")]).ports(&DeviceTest::Throughput) {
                Ok((host, ports)) => {
                    read += 1;
                    assert!(!host.is_empty() && ports.len() == 2 && ports[0] != ports[1], "{text}");
                    assert!(
                        ports.iter().all(|port| !port.is_empty() && !port.contains([':', '/', '#', ' '])),
                        "{text}"
                    );
                }
                Err(failure) => {
                    refused += 1;
                    assert!(!format!("{failure:?}").contains("5ecret"), "{text}: {failure:?}");
                }
            }
        }
        assert!(read > 50 && refused > 1_000, "{read} read, {refused} refused");
    }

    #[test]
    fn ports_are_two_of_one_host() {
        let read = |ports: &str| common(&["--ports", ports]).ports(&DeviceTest::Throughput).ok();
        assert_eq!(read("tester:p0,tester:p1"), Some(("tester".to_owned(), vec!["p0".into(), "p1".into()])));
        assert_eq!(read("eth1,eth2").map(|(host, _)| host), Some("local".to_owned()));
        for bad in ["a:p0,b:p1", "p0,p0", "p0", "p0,p1,p2"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_address_table_takes_three_ports() {
        let test = DeviceTest::Addresses { most: 1, learn_rate: FrameRate::per_second(1), ageing: Nanos::default() };
        let read = |ports: &str| common(&["--ports", ports]).ports(&test).ok().map(|(_, ports)| ports.len());
        assert_eq!([read("a,b,c"), read("a,b"), read("a,b,a"), read("x:a,x:b,y:c")], [Some(3), None, None, None]);
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
