//! The figures of runs by their names: what expectations compare, and what studies gather.

mod value;

pub use value::NoOneValue;

use linerate_model::{
    AddedDelay, CopyStage, DeviceTest, Latency, MeasureUnit, NfsClass, OperationFigures, Task, Transport, Trial,
};
use linerate_units::{BitRate, FrameRate, Nanos, OpRate, Ratio, grouped};
use std::fmt;

/// A figure that a run gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Payload, or frames, bit/s.
    Throughput,
    /// IP packets a second.
    Packets,
    /// Raw frames a second.
    Frames,
    /// Forwarding rate of a device at the maximum offered load (FRMOL, RFC 2285 section 3.6.2).
    AtMaximumLoad,
    /// Maximum forwarding rate of a device (MFR, RFC 2285 section 3.6.3).
    MaximumForwarding,
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
    /// Operations of a class: NFS.
    Class(NfsClass, ClassFigure),
    /// Round trips a minute under load.
    RoundTrips,
    /// Deviation of transit times.
    Jitter,
    /// Share of what the path can carry.
    Share,
    /// Share of the time in which a stage of a copy was busy.
    Stage(CopyStage),
    /// Share of a core that the busiest thread of one end used.
    Cpu(End),
    /// Share of its processors that the device under test used.
    DeviceCpu,
    /// Echo requests a second that a device answers, all of them.
    Echoes,
    /// Frames of the longest burst that comes back whole.
    Burst,
    /// How long a device's buffer lasts at the rate by which a burst exceeds its throughput (RFC 9004 section 5.4, corrected).
    Buffer,
    /// How long frames go on being lost after an overload.
    Recovery,
    /// Addresses that a switch keeps.
    Addresses,
    /// Addresses that a switch learns a second.
    Learning,
    /// Neighbours that a router holds.
    Neighbours,
}

/// Those whose names are of one part, or of two that are not combined freely.
const PLAIN: &[(&str, Metric)] = &[
    ("throughput", Metric::Throughput),
    ("packets", Metric::Packets),
    ("frames", Metric::Frames),
    ("frmol", Metric::AtMaximumLoad),
    ("mfr", Metric::MaximumForwarding),
    ("transactions", Metric::Transactions),
    ("files", Metric::Files),
    ("loss", Metric::Loss),
    ("jitter", Metric::Jitter),
    ("share", Metric::Share),
    ("mean", Metric::Latency(Percentile::Mean)),
    ("p50", Metric::Latency(Percentile::P50)),
    ("p90", Metric::Latency(Percentile::P90)),
    ("p99", Metric::Latency(Percentile::P99)),
    ("p999", Metric::Latency(Percentile::P999)),
    ("max", Metric::Latency(Percentile::Max)),
    ("added.p50", Metric::Added(AddedAt::P50)),
    ("added.p90", Metric::Added(AddedAt::P90)),
    ("added.p99", Metric::Added(AddedAt::P99)),
    ("rpm", Metric::RoundTrips),
    ("sender.cpu", Metric::Cpu(End::Sender)),
    ("receiver.cpu", Metric::Cpu(End::Receiver)),
    ("device.cpu", Metric::DeviceCpu),
    ("echoes", Metric::Echoes),
    ("burst", Metric::Burst),
    ("buffer", Metric::Buffer),
    ("recovery", Metric::Recovery),
    ("addresses", Metric::Addresses),
    ("learning", Metric::Learning),
    ("neighbours", Metric::Neighbours),
];

const CLASSES: [NfsClass; 3] = [NfsClass::Read, NfsClass::Write, NfsClass::Other];

const CLASS_FIGURES: [(&str, ClassFigure); 4] =
    [("rate", ClassFigure::Rate), ("mean", ClassFigure::Mean), ("p50", ClassFigure::P50), ("p99", ClassFigure::P99)];

