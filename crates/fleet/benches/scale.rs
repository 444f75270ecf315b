//! Cost of fleets by their size.
//!
//! Agents are tasks that hold a connection to a real NATS server, enrol and publish their presence; controllers are real, and
//! their trials are copies of one record. No trial moves data. The scheduler and the ingest are real processes.

use futures_util::StreamExt as _;
use futures_util::future::LocalBoxFuture;
use futures_util::stream;
use linerate_bus::{AgentName, Bus, Credentials, FleetKeys, KeyPair, Presence, Role};
use linerate_engine::Report;
use linerate_fleet::enrolment::{Invitation, admit_members, invite, invited, join};
use linerate_fleet::{Measure, OrderedRun, ScheduleStatus, control, status};
use linerate_model::{HostName, Record, RecordId};
use linerate_runner::Keep as _;
use linerate_schedule::{FleetFile, FleetHost, Moment, Planner};
use linerate_store::Ending;
use linerate_testsuite::servers::{ADMINISTRATOR, NatsServer, Postgres};
use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

/// Time for which a fleet is observed.
const OBSERVED: Duration = Duration::from_secs(60);
/// Members that enrol or connect at a time.
const AT_A_TIME: usize = 64;
/// Records whose ingest is timed.
const RECORDS: u32 = 5_000;
/// Records that are published before their acknowledgements are awaited.
const PUBLISHED: usize = 500;
/// Pairs that are due at once in the planner's test.
const DUE: usize = 100_000;
/// Host names in the record that is copied. No text of a record contains them otherwise.
const FROM: &str = "hostaaaaaa";
const TO: &str = "hostbbbbbb";
/// Goals.
const MAX_PLANNING: Duration = Duration::from_secs(1);
const MIN_RECORDS_PER_S: f64 = 2_000.0;
const MAX_MEMORY_MB: u64 = 500;
/// Time for a part of the test.
const LATE: Duration = Duration::from_secs(600);

/// Figures of one fleet.
#[derive(Debug, Default)]
struct Figures {
    agents: u32,
    enrolments_per_s: f64,
    connections: usize,
    present: usize,
    /// Time of a plan with [`DUE`] pairs due, or with as many as the fleet has.
    planning: Duration,
    planned: usize,
    /// Time of the planner for an order of a busy fleet.
    order: Duration,
    trials_per_s: f64,
    scheduler_mb: u64,
    scheduler_cpu: f64,
    nats_mb: u64,
    records_per_s: f64,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str| arguments.iter().position(|word| word == name).and_then(|at| arguments.get(at + 1));
    let Some(program) = value("--program").map(PathBuf::from) else {
        // `cargo test --benches` runs it without arguments.
        println!(
            "usage: cargo xtask bench fleet [--agents N,...]; with --ingest-only or --planner-only after --program only that part \
             is timed"
        );
        return;
    };
    let sizes = value("--agents").map_or("100,1000,10000", String::as_str);
    let sizes: Vec<u32> = sizes.split(',').map(|size| size.parse().expect("a number of agents")).collect();
    if arguments.iter().any(|word| word == "--planner-only") {
        for agents in sizes {
            println!("{agents} agents: {:.1} us an order", time_of_order(agents).as_secs_f64() * 1e6);
        }
        return;
    }
    let record = measured_record(&program);
    println!("a record has {} bytes as JSON", record.len());
    if arguments.iter().any(|word| word == "--ingest-only") {
        println!("{:.0} records/s", time_of_ingest(&program, &Fleet::new(), &record));
        return;
    }
    println!(
        "{:>7} {:>9} {:>11} {:>7} {:>8} {:>9} {:>8} {:>8} {:>9} {:>9} {:>7} {:>9}",
        "agents",
        "enrol /s",
        "connections",
        "present",
        "due",
        "planning",
        "us/order",
        "trials/s",
        "sched MB",
        "sched CPU",
        "NATS MB",
        "records/s"
    );
    let mut is_met = true;
    for agents in sizes {
        let figures = measure(&program, agents, &record);
        println!(
            "{:>7} {:>9.0} {:>11} {:>7} {:>8} {:>6} ms {:>8.1} {:>8.1} {:>9} {:>7.1} % {:>7} {:>9.0}",
            figures.agents,
            figures.enrolments_per_s,
            figures.connections,
            figures.present,
            figures.planned,
            figures.planning.as_millis(),
            figures.order.as_secs_f64() * 1e6,
            figures.trials_per_s,
            figures.scheduler_mb,
            figures.scheduler_cpu * 100.0,
            figures.nats_mb,
            figures.records_per_s
        );
        is_met &= figures.planning < MAX_PLANNING
            && figures.records_per_s >= MIN_RECORDS_PER_S
            && figures.scheduler_mb < MAX_MEMORY_MB
            && figures.present == agents as usize;
    }
    if !is_met {
        println!("a goal was not met: planning < 1 s, records >= 2,000/s, memory < 500 MB, all agents present");
        std::process::exit(1);
    }
}

fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A fleet of simulated agents.
struct Fleet {
    runtime: Runtime,
    folder: TempDir,
    server: NatsServer,
    keys: FleetKeys,
    owner: Bus,
}

impl Fleet {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut keys = FleetKeys::generate("scale".parse().expect("a name"), Vec::new(), None).expect("keys");
        let server = NatsServer::start(|address, state| {
            keys.servers = vec![format!("nats://{address}")];
            let state = state.to_str().expect("a plain path");
            keys.server_configuration(address, state, now_unix_s()).expect("a configuration")
        });
        let name: AgentName = "owner".parse().expect("a name");
        let credentials = keys.credentials(name, Role::Controller, None, now_unix_s()).expect("credentials");
        for (file, text) in [
            (Credentials::FILE, credentials.text()),
            (FleetKeys::FILE, serde_json::to_string(&keys).expect("text keys")),
        ] {
            let file = folder.path().join(file);
            std::fs::write(&file, text).expect("written");
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("private");
        }
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
        let owner = runtime.block_on(async {
            let owner = Bus::connect(credentials).await.expect("the owner connects");
            owner.create_streams().await.expect("streams");
            owner
        });
        Self { runtime, folder, server, keys, owner }
    }

    /// Enrols agents with one invitation, as hosts do. Returns their credentials.
    fn enrol(&self, agents: u32) -> Vec<Credentials> {
        let invitation = Invitation {
            role: Role::Agent,
            uses: agents,
            labels: BTreeMap::new(),
            expires_unix_s: now_unix_s() + 86_400,
        };
        self.runtime.block_on(async {
            let code = invite(&self.owner, &self.keys, &invitation, now_unix_s()).await.expect("an invitation");
            let admitting = tokio::spawn(admit_members(self.owner.clone(), self.keys.clone()));
            let joining = stream::iter(0..agents).map(|number| {
                let invitation = invited(&code).expect("an invitation");
                async move {
                    let name = name(number).parse().expect("a plain name");
                    let labels = BTreeMap::from([("site".to_owned(), format!("s{}", number / 50))]);
                    join(invitation, name, &KeyPair::new_user(), labels).await.expect("the agent joins")
                }
            });
            // The signer admits one after the other.
            let members = joining.buffer_unordered(AT_A_TIME / 4).collect().await;
            admitting.abort();
            members
        })
    }

    /// Connects agents that publish their presence every 10 s for as long as the fleet lives.
    fn connect(&self, members: Vec<Credentials>) -> usize {
        self.runtime.block_on(async {
            let connecting = stream::iter(members).map(|credentials| async move {
                let bus = Bus::connect(credentials).await.expect("the agent connects");
                tokio::spawn(show_presence(bus));
            });
            connecting.buffer_unordered(AT_A_TIME).count().await
        })
    }

    /// Starts a process of the fleet and waits until it serves.
    fn serve(&self, program: &Path, words: &[&str]) -> Process {
        let mut command = Command::new(program);
        command.args(["fleet", "serve"]).args(words).arg("--dir").arg(self.folder.path());
        command.env("XDG_DATA_HOME", self.folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("linerate starts");
        let messages = BufReader::new(child.stderr.take().expect("messages are piped"));
        let mut lines = messages.lines();
        lines
            .find(|line| line.as_ref().is_ok_and(|line| line.contains("serving the fleet")))
            .expect("it serves")
            .expect("text");
        // A pipe that nobody reads would hold it up.
        std::thread::spawn(move || lines.for_each(drop));
        Process(child)
    }

    fn status(&self) -> ScheduleStatus {
        let status = self.runtime.block_on(status(&self.owner));
        status.ok().flatten().unwrap_or_default()
    }
}

fn name(number: u32) -> String {
    format!("a{number:05}")
}

async fn show_presence(bus: Bus) {
    let credentials = bus.credentials();
    let presence = Presence {
        name: credentials.name.clone(),
        instance: format!("{:016x}", rand::random::<u64>()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        protocol: linerate_control::PROTOCOL,
        labels: credentials.labels.clone(),
        sessions: 0,
        leaving: false,
    };
    let subject = bus.subjects().from_agent(&presence.name, "presence");
    let payload = serde_json::to_vec(&presence).expect("text keys");
    let mut tick = tokio::time::interval(Duration::from_secs(10));
    loop {
        tick.tick().await;
        // A sign that is lost is followed by the next.
        let _ = bus.client().publish(subject.clone(), payload.clone().into()).await;
    }
}

/// Trials that are copies of one record.
struct Copies<'a>(&'a str);

