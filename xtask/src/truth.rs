//! Planted limits: how often verdicts name them, in cases for which nobody tuned the rules.
//!
//! Grid files (`scenarios/*.toml`) give the cases. A hash of its name decides whether a case is for tuning or held out.

mod cases;
mod grid;
mod interval;
mod matrix;
mod measure;
mod random;
mod results;
mod said;
mod split;
mod summary;
mod template;
mod witness;

use crate::busy::BusyLoop;
use crate::process::{catch_interrupts, check_interrupt};
use anyhow::{Result, anyhow, bail};
use cases::{Case, Judgement};
use clap::{Args, ValueEnum};
use matrix::Matrix;
use measure::Laboratory;
use results::Results;
use said::Said;
use split::Side;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use witness::Witness;

/// What to run.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The cases to run.
    #[arg(long, value_enum, default_value_t = Set::Tune)]
    set: Set,
    /// How often each case is run.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Only cases whose name contains this, as in `window` or `shaper/tcp`.
    #[arg(long)]
    only: Option<String>,
    /// The folder of the grid files.
    #[arg(long, value_name = "DIR", default_value = "scenarios")]
    scenarios: PathBuf,
    /// Keep what is said in FILE. What is in it already counts and is not measured again.
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// Write each record and its bench file into DIR.
    #[arg(long, value_name = "DIR")]
    records: Option<PathBuf>,
    /// Begin no case after so many minutes.
    #[arg(long, value_name = "MINUTES")]
    limit_minutes: Option<u32>,
    /// Keep so many cores busy meanwhile, as builds do.
    #[arg(long, value_name = "LOOPS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=64))]
    busy: u32,
    /// Print what is said of each held-out case too. Rules that are changed for such a case have no held-out cases any more.
    #[arg(long)]
    show: bool,
    /// Print the cases and what is planted in them, and measure nothing. Of held-out cases the numbers are printed.
    #[arg(long)]
    list: bool,
    /// Write the rates and the date into docs/verdicts.md.
    #[arg(long, conflicts_with_all = ["only", "busy", "list", "witness", "scenarios"])]
    write_summary: bool,
    /// Compare results with those of another program instead, iperf3 unless said, on the same benches in turn.
    #[arg(long, value_name = "PROGRAM", value_enum, num_args = 0..=1, default_missing_value = "iperf3")]
    #[arg(conflicts_with_all = ["runs", "keep", "records", "limit_minutes", "busy"])]
    witness: Option<Witness>,
    /// How often both programs measure a case with --witness.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(3..=witness::MOST_PAIRS))]
    pairs: u32,
    /// Draw so many set-ups from the whole space of options instead, and judge them by a model of what binds
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

/// A mistake of the caller, in an option or in a grid file: the program then exits with 2.
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
    let ended = truth.run(&cases);
    // What was measured before it was interrupted or refused counts all the same.
    truth.print();
    ended?;
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

/// The linerate to measure with.
fn program(arguments: &Arguments) -> Result<PathBuf> {
    match &arguments.program {
        Some(program) => Ok(program.clone()),
        None => measure::build(),
    }
}

/// The cases that the arguments ask for.
fn select(mut cases: Vec<Case>, arguments: &Arguments) -> Result<Vec<Case>, BadInput> {
    let is_held = |case: &Case| case.side == Side::Hold;
    match arguments.set {
        Set::Tune => cases.retain(|case| !is_held(case)),
        Set::Hold => cases.retain(is_held),
        Set::Smoke => {
            cases.retain(is_held);
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
    let shown = |case: &&Case| show || case.side == Side::Tune;
    for case in cases.iter().filter(shown) {
        println!("{:<60} {}\n    {}", case.name, case.planted(), case.test);
    }
    let hidden = cases.len() - cases.iter().filter(shown).count();
    println!("{} cases, {hidden} of them held out and not shown", cases.len());
}

/// What was said so far.
struct Truth<'a> {
    arguments: &'a Arguments,
    laboratory: Laboratory<'a>,
    results: Option<Results<Said>>,
    tune: Matrix,
    hold: Matrix,
    counted: usize,
    /// Cases that could not be measured.
    failed: usize,
}

impl Truth<'_> {
    /// Measures every case in every run, unless it is known, until the time is up.
    fn run(&mut self, cases: &[Case]) -> Result<()> {
        let began = Instant::now();
        let limit = self.arguments.limit_minutes.map(|minutes| Duration::from_secs(60 * u64::from(minutes)));
        for run in 1..=self.arguments.runs {
            for case in cases {
                if let Some(said) =
                    self.results.as_ref().and_then(|results| results.find(run, &case.name, &case.digest())).cloned()
                {
                    self.count(run, case, &said);
                    continue;
                }
                if limit.is_some_and(|limit| began.elapsed() >= limit) {
                    eprintln!("the time is up: {} of {} verdicts", self.counted, self.due(cases));
                    return Ok(());
                }
                match self.laboratory.measure(run, case) {
                    Ok(said) => {
                        if let Some(results) = &mut self.results {
                            results.add(run, &case.name, &case.digest(), &said)?;
                        }
                        self.count(run, case, &said);
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

    /// Verdicts that the whole set amounts to.
    fn due(&self, cases: &[Case]) -> usize {
        cases.len() * self.arguments.runs as usize
    }

    /// Held-out cases are not named, so that nobody tunes on them.
    fn is_shown(&self, case: &Case) -> bool {
        case.side == Side::Tune || self.arguments.show
    }

    fn count(&mut self, run: u32, case: &Case, said: &Said) {
        match case.side {
            Side::Tune => self.tune.add(case, said),
            Side::Hold => self.hold.add(case, said),
        }
        self.counted += 1;
        if self.is_shown(case) {
            let planted = format!("  (planted: {})", case.planted());
            let wrong = match case.judge(said) {
                Judgement::Right => String::new(),
                Judgement::Wrong => format!("  WRONG{planted}"),
                Judgement::SurelyWrong => format!("  SURELY WRONG{planted}"),
            };
            eprintln!("{run}: {:<60} {said}{wrong}", case.name);
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

    /// Writes the summary, and fails if a goal is missed or a case was not measured.
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
