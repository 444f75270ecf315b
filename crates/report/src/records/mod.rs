//! The records that a report is of.

pub(crate) mod tasks;

use linerate_model::{CurvePoint, Measurement, Record};

/// Records of one command, at least one.
#[derive(Debug, Clone, Copy)]
pub struct Records<'a>(pub(crate) &'a [Record]);

impl<'a> From<&'a Record> for Records<'a> {
    fn from(record: &'a Record) -> Self {
        Self(std::slice::from_ref(record))
    }
}

impl<'a> From<&'a [Record]> for Records<'a> {
    fn from(records: &'a [Record]) -> Self {
        Self(records)
    }
}

impl<'a> From<&'a Vec<Record>> for Records<'a> {
    fn from(records: &'a Vec<Record>) -> Self {
        Self(records)
    }
}

/// The results that have an entry each; the loads of a curve share one.
pub(crate) fn with_entries(record: &Record) -> impl Iterator<Item = &Measurement> {
    let curve: &[CurvePoint] = record.curve().map_or(&[], |(_, found)| &found.curve);
    record.results.iter().filter(|result| curve.iter().all(|point| point.result != result.name))
}
