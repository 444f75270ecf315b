//! Runs the tests of one tier. The attributes of `crates/testsuite` assign each test to its tier.

use crate::busy::BusyLoop;
use crate::process::{Output, Running, cargo, catch_interrupts};
use crate::wine::{self, WindowsProgram};
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

/// Options of `cargo xtask test`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Run the tests with network namespaces, real links and faults. They need root.
    #[arg(long, conflicts_with = "servers")]
    lab: bool,
    /// Run the tests with servers and programs of other makers. `scripts/install-packages.sh servers` installs these.
    #[arg(long)]
    servers: bool,
    /// Build the program for Windows, run the tests of its crates under Wine, and then those with a Windows host in a lab.
    /// `scripts/install-packages.sh windows` installs Wine and the linker.
    #[arg(long, conflicts_with_all = ["lab", "servers"])]
    wine: bool,
    /// Keep this number of cores busy meanwhile, so that a test that needs a quiet machine fails.
    #[arg(long, value_name = "LOOPS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=64))]
    busy: u32,
    /// Run only tests with this in their names.
    #[arg(default_value = "")]
    filter: String,
}

/// Tests with the same needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tier {
    name: &'static str,
    covers: &'static str,
    command: &'static str,
    /// Last part of the names of its tests. `None` for the tier of all other tests.
    suffix: Option<&'static str>,
    /// Number of programs that run at the same time. Each runs as many tests as there are cores: most tests mostly
    /// wait.
    programs_at_once: usize,
    goal: Duration,
}

const TIERS: [Tier; 4] = [
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
        covers: "nfs-ganesha, Samba, snmpd, Chromium, iperf3, Open vSwitch, tshark; root and packages",
        command: "cargo xtask test --servers",
        suffix: Some("::with_servers"),
        // Third-party servers choose their own ports and folders.
        programs_at_once: 1,
        goal: Duration::from_secs(360),
    },
    Tier {
        name: "wine",
        covers: "the program for Windows under Wine, against this system's; root and packages",
        command: "cargo xtask test --wine",
        suffix: Some("::with_wine"),
        programs_at_once: 1,
        goal: Duration::from_secs(360),
    },
];

impl Tier {
    /// Returns whether a test of this name belongs to the tier.
    fn has(self, test: &str) -> bool {
        let mut others = TIERS.iter().filter_map(|tier| tier.suffix);
        match self.suffix {
            Some(suffix) => test.ends_with(suffix),
            None => !others.any(|suffix| test.ends_with(suffix)),
        }
    }
}

/// Test program built by cargo.
#[derive(Debug, PartialEq, Eq)]
struct Program {
    /// Name of the crate, followed by the target's name if it is an integration test.
    name: String,
    file: PathBuf,
    /// Folder of the crate, in which cargo would run it.
    folder: PathBuf,
}

/// Tests of a program that run in one process.
#[derive(Debug)]
struct Job<'a> {
    program: &'a Program,
    tests: Vec<String>,
}

/// Maximum number of tests in a job. Splitting a large program prevents that it runs alone at the end.
const MAX_TESTS_PER_JOB: usize = 24;

/// Time after which a job is taken to hang. On two cores the slowest takes 5 minutes.
const JOB_TIMEOUT: Duration = Duration::from_secs(1_200);

/// Number of tests by result.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Count {
    passed: u32,
    failed: u32,
    /// Tests with needs that are not met on this machine.
    skipped: u32,
}

/// Builds the tests, runs one tier, and prints the results, the time and the commands of the other tiers.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let tier = TIERS[match arguments {
        Arguments { wine: true, .. } => 3,
        Arguments { servers: true, .. } => 2,
        _ => usize::from(arguments.lab),
    }];
    println!("{} tests: {}", tier.name, tier.covers);
    let build_started = Instant::now();
    let programs = build()?;
    catch_interrupts()?;
    println!("built {} test programs in {:.0} s", programs.len(), build_started.elapsed().as_secs_f64());
    let wine = arguments.wine.then(|| wine::prepare(&arguments.filter)).transpose()?;

    let started = Instant::now();
    let jobs = jobs(&programs, tier, &arguments.filter)?;
    let _leftovers = Leftovers;
    let busy = BusyLoop::start_many(arguments.busy);
    let (all, failed) = run_jobs(&jobs, tier.programs_at_once, wine.as_ref())?;
    drop(busy);
    let skipped =
        if all.skipped > 0 { format!(", of which {} were SKIPPED (see above)", all.skipped) } else { String::new() };
    println!(
        "{} tests: {} passed{skipped}, {} failed, in {:.0} s (goal {} s)",
        tier.name,
        all.passed,
        all.failed,
        started.elapsed().as_secs_f64(),
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

/// Returns the tests of a tier whose names contain `filter`, as jobs. The program with the most tests comes first.
fn jobs<'a>(programs: &'a [Program], tier: Tier, filter: &str) -> Result<Vec<Job<'a>>> {
    let mut tests_of_programs = Vec::new();
    for program in programs {
        tests_of_programs.push((program, program.tests(tier, filter)?));
    }
    tests_of_programs.sort_by_key(|(_, tests)| std::cmp::Reverse(tests.len()));
    let mut jobs = Vec::new();
    for (program, tests) in &tests_of_programs {
        jobs.extend(parts(tests).map(|tests| Job { program, tests }));
    }
    Ok(jobs)
}

