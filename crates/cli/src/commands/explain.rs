//! `linerate explain`: why a record's verdicts are what they are.

use super::report;
use crate::arguments::StorePath;
use crate::exit::Failure;
use crate::output::{print, style};

/// Show the full reasoning behind a record's verdicts
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  linerate explain                           the latest record
  linerate explain 20261121T0930

Every limit that could be weighed is listed with what speaks for or against it: `strong` accounts for the result by itself, \
`for` is a good sign, `hint` a weak one, `against` rules it out, `unknown` says what was missing.")]
pub(crate) struct Arguments {
    /// A record's id or the start of it (see `linerate results`), or a JSON file [default: the latest record]
    record: Option<String>,

    #[command(flatten)]
    store: StorePath,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let record = report::named(&arguments.store, arguments.record.as_deref())?;
    print(linerate_report::explain(&record, &style()).trim_end());
    Ok(())
}
