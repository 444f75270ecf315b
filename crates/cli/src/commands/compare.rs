//! `linerate compare`: what changed between records, or differs between two commands that run in turn.

mod live;

use super::command_line::Command;
use super::report;
use crate::exit::Failure;
use crate::hosts::HostBook;
use crate::options::StorePath;
use crate::output::{language, print, say_of_run, style};
use linerate_method::Demands;
use linerate_model::{Change, Comparison, Record};
use linerate_report::said;
use linerate_units::Ratio;
use live::Live;
use tokio::sync::watch;

/// Compare records of the same measurements, or two commands run in turn
#[derive(Debug, clap::Args)]
#[command(
    after_help = "\
Examples:
  linerate compare 20261121T0930        with the latest record
  linerate compare before.json after.json
  linerate compare 20261121T0930,20261122T0930 20261123T0930 --tolerance 5%
  linerate compare --live 'stream B -C cubic' 'stream B -C bbr'

Each figure is worse, better, equivalent within the tolerance, or undecided. The
tests need three or more runs of each measurement. With --live, runs alternate
in the order A B B A, and a drift of the network or the hosts cancels.",
    after_long_help = "\
More examples:
  linerate compare 20261121T0930 20261122T0930 --confidence 99
  linerate lab --link 1Gbit/s -- compare --live 'stream a b' 'stream a b --flows 4' --pairs 8

If a figure is undecided, the output tells about how many runs would decide.

Drift of the network or the hosts between two records looks like a change. With one record on each side, only drift up to the \
tolerance is allowed for. With several records on a side, each counts as one session, and the drift is measured \
(docs/compare.md).

Exit codes: 0 nothing became worse, 1 something became worse (with --strict also: something is undecided), 2 usage, 3 a record \
cannot be read, or a command could not measure."
)]
pub(crate) struct Arguments {
    /// The baseline: a record or several, or a command (--live)
    ///
    /// A record's id or the start of it (see `linerate results`), or a JSON file; separate several sessions by commas. With
    /// --live, a linerate command in quotes.
    #[arg(value_name = "BEFORE")]
    before: String,

    /// What to compare with it [default: the latest record]
    ///
    /// In the same form.
    #[arg(value_name = "AFTER", required_if_eq("live", "true"))]
    after: Option<String>,

    /// Run two commands in turn, and compare them
    ///
    /// Pair by pair. Both records are kept.
    #[arg(long)]
    live: bool,

    /// With --live, pairs of runs
    ///
    /// Pairs run before the first verdict.
    #[arg(long, value_name = "N", default_value_t = 6, requires = "live", value_parser = clap::value_parser!(u32).range(3..=1000))]
    pairs: u32,

    /// With --live, most pairs [default: 3 x --pairs]
    ///
    /// While a figure is undecided, --pairs more are run, up to this number.
    #[arg(long, value_name = "N", requires = "live", value_parser = clap::value_parser!(u32).range(3..=1000))]
    max_pairs: Option<u32>,

    /// Largest change that does not matter
    ///
    /// As a share of the figure before; of loss it is always 0.1% of all datagrams.
    #[arg(long, value_name = "SHARE", default_value = "2%")]
    tolerance: Ratio,

    /// Confidence in all verdicts, percent
    ///
    /// For all of them together.
    #[arg(long, value_name = "PERCENT", default_value_t = 95.0)]
    confidence: f64,

    /// Exit with 1 also if a figure is undecided
    #[arg(long)]
    strict: bool,

    /// Print only the comparison, as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    store: StorePath,
}

impl Arguments {
    /// The commands that run in turn; none without --live. What cannot be read is left out: [`run`] refuses it.
    pub(crate) fn inner(&self) -> Vec<Command> {
        let lines = [Some(&self.before), self.after.as_ref()].into_iter().flatten().filter(|_| self.live);
        lines.filter_map(|line| live::inner(line)).collect()
    }
}

pub(crate) async fn run(arguments: Arguments, book: HostBook, cancel: watch::Receiver<bool>) -> Result<(), Failure> {
    let confidence = arguments.confidence;
    if !(50.0..100.0).contains(&confidence) {
        let said = format!("--confidence {confidence} is not a percentage from 50 to below 100, as in 95");
        return Err(Failure::usage(said));
    }
    let demands = Demands::once(arguments.tolerance.as_f64(), confidence);
    let (found, ended) = match (arguments.live, &arguments.after) {
        (true, Some(after)) => {
            let live = Live::of(&arguments, [&arguments.before, after], demands)?;
            live.run(book, cancel).await?
        }
        _ => (of_records(&arguments, &demands)?, Ok(())),
    };
    if arguments.json {
        print(&serde_json::to_string(&found).expect("a comparison has no map with keys that are no text"));
    } else {
        print(linerate_report::comparison(&found, &style()).trim_end());
    }
    ended?;
    judge(&found, &arguments)
}

/// Compares records that are there.
fn of_records(arguments: &Arguments, demands: &Demands) -> Result<Comparison, Failure> {
    let before = side(&arguments.store, Some(&arguments.before))?;
    let after = side(&arguments.store, arguments.after.as_deref())?;
    if let Some(both) = before.iter().find(|record| after.iter().any(|other| other.id == record.id)) {
        return Err(Failure::usage(format!("both are the record {}; name two (see `linerate results`)", both.id)));
    }
    Ok(linerate_method::compare(&before, &after, demands))
}

/// The records of one side, each once.
fn side(store: &StorePath, names: Option<&str>) -> Result<Vec<Record>, Failure> {
    let Some(names) = names else { return Ok(vec![report::named(store, None)?]) };
    let mut records: Vec<Record> = Vec::new();
    for name in names.split(',').map(str::trim) {
        let record = report::named(store, Some(name))?;
        if records.iter().any(|known| known.id == record.id) {
            return Err(Failure::usage(format!(
                "the record {} is named twice on one side; name each session once",
                record.id
            )));
        }
        records.push(record);
    }
    Ok(records)
}

fn judge(found: &Comparison, arguments: &Arguments) -> Result<(), Failure> {
    if found.figures.is_empty() {
        return Err(Failure::usage("the records have no measurement in common: compare runs of the same command"));
    }
    let lang = language();
    let tell = |said: &str| {
        if !arguments.json {
            say_of_run(said);
        }
    };
    if found.is_worse() {
        tell(&said!(lang, "compare-worse", "something became worse"));
    } else if found.is_undecided() {
        let undecided = found.figures.iter().filter(|figure| figure.change == Change::Undecided).count();
        tell(&said!(
            lang,
            "compare-undecided",
            if figures == 1 { "1 figure undecided" } else { "{figures} figures undecided" },
            figures = undecided
        ));
    }
    if found.is_worse() || (arguments.strict && found.is_undecided()) { Err(Failure::Missed) } else { Ok(()) }
}
