//! Description of a lab: hosts, links, the device, planted faults. docs/bench-files.md describes the file format.

mod check;
mod cross_traffic;
mod device;
mod fault;

pub(crate) use check::RATE_MINIMUM;
pub use cross_traffic::CrossTraffic;
pub use device::{Device, DeviceKind};
pub(crate) use fault::HostInterface;
pub use fault::{
    AnswerAddress, BusyCore, ChainWay, Congestion, CpuQuota, DropFilter, Ecmp, Fault, FaultPlace, FilterKind,
    HostQueue, IcmpRate, LinkPath, Loss, NoOffload, OneCore, RouterAnswers, SoftirqLoad, TcpMemory, WrongSpeed,
};

use crate::linux::hub_limits::HubLimits;
use crate::linux::path::PathLimits;
use crate::{LabError, SlowDisk, SlowServer};
use linerate_model::HostName;
use linerate_units::{BitRate, ParseError, Ratio};
use serde::{Deserialize, Deserializer, de};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::str::FromStr;

/// The benches that come with the program.
const BUILT_IN: [(&str, &str); 6] = [
    ("switch", include_str!("../../benches/switch.toml")),
    ("cable", include_str!("../../benches/cable.toml")),
    ("router", include_str!("../../benches/router.toml")),
    ("hub", include_str!("../../benches/hub.toml")),
    ("tester", include_str!("../../benches/tester.toml")),
    ("testers", include_str!("../../benches/testers.toml")),
];

/// MTU of a link without one in the bench file.
pub(crate) const MTU: u32 = 1500;
/// The tester of a bench that has one.
pub const TESTER: &str = "tester";
/// The device, where it has an agent.
pub const DEVICE: &str = "device";

/// A bench.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bench {
    /// Its name.
    pub name: String,
    /// Names of the hosts, in the order of their addresses; by default `a` to `d`, `a` and `b` in a chain of routers, or no
    /// hosts if there is a tester.
    #[serde(default = "four_hosts")]
    pub hosts: Vec<HostName>,
    /// Device between the hosts.
    #[serde(default)]
    pub device: Device,
    /// Ports of the tester, `p0`, `p1` and so on, after the hosts in the order of their addresses; zero is no tester.
    #[serde(default, rename = "tester", deserialize_with = "ports")]
    pub tester_ports: u8,
    /// Hosts that test the device with raw frames from their interface, as the tester's ports do.
    #[serde(default)]
    pub testers: Vec<HostName>,
    /// Properties of every link.
    #[serde(default)]
    pub link: Link,
    /// Properties of the link of one host, field by field over `link`.
    #[serde(default)]
    pub links: BTreeMap<HostName, Link>,
    /// Planted faults.
    #[serde(default, rename = "fault")]
    pub faults: Vec<Fault>,
    /// Traffic between hosts that nobody measures.
    #[serde(default, rename = "cross")]
    pub cross_traffic: Vec<CrossTraffic>,
    /// Planted slow NFS servers.
    #[serde(default, rename = "slow-server")]
    pub slow_servers: Vec<SlowServer>,
    /// Planted slow disks.
    #[serde(default, rename = "slow-disk")]
    pub slow_disks: Vec<SlowDisk>,
}

/// A link between a host and the device, or between two hosts.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Rate of Ethernet that the link behaves as; without one it is as fast as the machine.
    #[serde(default, deserialize_with = "text")]
    pub rate: Option<BitRate>,
    /// Largest IP packet, bytes; 1500 unless said.
    pub mtu: Option<u32>,
    /// Share of the frames that this link loses, either way.
    #[serde(default, deserialize_with = "text")]
    pub loss: Option<Ratio>,
    /// Rate of a shaper at the device's port to the host, unknown to the agents.
    #[serde(default, deserialize_with = "text")]
    pub shape: Option<BitRate>,
    /// The rate above which the device's port to the host drops what it is to send, unknown to the agents: a policer.
    #[serde(default, deserialize_with = "text")]
    pub police: Option<BitRate>,
    /// Limits of a path for the frames to this host, field by field over the device's.
    #[serde(default, deserialize_with = "device::path")]
    pub path: Option<PathLimits>,
}

