//! `linerate serve`: lets other machines measure to and from this one.

mod fleet;
mod invitations;
mod iperf3;
mod service;
mod stamp;

use crate::exit::Failure;
use crate::nfs_service::NfsOptions;
use crate::options::StorePath;
use crate::output::{language, print, say};
use etcetera::{BaseStrategy as _, base_strategy};
use linerate_agent::{
    Agent, AgentOptions, AllowedFolders, AllowedHours, AllowedInterfaces, AllowedServer, AllowedServers, AllowedUser,
    Budget, Confinement, EngineOptions, Identity, Invitations, IpNet, Limits, PAIRING_TIME, SessionLog, Timeouts,
    Token,
};
use linerate_control::PROTOCOL;
use linerate_control::pairing::PairingCode;
use linerate_discovery::AnnouncedAgent;
use linerate_engine::{
    AllowedPeers, DataPorts, PortServer, Report, Reserve, StrangerReplies, at_one_port, listen, own_with_zone,
};
use linerate_iperf3::ServiceLimits;
use linerate_model::{AgentUrl, Duplex, HostName};
use linerate_observe::{UsableMemory, usable_memory};
use linerate_oncrpc::RpcService;
use linerate_report::{Language, said};
use linerate_store::Store;
use linerate_sys::system;
use linerate_units::{BitRate, ByteCount, DayHours, Nanos};
use std::collections::BTreeMap;
use std::io::{ErrorKind, IsTerminal as _, stdout};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs as _, UdpSocket};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use tokio::sync::watch;

/// Let other machines measure to and from this machine
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  linerate serve                        prints what to type on the other machine
  linerate serve --allow-peer 192.0.2.0/24 --max-rate 1Gbit/s
  linerate serve --pair                 a code for `linerate hosts add --pair`
  linerate serve --iperf3               serves `iperf3 -c` too, on port 5201
  linerate serve invite --for 1h        a URL that allows less, for an hour
  linerate serve --fleet                serves the fleet of this host too

The agent URL contains its key. Anyone with it can send traffic from and to this
machine within the limits: treat it as a password.",
    after_long_help = "\
More examples:
  linerate serve --listen 127.0.0.1:4747     this machine only
  linerate serve --announce                  found by `linerate hosts discover`
  linerate serve --data-ports 5000-5010      trials listen there, not at 4747

