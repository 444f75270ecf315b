//! The planted limits, many times over: what is named how often.

#[path = "../../crates/cli/tests/scenario/mod.rs"]
mod scenario;

use crate::process::{Running, cargo, catch_interrupts, check_interrupt};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use scenario::{Said, Scenario};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What to run.
#[derive(Args)]
pub(crate) struct Arguments {
    /// How often the whole set is run.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Only scenarios whose name contains this, as in `window`.
    #[arg(long)]
    only: Option<String>,
    /// The folder of the scenarios' files.
    #[arg(long, value_name = "DIR", default_value = "scenarios")]
    scenarios: PathBuf,
    /// Keep what is named in FILE, a line each. Runs that are in it already count and are not made again, so that many runs may be
    /// made over several days.
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// Use this linerate instead of a build made now.
    #[arg(long)]
    program: Option<PathBuf>,
}

/// No scenario takes longer.
const SCENARIO_TIMEOUT: Duration = Duration::from_secs(300);

/// Runs the scenarios and prints the confusion matrix.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut scenarios = Scenario::all(&arguments.scenarios).map_err(|problem| anyhow!(problem))?;
    scenarios.retain(|scenario| arguments.only.as_ref().is_none_or(|part| scenario.name.contains(part)));
    if scenarios.is_empty() {
        bail!("no scenario has such a name; {} holds them", arguments.scenarios.display());
    }
    let mut kept = arguments.keep.as_deref().map(Kept::open).transpose()?;
    let program = match &arguments.program {
        Some(program) => program.clone(),
        None => build()?,
    };
    catch_interrupts()?;
    let mut matrix = Matrix::default();
    let mut not_measured = 0;
    'all: for run in 1..=arguments.runs {
        for scenario in &scenarios {
            let said = match kept.as_ref().and_then(|kept| kept.find(run, scenario)) {
                Some(said) => said,
                None => match measure(&program, scenario) {
                    Ok(said) => keep(&mut kept, run, scenario, said)?,
                    Err(_) if check_interrupt().is_err() => break 'all,
                    Err(error) => {
                        eprintln!("{run}: {:<26} NOT MEASURED: {error:#}", scenario.name);
                        not_measured += 1;
                        continue;
                    }
                },
            };
            matrix.add(scenario, &said);
        }
    }
    // What was measured before it was interrupted counts all the same.
    print!("{matrix}");
    check_interrupt()?;
    if not_measured > 0 {
        bail!(
            "{not_measured} runs of scenarios could not be measured and count nowhere; with --keep only they are made again"
        );
    }
    Ok(())
}

/// Tells what was named, and keeps it.
fn keep(kept: &mut Option<Kept>, run: u32, scenario: &Scenario, said: Said) -> Result<Said> {
    let met = if scenario.is_met_by(&said) { "" } else { "  MISSED" };
    eprintln!("{run}: {:<26} {:<16} {:<7}{met}", scenario.name, said.limit, said.confidence);
    if let Some(kept) = kept {
        kept.add(run, scenario, &said)?;
    }
    Ok(said)
}

/// What was named before: a file of lines, each with the number of the run, the scenario, the limit and the confidence.
struct Kept {
    path: PathBuf,
    file: File,
    known: BTreeMap<(u32, String), Said>,
}

impl Kept {
    fn open(path: &Path) -> Result<Self> {
        let failed = || format!("{}", path.display());
        let mut file = File::options().read(true).append(true).create(true).open(path).with_context(failed)?;
        let mut text = String::new();
        file.read_to_string(&mut text).with_context(failed)?;
        let mut known = BTreeMap::new();
        for line in text.lines() {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [run, scenario, limit, confidence] = fields[..] else { bail!("{}: `{line}`", path.display()) };
            let run = run.parse().with_context(|| format!("{}: `{line}`", path.display()))?;
            let (limit, confidence) = (limit.to_owned(), confidence.to_owned());
            let said = Said { limit, confidence, stolen: false, whole: String::new() };
            known.insert((run, scenario.to_owned()), said);
        }
        Ok(Self { path: path.to_owned(), file, known })
    }

    fn find(&self, run: u32, scenario: &Scenario) -> Option<Said> {
        self.known.get(&(run, scenario.name.clone())).cloned()
    }

    fn add(&mut self, run: u32, scenario: &Scenario, said: &Said) -> Result<()> {
        let written = writeln!(self.file, "{run} {} {} {}", scenario.name, said.limit, said.confidence);
        written.with_context(|| format!("{}", self.path.display()))
    }
}

fn build() -> Result<PathBuf> {
    let built = cargo().args(["build", "--quiet", "-p", "linerate"]).status().context("running cargo")?;
    if !built.success() {
        bail!("linerate does not build");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    Ok(target.join("debug/linerate"))
}

fn measure(program: &Path, scenario: &Scenario) -> Result<Said> {
    let place = tempfile::tempdir().context("making a temporary directory")?;
    let words = scenario.arguments(&place.path().join("bench.toml")).map_err(|problem| anyhow!(problem))?;
    let mut command = Command::new(program);
    command.args(words).env("LINERATE_STORE", place.path().join("results.db")).env("XDG_RUNTIME_DIR", place.path());
    let output =
        Running::start(command)?.finish(SCENARIO_TIMEOUT).with_context(|| format!("scenario {}", scenario.name))?;
    let record = serde_json::from_str(&output.stdout).with_context(|| format!("scenario {}", scenario.name))?;
    Said::by(&record).with_context(|| format!("scenario {}: the record holds no verdict", scenario.name))
}

/// Which limit was named how often where which was planted.
#[derive(Default)]
struct Matrix {
    named: BTreeMap<(String, String), u32>,
    surely_wrong: u32,
}

impl Matrix {
    fn add(&mut self, planted: &Scenario, said: &Said) {
        *self.named.entry((planted.limit.clone(), said.limit.clone())).or_default() += 1;
        self.surely_wrong += u32::from(said.is_surely_wrong(planted));
    }
}

impl std::fmt::Display for Matrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let planted: BTreeSet<&String> = self.named.keys().map(|(planted, _)| planted).collect();
        let named: BTreeSet<&String> = self.named.keys().map(|(_, named)| named).collect();
        write!(f, "{:<16}", "planted \\ named")?;
        for name in &named {
            write!(f, " {name:>15}")?;
        }
        writeln!(f, " {:>7}", "right")?;
        let (mut right, mut all) = (0, 0);
        for limit in planted {
            write!(f, "{limit:<16}")?;
            let count = |name: &String| self.named.get(&(limit.clone(), name.clone())).copied().unwrap_or(0);
            for name in &named {
                match count(name) {
                    0 => write!(f, " {:>15}", "-")?,
                    times => write!(f, " {times:>15}")?,
                }
            }
            let row: u32 = named.iter().map(|name| count(name)).sum();
            writeln!(f, " {:>5.1} %", 100.0 * f64::from(count(limit)) / f64::from(row.max(1)))?;
            right += count(limit);
            all += row;
        }
        let share = 100.0 * f64::from(right) / f64::from(all.max(1));
        writeln!(f, "{right} of {all} named right ({share:.1} %), {} wrong with high confidence", self.surely_wrong)
    }
}
