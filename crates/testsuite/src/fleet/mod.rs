//! A lab of sites: agents in network namespaces, NATS, PostgreSQL and `linerate fleet serve`.
//!
//! Each host has a data interface on the bridge of its site, and each site an uplink of a set rate to the others. Control
//! traffic uses a network of its own, so that it never crosses a link under test:
//!
//! ```text
//! host ── site bridge ── uplink ── core bridge ── uplink ── site bridge ── host
//!   └──────────────────── control bridge ────────────────────┘
//!                           │         │
//!                       nats-server   linerate fleet serve
//! ```
//!
//! Namespaces have no names and processes end with the thread that started them, so that nothing of the lab outlives the
//! thread that made it.

mod forward;
mod network;
mod options;
mod process;
mod session_log;

pub use forward::Forward;
pub use options::{Database, FleetLabOptions, FleetServer, Site};
pub use session_log::{LoggedSession, read_session_log};

use crate::servers::{ADMINISTRATOR, Postgres};
use crate::{program, wait_until};
use linerate_sys::namespace::NetNamespace;
use linerate_sys::process::{Placement, spawn};
use network::{BROKER_ADDRESS, LabHost, Network};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::signal::Signal;
use process::{LabProcess, Launch};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Port of nats-server.
const PORT: u16 = 4222;
/// Name of the process of nats-server.
pub const NATS: &str = "nats";
/// Time for a process of linerate to end by itself.
const GRACE: Duration = Duration::from_secs(10);
/// Time for nats-server to write what it has.
const BROKER_GRACE: Duration = Duration::from_secs(20);

/// A running lab. Everything ends with it.
///
/// It is used on the thread that made it.
pub struct FleetLab {
    // Fields are dropped in this order: those who use a server first.
    agents: Vec<Agent>,
    servers: Vec<LabProcess>,
    nats: LabProcess,
    postgres: Option<Postgres>,
    stream_space: Option<Mounted>,
    network: Network,
    options: FleetLabOptions,
    folder: TempDir,
}

/// An agent of the lab.
struct Agent {
    host: usize,
    process: LabProcess,
}

/// A file system of the lab. It is taken away on drop.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        // Nobody uses it any more; if somebody does, it goes when they end.
        let _ = umount2(&self.0, MntFlags::MNT_DETACH);
    }
}

impl FleetLab {
    /// Builds the network, creates the fleet, starts all servers and enrols and starts the agents. It needs root,
    /// `nats-server`, and PostgreSQL if that keeps the records.
    ///
    /// # Panics
    /// A part cannot be built or started; the message has its last words.
    pub fn up(options: FleetLabOptions) -> Self {
        let mut lab = Self::without_agents(options);
        lab.start_agents();
        lab
    }

    /// Builds everything but the agents.
    ///
    /// # Panics
    /// A part cannot be built or started; the message has its last words.
    pub fn without_agents(options: FleetLabOptions) -> Self {
        let folder = tempfile::Builder::new().prefix("linerate-fleet-").tempdir().expect("a folder");
        let network = Network::build(&options).unwrap_or_else(|error| panic!("the network of the lab: {error}"));
        let owner = folder.path().join("owner");
        let stream_space = options.stream_space.map(|bytes| mount_space(&owner.join("streams"), bytes));
        let postgres = (options.database == Database::PostgreSql).then(|| {
            let server = Postgres::start_with_thread();
            server.create_database("linerate");
            server
        });
        let configuration = owner.join("nats-server.conf");
        let broker = program("nats-server").expect("nats-server is installed");
        let launch = Launch::new(broker).arguments(["-c".into(), configuration.into_os_string()]);
        let nats = LabProcess::new(NATS, launch, folder.path(), BROKER_GRACE);
        let mut lab =
            Self { agents: Vec::new(), servers: Vec::new(), nats, postgres, stream_space, network, options, folder };
        std::fs::write(lab.folder.path().join("fleet.toml"), &lab.options.file).expect("the fleet's file");
        let servers = format!("nats://{BROKER_ADDRESS}:{PORT}");
        lab.run_well(&["fleet", "create", "lab", "--servers", &servers]);
        lab.start_nats();
        for server in lab.options.servers.clone() {
            lab.add_server(&server);
        }
        lab
    }

