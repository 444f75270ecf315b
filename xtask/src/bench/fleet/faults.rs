//! Faults during a mesh run: what may fail fails, and the records are compared with the agents' own logs.

use super::audit::Audit;
use crate::bench::lab::find_or_build;
use crate::process::{catch_interrupts, check_interrupt};
use anyhow::{Context, Result, bail, ensure};
use linerate_testsuite::fleet::{Database, FleetLab, FleetLabOptions, FleetServer, Site};
use linerate_units::BitRate;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const SITES: [&str; 4] = ["oslo", "rome", "lima", "bonn"];
const HOSTS_OF_SITE: usize = 2;
const MEGABIT: u64 = 1_000_000;
/// Size of the file system with the streams of NATS, bytes.
const STREAM_SPACE: u64 = 256 << 20;
/// The mesh runs for at least this before a fault, and for up to [`MOST_BEFORE`].
const LEAST_BEFORE: Duration = Duration::from_secs(5);
const MOST_BEFORE: Duration = Duration::from_secs(20);
/// The mesh runs for this after a fault is over.
const AFTER: Duration = Duration::from_secs(25);
/// NATS cannot be reached for this.
const CUT: Duration = Duration::from_secs(60);
/// A scheduler is paused for this: another one takes the lease after 10 s.
const PAUSE: Duration = Duration::from_secs(20);
/// The file system of NATS is full for this.
const FULL: Duration = Duration::from_secs(15);
/// Time in which all orders must have ended after a pause of the fleet.
const QUIET: Duration = Duration::from_secs(180);
/// Time in which the last records must be stored.
const STORED: Duration = Duration::from_secs(60);
/// Time after which an agent ends a session that nobody follows, and the time to end it.
const UNFOLLOWED_NS: u64 = 50_000_000_000;

/// Options of the faults.
pub(super) struct Options<'a> {
    pub(super) repeats: u32,
    pub(super) seed: u64,
    pub(super) only: Option<&'a str>,
    pub(super) program: Option<&'a Path>,
}

/// Fault to plant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    KillScheduler,
    KillController,
    KillAgent,
    KillIngest,
    RestartNats,
    RestartPostgres,
    CutNats,
    PauseScheduler,
    FullDisk,
    WrongClock,
}

/// Every fault with its name, in the order they are planted.
const FAULTS: [(Fault, &str); 10] = [
    (Fault::KillScheduler, "kill -9 of the scheduler"),
    (Fault::KillController, "kill -9 of a controller"),
    (Fault::KillAgent, "kill -9 of an agent"),
    (Fault::KillIngest, "kill -9 of the ingest"),
    (Fault::RestartNats, "restart of NATS"),
    (Fault::RestartPostgres, "restart of PostgreSQL"),
    (Fault::CutNats, "NATS unreachable for 60 s"),
    (Fault::PauseScheduler, "scheduler paused until another took over"),
    (Fault::FullDisk, "full disk of NATS"),
    (Fault::WrongClock, "clock of a process an hour off"),
];

/// Returns the library that gives a process a wrong clock (Debian's package faketime).
fn faketime() -> String {
    format!("/usr/lib/{}-linux-gnu/faketime/libfaketime.so.1", std::env::consts::ARCH)
}

/// Processes that may have a wrong clock.
const CLOCKED: [&str; 3] = ["schedule-1", "control-1", "store"];

/// Numbers that a seed decides (SplitMix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap_or_default()
    }

    fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let span_ms = u64::try_from((most - least).as_millis()).unwrap_or(u64::MAX).max(1);
        least + Duration::from_millis(self.next() % span_ms)
    }
}

/// A fleet under test.
struct Trials {
    lab: FleetLab,
    chance: Chance,
    /// Agents that were killed, and when, in nanoseconds since 1970.
    dead: Vec<(String, u64)>,
    /// Attempts that were finished before the fault.
    finished_before: usize,
}

