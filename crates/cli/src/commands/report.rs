//! `linerate report`: a kept record as text, HTML, Markdown, CSV or JSON.

use crate::arguments::StorePath;
use crate::exit::Failure;
use crate::output::{print, say, style};
use clap::ValueEnum;
use linerate_method::{ladder, measurements};
use linerate_model::{Record, RecordId, SCHEMA};
use linerate_report::Style;
use linerate_store::{Store, StoreError};
use std::path::{Path, PathBuf};

/// Make a report of a kept record
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  linerate report                            the latest record, as text
  linerate report --out report.html          as one offline HTML file
  linerate report 20261121T0930 --format csv
  linerate report record.json --out record.md")]
pub(crate) struct Arguments {
    /// A record's id or the start of it (see `linerate results`), or a JSON file [default: the latest record]
    record: Option<String>,

    /// The form; with --out the file's name tells it
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// Print the JSON record and nothing else; the same as --format json
    #[arg(long, conflicts_with_all = ["format", "out"])]
    json: bool,

    /// Write to this file instead of standard output
    #[arg(long, short = 'o', value_name = "FILE")]
    out: Option<PathBuf>,

    #[command(flatten)]
    store: StorePath,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Html,
    Markdown,
    Csv,
    Json,
}

impl Format {
    fn of(file: &Path) -> Option<Self> {
        match file.extension()?.to_str()? {
            "txt" => Some(Self::Text),
            "html" | "htm" => Some(Self::Html),
            "md" => Some(Self::Markdown),
            "csv" => Some(Self::Csv),
            "json" => Some(Self::Json),
            _ => None,
        }
    }

    fn render(self, record: &Record, style: &Style) -> String {
        match self {
            Self::Text => linerate_report::text(record, style),
            Self::Html => linerate_report::html(record),
            Self::Markdown => linerate_report::markdown(record),
            Self::Csv => linerate_report::csv(record),
            Self::Json => linerate_report::json(record),
        }
    }
}

pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    let record = named(&arguments.store, arguments.record.as_deref())?;
    match &arguments.out {
        Some(file) => {
            let format = arguments.format.or_else(|| Format::of(file));
            write(&record, file, format.ok_or_else(|| unknown_form(file))?)
        }
        None => {
            let format = if arguments.json { Format::Json } else { arguments.format.unwrap_or(Format::Text) };
            print(&format.render(&record, &style()));
            Ok(())
        }
    }
}

/// Fails before anything is measured if the report could not be written afterwards.
pub(crate) fn check_report_file(file: &Path) -> Result<(), Failure> {
    Format::of(file).ok_or_else(|| unknown_form(file))?;
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if directory.is_dir() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "cannot write {}: there is no directory {}; make it first",
        file.display(),
        directory.display()
    )))
}

/// Writes a record in the form the file's name tells.
pub(crate) fn write_report(record: &Record, file: &Path) -> Result<(), Failure> {
    write(record, file, Format::of(file).ok_or_else(|| unknown_form(file))?)
}

fn write(record: &Record, file: &Path, format: Format) -> Result<(), Failure> {
    let style = Style { width: 100, colour: false, unicode: true };
    std::fs::write(file, format.render(record, &style)).map_err(|error| {
        Failure::measure(format!("cannot write the report {}: {error}; name another file with --out", file.display()))
    })?;
    say(&format!("linerate: report written to {}", file.display()));
    Ok(())
}

fn unknown_form(file: &Path) -> Failure {
    Failure::usage(format!(
        "cannot tell the report's form from the name {}; end it in .html, .md, .csv, .json or .txt",
        file.display()
    ))
}

/// The record of that name, or in that JSON file, or the latest.
pub(crate) fn named(path: &StorePath, name: Option<&str>) -> Result<Record, Failure> {
    match name {
        Some(name) if name.ends_with(".json") => read(Path::new(name)),
        name => load(path, name),
    }
}

/// The record of that name, or the latest.
pub(crate) fn load(path: &StorePath, name: Option<&str>) -> Result<Record, Failure> {
    let store = Store::open(path.store.as_deref()).map_err(Failure::measure)?;
    let id = match name {
        Some(name) => RecordId(name.to_owned()),
        None => store
            .latest()
            .map_err(Failure::measure)?
            .ok_or_else(|| Failure::usage("nothing is kept yet: measure something first, as with `linerate lab`"))?,
    };
    let mut record = store.load(&id.0).map_err(store_failure)?;
    // A run that was killed has trials but nobody summed them up.
    if record.results.is_empty() {
        record.results = measurements(&record.plan, &record.hosts, &record.trials, None);
        record.ladder = ladder::found(&record);
    }
    Ok(record)
}

/// A name that fits no record is the user's to mend; what is wrong with the store is not.
pub(crate) fn store_failure(error: StoreError) -> Failure {
    match error {
        StoreError::Unknown { .. } | StoreError::Ambiguous { .. } => Failure::usage(error),
        _ => Failure::measure(error),
    }
}

fn read(file: &Path) -> Result<Record, Failure> {
    let fail = |problem: String| Failure::usage(format!("cannot read the record {}: {problem}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| fail(error.to_string()))?;
    let record: Record = serde_json::from_str(&text).map_err(|error| fail(error.to_string()))?;
    if record.schema != SCHEMA {
        return Err(fail(format!("its format is `{}`, and this linerate reads `{SCHEMA}`", record.schema)));
    }
    Ok(record)
}