    /// Enrols and starts an agent in each host.
    ///
    /// # Panics
    /// An agent is not present after a minute.
    pub fn start_agents(&mut self) {
        let uses = self.network.hosts.len().to_string();
        let code = self.invite(&["--uses", &uses]);
        for host in 0..self.network.hosts.len() {
            self.enrol(host, &code);
            self.start_agent(host);
        }
        let all = self.agents.len();
        wait_until("all agents are present", || (self.present() == all).then_some(()));
    }

    /// Invites members and returns the code. Waits until somebody admits them.
    ///
    /// # Panics
    /// The command fails.
    pub fn invite(&self, options: &[&str]) -> String {
        let mut words = vec!["fleet", "invite"];
        words.extend(options);
        self.run_well(&words).trim().to_owned()
    }

    fn enrol(&self, host: usize, code: &str) {
        let LabHost { name, site, namespace, .. } = &self.network.hosts[host];
        let site = format!("site={site}");
        let name_label = format!("host={name}");
        let words = ["fleet", "enrol", code, "--name", name, "--label", &site, "--label", &name_label];
        wait_until(&format!("{name} is enrolled"), || {
            let output = self.run_in(namespace, &self.agent_folder(name), &words);
            output.status.success().then_some(())
        });
    }

    fn start_agent(&mut self, host: usize) {
        let LabHost { name, address, .. } = &self.network.hosts[host];
        let folder = self.agent_folder(name);
        let launch = self.linerate(&folder).arguments([
            OsString::from("serve"),
            "--fleet".into(),
            folder.into_os_string(),
            "--ephemeral".into(),
            "--listen".into(),
            "127.0.0.1:0".into(),
            "--name".into(),
            name.into(),
            "--data-address".into(),
            address.to_string().into(),
            "--session-log".into(),
            self.session_log(name).into_os_string(),
        ]);
        let mut process = LabProcess::new(name, launch, self.folder.path(), GRACE);
        process.start(&self.network.hosts[host].namespace);
        self.agents.push(Agent { host, process });
    }

    /// Starts a process of `linerate fleet serve`, and waits until it serves.
    ///
    /// # Panics
    /// It ends.
    pub fn add_server(&mut self, server: &FleetServer) {
        let mut launch = self.linerate(&self.owner_folder()).arguments(["fleet", "serve"]);
        if server.roles.is_empty() || server.roles.contains("schedule") {
            launch = launch.arguments([self.folder.path().join("fleet.toml")]);
        }
        launch = launch.arguments(["--store", &self.store()]);
        if !server.roles.is_empty() {
            launch = launch.arguments(["--roles", &server.roles]);
        }
        launch = launch.arguments(&server.options);
        for (name, value) in &server.environment {
            launch = launch.variable(name, value);
        }
        let mut process = LabProcess::new(&server.name, launch, self.folder.path(), GRACE);
        process.start(&self.network.command);
        wait_until(&format!("{} serves", server.name), || {
            let ended = process.ended();
            assert!(ended.is_none(), "{} ended: {}", server.name, process.text());
            process.text().contains("serving the fleet").then_some(())
        });
        self.servers.push(process);
    }

    /// Starts another program in the control network. It ends with the lab.
    ///
    /// # Panics
    /// It cannot be started.
    pub fn add_program(&mut self, name: &str, program: &Path, arguments: &[&str]) {
        let launch = Launch::new(program).arguments(arguments);
        let mut process = LabProcess::new(name, launch, self.folder.path(), GRACE);
        process.start(&self.network.command);
        self.servers.push(process);
    }

    /// Offers a port of the control network's loopback to this host.
    ///
    /// # Panics
    /// No port is free.
    pub fn forward(&self, port: u16) -> Forward {
        let pid = self.servers.iter().find_map(LabProcess::pid).expect("a process in the control network");
        Forward::start(pid, port).unwrap_or_else(|error| panic!("port {port} of the lab: {error}"))
    }

