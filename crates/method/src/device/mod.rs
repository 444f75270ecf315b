//! Tests of a device with raw frames: throughput, the tester's own ceiling, latency and loss (RFC 2544 section 26).
//!
//! Like every method this one is asked for its next trial and told each result. It goes through the plan's frame sizes
//! one after the other.

mod latency;
mod loss;
mod throughput;

use latency::LatencyTest;
use linerate_model::{
    Caveat, CaveatKind, DeviceOutcome, DevicePlan, DeviceTest, DirectionCounts, FrameStream, FrameTrial,
    FrameTrialResult, Latency, Record,
};
use linerate_units::{FrameRate, FrameSize, Nanos};
use loss::LossTest;
use throughput::ThroughputTest;

/// Offered load below the intended one by more than this share is the tester's failing, not the device's.
const SHORTFALL_BEARABLE: f64 = 0.005;
/// The length that RFC 2544 section 24 asks of the trial that decides.
const STANDARD_TRIAL: Nanos = Nanos::from_secs(60);

/// A device test under way.
#[derive(Debug, Clone)]
pub struct Device {
    plan: DevicePlan,
    ceilings: Vec<Ceiling>,
    outcome: DeviceOutcome,
    /// The size being measured, and its test; none when all are done.
    current: Option<(usize, SizeTest)>,
    trials: u32,
}

/// What the tester reaches with the device bypassed.
#[derive(Debug, Clone)]
pub(crate) struct Ceiling {
    record: linerate_model::RecordId,
    frame_bytes: u32,
    frames_per_s: f64,
}

/// The test at one size.
#[derive(Debug, Clone)]
enum SizeTest {
    Throughput(ThroughputTest),
    Latency(LatencyTest),
    Loss(LossTest),
}

impl Device {
    /// The test of `plan`, nothing run yet. `calibration` is the record of [`DeviceTest::Calibrate`] between the same ports.
    pub fn new(plan: DevicePlan, calibration: Option<&Record>) -> Self {
        let found = calibration.and_then(|record| Some((record, record.outcome.as_ref()?)));
        let ceilings = found
            .map(|(record, outcome)| {
                let of = |cell: &linerate_model::Throughput| Ceiling {
                    record: record.id.clone(),
                    frame_bytes: cell.frame_bytes,
                    frames_per_s: cell.frames_per_s,
                };
                outcome.throughput.iter().map(of).collect()
            })
            .unwrap_or_default();
        let mut device = Self { plan, ceilings, outcome: DeviceOutcome::default(), current: None, trials: 0 };
        device.begin(0);
        device
    }

    /// The next trial; none when all sizes are done. Asking again without recording gives the same answer.
    pub fn next(&self) -> Option<FrameTrial> {
        let (index, test) = self.current.as_ref()?;
        let size = self.plan.sizes[*index];
        let (load, time, what) = match test {
            SizeTest::Throughput(test) => test.next().map(|(load, time)| (load, time, "throughput")),
            SizeTest::Latency(test) => test.next().map(|(load, time)| (load, time, "latency")),
            SizeTest::Loss(test) => test.next().map(|(load, time)| (load, time, "loss")),
        }?;
        Some(self.trial(format!("{what} {}", size.get()), size, load, time))
    }

    /// Takes the result of the trial last asked for.
    pub fn record(&mut self, result: &FrameTrialResult) {
        let Some((index, test)) = &mut self.current else { return };
        self.trials += 1;
        let done = match test {
            SizeTest::Throughput(test) => test.record(result),
            SizeTest::Latency(test) => test.record(result),
            SizeTest::Loss(test) => test.record(result),
        };
        if !done {
            return;
        }
        let next = *index + 1;
        self.settle_size();
        self.begin(next);
    }

    /// How far it is, in words: the size, and what is known of it.
    pub fn progress(&self) -> String {
        let Some((index, test)) = &self.current else { return "done".to_owned() };
        let known = match test {
            SizeTest::Throughput(test) => test.known(),
            SizeTest::Latency(test) => test.known(),
            SizeTest::Loss(test) => test.known(),
        };
        let size = self.plan.sizes[*index].get();
        format!("size {} of {}: {size} bytes, {known}", index + 1, self.plan.sizes.len())
    }

    /// What was found of the sizes that are done.
    pub fn outcome(&self) -> &DeviceOutcome {
        &self.outcome
    }

    /// Begins the size at `index`, if there is one.
    fn begin(&mut self, index: usize) {
        self.current = match self.plan.sizes.get(index) {
            None => None,
            Some(size) => {
                let ceiling = self.ceilings.iter().find(|ceiling| ceiling.frame_bytes == size.get()).cloned();
                let test = match self.plan.test {
                    DeviceTest::Throughput | DeviceTest::Calibrate => {
                        SizeTest::Throughput(ThroughputTest::new(&self.plan, *size, ceiling))
                    }
                    DeviceTest::Latency { rate } => {
                        SizeTest::Latency(LatencyTest::new(&self.plan, *size, rate, ceiling))
                    }
                    DeviceTest::Loss { step_percent } => {
                        SizeTest::Loss(LossTest::new(&self.plan, *size, step_percent, ceiling.as_ref()))
                    }
                };
                Some((index, test))
            }
        };
    }

