//! Hosts on the command line become agents: agent URLs, files and variables that hold them, saved names, `local`, lab hosts,
//! and members of a fleet.

use crate::exit::Failure;
use crate::fleet_folder::FleetFolder;
use crate::iperf3_server;
pub(crate) use crate::saved_hosts::LOCAL;
use crate::saved_hosts::{SavedHosts, url_of_variable, urls_of_file};
use linerate_agent::{
    Agent, AgentOptions, AllowedFolders, AllowedInterfaces, AllowedServers, EngineOptions, IpNet, Limits, NfsService,
};
use linerate_bus::{AgentName, Bus, Kept, Presence};
use linerate_lab::{Lab, LabError, OpenVswitchWatch, PathWatch, ReferenceWatch};
use linerate_model::{AgentUrl, HostName, IpVersion, Message, Path, message};
use linerate_runner::{AgentHandle, BenchWatch, ControlAgents};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The hosts known by name: those of the lab a command runs in, or of a lab that was kept up.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostBook {
    lab: BTreeMap<HostName, AgentUrl>,
    /// What stands between them; none where that has no limits to keep.
    device: Option<LabDevice>,
    /// Connection to a fleet, and the fence of its scheduler's sessions. `None` for a user's own commands.
    fleet: Option<(Bus, u64)>,
}

/// Device between the hosts of a lab that reports whether it kept its limits.
#[derive(Debug, Clone)]
enum LabDevice {
    Path(Arc<PathWatch>),
    OpenVswitch(Arc<OpenVswitchWatch>),
    Reference(Arc<ReferenceWatch>),
}

impl LabDevice {
    fn of(lab: &Lab) -> Option<Self> {
        let path = lab.path().map(Self::Path);
        let open_vswitch = lab.open_vswitch().map(Self::OpenVswitch);
        path.or(open_vswitch).or_else(|| lab.reference().map(Arc::new).map(Self::Reference))
    }

    fn ask(&self) -> Result<Option<Message>, LabError> {
        match self {
            Self::Path(path) => path.missed(),
            Self::OpenVswitch(switch) => switch.missed(),
            Self::Reference(device) => device.missed(),
        }
    }
}

impl BenchWatch for LabDevice {
    fn missed(&self) -> Option<Message> {
        self.ask().unwrap_or_else(|error| {
            Some(message!("bench-not-asked", "{error}; do not rely on this result", error = error.to_string()))
        })
    }
}

/// The hosts that take part. The clients open connections to the server.
#[derive(Debug)]
pub(crate) struct HostArguments {
    clients: Vec<HostArgument>,
    server: HostArgument,
}

/// A host as given.
#[derive(Debug, Clone)]
struct HostArgument {
    /// Its name in the record: never an agent URL, which holds secrets.
    name: HostName,
    url: Option<AgentUrl>,
    /// The member of a fleet, if it is one.
    member: Option<FleetSelector>,
}

/// Reads `A,B SERVER`, or `SERVER` alone with this machine as its client.
pub(crate) fn host_arguments(hosts: &[String]) -> Result<HostArguments, String> {
    let (clients, server) = match hosts {
        [server] => (LOCAL, server),
        [clients, server] => (clients.as_str(), server),
        _ => return Err("name a sender and a receiver, or a receiver alone".to_owned()),
    };
    let clients = listed(clients)?;
    let server = host_argument(server)?;
    for (index, client) in clients.iter().enumerate() {
        if clients[..index].iter().any(|other| other.name == client.name) {
            return Err(format!(
                "{} is named twice as a sender; for more flows from one host use --flows",
                client.name
            ));
        }
    }
    if clients.len() > 1 && clients.iter().any(|client| client.name == server.name) {
        return Err(format!("{} cannot be a sender and the receiver at once", server.name));
    }
    Ok(HostArguments { clients, server })
}

/// Reads hosts that open no connections to each other. Returns their names too, in their order; some may be the same.
pub(crate) fn together(hosts: &[&str]) -> Result<(HostArguments, Vec<HostName>), String> {
    let all: Vec<HostArgument> = hosts.iter().map(|host| host_argument(host)).collect::<Result<_, _>>()?;
    beside_each_other(all)
}

/// As [`together`], of hosts with commas between.
pub(crate) fn all_listed(hosts: &str) -> Result<(HostArguments, Vec<HostName>), String> {
    beside_each_other(listed(hosts)?)
}