impl Bench {
    /// A bench that comes with the program.
    pub fn named(name: &str) -> Result<Self, LabError> {
        let (name, text) = BUILT_IN.into_iter().find(|(built_in, _)| *built_in == name).ok_or_else(|| {
            let names = BUILT_IN.map(|(name, _)| name).join(", ");
            LabError::UnknownBench { name: name.to_owned(), known: names }
        })?;
        Self::parse(text, name)
    }

    /// A bench from a file.
    pub fn read(path: &Path) -> Result<Self, LabError> {
        let text = fs::read_to_string(path).map_err(|source| LabError::Unreadable { path: path.to_owned(), source })?;
        Self::parse(&text, &path.display().to_string())
    }

    /// A bench by name, or by path if `text` has a slash or ends in `.toml`.
    pub fn find(text: &str) -> Result<Self, LabError> {
        if text.contains('/') || text.ends_with(".toml") { Self::read(Path::new(text)) } else { Self::named(text) }
    }

    /// A bench from the text of a file; `origin` names it in errors.
    pub fn parse(text: &str, origin: &str) -> Result<Self, LabError> {
        let mut bench: Self = toml::from_str(text).map_err(|error| LabError::Malformed {
            origin: origin.to_owned(),
            problem: error.to_string().trim_end().to_owned(),
        })?;
        let has_hosts = toml::from_str::<toml::Table>(text).is_ok_and(|fields| fields.contains_key("hosts"));
        if bench.tester_ports > 0 && !has_hosts {
            bench.hosts.clear();
        } else if bench.chain().is_some() && !has_hosts {
            bench.hosts.truncate(2);
        }
        bench.check().map_err(|error| match error {
            LabError::Impossible { problem, .. } => LabError::Malformed { origin: origin.to_owned(), problem },
            other => other,
        })?;
        Ok(bench)
    }

    /// Every link at `rate`.
    pub fn with_link(mut self, rate: BitRate) -> Self {
        self.link.rate = Some(rate);
        for link in self.links.values_mut() {
            link.rate = None;
        }
        self
    }

    /// Whether anything tests the device with raw frames.
    pub(crate) fn has_testers(&self) -> bool {
        self.tester_ports > 0 || !self.testers.is_empty()
    }

    /// Whether any link is policed: then GRO is disabled, for a policer drops a GSO packet whole.
    pub(crate) fn has_policers(&self) -> bool {
        self.link.police.is_some() || self.links.values().any(|link| link.police.is_some())
    }

    /// Whether any link has a set rate.
    pub fn has_rates(&self) -> bool {
        self.link.rate.is_some() || self.links.values().any(|link| link.rate.is_some())
    }

    /// Without planted faults, losses and cross traffic.
    pub fn without_faults(mut self) -> Self {
        self.faults.clear();
        self.cross_traffic.clear();
        self.slow_servers.clear();
        self.slow_disks.clear();
        for link in self.links.values_mut().chain([&mut self.link]) {
            (link.loss, link.shape, link.police, link.path) = (None, None, None, None);
        }
        self
    }

    /// Every link shaped to `rate` by the device, unknown to the agents.
    pub fn with_shaper(mut self, rate: BitRate) -> Self {
        self.link.shape = Some(rate);
        for link in self.links.values_mut() {
            link.shape = None;
        }
        self
    }

    /// Every link policed to `rate` by the device, unknown to the agents.
    pub fn with_policer(mut self, rate: BitRate) -> Self {
        self.link.police = Some(rate);
        for link in self.links.values_mut() {
            link.police = None;
        }
        self
    }

