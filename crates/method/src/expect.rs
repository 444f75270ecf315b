//! Thresholds that turn a measurement into an exit code: `throughput>=9Gbit/s`, `loss<=0.1%`, `p99<200us`.

use linerate_model::{
    AddedDelay, DeviceOutcome, DevicePlan, DeviceTest, Latency, Measurement, Transport, TrialSpec, Workload,
};
use linerate_units::{BitRate, FrameRate, Nanos, OpRate, Ratio};
use std::fmt;
use std::str::FromStr;

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Metric {
    Throughput,
    Packets,
    Frames,
    Transactions,
    Loss,
    Latency(Percentile),
    Added(AddedAt),
    RoundTrips,
    Jitter,
    Share,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Percentile {
    P50,
    P90,
    P99,
    P999,
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
enum AddedAt {
    P50,
    P90,
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

/// How it is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    AtLeast,
    AtMost,
    Above,
    Below,
}

/// One threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    metric: Metric,
    comparison: Comparison,
    threshold: f64,
    text: String,
}

/// A text that is no expectation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not an expectation: {problem}; write METRIC, one of >= <= > <, and a value, as in 'throughput>=9Gbit/s', \
     'packets>=1Mpps', 'frames>=1Mfps', 'transactions>=20k', 'loss<=0.1%', 'p99<200us' (p50, p90, p99, p999, max; also \
     latency.p99), 'added.p99<=10ms' (p50, p90, p99), 'rpm>=1000', 'jitter<1ms' or 'share>=95%'"
)]
pub struct BadExpectation {
    text: String,
    problem: String,
}

/// How one result stands to one expectation.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// It is met.
    pub met: bool,
    /// The result, its figure and the expectation, in words.
    pub text: String,
}