fn beside_each_other(all: Vec<HostArgument>) -> Result<(HostArguments, Vec<HostName>), String> {
    let names = all.iter().map(|host| host.name.clone()).collect();
    let (server, clients) = all.split_first().ok_or("name a host")?;
    Ok((HostArguments { clients: clients.to_vec(), server: server.clone() }, names))
}

/// Hosts with commas between. A file stands for all that it holds.
fn listed(text: &str) -> Result<Vec<HostArgument>, String> {
    let each: Vec<Vec<HostArgument>> = text.split(',').map(arguments_of).collect::<Result<_, _>>()?;
    Ok(each.into_iter().flatten().collect())
}

/// One host.
fn host_argument(text: &str) -> Result<HostArgument, String> {
    <[HostArgument; 1]>::try_from(arguments_of(text)?)
        .map(|[host]| host)
        .map_err(|hosts| format!("{} holds {} agent URLs, and here one host is named", text.trim(), hosts.len()))
}

/// What one word on the command line names.
fn arguments_of(text: &str) -> Result<Vec<HostArgument>, String> {
    let text = text.trim();
    let of_url = |url: AgentUrl| HostArgument { name: HostName(url.address()), url: Some(url), member: None };
    if text.is_empty() {
        return Err(
            "a host's name is empty; give an agent URL, @FILE, env:NAME, a saved name, `local`, or a lab host's name"
                .to_owned(),
        );
    }
    if let Some(file) = text.strip_prefix('@') {
        return Ok(urls_of_file(std::path::Path::new(file))?.into_iter().map(of_url).collect());
    }
    if let Some(variable) = text.strip_prefix("env:") {
        return Ok(vec![of_url(url_of_variable(variable)?)]);
    }
    // Without its beginning it is told as a bad one as well, for it is not shown with its secrets then.
    if AgentUrl::is_meant(text) {
        return Ok(vec![of_url(text.parse().map_err(|error| format!("{error}"))?)]);
    }
    if let Some(selector) = FleetSelector::of(text) {
        let selector = selector?;
        // Records name an agent as its fleet does.
        let name = match &selector {
            FleetSelector::Name(agent) => HostName(agent.to_string()),
            FleetSelector::Label { .. } => text.into(),
        };
        return Ok(vec![HostArgument { name, url: None, member: Some(selector) }]);
    }
    Ok(vec![HostArgument { name: text.into(), url: None, member: None }])
}

/// A member of a fleet, as in `fleet:site-a` or `fleet:site=berlin`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FleetSelector {
    /// The agent of this name.
    Name(AgentName),
    /// The one agent with this label.
    Label { key: String, value: String },
}

impl FleetSelector {
    const PREFIX: &'static str = "fleet:";

    /// Reads a word. Returns `None` if it names no member of a fleet.
    fn of(word: &str) -> Option<Result<Self, String>> {
        let text = word.strip_prefix(Self::PREFIX)?;
        Some(match text.split_once('=') {
            Some((key, value)) if !key.is_empty() && !value.is_empty() => {
                Ok(Self::Label { key: key.to_owned(), value: value.to_owned() })
            }
            Some(_) => Err(format!("`{word}` lacks the key or the value of a label; write it like fleet:site=berlin")),
            None => text.parse().map(Self::Name).map_err(|error| format!("`{word}`: {error}")),
        })
    }
}

/// Returns the one agent with a label, among those that were heard in the last half minute before the latest.
fn labelled(presences: &[Kept<Presence>], key: &str, value: &str) -> Result<AgentName, String> {
    const SILENT_NS: u64 = 30_000_000_000;
    let latest = presences.iter().map(|presence| presence.published_unix_ns).max().unwrap_or_default();
    let is_present =
        |presence: &&Kept<Presence>| !presence.value.leaving && presence.published_unix_ns + SILENT_NS >= latest;
    let present: Vec<&Presence> = presences.iter().filter(is_present).map(|presence| &presence.value).collect();
    let has_label = |presence: &&&Presence| presence.labels.get(key).is_some_and(|other| other == value);
    let matches: Vec<&&Presence> = present.iter().filter(has_label).collect();
    let names = |all: &mut dyn Iterator<Item = &AgentName>| {
        let names: Vec<&str> = all.map(AgentName::as_str).collect();
        names.join(", ")
    };
    match &matches[..] {
        [one] => Ok(one.name.clone()),
        [] if present.is_empty() => Err(format!(
            "no agent of the fleet is present, so none has the label {key}={value}; start them with `linerate serve --fleet`"
        )),
        [] => Err(format!(
            "no agent that is present has the label {key}={value}; present are {}; `linerate fleet list` shows their labels",
            names(&mut present.iter().map(|presence| &presence.name))
        )),
        several => Err(format!(
            "{} agents have the label {key}={value}; name one of them as fleet:NAME: {}",
            several.len(),
            names(&mut several.iter().map(|presence| &presence.name))
        )),
    }
}

