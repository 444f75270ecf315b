//! Whether a bench can be built, and if not, what is wrong and what to do.

use super::fault::check_loss;
use super::{Bench, DEVICE, DeviceKind, TESTER};
use crate::error::{LabError, host_list};
use crate::linux::hub_limits::HubLimits;
use crate::linux::open_vswitch;
use crate::linux::reference_limits::Treatment;
use linerate_model::HostName;
use linerate_units::BitRate;
use std::collections::BTreeSet;

/// The most hosts that the lab's addresses and one small machine allow.
const HOSTS_MAXIMUM: usize = 64;
/// The most ports of a tester.
const PORTS_MAXIMUM: u8 = 16;
/// Largest frame that a virtual link takes in one page, with its headroom (drivers/net/veth.c).
const MTU_MAXIMUM_REFERENCE: u32 = 3_400;
/// IPv6 needs at least 1,280 (RFC 8200 section 5).
const MTU_MINIMUM: u32 = 1_280;
/// The most a virtual link carries.
const MTU_MAXIMUM: u32 = 65_535;
/// The largest jumbo frame in common use; the size table of a shaped link has an entry for each length.
const MTU_MAXIMUM_SHAPED: u32 = 9_216;
/// Below this a smallest frame takes more than 10 ms.
pub(crate) const RATE_MINIMUM: BitRate = BitRate::per_second(64_000);

impl Bench {
    /// Checks that the programs of the device are installed.
    ///
    /// # Errors
    /// Names the program and the package that has it.
    pub fn check_programs(&self) -> Result<(), LabError> {
        if let DeviceKind::OpenVswitch(_) = self.device.kind { open_vswitch::check_programs() } else { Ok(()) }
    }

    /// Checks that the bench can be built.
    pub fn check(&self) -> Result<(), LabError> {
        let fail = |problem: String| Err(LabError::Impossible { bench: self.name.clone(), problem });
        let host_names = host_list(&self.hosts);
        let mut seen = BTreeSet::new();
        for host in &self.hosts {
            let name = &host.0;
            let plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
            if !plain || name.is_empty() || name.len() > 10 || name.starts_with('-') {
                return fail(format!("hosts: `{name}` is not 1 to 10 of a to z, 0 to 9 and inner -"));
            }
            if !seen.insert(host) {
                return fail(format!("hosts: `{name}` is there twice"));
            }
            if self.has_testers() && [TESTER, DEVICE].contains(&name.as_str()) {
                return fail(format!(
                    "hosts: `{name}` has its own meaning in a bench with a tester; take another name"
                ));
            }
        }
        self.check_ends().or_else(fail)?;
        self.slow_servers.iter().try_for_each(|server| server.check(&self.hosts)).or_else(fail)?;
        self.slow_disks.iter().try_for_each(|disk| disk.check(&self.hosts)).or_else(fail)?;
        if let Some(host) = self.testers.iter().find(|host| !seen.contains(host)) {
            return fail(format!("testers: there is no host {host} (hosts: {host_names})"));
        }
        if let Some(host) = self.links.keys().find(|host| !seen.contains(host)) {
            return fail(format!("links.{host}: there is no such host (hosts: {host_names})"));
        }
        let tester = HostName::from(TESTER);
        for host in self.hosts.iter().chain((self.tester_ports > 0).then_some(&tester)) {
            let field = |name| format!("{name} of the link of {host}");
            let link = self.link_of(host);
            if *host == tester && link.loss.is_some() {
                let remedy = "plant it in a reference device, as in `[device] kind = \"reference\", loss = \"1/1000\"`";
                return fail(format!("{}: the tester's own links lose nothing; {remedy}", field("loss")));
            }
            for (name, rate) in [("rate", link.rate), ("shape", link.shape), ("police", link.police)] {
                if let Some(rate) = rate.filter(|rate| *rate < RATE_MINIMUM) {
                    return fail(format!("{}: {rate} is below {RATE_MINIMUM}", field(name)));
                }
            }
            for (name, does, rate) in [("shape", "shapes", link.shape), ("police", "polices", link.police)] {
                if rate.is_some() && (self.device.kind == DeviceKind::None || *host == tester) {
                    return fail(format!("{}: it is the device that {does}, and the links of hosts only", field(name)));
                }
                // Their frames leave past all queues and filters.
                let problem_text = match self.device.kind {
                    DeviceKind::Reference(_) => {
                        "a reference device keeps to limits of its own only, as in \
                                                 `[device] kind = \"reference\", max-rate = \"100Mbit/s\"`"
                    }
                    DeviceKind::Path(_) => {
                        "a path keeps to limits of its own only, as in \
                                            `[device] kind = \"path\", rate = \"100Mbit/s\"`"
                    }
                    DeviceKind::Hub(_) => {
                        "a hub keeps to the rate of its medium only, as in \
                                           `[device] kind = \"hub\", rate = \"100Mbit/s\"`"
                    }
                    DeviceKind::Chain { .. } => {
                        "a link of a chain has the limits of a path only, as in \
                                                `--fault path,at=0-1,rate=100Mbit/s`"
                    }
                    DeviceKind::OpenVswitch(_) if name == "police" => {
                        "Open vSwitch may remove a policer from its ports; use --device bridge"
                    }
                    _ => continue,
                };
                if rate.is_some() {
                    return fail(format!("{}: {problem_text}", field(name)));
                }
            }
            let maximum = match self.device.kind {
                DeviceKind::Reference(_) => MTU_MAXIMUM_REFERENCE,
                DeviceKind::OpenVswitch(_) => MTU_MAXIMUM_SHAPED,
                _ if link.rate.or(link.shape).is_some() => MTU_MAXIMUM_SHAPED,
                _ => MTU_MAXIMUM,
            };
            if let Some(mtu) = link.mtu.filter(|mtu| !(MTU_MINIMUM..=maximum).contains(mtu)) {
                return fail(format!("{}: {mtu} is not in {MTU_MINIMUM} to {maximum}", field("mtu")));
            }
        }
        self.losses_of_links()
            .iter()
            .try_for_each(|(_, ratio)| check_loss(self, *ratio))
            .or_else(|problem| fail(format!("loss of the links: {problem}")))?;
        self.check_faults().or_else(fail)?;
        self.cross_traffic.iter().try_for_each(|cross| cross.check(self)).or_else(fail)?;
        self.check_path().or_else(fail)?;
        self.check_hub().or_else(fail)?;
        self.check_chain().or_else(fail)?;
        self.check_open_vswitch().or_else(fail)?;
        self.check_reference().or_else(fail)?;
        Ok(())
    }

