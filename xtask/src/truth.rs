//! Counts how often verdicts name the planted limit, in cases on which no rule was tuned.
//!
//! Grid files (`scenarios/*.toml`) list the cases. A hash of a case's name decides whether it is for tuning or held
//! out.

mod cases;
mod findings;
mod grid;
mod interval;
mod matrix;
mod measure;
mod random;
mod results;
mod split;
mod summary;
mod template;
mod verdict;
mod witness;

use crate::busy::BusyLoop;
use crate::process::{catch_interrupts, check_interrupt};
use anyhow::{Result, anyhow, bail};
use cases::{Case, Judgement};
use clap::{Args, ValueEnum};
use matrix::Matrix;
use measure::Laboratory;
use results::Results;
use split::Side;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use verdict::Verdict;
use witness::Witness;

/// Options of `cargo xtask truth`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Set of cases to run.
    #[arg(long, value_enum, default_value_t = Set::Tune)]
    set: Set,
    /// Number of runs of each case.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Only cases with this in their names, as in `window` or `shaper/tcp`.
    #[arg(long)]
    only: Option<String>,
    /// The folder of the grid files.
    #[arg(long, value_name = "DIR", default_value = "scenarios")]
    scenarios: PathBuf,
    /// Keep the verdicts in FILE. Verdicts that are already in it count and are not measured again.
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// Write each record and its bench file into DIR.
    #[arg(long, value_name = "DIR")]
    records: Option<PathBuf>,
    /// Start no case after this number of minutes.
    #[arg(long, value_name = "MINUTES")]
    limit_minutes: Option<u32>,
    /// Keep this number of cores busy meanwhile, as builds do.
    #[arg(long, value_name = "LOOPS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=64))]
    busy: u32,
    /// Print the verdict of each held-out case too. A rule that is changed for such a case is no longer tested by
    /// held-out cases.
    #[arg(long)]
    show: bool,
    /// Print the cases and their planted limits, and measure nothing. Held-out cases are only counted.
    #[arg(long)]
    list: bool,
    /// Write the rates and the date into docs/verdicts.md.
    #[arg(long, conflicts_with_all = ["only", "busy", "list", "witness", "scenarios"])]
    write_summary: bool,
    /// Compare results with those of another program instead, by default iperf3, on the same benches in turn.
    #[arg(long, value_name = "PROGRAM", value_enum, num_args = 0..=1, default_missing_value = "iperf3")]
    #[arg(conflicts_with_all = ["runs", "keep", "records", "limit_minutes", "busy"])]
    witness: Option<Witness>,
    /// Number of times both programs measure a case with --witness.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(3..=witness::MAX_PAIRS))]
    pairs: u32,
    /// Draw N set-ups from the whole space of options instead, and judge them by a model of the limits that bind
    #[arg(long, value_name = "N", requires = "seed", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    #[arg(conflicts_with_all = ["set", "runs", "only", "scenarios", "busy", "show", "list", "write_summary", "witness"])]
    random: Option<u32>,
    /// Fail only if more draws of --random fail than chance explains, with a probability below 0.1 %.
    #[arg(long, requires = "random")]
    by_chance: bool,
    /// The seed of the draws.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Repeat draw K of the seed.
    #[arg(long, value_name = "K", requires = "seed", conflicts_with = "random")]
    draw: Option<u32>,
    /// Use this linerate instead of a build made now.
    #[arg(long)]
    program: Option<PathBuf>,
}

/// A set of cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Set {
    /// Cases that rules may be tuned on.
    Tune,
    /// Cases that are held out. Only their rates are printed.
    Hold,
    /// Twenty of the held-out cases, each of another class.
    Smoke,
    /// All cases.
    All,
}

/// Cases of the smoke set.
const SMOKE_CASES: usize = 20;

/// A mistake in an option or in a grid file. The program then exits with 2.
#[derive(Debug)]
pub(crate) struct BadInput(String);

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadInput {}

/// Runs the cases and prints the confusion matrix of each side.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if let Some(seed) = arguments.seed {
        return run_draws(arguments, seed);
    }
    let cases = select(Case::read_all(&arguments.scenarios)?, arguments)?;
    if arguments.list {
        list(&cases, arguments.show);
        return Ok(());
    }
    let results = arguments.keep.as_deref().map(Results::open).transpose()?;
    let program = program(arguments)?;
    catch_interrupts()?;
    if let Some(witness) = arguments.witness {
        let cases: Vec<&Case> = cases.iter().filter(|case| case.witness).collect();
        return witness::run(&program, witness, &cases, arguments.pairs);
    }
    let _busy = BusyLoop::start_many(arguments.busy);
    let laboratory = Laboratory { program, records: arguments.records.as_deref() };
    let mut truth = Truth {
        arguments,
        laboratory,
        results,
        tune: Matrix::default(),
        hold: Matrix::default(),
        counted: 0,
        failed: 0,
    };
    let result = truth.run(&cases);
    // Verdicts measured before an interrupt or a refused case count too.
    truth.print();
    result?;
    truth.conclude(&cases)
}

/// Measures draws of a seed.
fn run_draws(arguments: &Arguments, seed: u64) -> Result<()> {
    let numbers = match (arguments.random, arguments.draw) {
        (Some(count), _) => 0..count,
        (None, Some(number)) => number..number.saturating_add(1),
        (None, None) => {
            return Err(BadInput("--seed belongs to draws; give --random N or --draw K".to_owned()).into());
        }
    };
    let mut results = arguments.keep.as_deref().map(Results::open).transpose()?;
    let program = program(arguments)?;
    catch_interrupts()?;
    let laboratory = Laboratory { program, records: arguments.records.as_deref() };
    random::run(&laboratory, &mut results, seed, numbers, arguments.by_chance)
}

