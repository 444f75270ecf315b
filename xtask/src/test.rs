//! The tests, tier by tier. `crates/testsuite` says what belongs to which.

use crate::busy::BusyLoop;
use crate::process::cargo;
use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Which tier to run.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Run the tests with network namespaces, real links and faults. They need root.
    #[arg(long, conflicts_with = "servers")]
    lab: bool,
    /// Run the tests with servers and programs of other makers. `scripts/install-packages.sh test` installs these.
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
    goal: Duration,
}

const TIERS: [Tier; 3] = [
    Tier {
        name: "pure",
        covers: "logic, protocols, parsers, simulated agents, loopback; no root",
        command: "cargo xtask test",
        suffix: None,
        goal: Duration::from_secs(180),
    },
    Tier {
        name: "lab",
        covers: "network namespaces, real links, rates, faults; root",
        command: "cargo xtask test --lab",
        suffix: Some("::in_lab"),
        goal: Duration::from_secs(360),
    },
    Tier {
        name: "servers",
        covers: "nfs-ganesha, Samba, snmpd, Chromium, iperf3, tshark; root and packages",
        command: "cargo xtask test --servers",
        suffix: Some("::with_servers"),
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
    println!("built {} test programs in {:.0} s", programs.len(), began.elapsed().as_secs_f64());

    let began = Instant::now();
    let mut all = Count::default();
    let mut failed = Vec::new();
    let _busy = BusyLoop::start_many(arguments.busy);
    for program in &programs {
        let (count, success) = program.run(tier, &arguments.filter)?;
        all.passed += count.passed;
        all.failed += count.failed;
        all.skipped += count.skipped;
        if !success {
            failed.push(program.name.as_str());
        }
    }
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
        bail!("tests failed in {}; their messages are above", failed.join(", "));
    }
    Ok(())
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

    /// Runs its tests of a tier. Returns what they came to, and whether the program ended well.
    fn run(&self, tier: Tier, filter: &str) -> Result<(Count, bool)> {
        let tests = self.tests(tier, filter)?;
        if tests.is_empty() {
            return Ok((Count::default(), true));
        }
        let mut command = Command::new(&self.file);
        command.current_dir(&self.folder).args(["--quiet", "--exact"]).args(tests);
        let began = Instant::now();
        let output = command.output().with_context(|| format!("starting {}", self.file.display()))?;
        let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let count = Count::of(&said, &errors);
        let success = output.status.success();
        if success {
            errors.lines().filter(|line| is_skip(line)).for_each(|line| println!("{line}"));
        } else {
            println!("{said}{errors}");
        }
        let state = if success { "" } else { "  FAILED" };
        println!("{:<20} {:>4} passed in {:>6.1} s{state}", self.name, count.passed, began.elapsed().as_secs_f64());
        Ok((count, success))
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
