//! `linerate compare`: what changed between two records.

use super::report;
use crate::arguments::StorePath;
use crate::exit::Failure;
use crate::output::{print, say, style};
use linerate_units::Ratio;

/// Compare two records of the same measurements, and report significant changes
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  linerate compare 20261121T0930             with the latest record
  linerate compare before.json after.json
  linerate compare 20261121T0930 20261122T0930 --tolerance 5% --confidence 99

Exit codes: 0 nothing became worse, 1 something became worse, 2 usage, 3 a record cannot be read. Significance needs three or \
more runs of each measurement.")]
pub(crate) struct Arguments {
    /// The baseline: a record's id or the start of it (see `linerate results`), or a JSON file
    before: String,

    /// The record to compare with it [default: the latest record]
    after: Option<String>,

    /// Ignore changes up to this share
    #[arg(long, value_name = "SHARE", default_value = "2%")]
    tolerance: Ratio,

    /// Confidence of all statements together, percent
    #[arg(long, value_name = "PERCENT", default_value_t = 95.0)]
    confidence: f64,

    /// Print only the comparison, as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    store: StorePath,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let confidence = arguments.confidence;
    if !(50.0..100.0).contains(&confidence) {
        let said = format!("--confidence {confidence} is not a percentage from 50 to below 100, as in 95");
        return Err(Failure::usage(said));
    }
    let before = report::named(&arguments.store, Some(&arguments.before))?;
    let after = report::named(&arguments.store, arguments.after.as_deref())?;
    if before.id == after.id {
        return Err(Failure::usage(format!("both are the record {}; name two (see `linerate results`)", before.id)));
    }
    let found = linerate_method::compare(&before, &after, arguments.tolerance.as_f64(), confidence);
    if arguments.json {
        print(&serde_json::to_string(&found).expect("a comparison has no map with keys that are no text"));
    } else {
        print(linerate_report::comparison(&found, &style()).trim_end());
    }
    if found.figures.is_empty() {
        return Err(Failure::usage("the records have no measurement in common: compare runs of the same command"));
    }
    if !found.is_worse() {
        return Ok(());
    }
    if !arguments.json {
        say("linerate: something became worse");
    }
    Err(Failure::Missed)
}