impl Measure for Copies<'_> {
    fn measure<'a>(&'a self, run: OrderedRun<'a>) -> LocalBoxFuture<'a, Result<Record, String>> {
        Box::pin(async move {
            let record = copy(self.0, run.id, &run.order.from.0, &run.order.to.0);
            publish(&run.publisher, &record);
            run.publisher.flush().await;
            Ok(record)
        })
    }
}

fn copy(text: &str, id: &RecordId, from: &str, to: &str) -> Record {
    let record: Record = serde_json::from_str(&text.replace(FROM, from).replace(TO, to)).expect("a record");
    Record { id: id.clone(), ..record }
}

/// Publishes a record as a run does.
fn publish(publisher: &linerate_fleet::RecordPublisher, record: &Record) {
    let begun = Record { trials: Vec::new(), ..record.clone() };
    let mut run = publisher.begin(&begun).expect("published");
    let summary = linerate_model::RunSummary::of(&record.results);
    for result in &record.trials {
        run.trial(result, &summary).expect("published");
    }
    run.end(record, Ending::Finished).expect("published");
}

fn measure(program: &Path, agents: u32, record: &str) -> Figures {
    let fleet = Fleet::new();
    let mut figures = Figures { agents, ..Figures::default() };
    (figures.planning, figures.planned) = time_of_plan(agents);
    figures.order = time_of_order(agents);

    let begin = Instant::now();
    let members = fleet.enrol(agents);
    figures.enrolments_per_s = f64::from(agents) / begin.elapsed().as_secs_f64();
    figures.connections = fleet.connect(members);

    let file = fleet.folder.path().join("fleet.toml");
    std::fs::write(&file, fleet_file(agents, 4, "10min")).expect("written");
    let scheduler = fleet.serve(program, &[file.to_str().expect("a plain path"), "--roles", "schedule"]);
    let (stop, stopped) = watch::channel(false);
    let bus = fleet.owner.clone();
    let text = record.to_owned();
    let controller = std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let controlled = runtime.block_on(control(bus, &Copies(&text), Report::new(|_| {}), stopped));
        controlled.expect("the controller runs");
    });
    wait_until("all agents are present for the scheduler", || fleet.status().present == agents as usize);
    let (before, begin) = (pairs(&fleet), Instant::now());
    let cpu_before = cpu_time(scheduler.0.id());
    std::thread::sleep(OBSERVED);
    figures.present = fleet.status().present;
    figures.scheduler_cpu = (cpu_time(scheduler.0.id()) - cpu_before) / begin.elapsed().as_secs_f64();
    figures.trials_per_s = (pairs(&fleet) - before) as f64 / begin.elapsed().as_secs_f64();
    figures.scheduler_mb = memory_mb(scheduler.0.id(), "VmHWM");
    figures.nats_mb = memory_mb(fleet.server.pid(), "VmRSS");
    let _ = stop.send(true);
    controller.join().expect("the controller ends");
    drop(scheduler);
    figures.records_per_s = time_of_ingest(program, &fleet, record);
    figures
}

/// Returns the number of trials that have ended, as the stream of pairs counts them.
fn pairs(fleet: &Fleet) -> u64 {
    fleet.runtime.block_on(async {
        let mut stream = fleet.owner.stream("pairs").await.expect("a stream");
        stream.info().await.expect("its state").state.last_sequence
    })
}

fn fleet_file(agents: u32, sample: u32, every: &str) -> String {
    let hosts: Vec<String> = (0..agents).map(|number| format!("\"{}\"", name(number))).collect();
    format!(
        "[[group]]\nname = \"all\"\nhosts = [{}]\n[[mesh]]\nname = \"rate\"\nbetween = [\"all\"]\n\
         test = \"stream --time 5s\"\nevery = \"{every}\"\nsample = {sample}\n",
        hosts.join(", ")
    )
}

/// Returns the time that a planner takes when about [`DUE`] pairs are due, and the number of its orders and missed slots.
fn time_of_plan(agents: u32) -> (Duration, usize) {
    let both_ways = 2;
    let sample = u32::try_from(DUE / agents as usize / both_ways).unwrap_or(u32::MAX).clamp(1, agents - 1);
    let file = FleetFile::parse("scale", &fleet_file(agents, sample, "1h")).expect("a file");
    let mut planner = Planner::new(file, 1);
    planner.set_hosts(hosts(agents));
    let (mut spent, mut planned) = (Duration::ZERO, 0);
    // A whole period: all rounds are due and all slots begin or are missed, as nothing ends.
    let start = now_unix_s();
    for unix_s in (start..start + 3_600).step_by(60) {
        let begin = Instant::now();
        let orders = planner.due(Moment { unix_s, utc_offset_s: 0 });
        spent += begin.elapsed();
        planned += orders.len() + planner.missed().len();
        let now = Moment { unix_s, utc_offset_s: 0 };
        for order in orders {
            planner.ended(&order.id, linerate_schedule::Outcome::Done, order.bytes, now);
        }
    }
    (spent, planned)
}