On a terminal the agent prints the command to type on the other machine, elsewhere its agent URL alone, and then a line for \
each trial that it served. Give others a URL of `linerate serve invite`. Make the port reachable from trusted networks only. \
Trials listen at the same port, TCP and UDP, unless --data-ports names others; they take only connections and datagrams that \
prove the trial's key."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<invitations::Command>,

    /// Address and port [default: port 4747]
    ///
    /// The agent listens there. The default is port 4747 of all addresses.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listening)]
    listen: Option<SocketAddr>,

    /// Use this inherited listening socket instead
    #[arg(long, value_name = "FD", conflicts_with = "listen", hide_short_help = true)]
    listen_fd: Option<i32>,

    /// Host name or address in the agent URL
    ///
    /// The default is the address listened on; if that is a wildcard, the source address, an address of its own, or the name of
    /// this host.
    #[arg(long, value_name = "HOST", value_parser = advertised, hide_short_help = true)]
    advertise: Option<String>,

    /// Name of this host [default: its host name]
    #[arg(long, hide_short_help = true)]
    name: Option<String>,

    /// Address for trial data from other hosts; may be repeated [default: the address at which they reach the agent]
    #[arg(long, value_name = "ADDRESS", hide_short_help = true)]
    data_address: Vec<IpAddr>,

    /// Ports of trial data [default: the agent's]
    ///
    /// Trials of this host listen at them, TCP and UDP, as in 5000-5010. A UDP flow takes a port of its own.
    #[arg(long, value_name = "FIRST-LAST", hide_short_help = true)]
    data_ports: Option<DataPorts>,

    /// Speed of an interface whose driver reports none or a wrong one, for example eth0=1Gbit/s; may be repeated
    #[arg(long, value_name = "IF=RATE", value_parser = link_speed, hide_short_help = true)]
    link_speed: Vec<(String, BitRate)>,

    /// Duplex of an interface whose driver reports none or a wrong one, for example eth0=half; may be repeated
    #[arg(long, value_name = "IF=DUPLEX", value_parser = link_duplex, hide_short_help = true)]
    link_duplex: Vec<(String, Duplex)>,

    /// Maximum rate of trials [default: any]
    ///
    /// Maximum payload rate that trials may send from this host.
    #[arg(long, value_name = "RATE")]
    max_rate: Option<BitRate>,

    /// Longest trial
    ///
    /// Maximum length of a trial, warm-up included, and of preparing it.
    #[arg(long, value_name = "TIME", default_value = "10min")]
    max_time: Nanos,

    /// Hours of the day at which trials may run, in local time, as in 20:00-06:00 [default: all]
    ///
    /// A trial that would begin or end outside of them is refused.
    #[arg(long, value_name = "HH:MM-HH:MM", hide_short_help = true)]
    hours: Option<DayHours>,

    /// Most trials at a time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = at_least_one::<usize>, hide_short_help = true)]
    max_trials: usize,

    /// Maximum number of connections or sockets of one trial on this host
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_flows, value_parser = at_least_one::<u64>, hide_short_help = true)]
    max_flows: u64,

    /// Maximum memory of all trials together, those of iperf3's clients too [default: a quarter of this machine's]
    #[arg(long, value_name = "SIZE", hide_short_help = true)]
    max_memory: Option<ByteCount>,

    /// Interfaces that trials may send raw frames from
    ///
    /// Separate them by commas; `all` allows every interface. The default is none. Use it only if their networks are set apart
    /// for testing.
    #[arg(long, value_name = "IF,...")]
    allow_frames: Option<AllowedInterfaces>,

    /// Let trials reach this NFS or SMB server
    ///
    /// ADDRESS or ADDRESS:EXPORT; the default is none. Trials and copies may then use this existing file server
    /// at any of its ports, and from local ports below 1024 if this user may bind them. EXPORT is the full path of an NFS
    /// export, or an SMB share. ADDRESS may be a network; `any` allows all servers. May be repeated.
    #[arg(long, value_name = "SERVER")]
    allow_server: Vec<AllowedServer>,

    /// Allow NFS calls to such servers as this user and group; `any` allows all. May be repeated [default: none]
    #[arg(long, value_name = "UID[:GID]", hide_short_help = true)]
    allow_uid: Vec<AllowedUser>,

    /// Keep CAP_NET_ADMIN, for socket buffers beyond net.core.rmem_max and wmem_max, busy polling, and every congestion control
    /// [default: an agent keeps only the capabilities that its other options need]
    #[arg(long, hide_short_help = true)]
    keep_net_admin: bool,

    /// Allow copies to empty this host's caches first (--cache cold), which slows all its programs for a while
    #[arg(long, hide_short_help = true)]
    allow_cold_cache: bool,

    /// Let copies read and write below this directory
    ///
    /// The default is none. May be repeated.
    #[arg(long, value_name = "DIR")]
    copy_directory: Vec<PathBuf>,

    /// Directory for the temporary folders of copies [default: the first --copy-directory]
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    copy_scratch: Option<PathBuf>,

    #[command(flatten)]
    nfs: NfsOptions,

    /// Network that may use the agent [default: any]
    ///
    /// Network or address that may use it and exchange trial data with it; may be repeated.
    #[arg(long, value_name = "NETWORK", value_parser = network)]
    allow_peer: Vec<IpNet>,

    /// Network or address that trials may connect to, beside those of --allow-peer; with --allow-peer its hosts may also open
    /// data connections; may be repeated [default: any but this host, link-local addresses and metadata services]
    #[arg(long, value_name = "NETWORK", value_parser = network, hide_short_help = true)]
    allow_target: Vec<IpNet>,

    /// Directory of the certificate and token, which keep the agent URL the same [default: linerate/agent in the user's
    /// data directory; with --listen-fd none]
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    identity: Option<PathBuf>,

    /// Answer null calls of linerate's RPC program on this TCP and UDP port, for example from rpcinfo
    #[arg(long, value_name = "PORT", hide_short_help = true)]
    rpc_port: Option<u16>,

    /// Register the RPC program with this host's portmapper (rpcbind), until the agent ends
    #[arg(long, requires = "rpc_port", hide_short_help = true)]
    portmap: bool,

    /// Show a pairing code of six digits
    ///
    /// `linerate hosts add NAME --pair HOST` exchanges the code for the agent URL: once, within ten minutes, in at most three
    /// tries.
    #[arg(long)]
    pair: bool,

    /// Announce it for `linerate hosts discover`
    ///
    /// The agent is announced on the local network by multicast DNS. The announcement has its name, address and version, and no secret.
    #[arg(long)]
    announce: bool,

    /// Serve a fleet too [DIR: that of `fleet enrol`]
    ///
    /// The agent dials out to the NATS server of the fleet that `linerate fleet enrol` joined, with the credentials in this
    /// directory. Members of the fleet need no agent URL; the limits of this agent bind them too.
    #[arg(long, value_name = "DIR", num_args = 0..=1)]
    fleet: Option<Option<PathBuf>>,

    /// Append a line of JSON to this file at the begin and the end of each trial's session
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    session_log: Option<PathBuf>,

    /// Serve iperf3 clients too [port: 5201]
    ///
    /// Serves clients of iperf3 on this TCP and UDP port, several at once. Prints a line for each test and keeps a record of it.
    /// Clients need no secret: --allow-peer, --max-rate, --max-time, --max-trials and --max-flows bind them.
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "5201")]
    iperf3: Option<u16>,

    #[command(flatten)]
    stamp: stamp::StampOptions,

    #[command(flatten)]
    store: StorePath,

    /// New certificate and token, this run only
    #[arg(long, conflicts_with = "identity")]
    ephemeral: bool,

    #[command(flatten)]
    service: service::ServiceOptions,
}