    /// Returns the names of the agents.
    pub fn agents(&self) -> Vec<String> {
        self.network.hosts.iter().map(|host| host.name.clone()).collect()
    }

    /// Returns the site of each host.
    pub fn sites(&self) -> BTreeMap<String, String> {
        self.network.hosts.iter().map(|host| (host.name.clone(), host.site.clone())).collect()
    }

    /// Returns the number of agents that are present.
    pub fn present(&self) -> usize {
        let output = self.run(&["fleet", "list", "--json"]);
        let members: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let members = members.as_array().cloned().unwrap_or_default();
        members.iter().filter(|member| member["state"] == "present").count()
    }

    /// Runs linerate in the control network with the owner's folder.
    ///
    /// # Panics
    /// It cannot be started.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.run_in(&self.network.command, &self.owner_folder(), arguments)
    }

    /// Runs linerate as [`FleetLab::run`] does and returns what it printed.
    ///
    /// # Panics
    /// It fails.
    pub fn run_well(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "linerate {}: {error}", arguments.join(" "));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs linerate in the control network with another folder of credentials.
    ///
    /// # Panics
    /// It cannot be started.
    pub fn run_as(&self, folder: &Path, arguments: &[&str]) -> Output {
        self.run_in(&self.network.command, folder, arguments)
    }

    fn run_in(&self, namespace: &NetNamespace, folder: &Path, arguments: &[&str]) -> Output {
        let mut command = self.linerate(folder).arguments(arguments).command();
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let placement = Placement { net: Some(namespace.as_fd()), ends_with_thread: true, ..Placement::default() };
        let child = spawn(&mut command, &placement).unwrap_or_else(|error| panic!("linerate: {error}"));
        child.wait_with_output().expect("linerate is a child")
    }

    /// Runs `work` on a thread inside the control network: sockets that it opens reach nats-server.
    ///
    /// # Panics
    /// The namespace cannot be entered.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.network.command.enter(work).unwrap_or_else(|error| panic!("the control network: {error}"))
    }

    fn linerate(&self, folder: &Path) -> Launch {
        Launch::new(&self.options.program)
            .variable("LINERATE_FLEET", folder)
            .variable("LINERATE_STORE", self.store())
            .variable("XDG_DATA_HOME", folder)
            .variable("XDG_RUNTIME_DIR", folder)
    }

    /// Returns the value of `--store`.
    pub fn store(&self) -> String {
        match &self.postgres {
            // A socket in the file system works in all network namespaces.
            Some(postgres) => {
                let folder = postgres.sql("postgres", "SHOW unix_socket_directories");
                format!("postgres://{ADMINISTRATOR}@/linerate?host={folder}&port={}", postgres.port)
            }
            None => self.folder.path().join("results.db").display().to_string(),
        }
    }

    /// Returns the folder of the fleet's owner.
    pub fn owner_folder(&self) -> PathBuf {
        self.folder.path().join("owner")
    }

    /// Returns the folder with the credentials of an agent.
    pub fn agent_folder(&self, name: &str) -> PathBuf {
        self.folder.path().join("agents").join(name)
    }

    /// Returns a path in the folder of the lab.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn session_log(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.sessions"))
    }

    /// Returns the sessions of each agent.
    ///
    /// # Panics
    /// A log has a line of another format.
    pub fn session_logs(&self) -> BTreeMap<String, Vec<LoggedSession>> {
        let agents = self.agents();
        agents.into_iter().map(|name| (name.clone(), read_session_log(&self.session_log(&name)))).collect()
    }

    /// Returns what a process printed.
    ///
    /// # Panics
    /// There is no such process.
    pub fn output(&mut self, name: &str) -> String {
        self.process(name).0.text()
    }

    /// Returns the number of a process. `None` if it does not run.
    ///
    /// # Panics
    /// There is no such process.
    pub fn pid(&mut self, name: &str) -> Option<u32> {
        self.process(name).0.pid()
    }

    fn process(&mut self, name: &str) -> (&mut LabProcess, &NetNamespace) {
        if name == NATS {
            return (&mut self.nats, &self.network.broker);
        }
        if let Some(server) = self.servers.iter_mut().find(|server| server.name == name) {
            return (server, &self.network.command);
        }
        let agent = self.agents.iter_mut().find(|agent| agent.process.name == name);
        let agent = agent.unwrap_or_else(|| panic!("the lab has no process {name}"));
        (&mut agent.process, &self.network.hosts[agent.host].namespace)
    }

    /// Kills a process (SIGKILL) and waits until it is gone.
    ///
    /// # Panics
    /// There is no such process.
    pub fn kill(&mut self, name: &str) {
        let (process, _) = self.process(name);
        process.signal(Signal::SIGKILL);
        process.wait();
    }

    /// Starts a process again that was killed.
    ///
    /// # Panics
    /// There is no such process.
    pub fn start_again(&mut self, name: &str) {
        let (process, namespace) = self.process(name);
        process.start(namespace);
    }

    /// Starts a process again that was killed, this once with further variables.
    ///
    /// # Panics
    /// There is no such process.
    pub fn start_with(&mut self, name: &str, variables: &[(&str, &str)]) {
        let (process, namespace) = self.process(name);
        process.start_with(namespace, variables);
    }

    /// Stops a process (SIGSTOP), or lets it continue.
    ///
    /// # Panics
    /// There is no such process.
    pub fn pause_process(&mut self, name: &str, is_paused: bool) {
        let (process, _) = self.process(name);
        process.signal(if is_paused { Signal::SIGSTOP } else { Signal::SIGCONT });
    }

    fn start_nats(&mut self) {
        self.nats.start(&self.network.broker);
        let address = SocketAddr::from((BROKER_ADDRESS, PORT));
        let command = &self.network.command;
        wait_until("nats-server listens", || {
            let ended = self.nats.ended();
            assert!(ended.is_none(), "nats-server ended: {}", self.nats.text());
            command.enter(|| TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()).ok().flatten()
        });
    }

    /// Kills nats-server and starts it again.
    pub fn restart_nats(&mut self) {
        self.kill(NATS);
        self.start_nats();
    }

    /// Ends PostgreSQL as a crash does, and starts it again.
    ///
    /// # Panics
    /// The lab has none.
    pub fn restart_postgres(&mut self) {
        let postgres = self.postgres.as_mut().expect("the lab has PostgreSQL");
        postgres.crash();
        postgres.resume();
    }

    /// Runs statements in the database and returns the rows.
    ///
    /// # Panics
    /// The lab has no PostgreSQL, or a statement fails.
    pub fn sql(&self, statements: &str) -> String {
        self.postgres.as_ref().expect("the lab has PostgreSQL").sql("linerate", statements)
    }

    /// Takes the link of nats-server down for a time. Nobody reaches it.
    ///
    /// # Panics
    /// The link cannot be taken down.
    pub fn cut_nats(&self, duration: Duration) {
        self.set_nats_link(false);
        std::thread::sleep(duration);
        self.set_nats_link(true);
    }

    /// Takes the link of nats-server down, or up again.
    ///
    /// # Panics
    /// The link cannot be changed.
    pub fn set_nats_link(&self, is_up: bool) {
        let changed = self.network.set_broker_link(is_up);
        changed.unwrap_or_else(|error| panic!("the link of nats-server: {error}"));
    }

    /// Returns the folder of the streams of NATS, if it has a size of its own.
    pub fn stream_folder(&self) -> Option<&Path> {
        self.stream_space.as_ref().map(|mounted| mounted.0.as_path())
    }

    /// Returns the address of a host for trials.
    pub fn address(&self, host: &str) -> Option<IpAddr> {
        let host = self.network.hosts.iter().find(|known| known.name == host)?;
        Some(IpAddr::V4(host.address))
    }
}

/// Mounts a small file system on a folder, which is made.
fn mount_space(folder: &Path, bytes: u64) -> Mounted {
    std::fs::create_dir_all(folder).expect("a folder");
    let options = format!("size={bytes},mode=700");
    mount(Some("tmpfs"), folder, Some("tmpfs"), MsFlags::empty(), Some(options.as_str())).expect("root may mount");
    Mounted(folder.to_owned())
}
