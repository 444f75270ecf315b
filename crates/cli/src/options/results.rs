//! What becomes of results: how they are shown, judged and kept.

use crate::exit::Failure;
use crate::ordered_run::OrderedRun;
use crate::output::say;
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser as _};
use linerate_method::{Expectation, Metric};
use linerate_model::Sampling;
use linerate_runner::Origin;
use linerate_store::{BadStoreUrl, Store, StoreLocation};
use linerate_units::Nanos;
use std::path::PathBuf;
use std::str::FromStr;

/// Output options.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Results")]
pub(crate) struct Results {
    /// Print only the JSON record
    #[arg(long, short = 'J')]
    pub(crate) json: bool,

    /// Print all: reasons, doubts, every table
    ///
    /// Shows every detail of each result, not only its answer.
    #[arg(long, short = 'v', conflicts_with_all = ["json", "json_stream"])]
    pub(crate) verbose: bool,

    /// Print events while the command runs, as newline-delimited JSON: start, host, trial, interval, result, verdict, end
    /// (docs/live.md)
    #[arg(long, conflicts_with = "json", hide_short_help = true)]
    pub(crate) json_stream: bool,

    /// Print a line on standard error for each interval of the running trial, and set its length, 200ms to 60s; 0 prints none
    /// [default: 1s; none with --json, in a ladder, a device test or the demonstration]
    #[arg(long, short = 'i', value_name = "TIME", value_parser = interval, hide_short_help = true)]
    pub(crate) interval: Option<Nanos>,

    /// Show the run on the whole terminal
    ///
    /// While it goes on: rate, latency, processors, losses, results so far (docs/tui.md).
    #[arg(long, conflicts_with_all = ["json", "json_stream", "interval"])]
    pub(crate) tui: bool,

    /// Also write .html, .md, .csv, .json or .txt
    ///
    /// The end of the file's name says which kind of report it is.
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Exit with 1 if missed, as in 'loss<=0.1%'
    ///
    /// Other conditions: 'throughput>=9Gbit/s', 'p99<200us', 'limit!=receiver-cpu'. May be repeated.
    #[arg(long, value_name = "CONDITION")]
    pub(crate) expect: Vec<Expectation>,

    /// Report the outcome of --expect to a build server: junit=FILE writes JUnit XML, github prints GitHub error annotations; may
    /// be repeated
    #[arg(long, value_name = "KIND", requires = "expect", hide_short_help = true)]
    pub(crate) report: Vec<BuildReport>,

    /// Go on with a run that was interrupted, failed or was killed: its id, or the start of it (see `linerate results`). Type the
    /// command of that run again
    #[arg(long, value_name = "ID", hide_short_help = true)]
    pub(crate) resume: Option<String>,

    /// Sampling period of a trial, 10ms to 10s [default: 100ms]
    #[arg(long, value_name = "TIME", value_parser = sampling_period, hide_short_help = true)]
    pub(crate) sample: Option<Nanos>,

    #[command(flatten)]
    pub(crate) store: StorePath,

    /// Keep no record
    ///
    /// The result is printed, and written by --out, but linerate does not store it. Earlier calibrations are not read.
    #[arg(long, conflicts_with_all = ["store", "resume"], hide_short_help = true)]
    pub(crate) no_store: bool,

    /// The run of a study, if it is one; the study shows its results.
    #[arg(skip)]
    pub(crate) of_study: Option<Origin>,

    /// The order of a fleet that asks for the run, if one does.
    #[arg(skip)]
    pub(crate) ordered: Option<OrderedRun>,

    /// What the study takes from it: columns, their metrics, and the lines of its file that name these.
    #[arg(skip)]
    pub(crate) measures: Vec<(String, Metric, usize)>,
}

impl Results {
    /// Whether results are printed as text.
    pub(crate) fn are_text(&self) -> bool {
        !self.json && !self.json_stream && self.ordered.is_none()
    }

    /// Opens the store, `None` if the run is not kept: as asked, or because the user's own store cannot be written.
    ///
    /// # Errors
    /// A store that is named cannot be opened, or the user's own is damaged or of another format.
    pub(crate) fn open_store(&self) -> Result<Option<Store>, Failure> {
        if self.no_store || self.ordered.is_some() {
            return Ok(None);
        }
        let location = self.store.location().map_err(Failure::usage)?;
        match Store::open(&location) {
            Err(error) if error.is_of_place() && location == StoreLocation::Default && self.resume.is_none() => {
                say(&format!("linerate: the record of this run is not kept: {error}"));
                Ok(None)
            }
            store => store.map(Some).map_err(Failure::measure),
        }
    }
}

/// Length of an interval; 0 is none.
fn interval(text: &str) -> Result<Nanos, String> {
    const SHORTEST: Nanos = Nanos::from_millis(200);
    const LONGEST: Nanos = Nanos::from_secs(60);
    let every: Nanos = text.parse().map_err(|error| format!("{error}"))?;
    if every.is_zero() || (SHORTEST..=LONGEST).contains(&every) {
        return Ok(every);
    }
    Err(format!("an interval lasts {SHORTEST} to {LONGEST}; 0 prints none"))
}

/// Reads a sampling period.
fn sampling_period(text: &str) -> Result<Nanos, String> {
    let period: Nanos = text.parse().map_err(|error| format!("{error}"))?;
    let (shortest, longest) = (Sampling::SHORTEST, Sampling::LONGEST);
    let allowed = (shortest..=longest).contains(&period);
    allowed.then_some(period).ok_or_else(|| format!("a trial is sampled every {shortest} to {longest}"))
}

/// Where results are kept.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct StorePath {
    /// Keep results in this file, or in a PostgreSQL database: postgres://USER@HOST/DATABASE, with the password in PGPASSWORD or
    /// ~/.pgpass [default: the file or URL in LINERATE_STORE, else linerate/results.db in the user's data directory]
    // Not `env`: clap counts an option that has its value from there as given, and shows it as required in a usage line.
    #[arg(long, value_name = "FILE|URL", hide_short_help = true, value_parser = OsStringValueParser::new().try_map(StoreLocation::parse))]
    pub(crate) store: Option<StoreLocation>,
}

impl StorePath {
    /// Opens the store.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn open(&self) -> Result<Store, Failure> {
        Store::open(&self.location().map_err(Failure::usage)?).map_err(Failure::measure)
    }

    /// Returns the store that the option or the environment names, or the user's own.
    ///
    /// # Errors
    /// The URL in the environment is not valid.
    pub(crate) fn location(&self) -> Result<StoreLocation, BadStoreUrl> {
        if let Some(location) = &self.store {
            return Ok(location.clone());
        }
        match std::env::var_os("LINERATE_STORE").filter(|text| !text.is_empty()) {
            Some(text) => StoreLocation::parse(text),
            None => Ok(StoreLocation::Default),
        }
    }
}

/// A report for a build server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BuildReport {
    /// JUnit's XML in a file: a test for each result and expectation.
    JUnit(PathBuf),
    /// Workflow commands of GitHub on standard output: a line for each expectation that is missed.
    GitHub,
}

impl FromStr for BuildReport {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some(("junit", file)) if !file.is_empty() => Ok(Self::JUnit(file.into())),
            None if text == "github" => Ok(Self::GitHub),
            _ => Err("expected junit=FILE, as in junit=linerate.xml, or github".to_owned()),
        }
    }
}
