//! The figures of runs by their names: what expectations compare, and what studies gather.

use crate::{curve, measure};
use linerate_model::{
    AddedDelay, DeviceFound, DeviceTest, Firmness, Latency, MeasureUnit, Measurement, Record, Task, Transport, Trial,
};
use linerate_units::{BitRate, FrameRate, Nanos, OpRate, Ratio};

/// A figure that a run gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Payload, or a device's frames, a second.
    Throughput,
    /// IP packets a second.
    Packets,
    /// A device's frames a second.
    Frames,
    /// Requests, calls or operations a second.
    Transactions,
    /// Files a second.
    Files,
    /// Share of what was sent that did not arrive.
    Loss,
    /// Time from request to response, or from port to port.
    Latency(Percentile),
    /// What the load adds to the latency of others.
    Added(AddedAt),
    /// Round trips a minute under load.
    RoundTrips,
    /// Deviation of transit times.
    Jitter,
    /// Share of what the path can carry.
    Share,
}

const METRICS: [(&str, Metric); 17] = [
    ("throughput", Metric::Throughput),
    ("packets", Metric::Packets),
    ("frames", Metric::Frames),
    ("transactions", Metric::Transactions),
    ("files", Metric::Files),
    ("loss", Metric::Loss),
    ("p50", Metric::Latency(Percentile::P50)),
    ("p90", Metric::Latency(Percentile::P90)),
    ("p99", Metric::Latency(Percentile::P99)),
    ("p999", Metric::Latency(Percentile::P999)),
    ("max", Metric::Latency(Percentile::Max)),
    ("added.p50", Metric::Added(AddedAt::P50)),
    ("added.p90", Metric::Added(AddedAt::P90)),
    ("added.p99", Metric::Added(AddedAt::P99)),
    ("rpm", Metric::RoundTrips),
    ("jitter", Metric::Jitter),
    ("share", Metric::Share),
];

/// Why a run gives no one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoOneValue {
    /// Its kind of test does not measure that.
    #[error("the test does not measure that")]
    NotMeasured,
    /// It has several.
    #[error("the test gives {0} results of it, where each run of a study gives one: let a factor name one of them")]
    Several(usize),
}

impl Metric {
    /// The metric called so; latency also by the name that the record has for it, as in `latency.p99`.
    pub fn named(name: &str) -> Option<Self> {
        let find = |name: &str| METRICS.into_iter().find(|(known, _)| *known == name).map(|(_, metric)| metric);
        find(name).or_else(|| find(name.strip_prefix("latency.")?).filter(|metric| matches!(metric, Self::Latency(_))))
    }

