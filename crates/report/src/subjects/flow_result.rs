//! A result of streams, transactions, RPC or NFS: the head that every result has, beside the figures of these tasks.

use linerate_model::{FlowFigures, Latency, Measurement, Record, TesterLimit, Verdict};
use std::ops::Deref;

/// A result with its figures. It reads as its figures, with the head's fields beside them.
#[derive(Clone, Copy)]
pub(crate) struct FlowResult<'a> {
    /// The result's name.
    pub(crate) name: &'a str,
    /// What the tester itself reached; none if it was not calibrated.
    pub(crate) tester_limit: Option<&'a TesterLimit>,
    /// What limited it.
    pub(crate) verdict: &'a Verdict,
    figures: &'a FlowFigures,
}

impl Deref for FlowResult<'_> {
    type Target = FlowFigures;

    fn deref(&self) -> &FlowFigures {
        self.figures
    }
}

impl<'a> FlowResult<'a> {
    /// The result, if it is of one of these tasks.
    pub(crate) fn of(result: &'a Measurement) -> Option<Self> {
        let figures = result.flows()?;
        let Measurement { name, tester_limit, verdict, .. } = result;
        Some(Self { name, tester_limit: tester_limit.as_ref(), verdict, figures })
    }

    /// All results of a record that are of these tasks, in its order.
    pub(crate) fn all(record: &'a Record) -> Vec<Self> {
        record.results.iter().filter_map(Self::of).collect()
    }

    /// The figures, for as long as the record is there.
    pub(crate) fn figures(&self) -> &'a FlowFigures {
        self.figures
    }
}

/// Latency, where anything was timed.
pub(crate) fn timed<'a>(result: &FlowResult<'a>) -> Option<&'a Latency> {
    result.figures().latency_ns.as_ref().filter(|latency| latency.count > 0)
}
