//! `linerate explain`: why a record's verdicts are what they are.

use super::report;
use crate::exit::Failure;
use crate::options::StorePath;
use crate::output::{print, style};

/// Show the evidence behind a record's verdicts
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  linerate explain                           the latest record
  linerate explain 20261121T0930

Lists every limit considered, with the evidence for and against: `strong`
accounts for the result by itself, `for` is a good sign, `hint` a weak one,
`against` excludes it, `unknown` says what was missing.")]
pub(crate) struct Arguments {
    /// A record's id, the start of it, or its file [default: the latest]
    ///
    /// `linerate results` lists the ids; the file is JSON.
    record: Option<String>,

    #[command(flatten)]
    store: StorePath,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let record = report::named(&arguments.store, arguments.record.as_deref())?;
    print(linerate_report::explain(&record, &style()).trim_end());
    Ok(())
}
