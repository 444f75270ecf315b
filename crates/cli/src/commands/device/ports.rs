//! `--ports`: which interfaces of which hosts test the device.

use super::layout::Layout;
use crate::exit::Failure;
use crate::hosts::{HostArguments, LOCAL, ReachedAgents, together};
use crate::session;
use linerate_model::{DeviceTest, HostName, PortInfo, PortName};
use linerate_runner::AgentHandle;
use linerate_units::BitRate;

/// The ports of a test.
#[derive(Debug)]
pub(crate) struct Ports {
    /// The hosts to reach.
    pub(crate) arguments: HostArguments,
    /// The host of each.
    hosts: Vec<HostName>,
    /// What each is called in the record.
    pub(in crate::commands) names: Vec<PortName>,
}

/// A port that was looked at.
pub(in crate::commands) struct FoundPort<'a> {
    /// Its place among the ports.
    pub(super) number: u16,
    /// The agent of its host.
    pub(super) agent: &'a AgentHandle,
    pub(in crate::commands) info: PortInfo,
}

impl FoundPort<'_> {
    /// What its line carries, if that is known.
    pub(super) fn speed(&self) -> Option<BitRate> {
        self.agent.host.nics.iter().find(|nic| nic.name == self.info.interface)?.speed
    }
}

/// Host, if there is one, and interface; an agent URL has colons too, an interface has none.
pub(crate) fn split(text: &str) -> (&str, &str) {
    text.rsplit_once(':').unwrap_or((LOCAL, text))
}

impl Ports {
    /// The two ports of plain frames.
    pub(in crate::commands) fn read_two(texts: &[String]) -> Result<Self, Failure> {
        Self::read(texts, &DeviceTest::Throughput, Layout::default())
    }

    /// As many ports as the test takes, each once.
    pub(in crate::commands) fn read(texts: &[String], test: &DeviceTest, layout: Layout) -> Result<Self, Failure> {
        let (given, interfaces): (Vec<&str>, Vec<&str>) = texts.iter().map(|text| split(text)).unzip();
        if given.iter().any(|host| host.is_empty()) || !interfaces.iter().all(|name| may_be_interface(name)) {
            // Not what was given: an agent URL holds a secret.
            return Err(Failure::usage(
                "--ports takes names of interfaces, or HOST:INTERFACE; an agent URL too wants its interface behind it, as in \
                 'linerate://...:eth1'",
            ));
        }
        layout.check(texts.len(), test)?;
        let (arguments, hosts) = together(&given).map_err(Failure::usage)?;
        let several = hosts.iter().any(|host| *host != hosts[0]);
        let name = |(host, interface): (&HostName, &str)| PortName {
            host: several.then(|| host.clone()),
            interface: interface.to_owned(),
        };
        let names: Vec<PortName> = hosts.iter().zip(interfaces).map(name).collect();
        if let Some((_, twice)) = names.iter().enumerate().find(|(index, name)| names[..*index].contains(name)) {
            return Err(Failure::usage(format!(
                "--ports: {twice} is there twice; a device is tested from port to port"
            )));
        }
        if several && matches!(test, DeviceTest::Latency { .. } | DeviceTest::Hosts { .. }) {
            return Err(Failure::usage(format!(
                "--ports: {} and {} are of different hosts, whose clocks differ: this test takes ports of one host, whose \
                 clock times both ends of a frame's way",
                names[0], names[1]
            )));
        }
        Ok(Self { arguments, hosts, names })
    }

    /// The host of the first port.
    pub(in crate::commands) fn home(&self) -> &HostName {
        &self.hosts[0]
    }

    /// Looks at each port, and spares those that the user needs.
    pub(in crate::commands) async fn find<'a>(
        &self,
        agents: &'a ReachedAgents,
        force: bool,
    ) -> Result<Vec<FoundPort<'a>>, Failure> {
        let mut all = Vec::with_capacity(self.names.len());
        for ((number, host), name) in (0..).zip(&self.hosts).zip(&self.names) {
            let agent = agents.find(host)?;
            let interface = std::slice::from_ref(&name.interface);
            let found = agent.client.ports(interface).await.map_err(|error| {
                // Of several hosts it must be said which one has no such port.
                Failure::measure(if name.host.is_some() { format!("{host}: {error}") } else { error.to_string() })
            })?;
            session::spare(agent, &found, force)?;
            let [info] = <[PortInfo; 1]>::try_from(found)
                .map_err(|_| Failure::measure("the agent described other ports than were asked for"))?;
            all.push(FoundPort { number, agent, info });
        }
        Ok(all)
    }
}