    /// Puts down what the size that just ended amounts to.
    fn settle_size(&mut self) {
        match self.current.take() {
            Some((_, SizeTest::Throughput(test))) => self.outcome.throughput.push(test.outcome(&self.plan)),
            Some((_, SizeTest::Latency(test))) => {
                let (throughput, latency) = test.outcome(&self.plan);
                self.outcome.throughput.extend(throughput);
                self.outcome.latency.extend(latency);
            }
            Some((_, SizeTest::Loss(test))) => self.outcome.loss.push(test.outcome(&self.plan)),
            None => {}
        }
    }

    fn trial(&self, name: String, size: FrameSize, load: FrameRate, time: Nanos) -> FrameTrial {
        let share = FrameRate::per_second((load.get() / self.plan.directions.len().max(1) as u64).max(1));
        let stream = |pair: &linerate_model::PortPair| FrameStream {
            from: pair.from,
            to: pair.to,
            size,
            rate: Some(share),
            count: None,
            headers: pair.headers.clone(),
        };
        FrameTrial {
            name,
            ports: self.plan.ports.clone(),
            streams: self.plan.directions.iter().map(stream).collect(),
            time,
            settle: self.plan.settle,
            engine: self.plan.engine,
            hosts: Vec::new(),
        }
    }
}

/// The highest load of all directions together: what the lines carry, or what the tester is known to reach.
fn highest_load(plan: &DevicePlan, size: FrameSize, ceiling: Option<&Ceiling>) -> FrameRate {
    let lines = plan.line.map(|line| size.line_rate(line).get() * plan.directions.len() as u64);
    let reach = ceiling.map(|ceiling| ceiling.frames_per_s as u64);
    FrameRate::per_second([lines, reach].into_iter().flatten().min().unwrap_or(UNKNOWN_LINE).max(2))
}

/// Where nothing is known of the line: beyond what any tester reaches.
const UNKNOWN_LINE: u64 = 200_000_000;

/// CPU time taken by the hypervisor above which a trial says more of the neighbours than of the device.
const STEAL_BEARABLE: f64 = 0.05;

/// A tester that falls short by no more than this was held up; one that falls further short cannot do more.
const STALLED: f64 = 0.95;

/// Why this trial should be run again, if it should.
pub fn spoilt(result: &FrameTrialResult) -> Option<Caveat> {
    let steal = crate::validity::steal(&result.observation);
    if steal > STEAL_BEARABLE {
        let text =
            format!("the hypervisor took {:.0} % of the tester's CPU time in {}", steal * 100.0, result.trial.name);
        return Some(Caveat::new(CaveatKind::CpuStolen, format!("{text}: measure again when the machine is quiet")));
    }
    let share = result.offered_share();
    if fell_short(result) && share >= STALLED {
        let text = format!("{}: the tester offered {:.2} % of the rate it was to", result.trial.name, share * 100.0);
        return Some(Caveat::new(CaveatKind::BelowOfferedRate, format!("{text}: something held up its sending core")));
    }
    let more = result.streams.iter().find(|stream| stream.received > stream.sent)?;
    let text = format!(
        "{}: more frames arrived ({}) than were sent ({}), which no device can do: look for a loop or another tester",
        result.trial.name, more.received, more.sent
    );
    Some(Caveat::new(CaveatKind::OtherTraffic, text))
}

/// The tester sent less than it should have, or took longer.
fn fell_short(result: &FrameTrialResult) -> bool {
    result.offered_share() < 1.0 - SHORTFALL_BEARABLE
}

fn sum(result: &FrameTrialResult, count: impl Fn(&linerate_model::FrameStreamResult) -> u64) -> u64 {
    result.streams.iter().map(count).sum()
}

fn directions(result: &FrameTrialResult) -> Vec<DirectionCounts> {
    let port = |index: u16| result.trial.ports.get(usize::from(index)).cloned().unwrap_or_default();
    let seconds = result.trial.time.as_secs_f64();
    let one = |(stream, counts): (&FrameStream, &linerate_model::FrameStreamResult)| DirectionCounts {
        from: port(stream.from),
        to: port(stream.to),
        intended: counts.intended,
        sent: counts.sent,
        received: counts.received,
        duplicates: counts.duplicates,
        reordered: counts.reordered,
        frames_per_s: counts.received as f64 / seconds,
    };
    result.trial.streams.iter().zip(&result.streams).map(one).collect()
}

/// The latency of all directions together.
fn latency(result: &FrameTrialResult) -> Option<Latency> {
    let mut all = linerate_model::Histogram::default();
    result.streams.iter().for_each(|stream| all.merge(&stream.latency));
    (all.count() > 0).then(|| crate::measure::latency_of(&all))
}

/// Doubts that hold for every test of this plan.
fn doubts(plan: &DevicePlan) -> Vec<Caveat> {
    let mut doubts = Vec::new();
    if plan.final_time < STANDARD_TRIAL {
        doubts.push(Caveat::new(
            CaveatKind::ShortTrial,
            format!(
                "the trial that decided took {}; RFC 2544 section 24 asks for 60 s: give --time 60s for a figure to be \
                 compared with others",
                plan.final_time
            ),
        ));
    }
    doubts
}

#[cfg(test)]
mod tests;