/// Splits `tests` into parts of equal size. Neighbours, which often take equally long, go to different parts.
fn parts(tests: &[String]) -> impl Iterator<Item = Vec<String>> {
    let parts = tests.len().div_ceil(MAX_TESTS_PER_JOB);
    (0..parts).map(move |part| tests.iter().skip(part).step_by(parts).cloned().collect())
}

/// Runs the jobs, `at_once` of them at the same time. Returns the total counts and the tests that did not pass.
fn run_jobs(jobs: &[Job], at_once: usize, wine: Option<&WindowsProgram>) -> Result<(Count, Vec<String>)> {
    let waiting = Mutex::new(jobs.iter());
    let results = thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(|| run_waiting(&waiting, wine))).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect::<Result<Vec<_>>>()
    })?;
    let mut all = Count::default();
    let mut failed = Vec::new();
    for (count, not_passed) in results.into_iter().flatten() {
        all.passed += count.passed;
        all.failed += count.failed;
        all.skipped += count.skipped;
        failed.extend(not_passed);
    }
    Ok((all, failed))
}

/// Runs jobs until none is waiting.
fn run_waiting(
    waiting: &Mutex<std::slice::Iter<'_, Job>>,
    wine: Option<&WindowsProgram>,
) -> Result<Vec<(Count, Vec<String>)>> {
    let mut results = Vec::new();
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
        match next {
            Some(job) => results.push(job.run(wine)?),
            None => return Ok(results),
        }
    }
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

/// Finds the test programs in cargo's messages.
fn programs(messages: &str) -> Vec<Program> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str(line).ok());
    messages.filter_map(|message| Program::from_message(&message)).collect()
}

impl Program {
    /// Returns the program of one of cargo's messages, or `None` if the message is not about a test program.
    fn from_message(message: &Value) -> Option<Self> {
        if message["profile"]["test"] != true {
            return None;
        }
        let file = PathBuf::from(message["executable"].as_str()?);
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
        let package = folder.file_name()?.to_string_lossy().into_owned();
        let target = message["target"]["name"].as_str()?;
        let name = if message["target"]["kind"][0] == "test" { format!("{package}/{target}") } else { package };
        Some(Self { name, file, folder })
    }

    /// Lists the program's tests that belong to a tier and whose names contain `filter`.
    fn tests(&self, tier: Tier, filter: &str) -> Result<Vec<String>> {
        let output = Command::new(&self.file)
            .args(["--list", "--format", "terse"])
            .output()
            .with_context(|| format!("listing the tests of {}", self.file.display()))?;
        let list = String::from_utf8_lossy(&output.stdout).into_owned();
        let names = list.lines().filter_map(|line| line.strip_suffix(": test"));
        Ok(names.filter(|name| tier.has(name) && name.contains(filter)).map(str::to_owned).collect())
    }
}

/// Environment variable that marks all processes started by tests. Its value is the number of this process.
const RUN_VARIABLE: &str = "LINERATE_TEST_RUN";

/// Kills the processes that tests have left when it is dropped.
///
/// A killed test cannot do so itself, and the agents of its labs have no parent any more and lead their own process
/// groups.
struct Leftovers;

impl Drop for Leftovers {
    fn drop(&mut self) {
        let mark = format!("{RUN_VARIABLE}={}", std::process::id()).into_bytes();
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        for pid in processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            if environment.split(|byte| *byte == 0).any(|variable| variable == mark) {
                // It may have ended meanwhile.
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
    }
}

impl Job<'_> {
    /// Runs the tests and prints their results at once. Returns the counts and the tests that did not pass.
    fn run(&self, wine: Option<&WindowsProgram>) -> Result<(Count, Vec<String>)> {
        let Program { name, file, folder } = self.program;
        let mut command = Command::new(file);
        command.current_dir(folder).arg("--exact").args(&self.tests).env(RUN_VARIABLE, std::process::id().to_string());
        if let Some(wine) = wine {
            command.env(wine::PROGRAM_VARIABLE, &wine.program).env(wine::PREFIX_VARIABLE, &wine.prefix);
        }
        let started = Instant::now();
        let (status, output) = Running::start(command)?.end(JOB_TIMEOUT)?;
        let mut count = Count::of(&output);
        let success = status.is_some_and(|status| status.success());
        let mut not_passed = Vec::new();
        if !success {
            not_passed = self.not_passed(&output.stdout);
            // A program that was killed or that aborted has no summary.
            count.failed = count.failed.max(u32::try_from(not_passed.len()).unwrap_or(u32::MAX));
        }
        let details = if success {
            output.stderr.lines().filter(|line| is_skip(line)).map(|line| format!("{line}\n")).collect()
        } else {
            format!("{}{}\n", output.stdout, output.stderr)
        };
        let state = match status {
            Some(_) if success => String::new(),
            Some(_) => "  FAILED".to_owned(),
            None => format!("  FAILED: did not end within {} s", JOB_TIMEOUT.as_secs()),
        };
        println!("{details}{name:<20} {:>4} passed in {:>6.1} s{state}", count.passed, started.elapsed().as_secs_f64());
        Ok((count, not_passed))
    }

