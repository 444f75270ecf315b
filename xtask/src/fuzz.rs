//! Fuzzing: libFuzzer searches for inputs that make a parser panic, hang or fill memory. `fuzz/src/lib.rs` lists the
//! parsers.
//!
//! A single program has all targets. `fuzz/rustc-with-coverage.sh` builds the crates of the workspace with coverage
//! counters; other libraries are built as for the tests. No sanitizer is used, since only crate `sys` has `unsafe`. The
//! stable compiler is therefore sufficient, and a build takes one minute.

use crate::process::{cargo, catch_interrupts, check_interrupt};
use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum length of an input, in bytes. Records of real runs are not longer.
const MAX_INPUT: &str = "-max_len=65536";
/// Seconds after which an input is a fault.
const TIMEOUT: &str = "-timeout=10";
/// Memory in MiB above which an input is a fault.
const MEMORY: &str = "-rss_limit_mb=1024";
const LOOK: Duration = Duration::from_millis(100);

/// Options of `cargo xtask fuzz`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Seconds for each target.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Fuzz this target only (see fuzz/src/lib.rs); may be repeated.
    #[arg(long, value_name = "NAME")]
    target: Vec<String>,
    /// Seed of the random numbers. The same seed tries the same inputs in the same order, until the time is up.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    seed: u32,
    /// Targets at a time; by default one for each core.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=64))]
    jobs: Option<u32>,
    /// Afterwards add the inputs that reach new code to fuzz/corpus.
    #[arg(long)]
    keep: bool,
}

/// Paths of a target's inputs and of the program's log.
struct FuzzFolders {
    /// Corpus in the repository.
    kept: PathBuf,
    /// Inputs found on this machine.
    found: PathBuf,
    /// Prefix of the files with failing inputs.
    faults: PathBuf,
    log: PathBuf,
}

impl FuzzFolders {
    fn of(target: &str) -> Result<Self> {
        let folder = Path::new("target/fuzz").join(target);
        let folders = Self {
            kept: Path::new("fuzz/corpus").join(target),
            found: folder.join("corpus"),
            faults: folder.join("fault-"),
            log: folder.join("log"),
        };
        fs::create_dir_all(&folders.found).with_context(|| format!("making {}", folders.found.display()))?;
        Ok(folders)
    }
}

/// A target that is being fuzzed.
struct Fuzzed {
    name: String,
    folders: FuzzFolders,
    program: Child,
    began: Instant,
}

/// Builds the program, runs it for each target, and prints the results.
///
/// # Errors
/// The build fails, a target does not exist, or an input makes a target fail.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    catch_interrupts()?;
    let began = Instant::now();
    let program = build()?;
    println!("built {} in {:.0} s", program.display(), began.elapsed().as_secs_f64());
    let mut waiting = targets(arguments)?;
    waiting.reverse();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let jobs = arguments.jobs.map_or(cores, |jobs| jobs as usize);
    let mut under_way: Vec<Fuzzed> = Vec::new();
    let mut failed: Vec<String> = Vec::new();
    while !(waiting.is_empty() && under_way.is_empty()) {
        while under_way.len() < jobs
            && let Some(name) = waiting.pop()
        {
            under_way.push(Fuzzed::start(&program, name, arguments)?);
        }
        thread::sleep(LOOK);
        check_interrupt()?;
        let mut at = 0;
        while at < under_way.len() {
            if under_way[at].has_ended()? {
                let mut ended = under_way.swap_remove(at);
                if !ended.report()? {
                    failed.push(ended.name.clone());
                } else if arguments.keep {
                    ended.keep(&program)?;
                }
            } else {
                at += 1;
            }
        }
    }
    println!("fuzzed in {:.0} s, the build included", began.elapsed().as_secs_f64());
    if !failed.is_empty() {
        bail!("an input makes these targets fail: {}; see above", failed.join(", "));
    }
    Ok(())
}

/// Builds the program and returns its path.
fn build() -> Result<PathBuf> {
    let wrapper = fs::canonicalize("fuzz/rustc-with-coverage.sh").context("finding fuzz/rustc-with-coverage.sh")?;
    let output = cargo()
        .args(["test", "--workspace", "--no-run", "--test", "driver", "--features", "linerate-fuzz/libfuzzer"])
        .args(["--message-format", "json-render-diagnostics"])
        .env("RUSTC_WORKSPACE_WRAPPER", wrapper)
        .stderr(Stdio::inherit())
        .output()
        .context("starting `cargo test`")?;
    if !output.status.success() {
        bail!("the fuzzer does not build; the compiler's message is above{}", compiler_hint(&cxx()));
    }
    let messages = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program = messages.find_map(|message| Some(PathBuf::from(message["executable"].as_str()?)));
    program.context("cargo names no program that it built")
}

/// Returns the C++ compiler that crate `cc` builds libFuzzer with.
fn cxx() -> String {
    std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned())
}

