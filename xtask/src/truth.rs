//! The planted limits, many times over: what is named how often.

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

/// The share of runs that must name the planted limit.
const RIGHT: f64 = 0.95;
/// The share of runs that may name another limit with high confidence.
const SURELY_WRONG: f64 = 0.01;
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
    matrix.judge()?;
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

    /// Fails if the rates miss their bounds by more than chance explains.
    fn judge(&self) -> Result<()> {
        let all: u32 = self.named.values().sum();
        let right: u32 =
            self.named.iter().filter(|((planted, named), _)| planted == named).map(|(_, times)| times).sum();
        let (_, most_right) = wilson(right, all);
        let (least_wrong, _) = wilson(self.surely_wrong, all);
        if most_right < RIGHT {
            bail!(
                "the planted limit is named in {right} of {all} runs: at most {most_right:.3} with 95 % confidence, and {RIGHT} is demanded"
            );
        }
        if least_wrong > SURELY_WRONG {
            bail!(
                "another limit is named with high confidence in {} of {all} runs: at least {least_wrong:.3} with 95 % confidence, and \
                 {SURELY_WRONG} is allowed",
                self.surely_wrong
            );
        }
        Ok(())
    }
}

/// Returns the 95 % confidence interval of a share of which `hits` of `all` were seen: the score interval of E. B. Wilson,
/// Journal of the American Statistical Association 22 (1927).
fn wilson(hits: u32, all: u32) -> (f64, f64) {
    const Z: f64 = 1.96;
    let n = f64::from(all.max(1));
    let share = f64::from(hits) / n;
    let centre = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let margin = Z / (1.0 + Z * Z / n) * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    ((centre - margin).max(0.0), (centre + margin).min(1.0))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_limit_is_planted_three_times_at_least() {
        let all = Scenario::all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios")).expect("the scenarios");
        for limit in [
            "wire",
            "shaper",
            "sender-cpu",
            "receiver-cpu",
            "receiver-buffer",
            "window",
            "path-loss",
            "device",
            "tester",
            "server",
            "storage-read",
            "storage-write",
        ] {
            assert!(all.iter().filter(|scenario| scenario.limit == limit).count() >= 3, "{limit}");
        }
    }

    #[test]
    fn rates_are_judged_with_the_chance_of_few_runs_in_mind() {
        let judged = |right: u32, missed: u32, surely_wrong: u32| {
            let pair = |named: &str| ("wire".to_owned(), named.to_owned());
            let named = [(pair("wire"), right), (pair("shaper"), missed)].into();
            Matrix { named, surely_wrong }.judge()
        };
        assert!(judged(68, 0, 0).is_ok() && judged(64, 4, 0).is_ok());
        // 10 misses of 68 may still be 92 %, no longer 95 %.
        assert!(judged(58, 10, 0).expect_err("too many").to_string().contains("58 of 68"));
        assert!(judged(67, 1, 1).is_ok(), "one of 68 may be chance");
        assert!(judged(62, 6, 6).expect_err("too many").to_string().contains("high confidence in 6 of 68"));
    }

    #[test]
    fn the_interval_is_wilsons() {
        let (low, high) = wilson(8, 10);
        assert!((low - 0.4901).abs() < 1e-3 && (high - 0.9433).abs() < 1e-3, "{low} {high}");
    }
}
