//! Planted faults: what goes wrong at a host or on its link. Each kind has a file of its own: its fields in a bench
//! file, what they may be, and how it is planted.

mod busy_core;
mod congestion;
mod cpu_quota;
mod drop_filter;
mod ecmp;
mod host_queue;
mod link_path;
mod loss;
mod no_offload;
mod one_core;
mod place;
mod router;
mod softirq_load;
mod tcp_memory;
mod wrong_speed;

pub use busy_core::BusyCore;
pub use congestion::Congestion;
pub use cpu_quota::CpuQuota;
pub use drop_filter::{DropFilter, FilterKind};
pub use ecmp::Ecmp;
pub use host_queue::HostQueue;
pub use link_path::{ChainWay, LinkPath};
pub use loss::Loss;
pub(crate) use loss::check_loss;
pub use no_offload::NoOffload;
pub use one_core::OneCore;
pub use place::FaultPlace;
pub use router::{AnswerAddress, IcmpRate, RouterAnswers};
pub use softirq_load::SoftirqLoad;
pub use tcp_memory::TcpMemory;
pub use wrong_speed::WrongSpeed;

use super::{Bench, TESTER};
use crate::error::{LabError, host_list};
use crate::linux::child_processes::ChildProcesses;
use crate::linux::written;
use linerate_model::HostName;
use linerate_sys::Error;
use linerate_sys::namespace::NetNamespace;
use linerate_sys::netlink::Route;
use linerate_units::{BitRate, Ratio};
use serde::Deserialize;
use std::str::FromStr;

/// A planted fault, as a `[[fault]]` table of a bench file describes it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "a bench has few")]
pub enum Fault {
    /// Frames vanish on the wire, each by chance.
    Loss(Loss),
    /// The host's agent gets no more than a share of one core.
    CpuQuota(CpuQuota),
    /// Another process takes a share of the core on which the host receives, or on which the tester sends.
    BusyCore(BusyCore),
    /// The host receives on one core, and a filter takes its time there for each frame.
    SoftirqLoad(SoftirqLoad),
    /// The host receives on one core.
    OneCore(OneCore),
    /// A filter of the host drops what comes faster than a rate of packets.
    DropFilter(DropFilter),
    /// TCP of the host has little memory for its sockets.
    TcpMemory(TcpMemory),
    /// TCP of the host uses another congestion control.
    Congestion(Congestion),
    /// The host's own queueing discipline is slower than its link.
    HostQueue(HostQueue),
    /// The host's interface declares another speed than it has.
    WrongSpeed(WrongSpeed),
    /// The host's interface neither cuts nor joins packets.
    NoOffload(NoOffload),
    /// A link of a chain of routers has limits.
    Path(LinkPath),
    /// A router of a chain sends ICMP errors otherwise than an ordinary router.
    Router(RouterAnswers),
    /// A router of a chain has a second one in parallel.
    Ecmp(Ecmp),
}

/// Behaviour of a kind of fault.
trait Kind {
    /// Its name in bench files.
    fn name(&self) -> &'static str;

    /// Returns the host in which it is planted, or with the link that has it. Returns `None` if it is planted in a chain of
    /// routers.
    fn host(&self) -> Option<&HostName>;

    /// Returns the place where it is planted, as a bench file writes it.
    fn at(&self) -> String {
        self.host().map(ToString::to_string).unwrap_or_default()
    }

    /// The variant of its kind: two variants can be planted at the same place.
    fn variant(&self) -> &'static str {
        ""
    }

    /// Checks its fields; says what is wrong.
    fn check(&self, bench: &Bench) -> Result<(), String>;

    /// Returns whether it is planted in the host's network stack, which raw frames bypass.
    fn in_stack(&self) -> bool {
        true
    }

    /// Returns whether it may be planted in the tester.
    fn in_tester(&self) -> bool {
        false
    }

    /// Returns whether it needs every frame to pass the host's link by itself.
    fn frame_by_frame(&self) -> bool {
        false
    }

    /// Returns whether it drops frames at the host's interface, so that the interface's `clsact` discipline counts
    /// them.
    fn drops_at_interface(&self) -> bool {
        false
    }

    /// Plants it in the host's network.
    fn plant(&self, _interface: &HostInterface<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Plants the part that a child process of the lab does; `agent` is the process of the host's agent.
    fn plant_in_process(&self, _children: &mut ChildProcesses, _agent: u32) -> Result<(), LabError> {
        Ok(())
    }
}

/// The data interface of a host, which is up.
pub(crate) struct HostInterface<'a> {
    /// The host's network.
    pub(crate) namespace: &'a NetNamespace,
    /// The interface's name.
    pub(crate) name: &'a str,
    /// Its largest IP packet, bytes.
    pub(crate) mtu: u32,
}