impl HostArguments {
    /// One path from each client to the server.
    pub(crate) fn paths(&self) -> Vec<Path> {
        self.clients.iter().map(|client| Path::between(client.name.clone(), self.server.name.clone())).collect()
    }

    /// Whether that host takes part.
    pub(crate) fn has(&self, name: &HostName) -> bool {
        self.all().any(|host| host.name == *name)
    }

    fn all(&self) -> impl Iterator<Item = &HostArgument> {
        self.clients.iter().chain([&self.server])
    }
}

/// The agents of a run. An agent of this process lives as long as this.
pub(crate) struct ReachedAgents {
    pub(crate) control: ControlAgents,
    local: Option<Agent>,
    device: Option<LabDevice>,
    /// Connection to the fleet. `None` until one of its members takes part.
    bus: Option<Bus>,
}

impl ReachedAgents {
    /// The agent of the host called `name`.
    pub(crate) fn find(&self, name: &HostName) -> Result<&AgentHandle, Failure> {
        self.control.find(name).map_err(Failure::measure)
    }

    /// What stands between the hosts, where it can say whether it kept its limits.
    pub(crate) fn bench(&self) -> Option<&dyn BenchWatch> {
        self.device.as_ref().map(|device| device as &dyn BenchWatch)
    }

    /// Stops this process's own agent.
    pub(crate) async fn close(self) {
        if let Some(agent) = self.local {
            agent.shutdown().await;
        }
    }
}

impl HostBook {
    /// The hosts of a lab.
    pub(crate) fn of_lab(lab: &Lab) -> Self {
        Self { lab: lab.hosts().clone(), device: LabDevice::of(lab), fleet: None }
    }

    /// The members of a fleet, for sessions of its scheduler.
    pub(crate) fn of_fleet(bus: Bus, fence: u64) -> Self {
        Self { fleet: Some((bus, fence)), ..Self::default() }
    }

    /// Sender and receiver. Where one host alone is the receiver, the sender is this machine, or in a lab, which this machine is
    /// no part of, the first of its other hosts.
    pub(crate) fn pair(&self, hosts: &[String]) -> Vec<String> {
        let [receiver] = hosts else { return hosts.to_vec() };
        let sender = self.lab.keys().map(|host| &host.0).find(|host| *host != receiver);
        vec![sender.map_or_else(|| LOCAL.to_owned(), String::clone), receiver.clone()]
    }

