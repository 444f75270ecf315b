//! The tests, tier by tier. `crates/testsuite` says what belongs to which.

use crate::busy::BusyLoop;
use crate::process::{Running, cargo, catch_interrupts};
use anyhow::{Context, Result, bail};
use clap::Args;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Which tier to run.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Run the tests with network namespaces, real links and faults. They need root.
    #[arg(long, conflicts_with = "servers")]
    lab: bool,
    /// Run the tests with servers and programs of other makers. `scripts/install-packages.sh servers` installs these.
    #[arg(long)]
    servers: bool,
    /// Keep so many cores busy meanwhile: what passes only on a quiet machine fails.
    #[arg(long, value_name = "LOOPS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=64))]
    busy: u32,
    /// Run only tests whose name contains this.
    #[arg(default_value = "")]
    filter: String,
}

/// A part of all tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tier {
    name: &'static str,
    covers: &'static str,
    command: &'static str,
    /// The last part of the names of its tests; the first tier has all others.
    suffix: Option<&'static str>,
    /// How many programs run side by side, each as many tests as there are cores: most of them wait most of the time.
    programs_at_once: usize,
    goal: Duration,
}

const TIERS: [Tier; 3] = [
    Tier {
        name: "pure",
        covers: "logic, protocols, parsers, simulated agents, loopback; no root",
        command: "cargo xtask test",
        suffix: None,
        programs_at_once: 2,
        goal: Duration::from_secs(180),
    },
    Tier {
        name: "lab",
        covers: "network namespaces, real links, rates, faults; root",
        command: "cargo xtask test --lab",
        suffix: Some("::in_lab"),
        programs_at_once: 3,
        goal: Duration::from_secs(360),
    },
    Tier {
        name: "servers",
        covers: "nfs-ganesha, Samba, snmpd, Chromium, iperf3, tshark; root and packages",
        command: "cargo xtask test --servers",
        suffix: Some("::with_servers"),
        // Servers of other makers have ports and folders of their own choice.
        programs_at_once: 1,
        goal: Duration::from_secs(360),
    },
];

impl Tier {
    /// Whether a test of this name belongs to it.
    fn has(self, test: &str) -> bool {
        let mut others = TIERS.iter().filter_map(|tier| tier.suffix);
        match self.suffix {
            Some(suffix) => test.ends_with(suffix),
            None => !others.any(|suffix| test.ends_with(suffix)),
        }
    }
}

/// A program of tests, as cargo built it.
#[derive(Debug, PartialEq, Eq)]
struct Program {
    /// The crate and, of its programs, which.
    name: String,
    file: PathBuf,
    /// The crate's folder, where cargo would run it.
    folder: PathBuf,
}

/// Tests of a program that run together, in a process of their own.
#[derive(Debug)]
struct Job<'a> {
    program: &'a Program,
    tests: Vec<String>,
}

/// A program with more tests runs in several parts, so that it does not run alone when all others have ended.
const MOST_IN_A_JOB: usize = 24;

/// A program that runs longer hangs: on two cores the slowest one takes 5 minutes.
const MOST_TIME_OF_A_JOB: Duration = Duration::from_secs(1_200);

/// What test programs said.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Count {
    passed: u32,
    failed: u32,
    /// Tests that said that they cannot run here.
    skipped: u32,
}

/// Builds the tests, runs one tier, and says what ran, how long it took and what was left out.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let tier = TIERS[if arguments.servers { 2 } else { usize::from(arguments.lab) }];
    println!("{} tests: {}", tier.name, tier.covers);
    let began = Instant::now();
    let programs = build()?;
    catch_interrupts()?;
    println!("built {} test programs in {:.0} s", programs.len(), began.elapsed().as_secs_f64());

    let began = Instant::now();
    let jobs = jobs(&programs, tier, &arguments.filter)?;
    let _leftovers = Leftovers;
    let busy = BusyLoop::start_many(arguments.busy);
    let (all, failed) = run_jobs(&jobs, tier.programs_at_once)?;
    drop(busy);
    let skipped =
        if all.skipped > 0 { format!(", of which {} were SKIPPED (see above)", all.skipped) } else { String::new() };
    println!(
        "{} tests: {} passed{skipped}, {} failed, in {:.0} s (goal {} s)",
        tier.name,
        all.passed,
        all.failed,
        began.elapsed().as_secs_f64(),
        tier.goal.as_secs()
    );
    println!("not run:");
    for other in TIERS.iter().filter(|other| **other != tier) {
        println!("  {:<28} {}", other.command, other.covers);
    }
    println!("  {:<28} how often verdicts name a planted limit; half an hour a run", "cargo xtask truth");
    if !failed.is_empty() {
        bail!("failed, with their messages above:\n  {}", failed.join("\n  "));
    }
    Ok(())
}