impl HostInterface<'_> {
    /// Its number.
    pub(crate) fn number(&self) -> Result<u32, Error> {
        self.namespace.enter(|| Route::open()?.index_of(self.name))?
    }
}

impl Fault {
    fn kind(&self) -> &dyn Kind {
        match self {
            Self::Loss(fault) => fault,
            Self::CpuQuota(fault) => fault,
            Self::BusyCore(fault) => fault,
            Self::SoftirqLoad(fault) => fault,
            Self::OneCore(fault) => fault,
            Self::DropFilter(fault) => fault,
            Self::TcpMemory(fault) => fault,
            Self::Congestion(fault) => fault,
            Self::HostQueue(fault) => fault,
            Self::WrongSpeed(fault) => fault,
            Self::NoOffload(fault) => fault,
            Self::Path(fault) => fault,
            Self::Router(fault) => fault,
            Self::Ecmp(fault) => fault,
        }
    }

    /// Its kind's name in bench files.
    pub fn name(&self) -> &'static str {
        self.kind().name()
    }

    /// Returns the host in which it is planted, or with the link that has it. Returns `None` if it is planted in a chain of
    /// routers.
    pub fn host(&self) -> Option<&HostName> {
        self.kind().host()
    }

    /// Checks that it can be planted in `bench` in addition to the faults `before` it. Errors name the field.
    fn check(&self, bench: &Bench, before: &[Self]) -> Result<(), String> {
        let kind = self.kind();
        let fail = |problem: &str| Err(format!("fault {} at `{}`: {problem}", kind.name(), kind.at()));
        if let Some(host) = kind.host() {
            let in_tester = kind.in_tester() && bench.tester_ports > 0 && host.0 == TESTER;
            if !bench.hosts.contains(host) && !in_tester {
                return fail(&format!("there is no such host (hosts: {})", host_list(&bench.hosts)));
            }
            if kind.in_stack() && bench.testers.contains(host) {
                return fail("this host tests the device with raw frames, which pass none of its filters and queues");
            }
        }
        let same = |other: &&Self| {
            let other = other.kind();
            (other.name(), other.at(), other.variant()) == (kind.name(), kind.at(), kind.variant())
        };
        if before.iter().any(|other| same(&other)) {
            return fail("it is planted there twice; leave one out");
        }
        kind.check(bench).or_else(|problem| fail(&problem))
    }
}

/// Reads the form of the command line: `softirq-load,at=b,cost=5us`.
impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, fields) = text.split_once(',').unwrap_or((text, ""));
        written::table([("kind", kind)], fields)?.try_into().map_err(|error: toml::de::Error| {
            format!("{}, as in softirq-load,at=b,cost=5us", error.message().trim_end())
        })
    }
}

impl Bench {
    /// Checks all planted faults; says what is wrong.
    pub(crate) fn check_faults(&self) -> Result<(), String> {
        self.faults.iter().enumerate().try_for_each(|(index, fault)| fault.check(self, &self.faults[..index]))
    }

    /// The faults planted in a host.
    fn faults_of<'a>(&'a self, host: &'a HostName) -> impl Iterator<Item = &'a dyn Kind> {
        self.faults.iter().map(Fault::kind).filter(move |fault| fault.host() == Some(host))
    }

    /// Whether faults of a host need every frame to pass its link by itself.
    pub(crate) fn faults_need_frame_by_frame(&self, host: &HostName) -> bool {
        self.faults_of(host).any(Kind::frame_by_frame)
    }

    /// Plants the faults of a host in its network; returns whether any of them drops frames at the interface.
    pub(crate) fn plant(&self, host: &HostName, interface: &HostInterface<'_>) -> Result<bool, LabError> {
        let mut drops = false;
        for fault in self.faults_of(host) {
            fault.plant(interface).map_err(LabError::at(format!("plant {} in host {host}", fault.name())))?;
            drops |= fault.drops_at_interface();
        }
        Ok(drops)
    }

    /// Starts the child processes that faults of a host need.
    pub(crate) fn plant_in_process(
        &self,
        host: &HostName,
        children: &mut ChildProcesses,
        agent: u32,
    ) -> Result<(), LabError> {
        self.faults_of(host).try_for_each(|fault| fault.plant_in_process(children, agent))
    }

    /// Returns the speed that a host's interfaces declare, if they declare any.
    pub(crate) fn declared_speed(&self, host: &HostName) -> Option<BitRate> {
        let wrong = self.faults.iter().find_map(|fault| match fault {
            Fault::WrongSpeed(fault) if fault.at == *host => Some(fault.declared),
            _ => None,
        });
        wrong.or(self.link_of(host).rate)
    }