    /// The IP version of trials between `hosts` where none is asked for: IPv6 if every host elsewhere is reached by it. Hosts of a lab have
    /// both, and use IPv4.
    pub(crate) fn ip_version<'a>(&self, hosts: impl IntoIterator<Item = &'a String>) -> IpVersion {
        let by_ipv6 = |host: &str| match iperf3_server::host(host) {
            Some((host, port)) => is_reached_by_ipv6(&host, port),
            None => arguments_of(host).is_ok_and(|hosts| hosts.iter().all(|host| self.is_reached_by_ipv6(host))),
        };
        let elsewhere = hosts.into_iter().flat_map(|hosts| hosts.split(',')).filter(|host| host.trim() != LOCAL);
        let mut elsewhere = elsewhere.peekable();
        if elsewhere.peek().is_some() && elsewhere.all(by_ipv6) { IpVersion::V6 } else { IpVersion::V4 }
    }

    /// Returns whether a word names a host with an agent, rather than any host by its name or address.
    pub(crate) fn is_agent(&self, word: &str) -> bool {
        let name = HostName::from(word);
        let is_written = AgentUrl::is_meant(word)
            || word.starts_with('@')
            || word.starts_with("env:")
            || word.starts_with(FleetSelector::PREFIX);
        if word == LOCAL || is_written || self.lab.contains_key(&name) {
            return true;
        }
        if !self.lab.is_empty() {
            return false;
        }
        let kept = linerate_lab::kept().ok().flatten();
        kept.is_some_and(|kept| kept.hosts().contains_key(&name))
            || SavedHosts::read().is_ok_and(|saved| saved.find(&name).is_some())
    }

    fn is_reached_by_ipv6(&self, host: &HostArgument) -> bool {
        let saved = || SavedHosts::read().ok()?.find(&host.name).cloned();
        let url = host.url.clone().or_else(|| if self.lab.is_empty() { saved() } else { None });
        url.is_some_and(|url| is_reached_by_ipv6(&url.host, url.port))
    }

    /// Reaches every agent that takes part.
    pub(crate) async fn gather(&self, hosts: &HostArguments) -> Result<ReachedAgents, Failure> {
        let mut agents =
            ReachedAgents { control: ControlAgents::default(), local: None, device: self.device.clone(), bus: None };
        for host in hosts.all() {
            self.reach(host, &mut agents).await?;
        }
        Ok(agents)
    }

    /// Reaches one more agent, and returns its name.
    pub(crate) async fn admit(&self, host: &str, agents: &mut ReachedAgents) -> Result<HostName, Failure> {
        let host = host_argument(host).map_err(Failure::usage)?;
        self.reach(&host, agents).await?;
        Ok(host.name)
    }

    async fn reach(&self, host: &HostArgument, agents: &mut ReachedAgents) -> Result<(), Failure> {
        if agents.control.find(&host.name).is_ok() {
            return Ok(());
        }
        if let Some(selector) = &host.member {
            return self.reach_member(&host.name, selector, agents).await;
        }
        let url = match &host.url {
            Some(url) => url.clone(),
            None => self.named(&host.name, agents).await?,
        };
        agents.control.add(host.name.clone(), &url).await.map_err(Failure::measure)
    }

    async fn reach_member(
        &self,
        name: &HostName,
        selector: &FleetSelector,
        agents: &mut ReachedAgents,
    ) -> Result<(), Failure> {
        if !self.lab.is_empty() {
            return Err(Failure::usage(format!("{name} is outside of the lab that this command runs in")));
        }
        let (bus, fence) = match (&self.fleet, &agents.bus) {
            (Some((bus, fence)), _) => (bus.clone(), Some(*fence)),
            (None, Some(bus)) => (bus.clone(), None),
            (None, None) => (agents.bus.insert(FleetFolder::default().connect().await?).clone(), None),
        };
        let agent = match selector {
            FleetSelector::Name(agent) => agent.clone(),
            FleetSelector::Label { key, value } => {
                let presences = bus.presences().await.map_err(Failure::measure)?;
                labelled(&presences, key, value).map_err(Failure::usage)?
            }
        };
        agents.control.add_member(name.clone(), &bus, agent, fence).await.map_err(Failure::measure)
    }

    async fn named(&self, name: &HostName, agents: &mut ReachedAgents) -> Result<AgentUrl, Failure> {
        if let Some(url) = self.lab.get(name) {
            return Ok(url.clone());
        }
        if name.0 == LOCAL {
            let agent = start_local().await?;
            let url = agent.url().clone();
            agents.local = Some(agent);
            return Ok(url);
        }
        // A command in a lab must not reach out of it.
        let (kept, saved) = if self.lab.is_empty() {
            let kept = linerate_lab::kept().map_err(Failure::measure)?.map(|kept| kept.hosts()).unwrap_or_default();
            (kept, Some(SavedHosts::read().map_err(Failure::usage)?))
        } else {
            (BTreeMap::new(), None)
        };
        match (kept.get(name), saved.as_ref().and_then(|saved| saved.find(name))) {
            (Some(_), Some(_)) => {
                return Err(Failure::usage(format!(
                    "{name} is a host of the lab that is up, and a saved host too: save that one by another name \
                     (`linerate hosts list`)"
                )));
            }
            (Some(url), None) | (None, Some(url)) => return Ok(url.clone()),
            (None, None) => {}
        }
        let known: Vec<&str> = self.lab.keys().chain(kept.keys()).map(|host| host.0.as_str()).collect();
        let lab = if known.is_empty() {
            "no lab is up (`linerate lab -- COMMAND` runs a command in one)".to_owned()
        } else {
            format!("the lab's hosts are {}", known.join(", "))
        };
        let known: Vec<&str> = saved.iter().flat_map(|saved| saved.all().keys()).map(|host| host.0.as_str()).collect();
        let saved = if known.is_empty() { String::new() } else { format!("; saved are {}", known.join(", ")) };
        Err(Failure::usage(format!(
            "no host is called `{name}`: give the agent URL that its agent printed (linerate://...), `{LOCAL}` for this machine, a \
             name saved by `linerate hosts add`, or a lab host's name; {lab}{saved}"
        )))
    }
}