/// Reads an address and a port; a link-local address of IPv6 has its interface, as in `[fe80::1%eth0]:4747`.
fn listening(text: &str) -> Result<SocketAddr, String> {
    let wrong = || "write it like 192.0.2.1:4747, [2001:db8::1]:4747 or [fe80::1%eth0]:4747".to_owned();
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(own_with_zone(address));
    }
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).ok_or_else(wrong)?;
    let zone = host.split_once('%').ok_or_else(wrong)?.1;
    let port: u16 = port.parse().map_err(|_| wrong())?;
    let found = (host, port).to_socket_addrs().ok().and_then(|mut found| found.next());
    found.ok_or_else(|| format!("this host has no interface `{zone}` (`ip link` lists them), or {}", wrong()))
}

fn link_speed(text: &str) -> Result<(String, BitRate), String> {
    let (interface, rate) = text.split_once('=').ok_or("write it like eth0=1Gbit/s")?;
    let rate: BitRate = rate.parse().map_err(|error| format!("{error}"))?;
    if rate.get() == 0 { Err("a link of speed 0 carries nothing".to_owned()) } else { Ok((interface.to_owned(), rate)) }
}

fn link_duplex(text: &str) -> Result<(String, Duplex), String> {
    let (interface, duplex) = text.split_once('=').ok_or("write it like eth0=half")?;
    let duplex: Duplex = duplex.parse().map_err(|error| format!("{error}"))?;
    Ok((interface.to_owned(), duplex))
}

fn at_least_one<T: FromStr + PartialOrd + From<u8>>(text: &str) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| *number >= T::from(1));
    number.ok_or_else(|| "give a number of 1 or more".to_owned())
}

/// A network, or an address as the network of that one host.
fn network(text: &str) -> Result<IpNet, String> {
    let address = |_| text.parse::<IpAddr>().map(IpNet::from);
    text.parse().or_else(address).map_err(|_| "write it like 192.0.2.0/24, 2001:db8::/32 or 192.0.2.1".to_owned())
}