/// Whether Linux would take it for an interface's name.
fn may_be_interface(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| "/:#".contains(c) || c.is_whitespace() || c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::{FrameRate, Nanos};
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    /// The names in the record, with the first host.
    fn read(ports: &str, test: &DeviceTest) -> Option<(String, Vec<String>)> {
        let texts: Vec<String> = ports.split(',').map(str::to_owned).collect();
        let ports = Ports::read(&texts, test, Layout::default()).ok()?;
        Some((ports.home().to_string(), ports.names.iter().map(ToString::to_string).collect()))
    }

    fn known(home: &str, names: &[&str]) -> Option<(String, Vec<String>)> {
        Some((home.to_owned(), names.iter().map(|name| (*name).to_owned()).collect()))
    }

    #[test]
    fn ports_of_one_host_go_by_their_interface() {
        let read = |ports| read(ports, &DeviceTest::Throughput);
        assert_eq!(read("tester:p0,tester:p1"), known("tester", &["p0", "p1"]));
        assert_eq!(read("eth1,eth2"), known("local", &["eth1", "eth2"]));
        for bad in ["p0,p0", "a:p0,a:p0", "p0", "p0,p1,p2", ":p0,:p1"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn ports_of_several_hosts_go_by_host_too_and_time_nothing() {
        let test = DeviceTest::Throughput;
        assert_eq!(read("a:eth1,b:eth1", &test), known("a", &["a:eth1", "b:eth1"]));
        assert_eq!(read("eth1,b:eth1", &test), known("local", &["local:eth1", "b:eth1"]));
        let secret = format!("linerate://192.0.2.1:4747#{}.{}", "0f".repeat(16), "ab".repeat(32));
        assert_eq!(
            read(&format!("{secret}:eth1,b:eth1"), &test),
            known("192.0.2.1:4747", &["192.0.2.1:4747:eth1", "b:eth1"])
        );
        assert_eq!(read("a:eth1,b:eth1", &DeviceTest::Latency { rate: None }), None);
        assert!(read("a:eth1,a:eth2", &DeviceTest::Latency { rate: None }).is_some());
    }

    #[test]
    fn an_address_table_takes_three_ports() {
        let test = DeviceTest::Addresses { most: 1, learn_rate: FrameRate::per_second(1), ageing: Nanos::default() };
        let count = |ports| read(ports, &test).map(|(_, names)| names.len());
        assert_eq!(
            [count("a,b,c"), count("a,b"), count("a,b,a"), count("x:a,x:b,y:c")],
            [Some(3), None, None, Some(3)]
        );
    }

    /// Whatever is given, what is taken for ports are two interfaces; and no part of an agent URL is shown.
    #[test]
    fn any_ports_are_read_or_refused() {
        let pieces = ["tester", "eth1", "p0", ":", ",", "/", "#5ecret", "linerate://", "192.0.2.7", " ", "\u{e9}", "-"];
        let mut random = SmallRng::seed_from_u64(2544);
        let (mut read, mut refused) = (0, 0);
        for _ in 0..20_000 {
            let words = (0..random.random_range(1..9)).map(|_| pieces[random.random_range(0..pieces.len())]);
            let texts: Vec<String> = words.collect::<String>().split(',').map(str::to_owned).collect();
            match Ports::read(&texts, &DeviceTest::Throughput, Layout::default()) {
                Ok(Ports { names, .. }) => {
                    read += 1;
                    assert!(names.len().is_multiple_of(2) && names[0] != names[1], "{texts:?}");
                    assert!(names.iter().all(|port| may_be_interface(&port.interface)), "{texts:?}");
                }
                Err(failure) => {
                    refused += 1;
                    assert!(!format!("{failure:?}").contains("5ecret"), "{texts:?}: {failure:?}");
                }
            }
        }
        assert!(read > 50 && refused > 1_000, "{read} read, {refused} refused");
    }
}