/// Whether a host is reached by IPv6: by the first of its addresses that answers, if it has some of both families.
fn is_reached_by_ipv6(host: &str, port: u16) -> bool {
    const ANSWER: Duration = Duration::from_secs(2);
    let is_ipv6 = |address: &SocketAddr| address.ip().to_canonical().is_ipv6();
    let addresses: Vec<SocketAddr> = match host.split_once('%') {
        // The zone may be of the host that connects.
        Some((address, _)) => address.parse().map(|ip: IpAddr| SocketAddr::new(ip, port)).into_iter().collect(),
        None => (host, port).to_socket_addrs().map(Iterator::collect).unwrap_or_default(),
    };
    if addresses.iter().all(is_ipv6) || !addresses.iter().any(is_ipv6) {
        return addresses.first().is_some_and(is_ipv6);
    }
    let answers = |address: &&SocketAddr| TcpStream::connect_timeout(address, ANSWER).is_ok();
    addresses.iter().find(answers).or(addresses.first()).is_some_and(is_ipv6)
}

/// All folders, as far as the user's own permissions go.
fn everywhere() -> AllowedFolders {
    AllowedFolders { allowed: vec![PathBuf::from("/")], scratch: Some(std::env::temp_dir()) }
}

/// An agent in this process, for this process only.
pub(crate) async fn start_local() -> Result<Agent, Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| {
        Failure::measure(format!("cannot listen on 127.0.0.1 for this process's own agent: {error}"))
    })?;
    // Who runs this program may send frames, read and write files, and reach servers, by other programs too.
    let limits = Limits {
        frames: AllowedInterfaces::All,
        servers: AllowedServers::any(),
        cold_cache: true,
        allowed_targets: [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()]
            .map(|any: IpAddr| IpNet::new_assert(any, 0))
            .into(),
        ..Limits::default()
    };
    let usual = AgentOptions::new(listener, LOCAL.into()).map_err(Failure::measure)?;
    let engines = EngineOptions {
        folders: everywhere(),
        nfs: NfsService { memory: limits.budget.nfs_memory(), ..NfsService::default() },
    };
    // It is not confined: the user's own program goes on to do other things.
    let options = AgentOptions { engines, limits, ..usual };
    Agent::start(options).await.map_err(Failure::measure)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(hosts: &[&str]) -> Result<Vec<String>, String> {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        Ok(host_arguments(&hosts)?
            .paths()
            .iter()
            .map(|path| format!("{}>{}", path.client, path.server.name()))
            .collect())
    }

    #[test]
    fn one_host_is_the_receiver_and_commas_make_several_senders() {
        assert_eq!(names(&["b"]), Ok(vec!["local>b".to_owned()]));
        assert_eq!(names(&["a,c", "b"]), Ok(vec!["a>b".to_owned(), "c>b".to_owned()]));
        assert!(names(&["a,a", "b"]).is_err() && names(&["a,b", "b"]).is_err() && names(&["a,", "b"]).is_err());
    }

    #[test]
    fn trials_use_ipv6_where_every_host_elsewhere_is_reached_by_it() {
        let url = |host: &str| format!("linerate://{host}:4747#{}.{}", "0f".repeat(16), "ab".repeat(32));
        let (four, six) = (url("192.0.2.1"), url("[2001:db8::1]"));
        let book = HostBook::default();
        let version = |hosts: &[&str]| book.ip_version(&hosts.iter().map(|h| (*h).to_owned()).collect::<Vec<_>>());
        for hosts in [&[six.as_str()][..], &["local", &six], &[&six, &six], &["iperf3://[2001:db8::1]:99"]] {
            assert_eq!(version(hosts), IpVersion::V6, "{hosts:?}");
        }
        let listed = format!("{six},{four}");
        for hosts in
            [&[four.as_str()][..], &["local", "local"], &[&four, &six], &[&listed, &six], &["iperf3://192.0.2.1"]]
        {
            assert_eq!(version(hosts), IpVersion::V4, "{hosts:?}");
        }
        let lab = HostBook {
            lab: BTreeMap::from([("b".into(), six.parse().expect("an agent URL"))]),
            device: None,
            fleet: None,
        };
        assert_eq!(lab.ip_version(&["b".to_owned()]), IpVersion::V4);
    }

    #[test]
    fn in_a_lab_another_host_is_the_sender() {
        let url: AgentUrl =
            format!("linerate://192.0.2.1:4747#{}.{}", "0f".repeat(16), "ab".repeat(32)).parse().expect("an agent URL");
        let hosts = BTreeMap::from(["a".into(), "b".into()].map(|host: HostName| (host, url.clone())));
        let lab = HostBook { lab: hosts, device: None, fleet: None };
        let pair =
            |book: &HostBook, hosts: &[&str]| book.pair(&hosts.iter().map(|h| (*h).to_owned()).collect::<Vec<_>>());
        assert_eq!(pair(&lab, &["b"]), ["a", "b"]);
        assert_eq!(pair(&lab, &["a"]), ["b", "a"]);
        assert_eq!(pair(&lab, &["local", "b"]), ["local", "b"]);
        assert_eq!(pair(&HostBook::default(), &["b"]), ["local", "b"]);
    }

    #[test]
    fn an_agent_url_may_come_from_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("urls");
        let secrets = format!("#{}.{}", "0f".repeat(16), "ab".repeat(32));
        let lines = ["192.0.2.1", "192.0.2.2"].map(|host| format!("linerate://{host}:4747{secrets}\n"));
        std::fs::write(&path, lines.concat()).expect("written");
        linerate_testsuite::files::set_mode(&path, 0o600);
        let file = format!("@{}", path.display());
        let two = vec!["192.0.2.1:4747>b".to_owned(), "192.0.2.2:4747>b".to_owned()];
        assert_eq!(names(&[&file, "b"]), Ok(two));
        assert_eq!(all_listed(&format!("{file},c")).map(|(_, names)| names.len()), Ok(3));
        let error = names(&["b", &file]).expect_err("two receivers");
        assert!(error.contains("2 agent URLs") && !error.contains("0f0f"), "{error}");
        assert!(names(&["env:LINERATE_NO_SUCH_VARIABLE"]).expect_err("not set").contains("LINERATE_NO_SUCH_VARIABLE"));
    }

    #[test]
    fn members_of_a_fleet_are_named_or_chosen_by_a_label() {
        assert_eq!(names(&["fleet:a", "fleet:site=berlin"]), Ok(vec!["a>fleet:site=berlin".to_owned()]));
        for wrong in ["fleet:", "fleet:=berlin", "fleet:site=", "fleet:a.b"] {
            let error = names(&[wrong]).expect_err("no member");
            assert!(error.contains(wrong), "{error}");
        }
        assert!(HostBook::default().is_agent("fleet:a"));
    }

    #[test]
    fn label_must_be_that_of_one_agent_that_is_present() {
        let presence = |name: &str, site: &str, second: u64, leaving: bool| Kept {
            subject: String::new(),
            published_unix_ns: second * 1_000_000_000,
            sequence: 1,
            value: Presence {
                name: name.parse().expect("a name"),
                instance: String::new(),
                version: String::new(),
                protocol: 8,
                labels: BTreeMap::from([("site".to_owned(), site.to_owned())]),
                sessions: 0,
                leaving,
            },
        };
        let all = [
            presence("a", "berlin", 100, false),
            presence("b", "rome", 95, false),
            presence("c", "rome", 99, false),
            presence("d", "berlin", 60, false),
            presence("e", "berlin", 99, true),
        ];
        assert_eq!(labelled(&all, "site", "berlin").map(String::from), Ok("a".to_owned()));
        let error = labelled(&all, "site", "rome").expect_err("two");
        assert!(error.contains("2 agents") && error.contains("b, c"), "{error}");
        let error = labelled(&all, "site", "oslo").expect_err("none");
        assert!(error.contains("site=oslo") && error.contains("present are a, b, c;"), "{error}");
        assert!(labelled(&[], "site", "oslo").expect_err("none").contains("serve --fleet"));
    }

    #[test]
    fn secrets_do_not_become_names() {
        let line = format!("linerate://192.0.2.1:4747#{}.{}", "0f".repeat(16), "ab".repeat(32));
        assert_eq!(names(&[&line]), Ok(vec!["local>192.0.2.1:4747".to_owned()]));
    }
}