/// Plants each fault and prints a table. Fails if an audit finds anything.
pub(super) fn run(options: &Options<'_>) -> Result<()> {
    catch_interrupts()?;
    let program = find_or_build(options.program)?;
    let mut trials = Trials {
        lab: FleetLab::up(lab_options(&program)),
        chance: Chance(options.seed),
        dead: Vec::new(),
        finished_before: 0,
    };
    println!(
        "{:<42} {:>4} {:>8} {:>6} {:>4} {:>5} {:>6}",
        "fault", "run", "trials", "stored", "lost", "twice", "shared"
    );
    let mut faulty = 0;
    for (fault, name) in FAULTS {
        if options.only.is_some_and(|only| !name.contains(only)) {
            continue;
        }
        if fault == Fault::WrongClock && !Path::new(&faketime()).exists() {
            bail!("{} is missing: `scripts/install-packages.sh bench` installs it", faketime());
        }
        for run in 1..=options.repeats {
            check_interrupt()?;
            let problems = trials.plant(fault, run).with_context(|| format!("{name}, run {run}"))?;
            let audit = trials.audit()?;
            println!(
                "{name:<42} {run:>4} {:>8} {:>6} {:>4} {:>5} {:>6}",
                audit.finished - trials.finished_before,
                audit.stored,
                audit.lost.len(),
                audit.twice.len(),
                audit.shared.len()
            );
            for problem in problems.iter().chain(&audit.lost).chain(&audit.twice).chain(&audit.shared) {
                println!("    {problem}");
            }
            let is_idle = audit.finished == trials.finished_before;
            if is_idle {
                println!("    no trial was finished");
            }
            faulty += usize::from(!audit.is_clean() || !problems.is_empty() || is_idle);
            trials.finished_before = audit.finished;
        }
    }
    ensure!(faulty == 0, "{faulty} runs had problems");
    Ok(())
}

fn lab_options(program: &Path) -> FleetLabOptions {
    let sites = SITES.map(|name| Site {
        name: name.to_owned(),
        hosts: HOSTS_OF_SITE,
        uplink: BitRate::per_second(40 * MEGABIT),
    });
    FleetLabOptions {
        program: program.to_owned(),
        sites: sites.to_vec(),
        host_rate: BitRate::per_second(100 * MEGABIT),
        slow_hosts: BTreeMap::new(),
        file: fleet_file(),
        servers: vec![
            FleetServer::new("store", "store,admit"),
            FleetServer::new("schedule-1", "schedule"),
            FleetServer::new("schedule-2", "schedule"),
            FleetServer::new("control-1", "control"),
            FleetServer::new("control-2", "control"),
        ],
        database: Database::PostgreSql,
        stream_space: Some(STREAM_SPACE),
    }
}

fn fleet_file() -> String {
    let hosts = SITES.map(|site| (1..=HOSTS_OF_SITE).map(|number| format!("\"{site}-{number}\"")).collect::<Vec<_>>());
    let mut file = format!("[[group]]\nname = \"hosts\"\nhosts = [{}]\n", hosts.concat().join(", "));
    for site in SITES {
        file += &format!("[[link]]\nname = \"{site}-uplink\"\nlabels = {{ site = \"{site}\" }}\nrate = \"40Mbit/s\"\n");
    }
    file +=
        "[[mesh]]\nname = \"rate\"\nbetween = [\"hosts\"]\ntest = \"stream --time 0.5s --warmup 0.2s --repeats 1\"\n";
    file + "every = \"10s\"\nslip = \"10s\"\nsample = 2\n"
}