    /// Lists the tests that did not pass, with their program's name. `output` has a line for each test that ended.
    fn not_passed(&self, output: &str) -> Vec<String> {
        let has_line = |line: String| output.lines().any(|other| other == line);
        let mut names = Vec::new();
        for test in &self.tests {
            if !has_line(format!("test {test} ... ok")) {
                let remark = if has_line(format!("test {test} ... FAILED")) { "" } else { " (did not end)" };
                names.push(format!("{}: {test}{remark}", self.program.name));
            }
        }
        names
    }
}

fn is_skip(line: &str) -> bool {
    line.starts_with("SKIPPED: ")
}

impl Count {
    /// Reads the summary of a test program.
    fn of(output: &Output) -> Self {
        let mut summaries = output.stdout.lines().filter_map(|line| line.strip_prefix("test result: "));
        let summary = summaries.next_back().unwrap_or_default();
        let number = |result: &str| {
            let part = summary.split(';').find_map(|part| part.strip_suffix(result))?;
            part.split_whitespace().last()?.parse::<u32>().ok()
        };
        Self {
            passed: number(" passed").unwrap_or(0),
            failed: number(" failed").unwrap_or(0),
            skipped: output.stderr.lines().filter(|line| is_skip(line)).count().try_into().unwrap_or(u32::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_is_read() {
        let stdout = "\nrunning 9 tests\n.........\ntest result: FAILED. 7 passed; 2 failed; 1 ignored; 0 measured; 3 filtered out; \
                      finished in 0.01s\n";
        let stderr = "SKIPPED: a::in_lab: it needs root\nother\n";
        let count = Count::of(&Output { stdout: stdout.to_owned(), stderr: stderr.to_owned() });
        assert_eq!(count, Count { passed: 7, failed: 2, skipped: 1 });
    }

    #[test]
    fn leftover_processes_of_tests_are_killed() {
        let start = |run: u32| {
            let mut command = Command::new("sleep");
            let child = command.arg("300").env(RUN_VARIABLE, run.to_string()).spawn().expect("it starts");
            // A program has no environment yet when its start is reported.
            while std::fs::read(format!("/proc/{}/environ", child.id())).expect("it runs").is_empty() {
                thread::yield_now();
            }
            child
        };
        let mut leftover = start(std::process::id());
        let mut other = start(0);
        drop(Leftovers);
        assert!(!leftover.wait().expect("it ends").success());
        assert!(other.try_wait().expect("a child").is_none(), "it is of another run");
        other.kill().and_then(|()| other.wait()).expect("it ends");
    }

    #[test]
    fn tests_that_hang_are_named() {
        let program = Program { name: "lab/it".into(), file: PathBuf::new(), folder: PathBuf::new() };
        let tests = ["a::passes", "a::passes_late", "a::fails"].map(str::to_owned).to_vec();
        let job = Job { program: &program, tests };
        let output = "running 3 tests\ntest a::passes ... ok\ntest a::fails ... FAILED\n";
        assert_eq!(job.not_passed(output), ["lab/it: a::passes_late (did not end)", "lab/it: a::fails"]);
    }

    #[test]
    fn each_test_runs_in_one_part() {
        for count in [0, 1, MAX_TESTS_PER_JOB, MAX_TESTS_PER_JOB + 1, 7 * MAX_TESTS_PER_JOB - 1] {
            let tests: Vec<String> = (0..count).map(|number| number.to_string()).collect();
            let parts: Vec<Vec<String>> = parts(&tests).collect();
            assert_eq!(parts.len(), count.div_ceil(MAX_TESTS_PER_JOB));
            assert!(parts.iter().all(|part| !part.is_empty() && part.len() <= MAX_TESTS_PER_JOB));
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
        assert_eq!(of("windows::a_stream_runs::with_wine"), ["wine"]);
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
        let names: Vec<String> = programs(&messages.join("\n")).into_iter().map(|program| program.name).collect();
        assert_eq!(names, ["frames", "frames/it"]);
    }
}