/// Returns the planner's time for an order while each host has 10 exclusive and 10 light partners in 2 minutes. The planner is asked
/// after each trial that ends, and most slots wait for a host.
fn time_of_order(agents: u32) -> Duration {
    let text = fleet_file(agents, 10, "2min")
        + "[[mesh]]\nname = \"latency\"\nbetween = [\"all\"]\ntest = \"transact --time 1s --repeats 1\"\nevery = \"2min\"\nsample = 10\n";
    let mut planner = Planner::new(FleetFile::parse("scale", &text).expect("a file"), 1);
    planner.set_hosts(hosts(agents));
    let mut orders = 0;
    let mut running = VecDeque::new();
    let start = now_unix_s();
    let begin = Instant::now();
    for unix_s in start..start + 120 {
        let now = Moment { unix_s, utc_offset_s: 0 };
        loop {
            for order in planner.due(now) {
                orders += 1;
                running.push_back((unix_s + order.time.get().div_ceil(1_000_000_000), order));
            }
            let Some((_, order)) = running.pop_front_if(|(ends_at, _): &mut (u64, _)| *ends_at <= unix_s) else {
                break;
            };
            planner.ended(&order.id, linerate_schedule::Outcome::Done, order.bytes, now);
        }
    }
    begin.elapsed() / orders.max(1)
}

/// Returns the hosts of a simulated fleet, all present.
fn hosts(agents: u32) -> Vec<FleetHost> {
    (0..agents)
        .map(|number| FleetHost { name: HostName(name(number)), labels: BTreeMap::new(), present: true })
        .collect()
}

/// Returns the records that a real ingest stores in PostgreSQL in a second.
fn time_of_ingest(program: &Path, fleet: &Fleet, record: &str) -> f64 {
    let postgres = Postgres::start();
    postgres.create_database("scale");
    let url = postgres.url(ADMINISTRATOR, "scale");
    fleet.runtime.block_on(async {
        let stream = fleet.owner.stream("records").await.expect("a stream");
        stream.purge().await.expect("an empty stream");
        let (publisher, publishing) = linerate_fleet::RecordPublisher::new(&fleet.owner);
        tokio::spawn(publishing);
        for number in 0..RECORDS {
            let id = RecordId(format!("20261129T120000-{number:08x}"));
            publish(&publisher, &copy(record, &id, &name(number % 997), &name(number % 991 + 1_000)));
            if (number as usize).is_multiple_of(PUBLISHED) {
                publisher.flush().await;
            }
        }
        publisher.flush().await;
    });
    let stored = || {
        let count = postgres.sql("scale", "SELECT count(*) FROM run WHERE state = 'finished'");
        count.parse::<u32>().unwrap_or_default()
    };
    let _ingest = fleet.serve(program, &["--roles", "store", "--store", &url]);
    wait_until("the first records are stored", || stored() > 0);
    let (before, begin) = (stored(), Instant::now());
    wait_until("all records are stored", || stored() == RECORDS);
    f64::from(RECORDS - before) / begin.elapsed().as_secs_f64()
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < LATE, "{what}: not within {LATE:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Returns a field of proc_pid_status(5) in MB.
fn memory_mb(pid: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default() / 1_000
}

/// Returns the CPU time of a process in seconds: fields 14 and 15 of proc_pid_stat(5), in ticks of 10 ms.
fn cpu_time(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let ticks: u64 = fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks as f64 / 100.0
}

/// Measures one short trial between two agents on loopback and returns its record as JSON.
fn measured_record(program: &Path) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let mut agents = Vec::new();
    let mut urls = Vec::new();
    for host in [FROM, TO] {
        let mut command = Command::new(program);
        command.args([
            "serve",
            "--ephemeral",
            "--listen",
            "127.0.0.1:0",
            "--name",
            host,
            "--allow-target",
            "127.0.0.0/8",
        ]);
        command.env("XDG_DATA_HOME", folder.path()).stdin(Stdio::null()).stderr(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("linerate starts");
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("output is piped"));
        output.read_line(&mut line).expect("an agent URL");
        urls.push(line.trim().to_owned());
        agents.push((Process(child), output));
    }
    let mut command = Command::new(program);
    command.args(["stream", &urls[0], &urls[1], "--time", "100ms", "--warmup", "50ms", "--json", "--no-store"]);
    let output = command.env("XDG_DATA_HOME", folder.path()).output().expect("linerate runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("JSON is UTF-8")
}