impl Trials {
    /// Plants a fault at a random moment of the mesh and undoes it. Returns problems that an audit does not see.
    fn plant(&mut self, fault: Fault, run: u32) -> Result<Vec<String>> {
        self.lab.run_well(&["fleet", "resume"]);
        let before = self.chance.between(LEAST_BEFORE, MOST_BEFORE);
        wait(before)?;
        let mut problems = Vec::new();
        match fault {
            Fault::KillScheduler => {
                let scheduler = self.scheduler()?;
                self.lab.kill(&scheduler);
                problems.extend(self.wait_for_another(&scheduler)?);
                self.lab.start_again(&scheduler);
            }
            Fault::KillController => {
                let name = format!("control-{}", 1 + self.chance.below(2));
                self.lab.kill(&name);
                wait(Duration::from_secs(5))?;
                self.lab.start_again(&name);
            }
            Fault::KillIngest => {
                self.lab.kill("store");
                wait(Duration::from_secs(5))?;
                self.lab.start_again("store");
            }
            Fault::KillAgent => {
                let agents = self.lab.agents();
                let name = agents[self.chance.below(agents.len())].clone();
                self.lab.kill(&name);
                self.dead.push((name.clone(), now_unix_ns()));
                wait(Duration::from_secs(5))?;
                self.lab.start_again(&name);
            }
            Fault::RestartNats => self.lab.restart_nats(),
            Fault::RestartPostgres => self.lab.restart_postgres(),
            Fault::CutNats => {
                let cut_at = now_unix_ns();
                self.lab.set_nats_link(false);
                wait(CUT)?;
                self.lab.set_nats_link(true);
                problems.extend(self.unstopped(cut_at));
            }
            Fault::PauseScheduler => {
                let scheduler = self.scheduler()?;
                self.lab.pause_process(&scheduler, true);
                let another = self.wait_for_another(&scheduler);
                wait(PAUSE)?;
                self.lab.pause_process(&scheduler, false);
                problems.extend(another?);
            }
            Fault::FullDisk => {
                let folder = self.lab.stream_folder().context("the lab has a file system for streams")?.to_owned();
                let ballast = folder.join("ballast");
                fill(&ballast);
                wait(FULL)?;
                std::fs::remove_file(&ballast).context("making room again")?;
            }
            Fault::WrongClock => {
                let name = CLOCKED[run as usize % CLOCKED.len()];
                self.lab.kill(name);
                let hour = if self.chance.below(2) == 0 { "+3600s" } else { "-3600s" };
                let library = faketime();
                let clock =
                    [("LD_PRELOAD", library.as_str()), ("FAKETIME", hour), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")];
                self.lab.start_with(name, &clock);
                wait(Duration::from_secs(30))?;
                self.lab.kill(name);
                self.lab.start_again(name);
            }
        }
        wait(AFTER)?;
        self.calm_down(&mut problems)?;
        Ok(problems)
    }

    /// Returns the process that schedules now.
    fn scheduler(&mut self) -> Result<String> {
        let deadline = Instant::now() + QUIET;
        loop {
            check_interrupt()?;
            let holder = self.status()["schedule"]["scheduler"].as_str().unwrap_or_default().to_owned();
            for name in ["schedule-1", "schedule-2"] {
                let pid = self.lab.pid(name).map(|pid| pid.to_string());
                if pid.is_some_and(|pid| holder.ends_with(&format!(" {pid}"))) {
                    return Ok(name.to_owned());
                }
            }
            ensure!(Instant::now() < deadline, "no process of the lab schedules; the status names `{holder}`");
            thread::sleep(Duration::from_millis(500));
        }
    }

    /// Waits until another process than `former` schedules. Returns a problem if none does.
    fn wait_for_another(&mut self, former: &str) -> Result<Option<String>> {
        let begin = Instant::now();
        while begin.elapsed() < QUIET {
            check_interrupt()?;
            if self.scheduler()? != former {
                return Ok(None);
            }
            thread::sleep(Duration::from_millis(500));
        }
        Ok(Some(format!("nobody took over from {former} within {} s", QUIET.as_secs())))
    }

    fn status(&self) -> Value {
        let output = self.lab.run(&["fleet", "status", "--json"]);
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// Returns sessions that went on for longer without their fleet than an agent allows.
    fn unstopped(&self, cut_unix_ns: u64) -> Vec<String> {
        let limit = cut_unix_ns + UNFOLLOWED_NS;
        let mut problems = Vec::new();
        for (agent, sessions) in self.lab.session_logs() {
            for session in sessions {
                let was_open = session.begun_unix_ns < limit && session.ended_unix_ns.is_none_or(|end| end > limit);
                let was_killed = self.dead.iter().any(|(name, at)| *name == agent && *at > session.begun_unix_ns);
                if was_open && !was_killed {
                    problems.push(format!("{agent} went on with {} without its fleet", session.id));
                }
            }
        }
        problems
    }

    /// Pauses the fleet, and waits until all orders have ended.
    fn calm_down(&mut self, problems: &mut Vec<String>) -> Result<()> {
        self.lab.run_well(&["fleet", "pause"]);
        let begin = Instant::now();
        loop {
            check_interrupt()?;
            let status = self.status();
            if status["schedule"]["outstanding_count"] == 0 {
                break;
            }
            if begin.elapsed() > QUIET {
                problems.push(format!("orders have not ended: {}", status["schedule"]["outstanding"]));
                break;
            }
            thread::sleep(Duration::from_secs(1));
        }
        Ok(())
    }

    /// Compares records and logs once the last records are stored, or the time for that has passed.
    fn audit(&self) -> Result<Audit> {
        let sites = self.lab.sites();
        let begin = Instant::now();
        loop {
            check_interrupt()?;
            let audit = Audit::of(&self.lab, &sites, &self.dead);
            if audit.lost.is_empty() || begin.elapsed() > STORED {
                return Ok(audit);
            }
            thread::sleep(Duration::from_secs(1));
        }
    }
}

fn now_unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn wait(duration: Duration) -> Result<()> {
    let deadline = Instant::now() + duration;
    while Instant::now() < deadline {
        check_interrupt()?;
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Writes a file until its file system is full.
fn fill(path: &Path) {
    let block = vec![0; 1 << 20];
    if let Ok(mut file) = File::create(path) {
        while file.write_all(&block).is_ok() {}
        // The rest, by less than a block.
        while file.write_all(&block[..4096]).is_ok() {}
    }
}