    /// The names of all that studies gather.
    pub fn of_studies() -> impl Iterator<Item = &'static str> {
        METRICS.into_iter().filter(|(_, metric)| metric.unit().is_some()).map(|(name, _)| name)
    }

    /// The unit of its values; none for what is calculated from others.
    pub fn unit(self) -> Option<MeasureUnit> {
        match self {
            Self::Throughput => Some(MeasureUnit::BitsPerS),
            Self::Packets | Self::Frames | Self::Transactions | Self::Files => Some(MeasureUnit::PerS),
            Self::Latency(_) | Self::Added(_) | Self::Jitter => Some(MeasureUnit::Nanos),
            Self::Loss => Some(MeasureUnit::Share),
            Self::RoundTrips | Self::Share => None,
        }
    }

    /// Whether trials of this kind give the figure at all.
    pub fn applies_to(self, trial: &Trial) -> bool {
        let task = trial.task();
        let (stream, copy) = (matches!(task, Task::Stream(_)), matches!(task, Task::Copy(_)));
        let udp = trial.net().is_some_and(|net| net.transport == Transport::Udp);
        match self {
            Metric::Throughput => stream || copy,
            Metric::Packets | Metric::Share => stream,
            Metric::Loss | Metric::Jitter => stream && udp,
            Metric::Transactions | Metric::Latency(_) => task.is_requests(),
            Metric::Added(_) | Metric::RoundTrips => trial.loads.len() > 1,
            Metric::Files => copy,
            Metric::Frames => false,
        }
    }

    /// Whether a test of a device gives the figure at all.
    pub fn applies_to_device(self, test: &DeviceTest) -> bool {
        let searches =
            matches!(test, DeviceTest::Throughput | DeviceTest::Calibrate | DeviceTest::Latency { rate: None });
        match self {
            Metric::Throughput | Metric::Frames | Metric::Share => searches,
            Metric::Loss => matches!(test, DeviceTest::Loss { .. } | DeviceTest::Latency { .. }),
            Metric::Latency(_) => matches!(test, DeviceTest::Latency { .. }),
            Metric::Packets | Metric::Transactions | Metric::Files | Metric::Jitter => false,
            Metric::Added(_) | Metric::RoundTrips => false,
        }
    }

    /// Its value in a result: the median of the runs, of latency that of all runs together.
    pub fn of(self, result: &Measurement) -> Option<f64> {
        if let Some(copy) = result.copy() {
            return match self {
                Metric::Throughput => Some(copy.bytes_per_s * 8.0),
                Metric::Files => Some(copy.files_per_s),
                _ => None,
            };
        }
        let result = result.flows()?;
        let received = result.received.as_ref();
        match self {
            Metric::Throughput => received.map(|r| r.payload_bps.median),
            Metric::Packets => received.map(|r| r.packets_per_s.median),
            Metric::Transactions => result.transactions_per_s.as_ref().map(|t| t.median),
            // Of nothing sent, nothing lost is no proof.
            Metric::Loss => result.loss.filter(|loss| loss.of > 0).map(|loss| Ratio::new(loss.lost, loss.of).as_f64()),
            Metric::Jitter => result.jitter_ns.as_ref().map(|jitter| jitter.median),
            Metric::Share => result.limit.as_ref().map(|limit| limit.share),
            Metric::Latency(percentile) => result.latency_ns.as_ref().map(|latency| percentile.of(latency)),
            Metric::Added(at) => result.loaded_latency.as_ref().map(|probed| at.of(&probed.added_ns)),
            Metric::RoundTrips => result.loaded_latency.as_ref().map(|probed| probed.rpm.loaded),
            Metric::Frames | Metric::Files => None,
        }
    }

    /// Its value at one frame size. Of a loss curve it is the highest loss.
    pub fn of_device(self, size: u32, outcome: &DeviceFound) -> Option<f64> {
        let throughput = outcome.throughput.iter().find(|cell| cell.frame_bytes == size);
        let latency = outcome.latency.iter().find(|cell| cell.frame_bytes == size);
        match self {
            Metric::Throughput => throughput.map(|cell| cell.bits_per_s),
            Metric::Frames => throughput.map(|cell| cell.frames_per_s),
            Metric::Share => throughput?.line_share,
            Metric::Latency(percentile) => latency.map(|cell| percentile.of(&cell.latency_ns)),
            Metric::Loss => {
                let curve = outcome.loss.iter().find(|curve| curve.frame_bytes == size);
                let of_curve = curve.and_then(|curve| curve.points.iter().map(|p| p.loss_ratio).reduce(f64::max));
                // What arrived was timed.
                let timed = |cell: &linerate_model::FrameLatency| cell.lost + cell.latency_ns.count;
                of_curve.or_else(|| latency.map(|cell| Ratio::new(cell.lost, timed(cell).max(1)).as_f64()))
            }
            Metric::Packets | Metric::Transactions | Metric::Files | Metric::Jitter => None,
            Metric::Added(_) | Metric::RoundTrips => None,
        }
    }

    /// Whether that value is firm.
    pub fn firmness_of_device(self, size: u32, outcome: &DeviceFound) -> Firmness {
        let timed = || outcome.latency.iter().filter(|cell| cell.frame_bytes == size).map(|cell| cell.firmness);
        let all = |found: &mut dyn Iterator<Item = Firmness>| found.fold(Firmness::Firm, Firmness::and);
        match self {
            Metric::Throughput | Metric::Frames | Metric::Share => {
                let searched = outcome.throughput.iter().filter(|cell| cell.frame_bytes == size);
                all(&mut searched.map(|cell| cell.firmness))
            }
            Metric::Loss => {
                let points = outcome.loss.iter().filter(|curve| curve.frame_bytes == size).flat_map(|c| &c.points);
                all(&mut points.map(|point| point.firmness).chain(timed()))
            }
            Metric::Latency(_) => all(&mut timed()),
            _ => Firmness::Firm,
        }
    }

    /// The one value that a run gives; none where it measured nothing, as where every datagram was lost.
    pub fn of_record(self, record: &Record) -> Result<Option<f64>, NoOneValue> {
        let values: Vec<Option<f64>> = match record.device() {
            Some((plan, _)) if !self.applies_to_device(&plan.test) => Vec::new(),
            Some((plan, outcome)) => plan.sizes.iter().map(|size| self.of_device(size.get(), outcome)).collect(),
            None => {
                // What tests a verdict was not asked for itself, and of a curve it is the peak that counts.
                let asked = |cell: &&Trial| cell.proves.is_none() && curve::stands(record, &cell.name);
                let cells = measure::cells(record).into_iter().filter(asked).filter(|cell| self.applies_to(cell));
                let result = |cell: &Trial| record.results.iter().find(|result| result.name == cell.name);
                cells.map(|cell| result(cell).and_then(|result| self.of(result))).collect()
            }
        };
        match values[..] {
            // A curve of which no load was held.
            [] if curve::lacks_peak(record) => Ok(None),
            [] => Err(NoOneValue::NotMeasured),
            [value] => Ok(value),
            _ => Err(NoOneValue::Several(values.len())),
        }
    }

    /// A value in words.
    pub fn show(self, value: f64) -> String {
        match self {
            Metric::Throughput => BitRate::per_second(value as u64).to_string(),
            Metric::Packets | Metric::Frames => FrameRate::per_second(value as u64).to_string(),
            Metric::Transactions | Metric::Files => OpRate::per_second(value as u64).to_string(),
            Metric::Loss | Metric::Share => format!("{:.3} %", value * 100.0),
            Metric::Latency(_) | Metric::Jitter => Nanos::new(value as u64).to_string(),
            Metric::Added(_) if value < 0.0 => format!("-{}", Nanos::new(-value as u64)),
            Metric::Added(_) => Nanos::new(value as u64).to_string(),
            Metric::RoundTrips => format!("{value:.0} round trips a minute"),
        }
    }
}

/// Which of all latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Percentile {
    /// The median.
    P50,
    /// 90 %.
    P90,
    /// 99 %.
    P99,
    /// 99.9 %.
    P999,
    /// The longest.
    Max,
}

impl Percentile {
    fn of(self, latency: &Latency) -> f64 {
        let nanos = match self {
            Self::P50 => latency.p50,
            Self::P90 => latency.p90,
            Self::P99 => latency.p99,
            Self::P999 => latency.p999,
            Self::Max => latency.max,
        };
        nanos as f64
    }
}

/// Where latency under load is compared with that of the idle path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddedAt {
    /// The median.
    P50,
    /// 90 %.
    P90,
    /// 99 %.
    P99,
}

impl AddedAt {
    fn of(self, added: &AddedDelay) -> f64 {
        let nanos = match self {
            Self::P50 => added.p50,
            Self::P90 => added.p90,
            Self::P99 => added.p99,
        };
        nanos as f64
    }
}