pub(crate) async fn run(mut arguments: Arguments, mut cancel: watch::Receiver<bool>) -> Result<(), Failure> {
    if let Some(command) = arguments.command.take() {
        return invitations::run(command);
    }
    if arguments.service.carry_out()? {
        return Ok(());
    }
    if arguments.identity.is_none() {
        arguments.identity = arguments.service.identity();
    }
    let (listener, datagram_port) = match arguments.listen_fd {
        Some(fd) => (linerate_sys::inherited::listener(fd).map_err(Failure::usage)?, None),
        None => listener(arguments.listen)?,
    };
    let at = listener.local_addr().map_err(Failure::measure)?;
    let address = at.ip();
    let exposed = !address.is_loopback();
    let name = arguments.name.clone().map_or_else(system_name, HostName);
    if arguments.max_memory.is_none() && usable_memory() == UsableMemory::Unknown {
        say(&said!(
            language(),
            "serve-memory-unknown",
            "linerate: the memory limit of this process cannot be read (is /sys/fs/cgroup missing in a container?): all trials together \
             may take {memory}; set it with --max-memory",
            memory = Budget::MEMORY_OF_UNKNOWN
        ));
    }
    let memory = arguments.max_memory.unwrap_or_else(|| Budget::default().memory);
    let budget = Budget { memory, ..Budget::default() };
    let Secrets { identity, token, invitations } = arguments.secrets()?;
    let membership = arguments.fleet.clone().map(fleet::credentials).transpose()?;
    let session_log = arguments.session_log.as_deref().map(open_log).transpose()?;
    let store = arguments.iperf3.and_then(|_| arguments.records());
    let confinement = arguments.confinement(store.as_ref(), listener.local_addr().map_err(Failure::measure)?.port());
    // The service starts threads, which only an agent that was started before binds.
    let rpc = arguments.rpc_port.map(|port| (own_with_zone(SocketAddr::new(address, port)), arguments.portmap));
    let iperf3 =
        arguments.iperf3.map(|port| (own_with_zone(SocketAddr::new(address, port)), arguments.iperf3_limits()));
    let stamp = arguments.stamp.reflector(address, &arguments.allow_peer)?;
    let pairing = arguments.pair.then(PairingCode::generate);
    let options = AgentOptions {
        // An inherited listener may be of another network namespace, where sessions do not listen.
        shares_port: arguments.shares_port(),
        listener,
        advertise: arguments.advertise,
        identity,
        token,
        pairing: pairing.clone(),
        invitations,
        name: name.clone(),
        limits: Limits {
            max_rate: arguments.max_rate,
            max_time: arguments.max_time,
            hours: arguments.hours.map(AllowedHours::local),
            max_trials: arguments.max_trials,
            max_flows: arguments.max_flows,
            budget: budget.clone(),
            frames: arguments.allow_frames.unwrap_or_default(),
            cold_cache: arguments.allow_cold_cache,
            servers: AllowedServers { servers: arguments.allow_server, users: arguments.allow_uid },
            allowed_peers: arguments.allow_peer.clone(),
            allowed_targets: arguments.allow_target,
            data_ports: arguments.data_ports.unwrap_or_default(),
            ..Limits::default()
        },
        timeouts: Timeouts::default(),
        engines: EngineOptions {
            folders: AllowedFolders { allowed: arguments.copy_directory, scratch: arguments.copy_scratch },
            nfs: arguments.nfs.service(&budget)?,
        },
        link_speeds: arguments.link_speed.into_iter().collect::<BTreeMap<_, _>>(),
        link_duplexes: arguments.link_duplex.into_iter().collect::<BTreeMap<_, _>>(),
        data_addresses: arguments.data_address,
        report: Report::new(|line| say(&format!("linerate: {line}"))),
        session_log,
        confinement: Some(confinement),
    };
    let mut agent = Agent::start(options).await.map_err(Failure::measure)?;
    drop(datagram_port);
    let service =
        rpc.map(|(address, registered)| rpc_service(address, registered, agent.stranger_replies())).transpose()?;
    let host = agent.host_options();
    let serve_iperf3 = |(address, limits)| {
        let limits = ServiceLimits { reserve: agent.reserve(), ..limits };
        iperf3::serve(address, limits, store, host.clone())
    };
    let iperf3 = iperf3.map(serve_iperf3).transpose()?;
    let stamp = stamp.map(stamp::serve).transpose()?;
    let announced_agent = AnnouncedAgent {
        name: name.0,
        fingerprint: agent.url().fingerprint.clone(),
        listening: at,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        protocol: PROTOCOL,
    };
    let announced = arguments.announce.then(|| linerate_discovery::announce(announced_agent)).transpose();
    let announced = announced.map_err(Failure::usage)?;
    if !exposed {
        say(&loopback_only(language(), address));
    } else if stdout().is_terminal() {
        say(&said!(language(), "serve-type", "linerate: on the other machine, type:"));
    }
    print(&shown(agent.url(), stdout().is_terminal()));
    if let Some(code) = pairing {
        say(&said!(
            language(),
            "serve-pair",
            "linerate: to pair, type there: linerate hosts add NAME --pair {address}; the pairing code is {code} (once, within {minutes} minutes)",
            address = agent.url().address().to_string(),
            code = code.to_string(),
            minutes = PAIRING_TIME.as_secs() / 60
        ));
    }
    if let Some(confined) = agent.confined() {
        say(&said!(language(), "serve-confined", "linerate: confined: {confined}", confined = confined.to_string()));
    }
    if exposed && let Some(rule) = std::env::current_exe().ok().and_then(|program| system::firewall_rule(&program)) {
        say(&said!(
            language(),
            "serve-firewall",
            "linerate: if this system's firewall keeps others out, an administrator lets them in by: {rule}",
            rule = rule
        ));
    }
    if iperf3.is_some() && exposed && arguments.allow_peer.is_empty() {
        say(&said!(
            language(),
            "serve-any-iperf3",
            "linerate: any host that reaches iperf3's port may send traffic from and to this machine; --allow-peer NETWORK narrows it"
        ));
    }
    if exposed && arguments.allow_peer.is_empty() {
        say(&said!(
            language(),
            "serve-any-host",
            "linerate: any host that has this URL may use the agent; --allow-peer NETWORK narrows it"
        ));
    }
    if let Some(credentials) = membership {
        fleet::join(&mut agent, credentials, &mut cancel).await?;
    }
    // An error here means the sender is gone, and with it the program.
    let _ = cancel.wait_for(|asked| *asked).await;
    drop((service, iperf3, stamp, announced));
    agent.shutdown().await;
    Ok(())
}

