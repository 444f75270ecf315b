//! `linerate run`: measures a study cell by cell, and keeps the record of every run as it ends.

use super::command_line::Command;
use super::inner_command::{asks_for_repeats, measuring, read};
use super::lab::LabTask;
use crate::exit::Failure;
use crate::interrupt;
use crate::options::{Results, StorePath};
use crate::output::{print, say};
use crate::report_file::{check_report_file, show_study};
use crate::secrets::without_secrets;
use crate::study_file;
use crate::study_setup::StudySetup;
use linerate_lab::Bench;
use linerate_model::shell_command;
use linerate_runner::Origin;
use linerate_store::Store;
use linerate_study::{Kept, Measured, PlannedRun, StudyFile};
use linerate_units::Nanos;
use std::collections::BTreeSet;
use std::io::{IsTerminal as _, stdin};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Number of newest records among which a new record is found, even if several studies run at once.
const NEWEST: usize = 8;

/// The place where options of the study do not belong, and the remedy.
const WHERE: (&str, &str) = ("a study", "leave it out; `linerate run` has --json, --out and --store");

/// Run a study: measure every cell of its factors, and report the findings
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  linerate run studies/lab-devices.toml         the missing runs, a report
  linerate run studies/lab-devices.toml --out study.html
  linerate run cards.toml --ready               the operator's step is done
  linerate report studies/lab-devices.toml      the report of the runs so far

Each run is a record of its own, kept when it ends: after Ctrl-C the same
command continues. A run counts as done while its levels, its commands and its
test stay the same in the file; new and changed runs are measured.

A study may run commands of its file on this machine, as your user: they are
shown, and you are asked once (docs/studies.md).")]
pub(crate) struct Arguments {
    /// The study: path of a TOML file with [run]
    study: String,

    /// Confirm that the operator's step is done
    #[arg(long)]
    ready: bool,

    /// Run the commands of the file without asking
    #[arg(long)]
    yes: bool,

    /// Only show what would be run
    ///
    /// The commands of the file and the measurements.
    #[arg(long)]
    dry_run: bool,

    /// Print only the study, as JSON
    #[arg(long)]
    json: bool,

    /// Also write the report: .html, .md, .csv, .json or .txt
    #[arg(long, short = 'o', value_name = "FILE")]
    out: Option<PathBuf>,

    #[command(flatten)]
    store: StorePath,
}

impl Arguments {
    /// An ordinary user becomes the root of a user namespace for a study in a lab; must come before any thread.
    pub(crate) fn enter_user_namespace(&self) -> Result<(), Failure> {
        let (_, study) = self.read()?;
        if study.is_in_lab() { linerate_lab::enter_user_namespace().map_err(super::lab::failure) } else { Ok(()) }
    }

    fn read(&self) -> Result<(PathBuf, Measured), Failure> {
        let path = study_file::path(&self.study).unwrap_or_else(|| PathBuf::from(&self.study));
        match study_file::parse(&path)? {
            StudyFile::Measured(study) => Ok((path, study)),
            StudyFile::Imported(_) => {
                let path = path.display();
                Err(Failure::usage(format!(
                    "{path} names results to import (`data`) and nothing to run; `linerate report {path}` shows it"
                )))
            }
        }
    }
}

pub(crate) async fn run(arguments: Arguments, cancel: watch::Receiver<bool>) -> Result<(), Failure> {
    arguments.out.as_deref().map_or(Ok(()), check_report_file)?;
    let (path, study) = arguments.read()?;
    let runs = runs(&path, &study)?;
    // Parses all words before anything is set up: a slip in the last cell costs nothing.
    for run in &runs {
        Job::of(run, &Results::default()).map_err(|failure| at(&path, run, failure))?;
    }
    let store = arguments.store.open()?;
    let records = store.of_study(study.name(), usize::MAX).map_err(Failure::measure)?;
    let kept = Kept::of(&records);
    let missing: Vec<&PlannedRun> = runs.iter().filter(|run| kept.find(run).is_none()).collect();
    let done = runs.len() - missing.len();
    let all = runs.len();
    say(&match done {
        0 => format!("linerate: study {}: {all} runs", study.name()),
        _ => format!("linerate: study {}: {all} runs, of which {done} are kept already", study.name()),
    });
    if arguments.dry_run {
        for run in &missing {
            print(&format!("{}, repeat {}: {}", run.name, run.is.repeat, shell_command(&run.command)));
        }
        for command in commands(&missing) {
            print(&format!("command: {command}"));
        }
        return Ok(());
    }
    agree(&path, &commands(&missing), arguments.yes, &mut cancel.clone()).await?;
    let mut setup = StudySetup::new(arguments.ready, cancel.clone());
    let mut progress = Progress { done, all, timed: 0, spent: Duration::ZERO };
    let mut result = Ok(());
    for run in missing {
        let began = Instant::now();
        match measure(&study, run, &mut setup, &store, &cancel).await {
            Ok(values) => progress.print(run, &values, began.elapsed()),
            Err(failure) => {
                result = Err(at(&path, run, failure));
                break;
            }
        }
    }
    let down = setup.down().await;
    if let (Err(_), Err(failure)) = (&result, &down) {
        say(&format!("linerate: {failure}"));
    }
    result.and(down).map_err(|failure| {
        let then = if matches!(failure, Failure::Waiting(_)) { " --ready" } else { "" };
        failure.and(&format!("; `linerate run {}{then}` goes on after the runs that are kept", path.display()))
    })?;
    let study = study_file::gathered(&study, &runs, &store)?;
    show_study(study_file::reported(&path, study)?, arguments.json, arguments.out.as_deref())
}

