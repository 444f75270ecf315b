//! Reports in files, in the format that the end of the file name stands for.

use crate::exit::Failure;
use crate::output::{file_style, print, say, style};
use clap::ValueEnum;
use linerate_model::Record;
use linerate_report::Style;
use linerate_study::{Pivot, StudyReport};
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Html,
    Markdown,
    Csv,
    Json,
}

impl Format {
    /// Returns the format that the end of a file name stands for.
    pub(crate) fn of(file: &Path) -> Option<Self> {
        match file.extension()?.to_str()? {
            "txt" => Some(Self::Text),
            "html" | "htm" => Some(Self::Html),
            "md" => Some(Self::Markdown),
            "csv" => Some(Self::Csv),
            "json" => Some(Self::Json),
            _ => None,
        }
    }

    pub(crate) fn render(self, subject: &Subject, style: &Style) -> String {
        match subject {
            Subject::Records(records) => match self {
                Self::Text => linerate_report::text(records, style),
                Self::Html => linerate_report::html(style.language, records),
                Self::Markdown => linerate_report::markdown(style.language, records),
                Self::Csv => linerate_report::csv(records),
                Self::Json => linerate_report::json(records),
            },
            Subject::Study(report, pivot) => match self {
                Self::Text => linerate_study::text(report, style, pivot.as_ref()),
                Self::Html => linerate_study::html(style.language, report, pivot.as_ref()),
                Self::Markdown => linerate_study::markdown(style.language, report, pivot.as_ref()),
                Self::Csv => linerate_study::csv(report),
                Self::Json => linerate_study::json(report),
            },
        }
    }
}

/// The content of a report.
pub(crate) enum Subject {
    /// One record, or all records of one command.
    Records(Vec<Record>),
    /// A study, and the factors that its tables are laid out by.
    Study(Box<StudyReport>, Option<Pivot>),
}

/// Prints a study, or writes it in the form that the file's name tells.
pub(crate) fn show_study(report: StudyReport, json: bool, out: Option<&Path>) -> Result<(), Failure> {
    let subject = Subject::Study(Box::new(report), None);
    print(&if json { Format::Json } else { Format::Text }.render(&subject, &style()));
    out.map_or(Ok(()), |file| write(&subject, file, Format::of(file).ok_or_else(|| unknown_form(file))?))
}

/// Fails before anything is measured if the report could not be written afterwards.
pub(crate) fn check_report_file(file: &Path) -> Result<(), Failure> {
    Format::of(file).ok_or_else(|| unknown_form(file))?;
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let cannot = |why: String| Failure::usage(format!("cannot write {}: {why}", file.display()));
    if !directory.is_dir() {
        return Err(cannot(format!("there is no directory {}; make it first", directory.display())));
    }
    crate::private_report::check(file).map_err(|error| cannot(format!("{error}; name another file with --out")))
}

/// Writes records that were measured now, in the form the file's name tells.
pub(crate) fn write_report(records: &[Record], file: &Path) -> Result<(), Failure> {
    let subject = Subject::Records(records.to_vec());
    let id = records.first().map_or("", |record| &record.id.0);
    write(&subject, file, Format::of(file).ok_or_else(|| unknown_form(file))?).map_err(|failure| {
        failure.and(&format!("; the record is kept, and `linerate report {id} --out FILE` writes its report"))
    })
}

pub(crate) fn write(subject: &Subject, file: &Path, format: Format) -> Result<(), Failure> {
    crate::private_report::write(file, format.render(subject, &file_style()))
        .map_err(|error| Failure::measure(format!("cannot write the report {}: {error}", file.display())))?;
    say(&format!("linerate: report written to {}", file.display()));
    Ok(())
}

pub(crate) fn unknown_form(file: &Path) -> Failure {
    Failure::usage(format!(
        "cannot tell the report's form from the name {}; end it in .html, .md, .csv, .json or .txt",
        file.display()
    ))
}