/// The tests of a tier whose names contain `filter`. The program with most of them is first.
fn jobs<'a>(programs: &'a [Program], tier: Tier, filter: &str) -> Result<Vec<Job<'a>>> {
    let tests = |program: &'a Program| Ok((program, program.tests(tier, filter)?));
    let mut found: Vec<(&Program, Vec<String>)> = programs.iter().map(tests).collect::<Result<_>>()?;
    found.sort_by_key(|(_, tests)| std::cmp::Reverse(tests.len()));
    Ok(found.iter().flat_map(|(program, tests)| parts(tests).map(|tests| Job { program, tests })).collect())
}

/// `tests` in parts of equal size. Neighbours, which often take equally long, come to different parts.
fn parts(tests: &[String]) -> impl Iterator<Item = Vec<String>> {
    let parts = tests.len().div_ceil(MOST_IN_A_JOB);
    (0..parts).map(move |part| tests.iter().skip(part).step_by(parts).cloned().collect())
}

/// Runs the jobs, so many at once. Returns what all came to, and the tests that failed.
fn run_jobs(jobs: &[Job], at_once: usize) -> Result<(Count, Vec<String>)> {
    let waiting = Mutex::new(jobs.iter());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || std::iter::from_fn(next).map(Job::run).collect::<Result<Vec<_>>>();
    let ended = thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect::<Result<Vec<_>>>()
    })?;
    let (mut all, mut failed) = (Count::default(), Vec::new());
    for (count, not_passed) in ended.into_iter().flatten() {
        all.passed += count.passed;
        all.failed += count.failed;
        all.skipped += count.skipped;
        failed.extend(not_passed);
    }
    Ok((all, failed))
}

/// Builds all test programs.
fn build() -> Result<Vec<Program>> {
    let mut command = cargo();
    command.args(["test", "--workspace", "--no-run", "--message-format", "json-render-diagnostics"]);
    let output = command.stderr(Stdio::inherit()).output().context("starting `cargo test`")?;
    if !output.status.success() {
        bail!("the tests do not build; the compiler's message is above");
    }
    Ok(programs(&String::from_utf8_lossy(&output.stdout)))
}

/// The test programs in cargo's messages.
fn programs(messages: &str) -> Vec<Program> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program = |message: Value| {
        if message["profile"]["test"] != true {
            return None;
        }
        let file = PathBuf::from(message["executable"].as_str()?);
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
        let package = folder.file_name()?.to_string_lossy().into_owned();
        let target = message["target"]["name"].as_str()?;
        let name = if message["target"]["kind"][0] == "test" { format!("{package}/{target}") } else { package };
        Some(Program { name, file, folder })
    };
    messages.filter_map(program).collect()
}

impl Program {
    /// The names of its tests that belong to a tier and contain `filter`.
    fn tests(&self, tier: Tier, filter: &str) -> Result<Vec<String>> {
        let failed = || format!("listing the tests of {}", self.file.display());
        let listed = Command::new(&self.file).args(["--list", "--format", "terse"]).output().with_context(failed)?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let names = listed.lines().filter_map(|line| line.strip_suffix(": test"));
        Ok(names.filter(|name| tier.has(name) && name.contains(filter)).map(str::to_owned).collect())
    }
}

/// An environment variable of all processes that tests start, with this process's number.
const OF_RUN: &str = "LINERATE_TEST_RUN";

/// Ends what tests have left behind when it is dropped. A test that is killed cannot do that: its labs' agents have no parent any more and lead
/// process groups of their own.
struct Leftovers;

impl Drop for Leftovers {
    fn drop(&mut self) {
        let mark = format!("{OF_RUN}={}", std::process::id()).into_bytes();
        let is_left = |pid: &i32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == mark)
        };
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let processes = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        for pid in processes.filter(is_left) {
            // It may have ended meanwhile.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

impl Job<'_> {
    /// Runs the tests, and says in one piece how they ended. Returns what they came to, and which of them did not pass.
    fn run(&self) -> Result<(Count, Vec<String>)> {
        let Program { name, file, folder } = self.program;
        let mut command = Command::new(file);
        command.current_dir(folder).arg("--exact").args(&self.tests).env(OF_RUN, std::process::id().to_string());
        let began = Instant::now();
        let (status, output) = Running::start(command)?.end(MOST_TIME_OF_A_JOB)?;
        let (said, errors) = (output.stdout, output.stderr);
        let mut count = Count::of(&said, &errors);
        let success = status.is_some_and(|status| status.success());
        let mut not_passed = Vec::new();
        if !success {
            not_passed = self.not_passed(&said);
            // A program that was killed or that aborted has no summary.
            count.failed = count.failed.max(u32::try_from(not_passed.len()).unwrap_or(u32::MAX));
        }
        let details = if success {
            errors.lines().filter(|line| is_skip(line)).map(|line| format!("{line}\n")).collect()
        } else {
            format!("{said}{errors}\n")
        };
        let state = match status {
            Some(_) if success => String::new(),
            Some(_) => "  FAILED".to_owned(),
            None => format!("  FAILED: did not end within {} s", MOST_TIME_OF_A_JOB.as_secs()),
        };
        println!("{details}{name:<20} {:>4} passed in {:>6.1} s{state}", count.passed, began.elapsed().as_secs_f64());
        Ok((count, not_passed))
    }

    /// The tests that did not pass by what the program wrote: a line for each test that ended. Each has its program's name.
    fn not_passed(&self, said: &str) -> Vec<String> {
        let ended = |test: &str, how: &str| said.lines().any(|line| line == format!("test {test} ... {how}"));
        let of_program = |test: &String| {
            let how = if ended(test, "FAILED") { "" } else { " (did not end)" };
            format!("{}: {test}{how}", self.program.name)
        };
        self.tests.iter().filter(|test| !ended(test, "ok")).map(of_program).collect()
    }
}