    /// Checks the limits of the reference device and the links at it. Errors name the field.
    fn check_reference(&self) -> Result<(), String> {
        let DeviceKind::Reference(limits) = self.device.kind else { return Ok(()) };
        limits.check().map_err(|problem| format!("device.{problem}"))?;
        if limits.undersize == Treatment::Drop && !self.hosts.is_empty() {
            return Err(String::from(
                "device.undersize: no NIC pads what hosts send, so that their short packets would be dropped; leave \
                 undersize out, or use a bench of a tester only (--bench tester)",
            ));
        }
        Ok(())
    }

    /// Checks the links at Open vSwitch. Errors name the field.
    fn check_open_vswitch(&self) -> Result<(), String> {
        let (DeviceKind::OpenVswitch(_), Some((place, _))) = (self.device.kind, self.losses().first().cloned()) else {
            return Ok(());
        };
        Err(format!(
            "loss at `{place}`: Open vSwitch may remove filters from its ports; plant the loss in another device, as in \
             --device path,loss=1%"
        ))
    }

    /// Checks the links of the hosts of a chain. Errors name the field.
    fn check_chain(&self) -> Result<(), String> {
        let DeviceKind::Chain { routers } = self.device.kind else { return Ok(()) };
        if let Some((place, _)) = self.losses().first() {
            return Err(format!(
                "loss at `{place}`: a link of a chain loses by a path only, as in --fault path,at=0-1,loss=1% (links 0-1 to \
                 {routers}-{})",
                routers + 1
            ));
        }
        Ok(())
    }

    /// Checks the limits of the hub and the links at it. Errors name the field.
    fn check_hub(&self) -> Result<(), String> {
        let DeviceKind::Hub(limits) = self.device.kind else { return Ok(()) };
        limits.check().map_err(|problem| format!("device.{problem}"))?;
        let hub = limits.rate_with(self.link.rate);
        if !HubLimits::can_be(hub) {
            return Err(format!(
                "link.rate: a hub has 64 kbit/s to 100 Mbit/s, not {hub}; give a lower rate (--link 100Mbit/s), or use \
                 --device bridge"
            ));
        }
        let links = self.links.iter().map(|(host, link)| (format!("links.{host}.rate"), link.rate));
        for (field, rate) in links.chain([(String::from("link.rate"), self.link.rate)]) {
            if let Some(rate) = rate.filter(|rate| *rate != hub) {
                return Err(format!(
                    "{field}: {rate} is not the rate of the hub, {hub}; all ports of a hub have one speed: leave this rate \
                     out, or use --device bridge for two speeds"
                ));
            }
        }
        if let Some((place, _)) = self.losses().first() {
            return Err(format!(
                "fault at `{place}`: a hub drops only what its queues do not hold; plant the loss in another device, as \
                 in --device path,loss=1%"
            ));
        }
        Ok(())
    }

