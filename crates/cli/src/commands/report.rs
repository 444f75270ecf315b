//! `linerate report`: a kept record or a study as text, HTML, Markdown, CSV or JSON.

use crate::exit::Failure;
use crate::options::StorePath;
use crate::output::{counted, language, print, say, style};
use crate::picture;
use crate::report_file::{Format, Subject, unknown_form, write};
use crate::study_file;
use linerate_method::{read_record, replay};
use linerate_model::{Record, RecordId};
use linerate_store::{Query, Store, StoreError};
use linerate_study::Pivot;
use std::fmt::Display;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Make a report of a record or a study
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  linerate report                            the latest record, as text
  linerate report --out report.html          as one self-contained HTML file
  linerate report 20261121T0930 --format csv
  linerate report record.json --out record.md
  linerate report --charts figures           with its charts as SVG and PNG
  linerate report studies/hirosaki-1998 --out study.html
  linerate report studies/hirosaki-1998 --rows os,protocol --columns interface")]
pub(crate) struct Arguments {
    /// A record or a study [default: the latest record]
    ///
    /// A record: its id, the start of its id (see `linerate results`) or its JSON file; or a study: the path of its TOML file
    /// (docs/studies.md).
    record: Option<String>,

    /// text, html, markdown, csv or json
    ///
    /// The default is that of the name of --out, otherwise text.
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// The same as --format json
    #[arg(long, conflicts_with_all = ["format", "out"])]
    json: bool,

    /// Write to this file
    ///
    /// Instead of standard output.
    #[arg(long, short = 'o', value_name = "FILE")]
    out: Option<PathBuf>,

    /// Also write the charts to this folder
    ///
    /// Each as NAME.svg and, if this machine's fonts have all its characters, NAME.png.
    #[arg(long, value_name = "DIR", conflicts_with = "json")]
    charts: Option<PathBuf>,

    /// Of a study: factors in rows
    ///
    /// Factors in the rows of its tables, by their columns in the data or their titles.
    #[arg(long, value_name = "FACTOR,...", value_delimiter = ',', conflicts_with = "json")]
    rows: Vec<String>,

    /// Of a study: factors in columns
    ///
    /// Factors in the columns of its tables; adds a heat map.
    #[arg(long, value_name = "FACTOR,...", value_delimiter = ',', conflicts_with = "json")]
    columns: Vec<String>,

    #[command(flatten)]
    store: StorePath,
}

/// The records of a group begin within this of each other, nanoseconds.
const GROUP_SPAN: u64 = 3_600_000_000_000;

pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    let format = match (&arguments.out, arguments.format) {
        (_, Some(format)) => format,
        (Some(file), None) => Format::of(file).ok_or_else(|| unknown_form(file))?,
        (None, None) if arguments.json => Format::Json,
        (None, None) => Format::Text,
    };
    let pivots = !arguments.rows.is_empty() || !arguments.columns.is_empty();
    if pivots && matches!(format, Format::Csv | Format::Json) {
        return Err(Failure::usage("--rows and --columns lay out tables, and CSV and JSON have none; leave them out"));
    }
    let study = arguments.record.as_deref().and_then(study_file::path);
    let subject = match study {
        Some(path) => {
            let report = study_file::read(&path, &arguments.store)?;
            let pivot = Pivot::asked(&report.study, &arguments.rows, &arguments.columns);
            Subject::Study(Box::new(report), pivot.map_err(Failure::usage)?)
        }
        None if pivots => {
            return Err(Failure::usage(
                "--rows and --columns lay out the tables of a study; name its file, as in `linerate report STUDY.toml`",
            ));
        }
        None => Subject::Records(named_with_group(&arguments.store, arguments.record.as_deref())?),
    };
    if let Some(folder) = &arguments.charts {
        let pictures = match &subject {
            Subject::Records(records) => linerate_report::pictures(language(), records),
            Subject::Study(report, pivot) => linerate_study::pictures(language(), report, pivot.as_ref()),
        };
        let hint = picture::write(folder, &pictures)?;
        let charts = counted(pictures.len(), "chart");
        say(&format!("linerate: {charts} written to {}", folder.display()));
        if let Some(hint) = hint {
            say(&format!("linerate: {hint}"));
        }
    }
    match &arguments.out {
        Some(file) => write(&subject, file, format),
        None => {
            print(&format.render(&subject, &style()));
            Ok(())
        }
    }
}

/// The record of that name, or in that JSON file, or the latest.
pub(crate) fn named(path: &StorePath, name: Option<&str>) -> Result<Record, Failure> {
    match name {
        Some(name) if name.ends_with(".json") => read(Path::new(name)),
        name => load(path, name),
    }
}

/// The record of that name, or in that JSON file, or the latest, with all that were made by the same command.
pub(crate) fn named_with_group(path: &StorePath, name: Option<&str>) -> Result<Vec<Record>, Failure> {
    match name {
        Some(name) if name.ends_with(".json") => Ok(vec![read(Path::new(name))?]),
        name => load_with_group(path, name),
    }
}

/// The record of that name, or the latest.
pub(crate) fn load(path: &StorePath, name: Option<&str>) -> Result<Record, Failure> {
    let store = path.open()?;
    load_from(&store, &id(&store, name)?)
}

/// The record of that name, or the latest, with all of its group, the oldest first.
pub(crate) fn load_with_group(path: &StorePath, name: Option<&str>) -> Result<Vec<Record>, Failure> {
    let store = path.open()?;
    let record = load_from(&store, &id(&store, name)?)?;
    let Some(group) = record.group.clone() else { return Ok(vec![record]) };
    let near = Query {
        from_unix_ns: Some(record.started_unix_ns.saturating_sub(GROUP_SPAN)),
        until_unix_ns: Some(record.started_unix_ns.saturating_add(GROUP_SPAN)),
        ..Query::default()
    };
    let mut rows = store.list(&near, 0, usize::MAX).map_err(Failure::measure)?;
    rows.retain(|row| row.group.as_ref() == Some(&group));
    rows.sort_by_key(|row| row.started_unix_ns);
    rows.iter().map(|row| load_from(&store, &row.id)).collect()
}

/// The id of the record of that name, or of the latest.
fn id(store: &Store, name: Option<&str>) -> Result<RecordId, Failure> {
    match name {
        Some(name) => Ok(RecordId(name.to_owned())),
        None => store
            .latest()
            .map_err(Failure::measure)?
            .ok_or_else(|| Failure::usage("nothing is kept yet: measure something first, as with `linerate lab`")),
    }
}

fn load_from(store: &Store, id: &RecordId) -> Result<Record, Failure> {
    let mut record = store.load(&id.0).map_err(store_failure)?;
    replay(&mut record);
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
    let fail = |problem: &dyn Display| format!("cannot read the record {}: {problem}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::usage(fail(&error)),
        _ => Failure::measure(fail(&error)),
    })?;
    read_record(&text).map_err(|error| Failure::measure(fail(&error)))
}