    /// With one more planted fault.
    pub fn with_fault(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    /// With more cross traffic.
    pub fn with_cross_traffic(mut self, cross: CrossTraffic) -> Self {
        self.cross_traffic.push(cross);
        self
    }

    /// With the NFS server of a host slow like that.
    pub fn with_slow_server(mut self, server: SlowServer) -> Self {
        self.slow_servers.retain(|other| other.host != server.host);
        self.slow_servers.push(server);
        self
    }

    /// With the disk of a host slow like that.
    pub fn with_slow_disk(mut self, disk: SlowDisk) -> Self {
        self.slow_disks.retain(|other| other.host != disk.host);
        self.slow_disks.push(disk);
        self
    }

    /// With another device; without one, only the tester's first two ports stay, or the hosts that test, or the first
    /// two. The links get the rate of the device's ports, if it has one.
    pub fn with_device(mut self, kind: DeviceKind) -> Self {
        self.device.kind = kind;
        if let Some(rate) = kind.port_rate() {
            self = self.with_link(rate);
        }
        match kind {
            DeviceKind::None if self.tester_ports > 0 => self.with_hosts(0).with_tester(2),
            DeviceKind::None if !self.testers.is_empty() => {
                self.hosts = self.testers.clone();
                let count = self.hosts.len();
                self.with_hosts(count)
            }
            DeviceKind::None | DeviceKind::Chain { .. } => self.with_hosts(2),
            _ => self,
        }
    }

    /// Returns the bench with a tester of `ports` ports; zero removes the tester.
    pub fn with_tester(mut self, ports: u8) -> Self {
        self.tester_ports = ports;
        self
    }

    /// With those of `hosts` that the bench has as testers too; without a device they are all there is.
    pub fn with_testers(mut self, hosts: &[HostName]) -> Self {
        let alone = self.device.kind == DeviceKind::None;
        self.testers.retain(|host| !alone || hosts.contains(host));
        let more = self.hosts.iter().filter(|host| hosts.contains(host) && !self.testers.contains(host));
        let more: Vec<_> = more.cloned().collect();
        self.testers.extend(more);
        if alone { self.with_device(DeviceKind::None) } else { self }
    }

    /// With the first `count` hosts, or more, named on in the alphabet.
    pub fn with_hosts(mut self, count: usize) -> Self {
        self.hosts.truncate(count);
        let more = (0..).map(nth_name).filter(|name| !self.hosts.contains(name)).take(count - self.hosts.len());
        let more: Vec<_> = more.collect();
        self.hosts.extend(more);
        self.links.retain(|host, _| self.hosts.contains(host));
        self.testers.retain(|host| self.hosts.contains(host));
        self.faults.retain(|fault| fault.host().is_none_or(|host| self.hosts.contains(host)));
        self.cross_traffic.retain(|cross| self.hosts.contains(&cross.from) && self.hosts.contains(&cross.to));
        self.slow_servers.retain(|server| self.hosts.contains(&server.host));
        self.slow_disks.retain(|disk| self.hosts.contains(&disk.host));
        self
    }

    /// The link of `host`, every field filled in but those that nothing is said about.
    pub(crate) fn link_of(&self, host: &HostName) -> Link {
        let link = self.links.get(host).cloned().unwrap_or_default();
        Link {
            rate: link.rate.or(self.link.rate).or(self.device.kind.port_rate()).or(self.hub().and_then(|hub| hub.rate)),
            mtu: link.mtu.or(self.link.mtu),
            loss: link.loss.or(self.link.loss),
            shape: link.shape.or(self.link.shape),
            police: link.police.or(self.link.police),
            path: link.path,
        }
    }

    /// Returns the largest IP packet of the link of `host`, in bytes.
    pub(crate) fn mtu_of(&self, host: &HostName) -> u32 {
        let links = self.chain().map(|chain| chain.links()).unwrap_or_default();
        let of_chain = links.into_iter().find(|link| self.host_at(*link) == Some(host));
        of_chain.map_or_else(|| self.link_of(host).mtu.unwrap_or(MTU), |link| self.chain_mtu(link))
    }

    /// Returns the limits of the path to `host`, or `None` if the device is no path.
    pub(crate) fn path_to(&self, host: &HostName) -> Option<PathLimits> {
        let DeviceKind::Path(both) = self.device.kind else { return None };
        let limits = self.links.get(host).and_then(|link| link.path);
        Some(limits.map_or(both, |limits| limits.over(both)))
    }

    /// Returns the limits of the hub with its rate, or `None` if the device is no hub.
    pub(crate) fn hub(&self) -> Option<HubLimits> {
        let DeviceKind::Hub(limits) = self.device.kind else { return None };
        Some(HubLimits { rate: Some(limits.rate_with(self.link.rate)), ..limits })
    }

    /// Whether a path loses or spoils frames by chance.
    pub(crate) fn path_loses(&self) -> bool {
        let of_chain = self.faults.iter().filter_map(|fault| match fault {
            Fault::Path(path) => Some(path.limits),
            _ => None,
        });
        let limits = self.hosts.iter().filter_map(|host| self.path_to(host)).chain(of_chain);
        limits.into_iter().any(|limits| limits.loss.is_some() || limits.corrupt.is_some())
    }

    /// The losses that links have.
    pub(crate) fn losses_of_links(&self) -> Vec<(FaultPlace, Ratio)> {
        let mut losses = Vec::new();
        for host in &self.hosts {
            let Some(ratio) = self.link_of(host).loss else { continue };
            losses.push((FaultPlace::From(host.clone()), ratio));
            // Without a device what comes to a host is what the other sends, which has its own entry.
            if self.device.kind != DeviceKind::None {
                losses.push((FaultPlace::To(host.clone()), ratio));
            }
        }
        losses
    }

    /// Returns the slow NFS server of a host, if it has one.
    pub(crate) fn slow_server(&self, host: &HostName) -> Option<&SlowServer> {
        self.slow_servers.iter().find(|server| server.host == *host)
    }

    /// Returns the slow disk of a host, if it has one.
    pub(crate) fn slow_disk(&self, host: &HostName) -> Option<&SlowDisk> {
        self.slow_disks.iter().find(|disk| disk.host == *host)
    }
}

fn four_hosts() -> Vec<HostName> {
    (0..4).map(nth_name).collect()
}

/// a to z, then h27, h28 ...
fn nth_name(index: usize) -> HostName {
    HostName(match u8::try_from(index) {
        Ok(letter @ 0..26) => char::from(b'a' + letter).to_string(),
        _ => format!("h{}", index + 1),
    })
}

/// A quantity written as text, as on the command line.
pub(crate) fn required_text<'de, D: Deserializer<'de>, T: FromStr<Err = ParseError>>(
    deserializer: D,
) -> Result<T, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
}