impl Metric {
    /// All metrics, by their names.
    pub fn all() -> impl Iterator<Item = (String, Self)> {
        let plain = PLAIN.iter().map(|(name, metric)| ((*name).to_owned(), *metric));
        let of_class = |class: NfsClass| {
            CLASS_FIGURES.into_iter().map(move |(name, figure)| (format!("{class}.{name}"), Self::Class(class, figure)))
        };
        let stages = CopyStage::ALL.into_iter().map(|stage| (format!("stage.{}", stage.name()), Self::Stage(stage)));
        plain.chain(CLASSES.into_iter().flat_map(of_class)).chain(stages)
    }

    /// The names of those that `gives` says yes to, for sentences.
    pub fn names(gives: impl Fn(Self) -> bool) -> String {
        let named: Vec<String> = Self::all().filter(|(_, metric)| gives(*metric)).map(|(name, _)| name).collect();
        named.join(", ")
    }

    /// The metric called so; latency also by the name that the record has for it, as in `latency.p99`.
    pub fn named(name: &str) -> Option<Self> {
        let find = |name: &str| Self::all().find(|(known, _)| known == name).map(|(_, metric)| metric);
        find(name).or_else(|| find(name.strip_prefix("latency.")?).filter(|metric| matches!(metric, Self::Latency(_))))
    }

    /// The unit of its values; none for what is calculated from others.
    pub fn unit(self) -> Option<MeasureUnit> {
        match self {
            Self::Throughput => Some(MeasureUnit::BitsPerS),
            Self::Packets | Self::Frames | Self::Transactions | Self::Files => Some(MeasureUnit::PerS),
            Self::AtMaximumLoad | Self::MaximumForwarding | Self::Echoes | Self::Learning => Some(MeasureUnit::PerS),
            Self::Class(_, ClassFigure::Rate) => Some(MeasureUnit::PerS),
            Self::Latency(_) | Self::Added(_) | Self::Jitter | Self::Recovery | Self::Class(..) => {
                Some(MeasureUnit::Nanos)
            }
            Self::Loss | Self::Stage(_) | Self::Cpu(_) | Self::DeviceCpu => Some(MeasureUnit::Share),
            Self::Burst | Self::Addresses | Self::Neighbours => Some(MeasureUnit::Count),
            Self::Buffer => Some(MeasureUnit::NanosHeld),
            Self::RoundTrips | Self::Share => None,
        }
    }

    /// Whether trials of this kind give the figure at all.
    pub fn applies_to(self, trial: &Trial) -> bool {
        let task = trial.task();
        if let Task::Frames(_) = task {
            return self.applies_to_frames();
        }
        let stream = matches!(task, Task::Stream(_));
        let udp = trial.net().is_some_and(|net| net.transport == Transport::Udp);
        match self {
            Self::Throughput => !matches!(task, Task::Transact(_)),
            Self::Packets | Self::Share => stream,
            Self::Loss | Self::Jitter => stream && udp,
            Self::Transactions | Self::Latency(_) => task.is_requests(),
            Self::Class(..) => matches!(task, Task::Nfs(_)),
            Self::Added(_) | Self::RoundTrips => trial.loads.len() > 1,
            Self::Files | Self::Stage(_) => matches!(task, Task::Copy(_)),
            Self::Cpu(_) => stream || task.is_requests(),
            Self::Frames | Self::DeviceCpu | Self::Echoes | Self::Burst | Self::Buffer | Self::Recovery => false,
            Self::AtMaximumLoad | Self::MaximumForwarding => false,
            Self::Addresses | Self::Learning | Self::Neighbours => false,
        }
    }

    /// Whether trials of raw frames give the figure at all.
    pub fn applies_to_frames(self) -> bool {
        matches!(self, Self::Throughput | Self::Frames | Self::Loss)
    }