/// Returns the commands of the file that these runs need, each once, and the commands that undo them.
fn commands(runs: &[&PlannedRun]) -> BTreeSet<String> {
    let all = runs.iter().flat_map(|run| run.commands.values());
    all.flat_map(|command| {
        let place = command.host.as_ref().map_or_else(String::new, |host| format!(" (in the network of host {host})"));
        std::iter::once(&command.command).chain(&command.undo).map(move |line| format!("{line}{place}"))
    })
    .collect()
}

/// Asks the user before any command of the file runs.
async fn agree(
    path: &Path,
    commands: &BTreeSet<String>,
    yes: bool,
    cancel: &mut watch::Receiver<bool>,
) -> Result<(), Failure> {
    if commands.is_empty() || yes {
        return Ok(());
    }
    let listed: String = commands.iter().map(|command| format!("\n  {command}")).collect();
    let path = path.display();
    if !stdin().is_terminal() {
        return Err(Failure::usage(format!(
            "{path} runs commands on this machine, as your user:{listed}\nread them, and give --yes; --dry-run shows all runs"
        )));
    }
    say(&format!("linerate: {path} runs commands on this machine, as your user:{listed}\nRun them? [y/N]"));
    let read = || {
        let mut answer = String::new();
        stdin().read_line(&mut answer).map(|_| answer)
    };
    let answer = interrupt::unless_asked(cancel, read).await?.map_err(Failure::measure)?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::usage("nothing was run")),
    }
}

/// Returns the runs of the study in this file, with all the words of their tests.
pub(crate) fn runs(path: &Path, study: &Measured) -> Result<Vec<PlannedRun>, Failure> {
    let mut runs = study.runs(without_secrets);
    for run in &mut runs {
        complete(run).map_err(|failure| at(path, run, failure))?;
    }
    Ok(runs)
}

/// Measures one run, and returns its values as text.
async fn measure(
    study: &Measured,
    run: &PlannedRun,
    setup: &mut StudySetup,
    store: &Store,
    cancel: &watch::Receiver<bool>,
) -> Result<String, Failure> {
    if *cancel.borrow() {
        return Err(Failure::measure("interrupted"));
    }
    let results = Results {
        store: StorePath { store: Some(store.location().clone()) },
        of_study: Some(Origin { command: run.command.clone(), study: Some(run.is.clone()), group: None }),
        measures: study.metrics(run).map(|(column, metric, line)| (column.to_owned(), metric, line)).collect(),
        ..Results::default()
    };
    let Job { bench, wanted } = Job::of(run, &results)?;
    let calibrated = match &bench {
        Some(bench) => wanted.tester_limits(bench, cancel).await?,
        None => Vec::new(),
    };
    setup.set_up(run, bench.as_ref(), &wanted.folders()).await?;
    wanted.run(setup.book(), calibrated, cancel.clone()).await?;
    let newest = store.of_study(study.name(), NEWEST).map_err(Failure::measure)?;
    let record = Kept::of(&newest).find(run);
    study.said(run, record.ok_or_else(|| Failure::measure("its record was not kept"))?).map_err(Failure::usage)
}

/// A run whose words were parsed.
struct Job {
    /// Bench of its lab, if it has one.
    bench: Option<Bench>,
    wanted: LabTask,
}

impl Job {
    /// Parses the words of a run; its results go where `results` says.
    fn of(run: &PlannedRun, results: &Results) -> Result<Self, Failure> {
        let command = measuring(&run.test, WHERE)?;
        let Some(lab) = &run.lab else {
            return Ok(Self { bench: None, wanted: LabTask::of_study(command, results)? });
        };
        let words = ["lab"].into_iter().chain(lab.iter().map(String::as_str)).chain(["--"]);
        match read(words.chain(run.test.iter().map(String::as_str)))?.0 {
            Command::Lab(lab) => {
                let (bench, wanted) = lab.of_study(command, results)?;
                Ok(Self { bench: Some(bench), wanted })
            }
            _ => Err(Failure::usage("`lab` holds words for `linerate lab`")),
        }
    }
}

/// Completes the words of a test: it runs once unless they ask for repeats, because the study repeats it.
fn complete(run: &mut PlannedRun) -> Result<(), Failure> {
    if asks_for_repeats(&run.test)? == Some(false) {
        for words in [&mut run.test, &mut run.command] {
            words.extend(["--repeats", "1"].map(str::to_owned));
        }
    }
    Ok(())
}

/// Adds the file and the cell to a failure.
fn at(path: &Path, run: &PlannedRun, failure: Failure) -> Failure {
    failure.at(&format!("{}, {}, repeat {}: ", path.display(), run.name, run.is.repeat))
}

/// Progress of the study.
struct Progress {
    done: usize,
    all: usize,
    timed: u32,
    spent: Duration,
}

impl Progress {
    /// Prints the values of one more run, and the time left if the others take as long.
    fn print(&mut self, run: &PlannedRun, values: &str, took: Duration) {
        self.done += 1;
        self.timed += 1;
        self.spent += took;
        let left = self.spent / self.timed * u32::try_from(self.all - self.done).unwrap_or(u32::MAX);
        let left = match self.all - self.done {
            0 => String::new(),
            _ => format!("; about {} left", Nanos::from_secs(left.as_secs().max(1))),
        };
        let Self { done, all, .. } = self;
        say(&format!("linerate: {done} of {all}: {}, repeat {}: {values}{left}", run.name, run.is.repeat));
    }
}
