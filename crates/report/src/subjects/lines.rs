//! Results in a line each, and what many have in common.

use crate::figures::{self, nanos, per_second, percent, plain, rate};
use crate::language::Language;
use crate::subjects::ladder;
use crate::wording::{firmness, listed};
use crate::{records, said};
use linerate_model::{
    FrameLatency, HeadlineVerdict, LadderLayer, Limit, Measurement, Quantity, Record, Summary, Throughput, Verdict,
};

/// A result in a line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub(crate) name: String,
    pub(crate) figure: Option<String>,
    pub(crate) spread: Option<String>,
    pub(crate) of_line: Option<String>,
    pub(crate) verdict: Option<HeadlineVerdict>,
    pub(crate) runs: u32,
}

impl Line {
    /// The name of its result.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of runs of its figure.
    pub fn runs(&self) -> u32 {
        self.runs
    }

    fn of_result(result: &Measurement) -> Self {
        let share = result.limit().map(|limit| limit.share);
        Self {
            name: plain(&result.name),
            figure: figures::main(result),
            of_line: share.and_then(percent),
            verdict: Some(short(&result.verdict)),
            ..Self::of_runs(&result.main)
        }
    }

    fn of_layer(lang: Language, layer: &LadderLayer) -> Option<Self> {
        let payload = layer.payload_bps.as_ref()?;
        Some(Self {
            name: ladder::label(lang, layer.name),
            figure: rate(payload.median, "bit/s").map(|rate| firmness::shown(rate, layer.firmness)),
            of_line: layer.share_of_line.and_then(percent).map(|share| firmness::shown(share, layer.firmness)),
            verdict: layer.verdict.as_ref().map(short),
            ..Self::of_runs(payload)
        })
    }

    fn of_throughput(lang: Language, cell: &Throughput) -> Self {
        Self {
            name: said!(lang, "overview-frames", "{bytes}-byte frames", bytes = cell.frame_bytes.to_string()),
            figure: per_second(cell.frames_per_s).map(|frames| firmness::shown(format!("{frames} /s"), cell.firmness)),
            spread: None,
            of_line: cell.line_share.and_then(percent).map(|share| firmness::shown(share, cell.firmness)),
            verdict: Some(short(&cell.verdict)),
            runs: 1,
        }
    }

    fn of_latency(lang: Language, cell: &FrameLatency) -> Self {
        Self {
            name: said!(lang, "overview-frame-latency", "{bytes}-byte p50", bytes = cell.frame_bytes.to_string()),
            figure: cell.latency_ns.as_ref().map(|took| firmness::shown(nanos(took.p50), cell.firmness)),
            spread: None,
            of_line: None,
            // It is timed at a set rate, which nothing limits.
            verdict: None,
            runs: 1,
        }
    }

    /// The spread, of several runs, and their number.
    fn of_runs(runs: &Summary) -> Self {
        Self {
            name: String::new(),
            figure: None,
            spread: percent(runs.spread()).filter(|_| runs.runs > 1),
            of_line: None,
            verdict: None,
            runs: runs.runs,
        }
    }
}

fn short(verdict: &Verdict) -> HeadlineVerdict {
    HeadlineVerdict { limit: verdict.limit, confidence: verdict.confidence }
}

/// A line for each result of `record` that has a figure, in the record's order: the results, the layers of a ladder that are no
/// results of their own, the throughput and the latency of a device test.
pub fn lines(lang: Language, record: &Record) -> Vec<Line> {
    let results = records::with_entries(record).map(Line::of_result);
    let measured = |layer: &&LadderLayer| layer.payload_bps.as_ref().is_some_and(|payload| payload.runs > 0);
    let layers = ladder::layers_apart(record).filter(measured).filter_map(|layer| Line::of_layer(lang, layer));
    let device = record.device().map(|(_, device)| device);
    let throughput =
        device.into_iter().flat_map(|device| &device.throughput).map(|cell| Line::of_throughput(lang, cell));
    let latency = device.into_iter().flat_map(|device| &device.latency).map(|cell| Line::of_latency(lang, cell));
    results.chain(layers).chain(throughput).chain(latency).collect()
}

/// Returns what many results have in common: the lowest and the highest figure of each unit, and how many each limit
/// limits.
pub(crate) fn answer(lang: Language, record: &Record) -> Vec<String> {
    let results: Vec<&Measurement> =
        records::with_entries(record).filter(|result| result.main.median.is_finite()).collect();
    let mut quantities: Vec<Quantity> = Vec::new();
    for result in &results {
        if !quantities.contains(&result.quantity) {
            quantities.push(result.quantity);
        }
    }
    let range = |quantity: &Quantity| {
        let of_quantity = || results.iter().filter(|result| result.quantity == *quantity);
        let low = of_quantity().min_by(|one, other| one.main.median.total_cmp(&other.main.median))?;
        let high = of_quantity().max_by(|one, other| one.main.median.total_cmp(&other.main.median))?;
        Some(said!(
            lang,
            "overview-range",
            "From {low} ({lowest}) to {high} ({highest}).",
            low = figures::main(low)?,
            lowest = plain(&low.name),
            high = figures::main(high)?,
            highest = plain(&high.name)
        ))
    };
    quantities.iter().filter_map(range).chain(counted(lang, std::slice::from_ref(record))).collect()
}

/// `Limits of the 12 results: wire (8), latency (3) and device (1).`
pub(crate) fn counted(lang: Language, records: &[Record]) -> Option<String> {
    let lines = records.iter().flat_map(|record| lines(lang, record));
    let verdicts: Vec<Limit> = lines.filter_map(|line| Some(line.verdict?.limit)).collect();
    let mut limits: Vec<(Limit, usize)> = Vec::new();
    for limit in &verdicts {
        match limits.iter_mut().find(|(known, _)| known == limit) {
            Some((_, count)) => *count += 1,
            None => limits.push((*limit, 1)),
        }
    }
    limits.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let text = |(limit, count): &(Limit, usize)| {
        said!(lang, "overview-limit-count", "{named} ({count})", named = lang.text(limit.text()), count = *count)
    };
    let all: Vec<String> = limits.iter().map(text).collect();
    (!all.is_empty()).then(|| {
        said!(
            lang,
            "overview-limits",
            "Limits of the {results} results: {limits}.",
            results = verdicts.len(),
            limits = listed(lang, &all)
        )
    })
}
