//! What a search found, as figures to compare: each search gives one value, so repeats are searches.

use super::runs::Runs;
use crate::metric::Percentile;
use crate::{Metric, curve};
use linerate_model::{DeviceFound, DevicePlan, Firmness, Quantity, Record};

/// Relative width of the steps in which latency is counted: three significant digits.
const LATENCY_STEP: f64 = 1e-3;

/// A figure that a search found.
#[derive(Debug, Clone, PartialEq)]
struct Found {
    name: String,
    quantity: Quantity,
    value: f64,
    /// The figure is known to so much of itself.
    width: f64,
    firmness: Firmness,
}

/// The figures of some searches of one kind, each with its name and quantity. Of searches that found it not, a figure has none.
#[derive(Debug, Default)]
pub(super) struct Searches {
    figures: Vec<(String, Quantity, Vec<Option<Found>>)>,
}

impl Searches {
    /// Those of `records`, in their order.
    pub(super) fn of(records: &[&Record]) -> Self {
        let mut all = Self::default();
        for (number, record) in records.iter().enumerate() {
            for found in found(record) {
                let is = |(name, quantity, _): &&mut (String, Quantity, _)| {
                    *name == found.name && *quantity == found.quantity
                };
                let place = match all.figures.iter_mut().find(is) {
                    Some((.., values)) => values,
                    None => {
                        all.figures.push((found.name.clone(), found.quantity, vec![None; records.len()]));
                        &mut all.figures.last_mut().expect("just added").2
                    }
                };
                place[number] = Some(found);
            }
        }
        all
    }

    /// The figures that `other` has too, with what both found. Only searches that both have a partner of are left if `paired`.
    pub(super) fn beside(&self, other: &Self, paired: bool) -> Vec<(String, Quantity, [Vec<Runs>; 2])> {
        let both = self.figures.iter().filter_map(|(name, quantity, old)| {
            let (.., new) = other.figures.iter().find(|(other, of, _)| other == name && of == quantity)?;
            let kept = |side: &[Option<Found>], partner: &[Option<Found>]| -> Vec<Runs> {
                let has_partner = |number: usize| !paired || matches!(partner.get(number), Some(Some(_)));
                let found = side.iter().enumerate().filter(|(number, _)| has_partner(*number));
                found.filter_map(|(_, found)| found.as_ref().map(Found::as_run)).collect()
            };
            Some((name.clone(), *quantity, [kept(old, new), kept(new, old)]))
        });
        both.filter(|(.., [old, new])| !old.is_empty() && !new.is_empty()).collect()
    }

    /// The names of all figures.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.figures.iter().map(|(name, ..)| name.as_str())
    }
}

impl Found {
    /// As a session's one run. A figure that may be anywhere within a width has a variance of a twelfth of its square.
    fn as_run(&self) -> Runs {
        let resolution = self.value * self.width / 12f64.sqrt();
        Runs { values: vec![self.value], resolution, firmness: self.firmness }
    }
}

/// Several runs of one value each, as the runs of one measurement.
pub(super) fn joined(searches: &[Runs]) -> Runs {
    let squares = searches.iter().map(|search| search.resolution.powi(2)).sum::<f64>();
    Runs {
        values: searches.iter().flat_map(|search| search.values.iter().copied()).collect(),
        resolution: (squares / searches.len().max(1) as f64).sqrt(),
        firmness: searches.iter().map(|search| search.firmness).fold(Firmness::Firm, Firmness::and),
    }
}

fn found(record: &Record) -> Vec<Found> {
    if let Some((plan, outcome)) = record.device() {
        return of_device(plan, outcome);
    }
    let Some((plan, found)) = record.curve() else { return Vec::new() };
    let peak = found.peak.iter().map(|peak| Found {
        name: format!("peak of {}", plan.cell.name),
        quantity: Quantity::PerSecond,
        value: peak.achieved_ops,
        width: plan.width.as_f64(),
        firmness: curve::firmness(record, &peak.result),
    });
    peak.collect()
}

fn of_device(plan: &DevicePlan, outcome: &DeviceFound) -> Vec<Found> {
    let of_size = |size: u32, metric: Metric, quantity, what: &str, width: f64| {
        let value = metric.of_device(size, outcome)?;
        let firmness = metric.firmness_beside(size, outcome);
        Some(Found { name: format!("{what} {size}"), quantity, value, width, firmness })
    };
    let mut all = Vec::new();
    let mut goals = Vec::new();
    for cell in &outcome.throughput {
        goals.push(cell.frame_bytes);
        let number = goals.iter().filter(|size| **size == cell.frame_bytes).count();
        let goal = cell.goal.as_ref().map_or_else(String::new, |_| format!(", goal {number}"));
        all.push(Found {
            name: format!("throughput {}{goal}", cell.frame_bytes),
            quantity: Quantity::FramesPerS,
            value: cell.frames_per_s,
            width: plan.width.as_f64(),
            firmness: cell.firmness,
        });
    }
    for size in plan.sizes.iter().map(|size| size.get()) {
        let latency =
            |percentile, quantity| of_size(size, Metric::Latency(percentile), quantity, "latency", LATENCY_STEP);
        all.extend(latency(Percentile::P50, Quantity::LatencyP50Ns));
        all.extend(latency(Percentile::P99, Quantity::LatencyP99Ns));
        // A loss ratio is compared by its difference, which has no width as a share.
        all.extend(of_size(size, Metric::Loss, Quantity::LossRatio, "loss", 0.0));
        all.extend(of_size(size, Metric::Echoes, Quantity::PerSecond, "echo", plan.width.as_f64()));
        all.extend(of_size(size, Metric::Learning, Quantity::PerSecond, "learning", plan.width.as_f64()));
        // A whole number is known to one.
        let held = |metric: Metric, what| {
            let step = metric.of_device(size, outcome).map_or(0.0, |held| 1.0 / held.max(1.0));
            of_size(size, metric, Quantity::Held, what, step)
        };
        all.extend(held(Metric::Burst, "burst"));
        all.extend(held(Metric::Addresses, "addresses"));
        all.extend(held(Metric::Neighbours, "neighbours"));
        // A buffer is worked out of the longest burst, and a recovery of the frames that were lost.
        let buffer = |burst: Found| of_size(size, Metric::Buffer, Quantity::BufferNs, "buffer", burst.width);
        all.extend(held(Metric::Burst, "burst").and_then(buffer));
        all.extend(of_size(size, Metric::Recovery, Quantity::RecoveryNs, "recovery", LATENCY_STEP));
    }
    all
}