    /// Checks the limits of the path. Errors name the field.
    fn check_path(&self) -> Result<(), String> {
        let DeviceKind::Path(both) = self.device.kind else {
            let path_link = self.links.iter().find(|(_, link)| link.path.is_some());
            return path_link.map_or(Ok(()), |(host, _)| {
                Err(format!("path of the link of {host}: the device is no path; say `[device] kind = \"path\"`"))
            });
        };
        if self.link.path.is_some() {
            return Err(String::from("link.path: what holds for all hosts belongs to [device]"));
        }
        both.check().map_err(|problem| format!("device.{problem}"))?;
        for host in &self.hosts {
            let limits = self.path_to(host).unwrap_or_default();
            limits.check().map_err(|problem| format!("links.{host}.path.{problem}"))?;
        }
        if let Some((place, _)) = self.losses().first() {
            return Err(format!(
                "fault at `{place}`: a path loses by itself only, as in `[links.{}.path] loss = \"1%\"`",
                place.host()
            ));
        }
        Ok(())
    }

    /// Enough ends for the device, and not too many; says what is wrong.
    fn check_ends(&self) -> Result<(), String> {
        let hosts = self.hosts.len();
        let ports = usize::from(self.tester_ports);
        if self.tester_ports > PORTS_MAXIMUM {
            return Err(format!("tester.ports: a tester has 1 to {PORTS_MAXIMUM}, not {ports}"));
        }
        match self.device.kind {
            DeviceKind::Hub(_) if hosts + ports < 2 => Err(format!(
                "hosts: a hub needs 2 ports or more, not {}: with one port nobody hears its frames; add a host, as in \
                 hosts = [\"a\", \"b\"]",
                hosts + ports
            )),
            DeviceKind::Chain { .. } if ports > 0 || !self.testers.is_empty() => Err(String::from(
                "testers: a chain of routers carries what hosts send, not raw frames; use --device router to test a router \
                 with raw frames",
            )),
            DeviceKind::Chain { .. } if hosts != 2 => Err(format!(
                "hosts: a chain of routers joins exactly 2 hosts, not {hosts}; leave --hosts out, or give 2 in hosts"
            )),
            DeviceKind::None if ports > 0 && (hosts, ports) != (0, 2) => Err(format!(
                "tester.ports: device kind none joins exactly 2 ports and no hosts, not {ports} and {hosts}"
            )),
            DeviceKind::None if ports == 0 && hosts != 2 => {
                Err(format!("hosts: device kind none joins exactly 2 hosts, not {hosts}"))
            }
            _ if !(2..=HOSTS_MAXIMUM).contains(&(hosts + ports)) => {
                Err(format!("hosts: a bench has 2 to {HOSTS_MAXIMUM}, not {}", hosts + ports))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        Bench::parse(text, "lab.toml").expect_err(text).to_string()
    }

    #[test]
    fn an_error_names_file_line_and_field() {
        for (text, parts) in [
            ("name = 'x'\nhost = ['a']", ["lab.toml", "line 2", "`host`"]),
            ("name = 'x'\n[device]\nkind = 'ring'", ["lab.toml", "line 3", "`ring`"]),
            ("name = 'x'\nhosts = ['a']\n[device]\nkind = 'hub'", ["lab.toml", "2 ports or more, not 1", "add a host"]),
            (
                "name = 'x'\n[device]\nkind = 'hub'\n[links.b]\nrate = '100Mbit/s'",
                ["lab.toml", "links.b.rate: 100 Mbit/s is not the rate of the hub, 10 Mbit/s", "leave this rate out"],
            ),
            (
                "name = 'x'\n[device]\nkind = 'hub'\n[link]\nrate = '1Gbit/s'",
                ["lab.toml", "link.rate: a hub has 64 kbit/s to 100 Mbit/s, not 1 Gbit/s", "--device bridge"],
            ),
            (
                "name = 'x'\n[device]\nkind = 'hub'\nrate = '10Mbit/s'\n[link]\nrate = '100Mbit/s'",
                [
                    "lab.toml",
                    "link.rate: 100 Mbit/s is not the rate of the hub, 10 Mbit/s",
                    "all ports of a hub have one speed",
                ],
            ),
            ("name = 'x'\n[device]\nkind = 'hub'\nrate = '1Gbit/s'", ["lab.toml", "line 2", "rate=10Mbit/s"]),
            (
                "name = 'x'\n[device]\nkind = 'chain'\nrouters = 0",
                ["lab.toml", "line 2", "`0` is not routers of a chain: 1 to 12"],
            ),
            (
                "name = 'x'\nhosts = ['a', 'b', 'c']\n[device]\nkind = 'chain'",
                ["lab.toml", "hosts", "exactly 2 hosts, not 3"],
            ),
            (
                "name = 'x'\ntesters = ['a']\nhosts = ['a', 'b']\ndevice = { kind = 'chain' }",
                ["lab.toml", "testers", "--device router"],
            ),
            (
                "name = 'x'\nhosts = ['a', 'b']\ndevice = { kind = 'chain' }\nlink = { loss = '1%' }",
                ["lab.toml", "loss at `a`", "--fault path,at=0-1,loss=1% (links 0-1 to 4-5)"],
            ),
            (
                "name = 'x'\nhosts = ['a', 'b']\ndevice = { kind = 'chain' }\nlink = { shape = '1M' }",
                ["lab.toml", "shape of the link of a", "--fault path,at=0-1,rate=100Mbit/s"],
            ),
            ("name = 'x'\n[device]\nkind = 'hub'\nseed = 1", ["lab.toml", "device.seed", "collisions=true"]),
            ("name = 'x'\n[device]\nkind = 'hub'\n[link]\nloss = '1%'", ["lab.toml", "fault at", "path,loss=1%"]),
            (
                "name = 'x'\n[device]\nkind = 'hub'\n[link]\nshape = '1M'",
                ["lab.toml", "shape of the link of a", "the rate of its medium only"],
            ),
            (
                "name = 'x'\n[device]\nkind = 'hub'\n[links.b.path]\ndelay = '1ms'",
                ["lab.toml", "path of the link of b", "no path"],
            ),
            ("name = 'x'\n[link]\nrate = 'fast'", ["lab.toml", "line 3", "`fast` is not a bit rate"]),
            ("name = 'x'\n[link]\nspeed = '1G'", ["lab.toml", "line 3", "`speed`"]),
            ("hosts = ['a', 'b']", ["lab.toml", "line 1", "`name`"]),
            ("name = 'x'\n[[fault]]\nkind = 'loss'\nat = 'a:b'\nratio = '1%'", ["lab.toml", "line 2", "`a:b`"]),
            ("name = 'x'\nhosts = ['a', 'a']", ["lab.toml", "hosts", "twice"]),
            ("name = 'x'\nhosts = ['a', 'B']", ["lab.toml", "hosts", "`B`"]),
            ("name = 'x'\nhosts = ['a']", ["lab.toml", "hosts", "not 1"]),
            ("name = 'x'\n[device]\nkind = 'none'", ["lab.toml", "hosts", "exactly 2"]),
            ("name = 'x'\n[links.z]\nmtu = 1500", ["lab.toml", "links.z", "a, b, c, d"]),
            ("name = 'x'\n[links.c]\nmtu = 100", ["lab.toml", "mtu of the link of c", "1280 to 65535"]),
            ("name = 'x'\n[link]\nmtu = 65535\nrate = '1G'", ["lab.toml", "mtu of the link of a", "1280 to 9216"]),
            ("name = 'x'\n[link]\nrate = '9'", ["lab.toml", "rate of the link of a", "below 64 kbit/s"]),
            ("name = 'x'\n[link]\ndelay = '10ms'", ["lab.toml", "line 3", "`delay`"]),
            ("name = 'x'\n[links.b.path]\ndelay = '10ms'", ["lab.toml", "path of the link of b", "kind = \"path\""]),
            ("name = 'x'\n[device]\nkind = 'path'\ndelay = 'x'", ["lab.toml", "line 2", "delay=20ms"]),
            ("name = 'x'\n[device]\nkind = 'path'\nmax-rate = '1G'", ["lab.toml", "line 2", "`max-rate`"]),
            ("name = 'x'\n[device]\nkind = 'path'\njitter = '1ms'", ["lab.toml", "device.jitter", "at most the delay"]),
            (
                "name = 'x'\n[device]\nkind = 'path'\n[links.b.path]\nloss-burst = 8",
                ["lab.toml", "links.b.path.loss-burst", "loss=1%"],
            ),
            (
                "name = 'x'\n[device]\nkind = 'path'\n[link.path]\ndelay = '1ms'",
                ["lab.toml", "link.path", "belongs to [device]"],
            ),
            (
                "name = 'x'\n[device]\nkind = 'path'\n[link]\nshape = '1M'",
                ["lab.toml", "shape of the link of a", "a path keeps to limits of its own"],
            ),
            (
                "name = 'x'\n[device]\nkind = 'path'\n[links.b]\nloss = '1%'",
                ["lab.toml", "fault at `b`", "[links.b.path] loss"],
            ),
            ("name = 'x'\n[link]\npolice = '9'", ["lab.toml", "police of the link of a", "below 64 kbit/s"]),
            (
                "name = 'x'\nhosts = ['a', 'b']\ndevice = { kind = 'none' }\n[link]\npolice = '1G'",
                ["lab.toml", "police of the link of a", "the device that polices"],
            ),
            (
                "name = 'x'\ndevice = { kind = 'reference' }\n[links.b]\npolice = '1G'",
                ["lab.toml", "police of the link of b", "max-rate"],
            ),
            (
                "name = 'x'\ndevice = { kind = 'reference' }\n[link]\nshape = '1G'",
                ["lab.toml", "shape of the link of a", "max-rate"],
            ),
            ("name = 'x'\ntesters = ['z']", ["lab.toml", "testers", "no host z"]),
            (
                "name = 'x'\nhosts = ['a', 'b']\ntesters = ['a']\ndevice = { kind = 'none' }\n\
                 [[fault]]\nkind = 'loss'\nat = 'a'\nratio = '1%'",
                ["lab.toml", "fault loss at `a`", "put a device in between"],
            ),
            ("name = 'x'\n[tester]\nports = 0", ["lab.toml", "line 2", "1 port or more"]),
            ("name = 'x'\n[tester]\nports = 17", ["lab.toml", "tester.ports", "not 17"]),
            ("name = 'x'\n[tester]\nports = 1", ["lab.toml", "hosts", "not 1"]),
            ("name = 'x'\nhosts = ['device']\n[tester]\nports = 2", ["lab.toml", "hosts", "`device`"]),
            ("name = 'x'\nlink = { loss = '1%' }\n[tester]\nports = 2", ["lab.toml", "loss", "reference device"]),
            ("name = 'x'\ndevice = { kind = 'none' }\n[tester]\nports = 3", ["lab.toml", "tester.ports", "exactly 2"]),
            (
                "name = 'x'\ndevice = { kind = 'open-vswitch' }\n[link]\nloss = '1%'",
                ["lab.toml", "loss at `a`: Open vSwitch", "--device path,loss=1%"],
            ),
            (
                "name = 'x'\ndevice = { kind = 'open-vswitch' }\n[link]\npolice = '1G'",
                ["lab.toml", "police of the link of a: Open vSwitch", "--device bridge"],
            ),
            ("name = 'x'\n[device]\nkind = 'open-vswitch'\naddresses = 5", ["lab.toml", "line 2", "addresses=256"]),
            ("name = 'x'\n[device]\nkind = 'bridge'\nqueue = 1", ["lab.toml", "line 2", "`queue=1`"]),
            ("name = 'x'\n[device]\nkind = 'reference'\necho = 0", ["lab.toml", "line 2", "echo=5000"]),
            (
                "name = 'x'\n[device]\nkind = 'reference'\npause = true",
                ["lab.toml", "device.pause", "port-rate=10Mbit/s"],
            ),
            (
                "name = 'x'\n[device]\nkind = 'reference'\nundersize = 'drop'",
                ["lab.toml", "device.undersize", "--bench tester"],
            ),
            (
                "name = 'x'\n[[fault]]\nkind = 'loss'\nat = 'z'\nratio = '1%'",
                ["lab.toml", "fault loss at `z`", "no such host"],
            ),
            (
                "name = 'x'\nhosts = ['a', 'b']\ndevice = { kind = 'none' }\n\
                 [[fault]]\nkind = 'loss'\nat = 'device:a'\nratio = '1%'",
                ["lab.toml", "fault loss at `device:a`", "no device"],
            ),
        ] {
            let error = problem(text);
            assert!(parts.iter().all(|part| error.contains(part)), "{text}\n{error}");
        }
    }
}