/// The `[tester]` table.
fn ports<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Tester {
        ports: u8,
    }
    let Tester { ports } = Tester::deserialize(deserializer)?;
    if ports == 0 {
        return Err(de::Error::custom("a tester has 1 port or more, as in `ports = 2`"));
    }
    Ok(ports)
}

fn text<'de, D: Deserializer<'de>, T: FromStr<Err = ParseError>>(deserializer: D) -> Result<Option<T>, D::Error> {
    required_text(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_benches_are_good() {
        for (name, _) in BUILT_IN {
            assert_eq!(Bench::named(name).expect(name).name, name);
        }
        let error = Bench::named("ring").expect_err("no such bench").to_string();
        assert!(error.contains("`ring`") && error.contains("switch, cable, router, hub, tester"), "{error}");
    }

    #[test]
    fn the_example_of_the_documentation_is_good() {
        let page = include_str!("../../../../docs/bench-files.md");
        let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
        let bench = Bench::parse(example, "docs/bench-files.md").expect("the example");
        assert_eq!(bench.link_of(&"a".into()).rate, Some(BitRate::per_second(1_000_000_000)));
        assert_eq!(bench.link_of(&"b".into()).rate, Some(BitRate::per_second(100_000_000)));
        assert_eq!(bench.link_of(&"b".into()).mtu, Some(1500));
        assert_eq!(bench.losses(), [(FaultPlace::To("c".into()), Ratio::new(1, 100))]);
    }

    #[test]
    fn the_chain_of_the_documentation_is_good() {
        let page = include_str!("../../../../docs/bench-files.md");
        let chapter = page.split("\n## Chain\n").nth(1).expect("a chapter");
        let example = chapter.split("```").nth(1).expect("an example");
        let bench = Bench::parse(&format!("name = 'x'\n{example}"), "docs/bench-files.md").expect("the example");
        assert_eq!((bench.hosts.len(), bench.faults.len()), (2, 2));
        assert_eq!(bench.device.kind, DeviceKind::Chain { routers: 4 });
    }

    #[test]
    fn a_tester_comes_with_no_other_hosts_unless_said() {
        let bench = Bench::named("tester").expect("built in");
        assert_eq!((bench.tester_ports, bench.hosts.len()), (3, 0));
        assert_eq!(bench.clone().with_device(DeviceKind::None).tester_ports, 2);
        let both = Bench::parse("name = 'x'\nhosts = ['a']\n[tester]\nports = 1", "x").expect("a host and a port");
        assert_eq!((both.tester_ports, both.hosts.len()), (1, 1));
        assert_eq!(Bench::named("switch").expect("built in").with_hosts(0).with_tester(2).tester_ports, 2);
    }

    #[test]
    fn without_a_device_the_hosts_that_test_are_joined() {
        let [a, c] = ["a", "c"].map(HostName::from);
        let named = [a.clone(), c.clone(), "z".into()];
        let cable = Bench::named("testers").expect("built in").with_device(DeviceKind::None).with_testers(&named);
        cable.check().expect("two hosts back to back");
        assert_eq!((&cable.hosts, &cable.testers), (&vec![a.clone(), c.clone()], &vec![a.clone(), c.clone()]));
        let switch = Bench::named("switch").expect("built in").with_testers(&named);
        assert_eq!((switch.hosts.len(), &switch.testers), (4, &vec![a.clone(), c]));
        assert_eq!(switch.with_hosts(2).testers, [a]);
    }

    #[test]
    fn a_path_does_to_one_host_what_its_link_says() {
        let text = "name = 'x'\nhosts = ['a', 'b']\n[device]\nkind = 'path'\ndelay = '20ms'\nrate = '50Mbit/s'\n\
                    [links.b.path]\nrate = '1Mbit/s'\nloss-burst = 8\nloss = '1%'\nmtu = 1400\nmtu-silent = true";
        let bench = Bench::parse(text, "lab.toml").expect("good");
        let to = |host: &str| bench.path_to(&host.into()).expect("a path").to_string();
        assert_eq!(to("a"), "delay=20000000ns,rate=50000000bit/s");
        let limits = "delay=20000000ns,rate=1000000bit/s,loss=1/100,loss-burst=8,mtu=1400,mtu-silent=true";
        assert_eq!(to("b"), limits);
        assert!(bench.path_loses() && !bench.clone().without_faults().path_loses());
    }

    #[test]
    fn the_command_line_overrides_the_file() {
        let text = "name = 'x'\n[links.a]\nrate = '10M'\nmtu = 9000\n[[fault]]\nkind = 'loss'\nat = 'd'\nratio = '1%'";
        let bench = Bench::parse(text, "lab.toml").expect("good");
        let rate = BitRate::per_second(1_000_000);
        let shaped = bench.clone().with_link(rate);
        assert!(shaped.hosts.iter().all(|host| shaped.link_of(host).rate == Some(rate)));
        assert_eq!(shaped.link_of(&"a".into()).mtu, Some(9000));
        let cable = bench.clone().with_device(DeviceKind::None);
        assert_eq!((cable.hosts.len(), cable.faults.len()), (2, 0));
        cable.check().expect("two hosts back to back");
        let many = bench.with_hosts(30);
        assert_eq!((many.hosts[25].0.as_str(), many.hosts[29].0.as_str()), ("z", "h30"));
        many.check().expect("thirty hosts");
    }
}