    /// Whether a test of a device gives the figure at all.
    pub fn applies_to_device(self, test: &DeviceTest) -> bool {
        let all = matches!(test, DeviceTest::All { .. });
        let searches = matches!(
            test,
            DeviceTest::Throughput
                | DeviceTest::Calibrate
                | DeviceTest::Goals { .. }
                | DeviceTest::Latency { rate: None }
                | DeviceTest::Forwarding { .. }
                | DeviceTest::Broadcast
                | DeviceTest::All { .. }
        );
        match self {
            Self::Throughput | Self::Frames | Self::Share => searches,
            Self::AtMaximumLoad | Self::MaximumForwarding => matches!(test, DeviceTest::Forwarding { .. }),
            Self::Loss => all || matches!(test, DeviceTest::Loss { .. } | DeviceTest::Latency { .. }),
            Self::Latency(_) => all || matches!(test, DeviceTest::Latency { .. }),
            Self::DeviceCpu => searches || matches!(test, DeviceTest::Latency { .. } | DeviceTest::Echo { .. }),
            Self::Echoes => matches!(test, DeviceTest::Echo { .. }),
            Self::Burst | Self::Buffer => all || matches!(test, DeviceTest::Burst { .. }),
            Self::Recovery => all || matches!(test, DeviceTest::Recovery { .. }),
            Self::Addresses => matches!(test, DeviceTest::Addresses { .. }),
            Self::Learning => matches!(test, DeviceTest::Addresses { ageing, .. } if !ageing.is_zero()),
            Self::Neighbours => matches!(test, DeviceTest::Hosts { .. }),
            Self::Packets | Self::Transactions | Self::Files | Self::Jitter | Self::Added(_) => false,
            Self::Class(..) | Self::RoundTrips | Self::Stage(_) | Self::Cpu(_) => false,
        }
    }

    /// Reads a value as it is typed, as in `9Gbit/s`, `200us`, `0.1%` or `20k`.
    ///
    /// # Errors
    /// The text is no value of this metric's unit. The message says what is expected.
    pub fn parse(self, text: &str) -> Result<f64, String> {
        let said = |error: &dyn std::error::Error| error.to_string();
        match (self, self.unit()) {
            (Self::Packets | Self::Frames | Self::AtMaximumLoad | Self::MaximumForwarding, _) => {
                text.parse::<FrameRate>().map(|rate| rate.get() as f64).map_err(|error| said(&error))
            }
            (Self::Share, _) | (_, Some(MeasureUnit::Share)) => {
                text.parse::<Ratio>().map(Ratio::as_f64).map_err(|error| said(&error))
            }
            (_, Some(MeasureUnit::BitsPerS)) => {
                text.parse::<BitRate>().map(|rate| rate.get() as f64).map_err(|error| said(&error))
            }
            (_, Some(MeasureUnit::Nanos | MeasureUnit::NanosHeld)) => {
                text.parse::<Nanos>().map(|time| time.get() as f64).map_err(|error| said(&error))
            }
            (_, Some(MeasureUnit::PerS | MeasureUnit::Count | MeasureUnit::Times) | None) => {
                text.parse::<OpRate>().map(|rate| rate.get() as f64).map_err(|error| said(&error))
            }
        }
    }

    /// A value in words.
    pub fn show(self, value: f64) -> String {
        let whole = value.round().max(0.0) as u64;
        match (self, self.unit()) {
            (Self::RoundTrips, _) => format!("{value:.0} round trips a minute"),
            (Self::Packets | Self::Frames | Self::Echoes, _) => FrameRate::per_second(whole).to_string(),
            (Self::AtMaximumLoad | Self::MaximumForwarding, _) => FrameRate::per_second(whole).to_string(),
            (Self::Burst, _) => format!("{} frames", grouped(whole)),
            (Self::Addresses, _) => format!("{} addresses", grouped(whole)),
            (Self::Neighbours, _) => format!("{} neighbours", grouped(whole)),
            (Self::Share, _) | (_, Some(MeasureUnit::Share)) => format!("{:.3} %", value * 100.0),
            (_, Some(MeasureUnit::BitsPerS)) => BitRate::per_second(value as u64).to_string(),
            (_, Some(MeasureUnit::Nanos | MeasureUnit::NanosHeld)) if value < 0.0 => {
                format!("-{}", Nanos::new(-value as u64))
            }
            (_, Some(MeasureUnit::Nanos | MeasureUnit::NanosHeld)) => Nanos::new(value as u64).to_string(),
            (_, Some(MeasureUnit::PerS)) => OpRate::per_second(value as u64).to_string(),
            (_, Some(MeasureUnit::Count | MeasureUnit::Times) | None) => grouped(whole),
        }
    }

