//! The runs of each figure of a record, and how finely each was counted.

use crate::copy::Copied;
use crate::loaded_latency;
use crate::offered::Offer;
use crate::statistics::Sample;
use crate::task::figure;
use crate::transfer::{Transfer, transfers};
use linerate_model::{Firmness, Histogram, NfsClass, Quantity, Record, Task, Transport, Trial, TrialResult};

/// What a TCP receiver is given at a time at most: segments that the network stack has joined.
const TCP_PIECE: u64 = 64 << 10;
/// Relative width of a histogram's steps: three significant digits.
const HISTOGRAM_STEP: f64 = 1e-3;

/// A figure's runs in one record.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Runs {
    /// In the order they were made.
    pub(super) values: Vec<f64>,
    /// Standard deviation that counting alone gives one run.
    pub(super) resolution: f64,
    /// Whether all of them are firm.
    pub(super) firmness: Firmness,
}

impl Runs {
    /// The runs of the cell called `name`; none where there are none, or where one lacks the figure.
    pub(super) fn of(record: &Record, name: &str, quantity: Quantity) -> Option<Self> {
        let runs: Vec<&TrialResult> = record.counted().filter(|result| result.trial.name == name).collect();
        let firmness = runs.iter().map(|run| firmness(run)).fold(Firmness::Firm, Firmness::and);
        let counted: Vec<(f64, f64)> = runs
            .into_iter()
            .map(|run| Some((value(run, quantity)?, resolution(run, quantity))))
            .collect::<Option<_>>()?;
        let squares = counted.iter().map(|(_, resolution)| resolution.powi(2)).sum::<f64>();
        let resolution = (squares / counted.len().max(1) as f64).sqrt();
        let values: Vec<f64> = counted.into_iter().map(|(value, _)| value).collect();
        (!values.is_empty()).then_some(Self { values, resolution, firmness })
    }

    pub(super) fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len() as f64
    }

    /// The standard deviation that counting alone gives the mean.
    pub(super) fn resolution_of_mean(&self) -> f64 {
        self.resolution / (self.values.len() as f64).sqrt()
    }

    pub(super) fn sample(&self) -> Option<Sample> {
        Sample::of(&self.values, self.resolution)
    }
}

/// Whether the rate of a run is firm: it is not where frames that were asked for were not sent.
fn firmness(trial: &TrialResult) -> Firmness {
    trial.frames().map_or(Firmness::Firm, |run| Offer::of(&run).firmness())
}

fn value(trial: &TrialResult, quantity: Quantity) -> Option<f64> {
    match quantity {
        Quantity::PayloadBps | Quantity::PerSecond | Quantity::FramesPerS => Some(figure(trial)),
        Quantity::LatencyP50Ns => latency(trial).map(|all| all.quantile(0.5) as f64),
        Quantity::LatencyP99Ns => latency(trial).map(|all| all.quantile(0.99) as f64),
        Quantity::LossRatio => lost(trial).map(|(lost, of)| lost as f64 / of as f64),
        Quantity::FilesPerS => Copied::of(trial).map(|copy| copy.files_per_s()),
        Quantity::LoadedP99Ns => loaded_latency::loaded(trial).map(|all| all.quantile(0.99) as f64),
        Quantity::ReadMeanNs => of_class(trial, NfsClass::Read).map(|all| all.mean()),
        Quantity::WriteMeanNs => of_class(trial, NfsClass::Write).map(|all| all.mean()),
        Quantity::OtherMeanNs => of_class(trial, NfsClass::Other).map(|all| all.mean()),
        // Searches find these.
        Quantity::RecoveryNs | Quantity::BufferNs | Quantity::Held => None,
    }
}

/// The response times of the operations of a class; none where there were none.
fn of_class(trial: &TrialResult, class: NfsClass) -> Option<Histogram> {
    let mut all = Histogram::default();
    for (operation, counts) in transfers(trial).iter().flat_map(|transfer| &transfer.sender.operations) {
        if operation.class() == class {
            all.merge(&counts.latency);
        }
    }
    (all.count() > 0).then_some(all)
}

fn latency(trial: &TrialResult) -> Option<Histogram> {
    let mut all = Histogram::default();
    for asked in transfers(trial).iter().filter_map(|transfer| transfer.sender.transactions.as_ref()) {
        all.merge(&asked.latency);
    }
    (all.count() > 0).then_some(all)
}

/// Datagrams lost, and all; none where there were none.
fn lost(trial: &TrialResult) -> Option<(u64, u64)> {
    let all = transfers(trial);
    let losses = all.iter().filter_map(|transfer: &Transfer<'_>| transfer.loss);
    let (lost, of) = losses.fold((0, 0), |(lost, of), loss| (lost + loss.lost, of + loss.of));
    (of > 0).then_some((lost, of))
}

/// The standard deviation that counting alone gives a run's figure, in the figure's unit.
fn resolution(trial: &TrialResult, quantity: Quantity) -> f64 {
    match quantity {
        // What is lost at random varies as a binomial count does. Half a datagram is added, so that none is not certain.
        Quantity::LossRatio => lost(trial).map_or(0.0, |(lost, of)| {
            let share = (lost as f64 + 0.5) / (of as f64 + 1.0);
            (share * (1.0 - share) / of as f64).sqrt()
        }),
        Quantity::PayloadBps => of_window(&trial.trial, 8.0 * piece_bytes(&trial.trial)),
        // A copy has no window: its time is its own.
        Quantity::PerSecond | Quantity::FramesPerS | Quantity::FilesPerS => of_window(&trial.trial, 1.0),
        Quantity::LatencyP50Ns
        | Quantity::LatencyP99Ns
        | Quantity::LoadedP99Ns
        | Quantity::ReadMeanNs
        | Quantity::WriteMeanNs
        | Quantity::OtherMeanNs
        | Quantity::RecoveryNs
        | Quantity::BufferNs
        | Quantity::Held => value(trial, quantity).unwrap_or(0.0) * HISTOGRAM_STEP / 12f64.sqrt(),
    }
}

/// A window cuts through one piece at either end, at random: two errors that are equally likely from none to a whole piece,
/// each with a variance of 1/12.
fn of_window(trial: &Trial, piece: f64) -> f64 {
    // A volume is counted whole.
    let Some(window) = trial.window().filter(|_| trial.volume().is_none()) else { return 0.0 };
    piece / window.measure.as_secs_f64().max(f64::MIN_POSITIVE) / 6f64.sqrt()
}

/// Bytes that are counted at once.
fn piece_bytes(trial: &Trial) -> f64 {
    let Task::Stream(stream) = trial.task() else { return 0.0 };
    let message = stream.message_bytes.get();
    (if stream.net.transport == Transport::Tcp { message.min(TCP_PIECE) } else { message }) as f64
}