    /// Every planted loss, with those that links have.
    pub(crate) fn losses(&self) -> Vec<(FaultPlace, Ratio)> {
        let planted = self.faults.iter().filter_map(|fault| match fault {
            Fault::Loss(loss) => Some((loss.at.clone(), loss.ratio)),
            _ => None,
        });
        planted.chain(self.losses_of_links()).collect()
    }

    /// Whether what one host sends may rightly not reach another.
    pub(crate) fn may_lose(&self) -> bool {
        !self.losses().is_empty() || self.faults.iter().any(|fault| matches!(fault, Fault::DropFilter(_)))
    }
}

/// Checks that a share of a core's time is one; says what is wrong.
fn check_share(ratio: Ratio) -> Result<(), String> {
    if ratio.part == 0 || ratio.of == 0 || ratio.part > ratio.of {
        return Err(String::from("ratio: a share of a core's time is above 0 and at most 1"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(faults: &str) -> String {
        let text = format!("name = 'x'\nhosts = ['a', 'b']\nlink = {{ rate = '100Mbit/s' }}\n{faults}");
        Bench::parse(&text, "lab.toml").expect_err(faults).to_string()
    }

    fn fault(fields: &str) -> String {
        format!("[[fault]]\n{fields}\n")
    }

    #[test]
    fn a_fault_is_written_in_a_file_as_on_the_command_line() {
        for (line, file) in [
            ("loss,at=device:a,ratio=1%", "kind = 'loss'\nat = 'device:a'\nratio = '1%'"),
            ("cpu-quota,at=a,ratio=1/2", "kind = 'cpu-quota'\nat = 'a'\nratio = '1/2'"),
            ("busy-core,at=a,ratio=0.9", "kind = 'busy-core'\nat = 'a'\nratio = '0.9'"),
            ("softirq-load,at=b,cost=5us", "kind = 'softirq-load'\nat = 'b'\ncost = '5us'"),
            ("one-core,at=b", "kind = 'one-core'\nat = 'b'"),
            ("drop-filter,at=b,above=20000", "kind = 'drop-filter'\nat = 'b'\nabove = 20_000\nby = 'tc'"),
            ("tcp-memory,at=a,send=64KiB", "kind = 'tcp-memory'\nat = 'a'\nsend = '64KiB'"),
            ("congestion,at=a,control=reno", "kind = 'congestion'\nat = 'a'\ncontrol = 'reno'"),
            ("host-queue,at=a,rate=9M,queue=1K", "kind = 'host-queue'\nat = 'a'\nrate = '9M'\nqueue = '1K'"),
            ("wrong-speed,at=a,declared=1G", "kind = 'wrong-speed'\nat = 'a'\ndeclared = '1G'"),
            ("no-offload,at=a", "kind = 'no-offload'\nat = 'a'"),
            (
                "path,at=2-3,way=return,mtu=1400,mtu-silent=true",
                "kind = 'path'\nat = '2-3'\nway = 'return'\nmtu = 1400\nmtu-silent = true",
            ),
            ("ecmp,at=2", "kind = 'ecmp'\nat = 2"),
            ("router,at=2,silent=true", "kind = 'router'\nat = 2\nsilent = true"),
            (
                "router,at=2b,address=odd,icmp-rate=5/s",
                "kind = 'router'\nat = '2b'\naddress = 'odd'\nicmp-rate = '5/s'",
            ),
        ] {
            let parsed_fault: Fault = line.parse().expect(line);
            assert_eq!(toml::from_str::<Fault>(file).as_ref(), Ok(&parsed_fault), "{line}");
            assert_eq!(line.split(',').next(), Some(parsed_fault.name()));
        }
    }

    #[test]
    fn a_line_that_is_no_fault_is_named_with_an_example() {
        for (line, part) in [
            ("", "softirq-load"),
            ("slow", "`slow`"),
            ("one-core", "`at`"),
            ("one-core,at=b,core=1", "`core`"),
            ("softirq-load,at=b,cost=slow", "`slow` is not a duration"),
            ("softirq-load,at=b,cost", "`cost`"),
            ("softirq-load,at=b,cost=1us,cost=2us", "`cost` is there twice"),
        ] {
            let error = line.parse::<Fault>().expect_err(line);
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn an_error_names_the_fault_and_the_field() {
        for (fields, parts) in [
            ("kind = 'gremlin'\nat = 'a'", ["line 5", "`gremlin`"]),
            ("kind = 'one-core'\nat = 'a'\nratio = '1%'", ["line 4", "`ratio`"]),
            ("kind = 'cpu-quota'\nat = 'a'\nshare = '1%'", ["line 4", "`share`"]),
            ("kind = 'softirq-load'\nat = 'a'", ["line 4", "`cost`"]),
            ("kind = 'loss'\nat = 'a:b'\nratio = '1%'", ["line 4", "`a:b`"]),
            ("kind = 'loss'\nat = 'z'\nratio = '1%'", ["fault loss at `z`", "no such host (hosts: a, b)"]),
            ("kind = 'loss'\nat = 'a'\nratio = '2'", ["fault loss at `a`", "at most 1"]),
            ("kind = 'cpu-quota'\nat = 'device:a'\nratio = '1%'", ["fault cpu-quota at `device:a`", "no such host"]),
            ("kind = 'cpu-quota'\nat = 'a'\nratio = '0'", ["fault cpu-quota at `a`", "above 0"]),
            ("kind = 'busy-core'\nat = 'tester'\nratio = '1'", ["fault busy-core at `tester`", "no such host"]),
            ("kind = 'softirq-load'\nat = 'a'\ncost = '0'", ["fault softirq-load at `a`", "cost"]),
            ("kind = 'softirq-load'\nat = 'a'\ncost = '1ms'", ["fault softirq-load at `a`", "100 us"]),
            ("kind = 'drop-filter'\nat = 'a'\nabove = 0", ["fault drop-filter at `a`", "above"]),
            ("kind = 'drop-filter'\nat = 'a'\nabove = 'x'", ["line 4", "`x` is not a frame"]),
            ("kind = 'drop-filter'\nat = 'a'\nabove = 9\nby = 'luck'", ["line 4", "`luck`"]),
            ("kind = 'tcp-memory'\nat = 'a'", ["fault tcp-memory at `a`", "receive, send, or both"]),
            ("kind = 'tcp-memory'\nat = 'a'\nsend = '0'", ["fault tcp-memory at `a`", "send"]),
            ("kind = 'congestion'\nat = 'a'\ncontrol = '../x'", ["fault congestion at `a`", "`../x`"]),
            ("kind = 'host-queue'\nat = 'a'\nrate = '0'\nqueue = '9K'", ["fault host-queue at `a`", "rate"]),
            ("kind = 'host-queue'\nat = 'a'\nrate = '1G'\nqueue = '9K'", ["fault host-queue at `a`", "100 Mbit/s"]),
            ("kind = 'host-queue'\nat = 'a'\nrate = '1M'\nqueue = '9'", ["fault host-queue at `a`", "queue"]),
            ("kind = 'wrong-speed'\nat = 'a'\ndeclared = '0'", ["fault wrong-speed at `a`", "declared"]),
            (
                "kind = 'busy-core'\nat = 'a'\nratio = '1'\n[[fault]]\nkind = 'no-offload'\nat = 'a'",
                ["fault no-offload at `a`", "busy-core"],
            ),
            ("kind = 'wrong-speed'\nat = 'a'\ndeclared = '100M'", ["fault wrong-speed at `a`", "the speed it has"]),
        ] {
            let error = problem(&fault(fields));
            assert!(parts.iter().all(|part| error.contains(part)), "{fields}\n{error}");
        }
    }

    #[test]
    fn two_of_a_kind_at_one_host_are_refused() {
        for fields in [
            "kind = 'cpu-quota'\nat = 'a'\nratio = '1%'",
            "kind = 'loss'\nat = 'device:a'\nratio = '1%'",
            "kind = 'drop-filter'\nat = 'b'\nabove = 100",
            "kind = 'one-core'\nat = 'b'",
        ] {
            let error = problem(&fault(fields).repeat(2));
            let kind = fields.split('\'').nth(1).expect("a kind");
            assert!(error.contains("twice") && error.contains(kind), "{error}");
        }
        let both = "[[fault]]\nkind = 'drop-filter'\nat = 'b'\nabove = 100\n\
                    [[fault]]\nkind = 'drop-filter'\nat = 'b'\nabove = 100\nby = 'netfilter'";
        Bench::parse(&format!("name = 'x'\n{both}"), "x").expect("two filters");
    }

    #[test]
    fn a_host_that_sends_raw_frames_has_no_fault_in_its_stack() {
        let of = |kind: &str| {
            Bench::parse(&format!("name = 'x'\ntesters = ['a', 'b']\n[[fault]]\nat = 'a'\nkind = '{kind}'"), "x")
        };
        let error = of("one-core").expect_err("raw frames").to_string();
        assert!(error.contains("raw frames"), "{error}");
        of("cpu-quota'\nratio = '1%").expect("its agent may have little time");
    }
}