const METRICS: [(&str, Metric); 16] = [
    ("throughput", Metric::Throughput),
    ("packets", Metric::Packets),
    ("frames", Metric::Frames),
    ("transactions", Metric::Transactions),
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

/// Longest first, so that `>=` is not read as `>`.
const COMPARISONS: [(&str, Comparison); 4] =
    [(">=", Comparison::AtLeast), ("<=", Comparison::AtMost), (">", Comparison::Above), ("<", Comparison::Below)];

impl FromStr for Expectation {
    type Err = BadExpectation;

    fn from_str(text: &str) -> Result<Self, BadExpectation> {
        let fail = |problem: String| BadExpectation { text: text.to_owned(), problem };
        let at = text.find(['<', '>']).ok_or_else(|| fail("there is no comparison".into()))?;
        let (name, rest) = text.split_at(at);
        let (sign, comparison) = COMPARISONS
            .into_iter()
            .find(|(sign, _)| rest.starts_with(sign))
            .ok_or_else(|| fail("there is no comparison".into()))?;
        let (_, metric) = METRICS
            .into_iter()
            .find(|(known, _)| *known == name.trim())
            .or_else(|| {
                // By the name that the record has for it.
                let percentile = name.trim().strip_prefix("latency.")?;
                METRICS.into_iter().find(|(known, metric)| *known == percentile && matches!(metric, Metric::Latency(_)))
            })
            .ok_or_else(|| fail(format!("`{}` is not a metric", name.trim())))?;
        let value = rest[sign.len()..].trim();
        let threshold = match metric {
            Metric::Throughput => value.parse::<BitRate>().map(|rate| rate.get() as f64),
            Metric::Packets | Metric::Frames => value.parse::<FrameRate>().map(|rate| rate.get() as f64),
            Metric::Transactions | Metric::RoundTrips => value.parse::<OpRate>().map(|rate| rate.get() as f64),
            Metric::Loss | Metric::Share => value.parse::<Ratio>().map(Ratio::as_f64),
            Metric::Latency(_) | Metric::Added(_) | Metric::Jitter => {
                value.parse::<Nanos>().map(|time| time.get() as f64)
            }
        }
        .map_err(|error| fail(error.to_string()))?;
        Ok(Self { metric, comparison, threshold, text: text.to_owned() })
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl Expectation {
    /// Whether trials of this kind give the figure at all. A threshold that nothing is compared with must not pass.
    pub fn applies_to(&self, trial: &TrialSpec) -> bool {
        let workload = &trial.workload;
        let (stream, udp) = (matches!(workload, Workload::Stream(_)), workload.transport() == Transport::Udp);
        match self.metric {
            Metric::Throughput | Metric::Packets | Metric::Share => stream,
            Metric::Loss | Metric::Jitter => stream && udp,
            Metric::Transactions | Metric::Latency(_) => !stream,
            Metric::Added(_) | Metric::RoundTrips => trial.probe.is_some(),
            Metric::Frames => false,
        }
    }

    /// Whether a test of a device gives the figure at all.
    pub fn applies_to_device(&self, test: &DeviceTest) -> bool {
        let searches =
            matches!(test, DeviceTest::Throughput | DeviceTest::Calibrate | DeviceTest::Latency { rate: None });
        match self.metric {
            Metric::Throughput | Metric::Frames | Metric::Share => searches,
            Metric::Loss => matches!(test, DeviceTest::Loss { .. } | DeviceTest::Latency { .. }),
            Metric::Latency(_) => matches!(test, DeviceTest::Latency { .. }),
            Metric::Packets | Metric::Transactions | Metric::Jitter => false,
            Metric::Added(_) | Metric::RoundTrips => false,
        }
    }

    /// Judges one result by its median (latency: over all runs). A result without the figure misses the expectation.
    pub fn judge(&self, result: &Measurement) -> Judgement {
        self.weigh(&result.name, self.figure(result))
    }

    /// Judges what was found about a device at each of the plan's frame sizes.
    pub fn judge_device(&self, plan: &DevicePlan, outcome: &DeviceOutcome) -> Vec<Judgement> {
        let judge = |size: u32| self.weigh(&format!("{size} bytes"), self.device_figure(size, outcome));
        plan.sizes.iter().map(|size| judge(size.get())).collect()
    }

    fn weigh(&self, name: &str, figure: Option<f64>) -> Judgement {
        let Some(value) = figure else {
            return Judgement { met: false, text: format!("{name}: no figure to hold against {}", self.text) };
        };
        let met = match self.comparison {
            Comparison::AtLeast => value >= self.threshold,
            Comparison::AtMost => value <= self.threshold,
            Comparison::Above => value > self.threshold,
            Comparison::Below => value < self.threshold,
        };
        let verb = if met { "meets" } else { "misses" };
        Judgement { met, text: format!("{name}: {} {verb} {}", self.show(value), self.text) }
    }

    fn figure(&self, result: &Measurement) -> Option<f64> {
        let received = result.received.as_ref();
        match self.metric {
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
            Metric::Frames => None,
        }
    }

    /// The figure at one frame size. Of a loss curve it is the highest loss.
    fn device_figure(&self, size: u32, outcome: &DeviceOutcome) -> Option<f64> {
        let throughput = outcome.throughput.iter().find(|cell| cell.frame_bytes == size);
        let latency = outcome.latency.iter().find(|cell| cell.frame_bytes == size);
        match self.metric {
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
            Metric::Packets | Metric::Transactions | Metric::Jitter => None,
            Metric::Added(_) | Metric::RoundTrips => None,
        }
    }

    fn show(&self, value: f64) -> String {
        match self.metric {
            Metric::Throughput => BitRate::per_second(value as u64).to_string(),
            Metric::Packets | Metric::Frames => FrameRate::per_second(value as u64).to_string(),
            Metric::Transactions => OpRate::per_second(value as u64).to_string(),
            Metric::Loss | Metric::Share => format!("{:.3} %", value * 100.0),
            Metric::Latency(_) | Metric::Jitter => Nanos::new(value as u64).to_string(),
            Metric::Added(_) if value < 0.0 => format!("-{}", Nanos::new(-value as u64)),
            Metric::Added(_) => Nanos::new(value as u64).to_string(),
            Metric::RoundTrips => format!("{value:.0} round trips a minute"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::measurements;
    use crate::transfer::tests::{spec, trial};
    use linerate_model::{Histogram, Plan, ProbeResult, Repeats, StreamSpec, TransactSpec, Transactions};
    use linerate_units::ByteCount;

    fn judge(text: &str) -> Judgement {
        let mut result = trial(9_900, 100);
        crate::place_losses(&mut result);
        let plan = Plan { cells: vec![spec()], repeats: Repeats::Times(1), device: None, ladder: None };
        text.parse::<Expectation>().expect(text).judge(&measurements(&plan, &[], &[result], None)[0])
    }

    #[test]
    fn compares_the_median_with_the_threshold() {
        // 9,900 datagrams of 1,000 bytes in a second.
        for (text, met) in [
            ("throughput>=79.2Mbit/s", true),
            ("throughput > 79.2Mbit/s", false),
            ("throughput>=80Mbit/s", false),
            ("loss<=1%", true),
            ("loss<1/100", false),
            ("packets>=9.9kpps", true),
        ] {
            let judgement = judge(text);
            assert_eq!(judgement.met, met, "{}", judgement.text);
            assert!(judgement.text.contains("udp 1000"), "{}", judgement.text);
        }
    }

    #[test]
    fn a_figure_that_is_missing_is_a_miss_and_is_refused_beforehand() {
        assert!(!judge("p99<1s").met);
        let expectation: Expectation = "p99<1s".parse().expect("valid");
        assert!(!expectation.applies_to(&spec()));
    }

    #[test]
    fn latency_under_load_is_compared_where_it_was_measured() {
        let asked = |nanos| {
            let mut latency = Histogram::default();
            latency.record_many(nanos, 50);
            vec![Transactions { completed: 50, latency, ..Transactions::default() }]
        };
        let mut result = trial(1_000, 0);
        result.probe = Some(ProbeResult { idle: asked(90_000), loaded: asked(40_000) });
        let plain = StreamSpec::plain(Transport::Udp, ByteCount::new(1_000));
        result.spec.probe = Some(TransactSpec::beside(&plain, Transport::Udp));
        let cell = result.spec.clone();
        let plan = Plan { cells: vec![cell.clone()], repeats: Repeats::Times(1), device: None, ladder: None };
        let measured = measurements(&plan, &[], &[result], None);
        for (text, met, shown) in [
            ("added.p50<=1ms", true, "-50 us meets"),
            ("added.p99>0", false, "-50 us misses"),
            // 60 s / 40 us.
            ("rpm>=1.49M", true, "round trips a minute meets"),
            ("rpm>=1.51M", false, "round trips a minute misses"),
        ] {
            let expectation: Expectation = text.parse().expect(text);
            assert!(expectation.applies_to(&cell) && !expectation.applies_to(&spec()), "{text}");
            let judgement = expectation.judge(&measured[0]);
            assert_eq!(judgement.met, met, "{}", judgement.text);
            assert!(judgement.text.contains(shown), "{}", judgement.text);
        }
    }

    #[test]
    fn bad_expectations_say_how_to_write_one() {
        for text in ["", "throughput", "throughput=9G", "speed>=1", "loss<=fast", ">=3"] {
            let error = text.parse::<Expectation>().expect_err(text).to_string();
            assert!(error.contains("throughput>=9Gbit/s"), "{error}");
        }
    }
}