impl Arguments {
    /// Returns the folder of the service that this process is. `None` if the operating system did not start it as one.
    pub(crate) fn service_folder(&self) -> Option<&Path> {
        self.service.folder()
    }

    /// What the agent keeps besides what its limits and folders need.
    fn confinement(&self, store: Option<&Store>, own_port: u16) -> Confinement {
        const PRIVILEGED: u16 = 1024;
        // Sockets for datagrams are bound there as sessions need them.
        let own_port = self.shares_port().then_some(own_port);
        Confinement {
            reads: self.kept().ok().flatten().into_iter().chain(self.fleet_reads()).collect(),
            writes: store.and_then(|store| folder_of(store.file()?)).into_iter().collect(),
            // A portmapper and many NFS servers believe who calls from such a port.
            low_ports: self.portmap
                || !self.allow_server.is_empty()
                || [self.rpc_port, self.iperf3, self.stamp.port(), own_port]
                    .into_iter()
                    .flatten()
                    .any(|port| (1..PRIVILEGED).contains(&port)),
            net_admin: self.keep_net_admin,
        }
    }

    /// Files that the connection to a fleet is made with.
    fn fleet_reads(&self) -> impl Iterator<Item = PathBuf> + use<> {
        let paths = if self.fleet.is_some() { &fleet::READS[..] } else { &[] };
        paths.iter().map(PathBuf::from).filter(|path| path.exists())
    }

    /// Whether sessions listen at the agent's own port.
    fn shares_port(&self) -> bool {
        self.data_ports.is_none() && self.listen_fd.is_none()
    }

    /// What clients of iperf3 may have: as much as a session of the agent.
    fn iperf3_limits(&self) -> ServiceLimits {
        let peers = match &self.allow_peer[..] {
            [] => AllowedPeers::default(),
            networks => AllowedPeers::only(networks.iter().copied()),
        };
        ServiceLimits {
            max_rate: self.max_rate,
            max_time: self.max_time,
            max_tests: self.max_trials,
            max_flows: self.max_flows,
            peers,
            reserve: Reserve::default(),
        }
    }