fn is_skip(line: &str) -> bool {
    line.starts_with("SKIPPED: ")
}

impl Count {
    /// Reads what a test program wrote.
    fn of(output: &str, errors: &str) -> Self {
        let summary =
            output.lines().filter_map(|line| line.strip_prefix("test result: ")).next_back().unwrap_or_default();
        let number = |what: &str| {
            let part = summary.split(';').find_map(|part| part.strip_suffix(what))?;
            part.split_whitespace().last()?.parse::<u32>().ok()
        };
        Self {
            passed: number(" passed").unwrap_or(0),
            failed: number(" failed").unwrap_or(0),
            skipped: errors.lines().filter(|line| is_skip(line)).count().try_into().unwrap_or(u32::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_read() {
        let output = "\nrunning 9 tests\n.........\ntest result: FAILED. 7 passed; 2 failed; 1 ignored; 0 measured; 3 filtered out; \
                      finished in 0.01s\n";
        let count = Count::of(output, "SKIPPED: a::in_lab: it needs root\nother\n");
        assert_eq!(count, Count { passed: 7, failed: 2, skipped: 1 });
    }

    #[test]
    fn what_tests_leave_behind_is_ended() {
        let start = |run: u32| {
            let mut command = Command::new("sleep");
            let child = command.arg("300").env(OF_RUN, run.to_string()).spawn().expect("it starts");
            // A program has no environment yet when its start is reported.
            while std::fs::read(format!("/proc/{}/environ", child.id())).expect("it runs").is_empty() {
                thread::yield_now();
            }
            child
        };
        let (mut left, mut other) = (start(std::process::id()), start(0));
        drop(Leftovers);
        assert!(!left.wait().expect("it ends").success());
        assert!(other.try_wait().expect("a child").is_none(), "it is of another run");
        other.kill().and_then(|()| other.wait()).expect("it ends");
    }

    #[test]
    fn tests_that_hang_are_named() {
        let program = Program { name: "lab/it".into(), file: PathBuf::new(), folder: PathBuf::new() };
        let tests = ["a::passes", "a::passes_late", "a::fails"].map(str::to_owned).to_vec();
        let job = Job { program: &program, tests };
        let said = "running 3 tests\ntest a::passes ... ok\ntest a::fails ... FAILED\n";
        assert_eq!(job.not_passed(said), ["lab/it: a::passes_late (did not end)", "lab/it: a::fails"]);
    }

    #[test]
    fn each_test_runs_in_one_part() {
        for count in [0, 1, MOST_IN_A_JOB, MOST_IN_A_JOB + 1, 7 * MOST_IN_A_JOB - 1] {
            let tests: Vec<String> = (0..count).map(|number| number.to_string()).collect();
            let parts: Vec<Vec<String>> = parts(&tests).collect();
            assert_eq!(parts.len(), count.div_ceil(MOST_IN_A_JOB));
            assert!(parts.iter().all(|part| !part.is_empty() && part.len() <= MOST_IN_A_JOB));
            let mut all = parts.concat();
            all.sort_by_key(|name| name.parse::<usize>().expect("a number"));
            assert_eq!(all, tests);
        }
    }

    #[test]
    fn each_test_belongs_to_one_tier() {
        let of = |name: &str| TIERS.iter().filter(|tier| tier.has(name)).map(|tier| tier.name).collect::<Vec<_>>();
        assert_eq!(of("faults::kill_nine_leaves_nothing_behind::in_lab"), ["lab"]);
        assert_eq!(of("sessions::every_version_is_spoken::with_servers"), ["servers"]);
        assert_eq!(of("rates::a_rate_is_read"), ["pure"]);
    }

    #[test]
    fn test_programs_are_found_in_cargos_messages() {
        let message = |kind: &str, name: &str, test: bool| {
            serde_json::json!({
                "profile": { "test": test },
                "executable": "/t/debug/deps/x",
                "manifest_path": "/w/crates/frames/Cargo.toml",
                "target": { "kind": [kind], "name": name },
            })
            .to_string()
        };
        let messages =
            [message("lib", "linerate_frames", true), message("test", "it", true), message("bin", "x", false)];
        let found: Vec<String> = programs(&messages.join("\n")).into_iter().map(|program| program.name).collect();
        assert_eq!(found, ["frames", "frames/it"]);
    }
}