/// Returns an advice to install `compiler` if it is missing, otherwise an empty text.
fn compiler_hint(compiler: &str) -> String {
    match Command::new(compiler).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(_) => String::new(),
        Err(error) => format!(" (libFuzzer needs a C++ compiler, and `{compiler}`: {error}; apt-get install g++)"),
    }
}

/// Returns the selected targets, or all. Each target has a folder in the corpus.
fn targets(arguments: &Arguments) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for entry in fs::read_dir("fuzz/corpus").context("reading fuzz/corpus")? {
        all.push(entry.context("reading fuzz/corpus")?.file_name().to_string_lossy().into_owned());
    }
    all.sort();
    if let Some(unknown) = arguments.target.iter().find(|name| !all.contains(name)) {
        bail!("there is no target `{unknown}`; there are {}", all.join(", "));
    }
    Ok(if arguments.target.is_empty() { all } else { arguments.target.clone() })
}

impl Fuzzed {
    fn start(program: &Path, name: String, arguments: &Arguments) -> Result<Self> {
        let folders = FuzzFolders::of(&name)?;
        let log = File::create(&folders.log).with_context(|| format!("making {}", folders.log.display()))?;
        let output = log.try_clone().context("sharing the log")?;
        let child = Command::new(program)
            .env("LINERATE_FUZZ_TARGET", &name)
            .args([MAX_INPUT, TIMEOUT, MEMORY, "-print_final_stats=1"])
            .args([format!("-max_total_time={}", arguments.seconds), format!("-seed={}", arguments.seed)])
            .arg(format!("-artifact_prefix={}", folders.faults.display()))
            .args([&folders.found, &folders.kept])
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(log)
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        Ok(Self { name, folders, program: child, began: Instant::now() })
    }

    fn has_ended(&mut self) -> Result<bool> {
        Ok(self.program.try_wait().context("waiting for the fuzzer")?.is_some())
    }

    /// Prints the result. Returns false if an input failed.
    fn report(&mut self) -> Result<bool> {
        let success = self.program.wait().context("waiting for the fuzzer")?.success();
        let log = fs::read(&self.folders.log).with_context(|| format!("reading {}", self.folders.log.display()))?;
        let log = String::from_utf8_lossy(&log);
        let seconds = self.began.elapsed().as_secs_f64();
        let state = if success { "" } else { "  FAILED" };
        println!("{:<16} {:>9} inputs, {:>6} edges in {seconds:>5.1} s{state}", self.name, inputs(&log), edges(&log));
        if !success {
            let lines: Vec<&str> = log.lines().collect();
            println!("{}", lines[lines.len().saturating_sub(40)..].join("\n"));
            println!(
                "the input stands in {}*; add it to {}",
                self.folders.faults.display(),
                self.folders.kept.display()
            );
        }
        Ok(success)
    }

    /// Copies the inputs that reach new code into the repository.
    fn keep(&self, program: &Path) -> Result<()> {
        let mut merge = Command::new(program);
        merge.env("LINERATE_FUZZ_TARGET", &self.name).args([MAX_INPUT, "-merge=1"]);
        merge.args([&self.folders.kept, &self.folders.found]).stderr(Stdio::null());
        if !merge.status().context("merging the corpus")?.success() {
            bail!("the inputs of {} cannot be merged into {}", self.name, self.folders.kept.display());
        }
        Ok(())
    }
}

impl Drop for Fuzzed {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// Returns the number of inputs that libFuzzer tried.
fn inputs(log: &str) -> &str {
    let mut counts = log.lines().rev().filter_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    counts.next().map_or("?", str::trim)
}

/// Returns the number of edges that libFuzzer reached.
fn edges(log: &str) -> &str {
    let mut reached = log.lines().rev().filter_map(|line| line.split_once(" cov: ")?.1.split_whitespace().next());
    reached.next().unwrap_or("?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiler_is_suggested_only_if_missing() {
        assert_eq!(compiler_hint("true"), "");
        let hint = compiler_hint("no-such-compiler");
        assert!(hint.contains("`no-such-compiler`") && hint.contains("apt-get install g++"), "{hint}");
    }

    #[test]
    fn libfuzzer_log_is_read() {
        let log = "#2\tINITED cov: 11 ft: 12 corp: 1/1b exec/s: 0 rss: 39Mb\n\
                   #1048576\tpulse  cov: 120 ft: 381 corp: 37/1200b lim: 4096 exec/s: 349525 rss: 59Mb\n\
                   Done 1900000 runs in 6 second(s)\n\
                   stat::number_of_executed_units: 1900000\n\
                   stat::average_exec_per_sec:     316666\n";
        assert_eq!((inputs(log), edges(log)), ("1900000", "120"));
        assert_eq!((inputs(""), edges("")), ("?", "?"));
    }
}