    /// The same with nothing rounded away, for one that [`Metric::show`] makes look like another.
    pub fn show_exactly(self, value: f64) -> String {
        let whole = || grouped(value.round().max(0.0) as u64);
        match (self, self.unit()) {
            (Self::Share, _) | (_, Some(MeasureUnit::Share)) => format!("{} %", decimals(value * 100.0)),
            (_, Some(MeasureUnit::BitsPerS)) => format!("{} bit/s", whole()),
            (_, Some(MeasureUnit::Nanos | MeasureUnit::NanosHeld)) if value >= 0.0 => format!("{} ns", whole()),
            (_, Some(MeasureUnit::PerS)) => format!("{}/s", decimals(value)),
            _ => decimals(value),
        }
    }
}

/// A number with all its decimals that count.
fn decimals(value: f64) -> String {
    format!("{value:.9}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl fmt::Display for Metric {
    /// Writes its name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::all().find(|(_, metric)| metric == self).map(|(name, _)| name);
        f.pad(&name.unwrap_or_default())
    }
}

/// Which of all latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Percentile {
    /// The mean of all, which is no percentile, but stands where they do.
    Mean,
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
        match self {
            Self::Mean => latency.mean,
            Self::P50 => latency.p50 as f64,
            Self::P90 => latency.p90 as f64,
            Self::P99 => latency.p99 as f64,
            Self::P999 => latency.p999 as f64,
            Self::Max => latency.max as f64,
        }
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

/// What is known of the operations of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassFigure {
    /// Operations a second.
    Rate,
    /// The mean response time.
    Mean,
    /// The median.
    P50,
    /// 99 %.
    P99,
}

impl ClassFigure {
    fn of(self, figures: &OperationFigures) -> f64 {
        match self {
            Self::Rate => figures.ops_per_s,
            Self::Mean => figures.mean_ms * 1e6,
            Self::P50 => figures.p50_ms * 1e6,
            Self::P99 => figures.p99_ms * 1e6,
        }
    }
}

/// One end of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Who sends, or asks.
    Sender,
    /// Who receives, or answers.
    Receiver,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_one_name_and_is_found_by_it() {
        let all: Vec<(String, Metric)> = Metric::all().collect();
        for (at, (name, metric)) in all.iter().enumerate() {
            assert_eq!(Metric::named(name), Some(*metric), "{name}");
            assert!(all[..at].iter().all(|(other, known)| other != name && known != metric), "{name} twice");
        }
        assert_eq!(Metric::named("latency.p99"), Metric::named("p99"));
        for unknown in ["", "latency.loss", "read", "read.", "read.max", "stage.sleep", "p98"] {
            assert_eq!(Metric::named(unknown), None, "{unknown}");
        }
    }

    /// What a value is shown as can be typed as a threshold.
    #[test]
    fn values_are_read_in_the_unit_of_their_metric() {
        for (name, typed, value, shown) in [
            ("throughput", "9Gbit/s", 9e9, "9 Gbit/s"),
            ("read.rate", "20k", 20e3, "20 k/s"),
            ("write.p99", "3ms", 3e6, "3 ms"),
            ("stage.hash", "12.5%", 0.125, "12.500 %"),
            ("sender.cpu", "90%", 0.9, "90.000 %"),
            ("burst", "8000", 8e3, "8,000 frames"),
            ("buffer", "250us", 250e3, "250 us"),
            ("addresses", "8192", 8192.0, "8,192 addresses"),
            ("neighbours", "1k", 1e3, "1,000 neighbours"),
        ] {
            let metric = Metric::named(name).expect(name);
            assert_eq!(metric.parse(typed), Ok(value), "{name}");
            assert_eq!(metric.show(value), shown, "{name}");
        }
        assert!(Metric::Buffer.parse("250Mbit/s").is_err() && Metric::Loss.parse("1ms").is_err());
    }
}