    /// Where tests of iperf3's clients are kept; none if they cannot be.
    fn records(&self) -> Option<Store> {
        match self.store.open() {
            Ok(store) => Some(store),
            Err(failure) => {
                say(&format!("linerate: tests of iperf3's clients are not kept: {failure}"));
                None
            }
        }
    }

    /// Where certificate and token are kept; none if they are for this run only.
    fn kept(&self) -> Result<Option<PathBuf>, Failure> {
        match self.identity.is_none() && (self.ephemeral || self.listen_fd.is_some()) {
            true => Ok(None),
            false => identity_directory(self.identity.clone()).map(Some),
        }
    }

    fn secrets(&self) -> Result<Secrets, Failure> {
        let Some(directory) = self.kept()? else {
            let identity = Identity::generate().map_err(Failure::measure)?;
            return Ok(Secrets { identity, token: Token::generate(), invitations: None });
        };
        Ok(Secrets {
            identity: Identity::load_or_create(&directory).map_err(Failure::usage)?,
            token: Token::load_or_create(&directory).map_err(Failure::usage)?,
            invitations: Some(Invitations::of(&directory)),
        })
    }
}

/// What an agent is known by, and who may use it.
struct Secrets {
    identity: Identity,
    token: Token,
    invitations: Option<Invitations>,
}

/// What an agent prints of its URL: for a person the command to type, in quotes for the shell; a program reads the URL alone.
fn shown(url: &AgentUrl, is_terminal: bool) -> String {
    if is_terminal { format!("linerate stream '{url}'") } else { url.to_string() }
}

/// That nobody else can come, and what to do.
fn loopback_only(lang: Language, address: IpAddr) -> String {
    said!(
        lang,
        "serve-loopback-only",
        "linerate: ONLY THIS MACHINE can reach this agent: it listens on {address}. Leave --listen out for all addresses, or name one \
         of the network's",
        address = address.to_string()
    )
}

/// The folder of a file; that at hand where its path names none.
fn folder_of(file: &Path) -> Option<PathBuf> {
    let folder = file.parent()?;
    Some(if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_owned() })
}

/// The directory that keeps an agent's identity: the one named, else the user's own.
fn identity_directory(named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let own = || {
        let strategy = base_strategy::choose_base_strategy().map_err(|error| {
            Failure::usage(format!("{error}; name a directory with --identity, or use --ephemeral"))
        })?;
        Ok(strategy.data_dir().join("linerate/agent"))
    };
    named.map_or_else(own, Ok)
}

/// The RPC program at a port of its own.
fn rpc_service(address: SocketAddr, registered: bool, replies: &Arc<StrangerReplies>) -> Result<RpcService, Failure> {
    let mut service = RpcService::start(address, replies).map_err(Failure::measure)?;
    if registered {
        service.register().map_err(Failure::measure)?;
    }
    let (program, address) = (linerate_oncrpc::PROGRAM, service.address());
    say(&said!(
        language(),
        "serve-rpc",
        "linerate: RPC program {program}, version {version} at {address}, TCP and UDP",
        program = program.to_string(),
        version = linerate_oncrpc::VERSION.to_string(),
        address = address.to_string()
    ));
    Ok(service)
}

/// Opens the owner's log of sessions, before the agent gives up its rights on files.
fn open_log(path: &Path) -> Result<SessionLog, Failure> {
    SessionLog::open(path).map_err(|error| {
        Failure::usage(format!("{}: {error}; name a file that can be written with --session-log", path.display()))
    })
}

/// The host of an agent URL, as it was typed.
fn advertised(text: &str) -> Result<String, String> {
    AgentUrl::host_of(text)
        .ok_or_else(|| "give a host name or an address alone; the port is that of --listen, or 4747".to_owned())
}