/// Returns the linerate to measure with. Builds one unless `--program` names it.
fn program(arguments: &Arguments) -> Result<PathBuf> {
    match &arguments.program {
        Some(program) => Ok(program.clone()),
        None => measure::build(),
    }
}

/// Selects the cases that the arguments ask for.
fn select(mut cases: Vec<Case>, arguments: &Arguments) -> Result<Vec<Case>, BadInput> {
    match arguments.set {
        Set::Tune => cases.retain(|case| case.side == Side::Tune),
        Set::Hold => cases.retain(|case| case.side == Side::Hold),
        Set::Smoke => {
            cases.retain(|case| case.side == Side::Hold);
            cases.truncate(SMOKE_CASES);
        }
        Set::All => {}
    }
    cases.retain(|case| arguments.only.as_ref().is_none_or(|part| case.name.contains(part)));
    if cases.is_empty() {
        let folder = arguments.scenarios.display();
        return Err(BadInput(format!("no case of this set has such a name; --list prints those of {folder}")));
    }
    if arguments.write_summary && arguments.set != Set::Hold {
        return Err(BadInput("--write-summary publishes the rates of the held-out cases; give --set hold".to_owned()));
    }
    Ok(cases)
}

fn list(cases: &[Case], show: bool) {
    let mut hidden = 0;
    for case in cases {
        if show || case.side == Side::Tune {
            println!("{:<60} {}\n    {}", case.name, case.planted(), case.test);
        } else {
            hidden += 1;
        }
    }
    println!("{} cases, {hidden} of them held out and not shown", cases.len());
}

/// State of a run: the verdicts so far, and how many are right.
struct Truth<'a> {
    arguments: &'a Arguments,
    laboratory: Laboratory<'a>,
    results: Option<Results<Verdict>>,
    tune: Matrix,
    hold: Matrix,
    counted: usize,
    /// Cases that could not be measured.
    failed: usize,
}

impl Truth<'_> {
    /// Measures every case in every run until the time is up. Cases with a kept verdict are not measured again.
    fn run(&mut self, cases: &[Case]) -> Result<()> {
        let started = Instant::now();
        let limit = self.arguments.limit_minutes.map(|minutes| Duration::from_secs(60 * u64::from(minutes)));
        for run in 1..=self.arguments.runs {
            for case in cases {
                if let Some(verdict) =
                    self.results.as_ref().and_then(|results| results.find(run, &case.name, &case.digest())).cloned()
                {
                    self.count(run, case, &verdict);
                    continue;
                }
                if limit.is_some_and(|limit| started.elapsed() >= limit) {
                    eprintln!("the time is up: {} of {} verdicts", self.counted, self.due(cases));
                    return Ok(());
                }
                match self.laboratory.measure(run, case) {
                    Ok(verdict) => {
                        if let Some(results) = &mut self.results {
                            results.add(run, &case.name, &case.digest(), &verdict)?;
                        }
                        self.count(run, case, &verdict);
                        if !self.is_shown(case) {
                            eprintln!("{run}: {} of {}", self.counted, self.due(cases));
                        }
                    }
                    Err(error) if error.is::<BadInput>() => return Err(error),
                    Err(error) => {
                        check_interrupt()?;
                        eprintln!("{run}: {:<60} NOT MEASURED: {error:#}", case.name);
                        self.failed += 1;
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the number of verdicts of a complete run.
    fn due(&self, cases: &[Case]) -> usize {
        cases.len() * self.arguments.runs as usize
    }

    /// Returns whether the case may be named. Held-out cases are not, so that nobody tunes on them.
    fn is_shown(&self, case: &Case) -> bool {
        case.side == Side::Tune || self.arguments.show
    }

    fn count(&mut self, run: u32, case: &Case, verdict: &Verdict) {
        match case.side {
            Side::Tune => self.tune.add(case, verdict),
            Side::Hold => self.hold.add(case, verdict),
        }
        self.counted += 1;
        if self.is_shown(case) {
            let planted = format!("  (planted: {})", case.planted());
            let wrong = match case.judge(verdict) {
                Judgement::Right => String::new(),
                Judgement::Wrong => format!("  WRONG{planted}"),
                Judgement::SurelyWrong => format!("  SURELY WRONG{planted}"),
            };
            eprintln!("{run}: {:<60} {verdict}{wrong}", case.name);
        }
    }

    fn sides(&self) -> impl Iterator<Item = (&'static str, &Matrix)> {
        let sides = [("tuning", &self.tune), ("held out", &self.hold)];
        sides.into_iter().filter(|(_, matrix)| matrix.total().all > 0)
    }

    fn print(&self) {
        for (side, matrix) in self.sides() {
            println!("{side}:\n{matrix}");
        }
    }

    /// Writes the summary. Fails if a goal is missed or a case was not measured.
    fn conclude(&self, cases: &[Case]) -> Result<()> {
        let due = self.due(cases);
        if self.arguments.write_summary {
            if self.counted < due {
                bail!("only {} of {due} verdicts are known, so no summary is written; go on with --keep", self.counted);
            }
            let occasion = summary::Occasion::now(self.arguments.runs, cases.len())?;
            summary::write(Path::new(summary::DOCUMENT), &self.hold, &occasion)?;
        }
        for (side, matrix) in self.sides() {
            matrix.judge().map_err(|missed| anyhow!("{side}: {missed}"))?;
        }
        match self.failed {
            0 => Ok(()),
            failed => bail!(
                "{failed} cases could not be measured and count nowhere; with --keep only they are measured again"
            ),
        }
    }
}