/// Listens where it is asked to, else at port 4747 of all addresses: of both families where the kernel has IPv6.
fn listener(asked: Option<SocketAddr>) -> Result<(TcpListener, Option<UdpSocket>), Failure> {
    const PORT: u16 = AgentUrl::PORT;
    let bind = |address: SocketAddr| listen_and_keep(address).map_err(|error| (address, error));
    let bound = match asked {
        Some(address) => bind(address),
        None => bind((Ipv6Addr::UNSPECIFIED, PORT).into()).or_else(|(address, error)| match error.kind() {
            ErrorKind::AddrInUse | ErrorKind::PermissionDenied => Err((address, error)),
            _ => bind((Ipv4Addr::UNSPECIFIED, PORT).into()),
        }),
    };
    bound.map_err(|(address, error)| cannot_listen(address, &error))
}

/// Listens at an address. A port that the kernel chooses is kept for datagrams too until the agent has started: trials over UDP come to it.
fn listen_and_keep(address: SocketAddr) -> std::io::Result<(TcpListener, Option<UdpSocket>)> {
    let keep = |listener: &TcpListener| {
        if address.port() == 0 { PortServer::keep_datagram_port(listener).map(Some) } else { Ok(None) }
    };
    at_one_port(address, listen, keep)
}

fn cannot_listen(address: SocketAddr, error: &std::io::Error) -> Failure {
    let remedy = match error.kind() {
        ErrorKind::AddrInUse | ErrorKind::PermissionDenied if address.port() >= 1024 => {
            "another program, perhaps another agent, has that port: stop it or choose another port"
        }
        ErrorKind::AddrInUse => "another program, perhaps another agent, has that port: stop it or choose another port",
        ErrorKind::AddrNotAvailable => "no interface of this machine has that address: `ip address` lists them",
        ErrorKind::PermissionDenied => "ports below 1024 need privilege: choose a higher one",
        _ => "choose another address with --listen",
    };
    Failure::measure(format!("cannot listen on {address}: {error}; {remedy}"))
}

fn system_name() -> HostName {
    system::host_name().unwrap_or_else(|| "agent".to_owned()).as_str().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn parsed(options: &[&str]) -> Result<Arguments, String> {
        let line = Line::try_parse_from([&["agent"], options].concat());
        line.map(|line| line.arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn a_bare_address_is_a_network_of_one_host() {
        let allowed = ["192.0.2.1", "--allow-peer", "192.0.2.0/24", "--allow-peer", "2001:db8::1"];
        let arguments = parsed(&[&["--allow-peer"], &allowed[..]].concat()).expect("networks");
        let shown: Vec<_> = arguments.allow_peer.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["192.0.2.1/32", "192.0.2.0/24", "2001:db8::1/128"]);
        for wrong in ["192.0.2.1/33", "box.example", ""] {
            let error = parsed(&["--allow-peer", wrong]).expect_err("no network");
            assert!(error.contains("192.0.2.0/24"), "{error}");
        }
    }

    #[test]
    fn a_person_is_shown_the_command_and_a_program_the_url() {
        let text = format!("linerate://192.0.2.7:4747#{}.{}", "5b".repeat(16), "e1".repeat(32));
        let url: AgentUrl = text.parse().expect("an agent URL");
        assert_eq!([shown(&url, true), shown(&url, false)], [format!("linerate stream '{text}'"), text]);
    }

    #[test]
    fn an_agent_on_loopback_says_so_loudly() {
        for (lang, warning) in [(Language::English, "ONLY THIS MACHINE"), (Language::Japanese, "このマシン")] {
            let text = loopback_only(lang, IpAddr::V4(Ipv4Addr::LOCALHOST));
            assert!([warning, "127.0.0.1", "--listen"].iter().all(|part| text.contains(part)), "{text}");
        }
    }

    #[test]
    fn the_limit_of_flows_can_be_raised() {
        assert_eq!(parsed(&[]).expect("defaults").max_flows, Limits::default().max_flows);
        assert_eq!(parsed(&["--max-flows", "500"]).expect("a number").max_flows, 500);
        for option in ["--max-flows", "--max-trials"] {
            let error = parsed(&[option, "0"]).expect_err("nothing could run");
            assert!(error.contains("1 or more"), "{error}");
        }
    }
}
