//! Tests of a device with raw frames: throughput, the tester's limit, latency, loss, bursts, recovery (RFC 2544
//! section 26) and echo.
//!
//! Like every method this one is asked for its next trial and told each result. It goes through the plan's frame sizes
//! one after the other, and at each size through the parts that the test consists of.

mod addresses;
mod broadcast;
mod burst;
mod congestion;
mod echo;
mod faults;
mod forward_pressure;
mod forwarding;
mod hosts;
mod latency;
mod load;
mod loss;
mod recovery;
mod summary;
mod throughput;

use crate::contract::{After, Again, Method, Progress, Step};
use crate::latency::latency_if_any;
use crate::retry::tell_repeats;
use crate::sweep::tell;
use addresses::AddressTest;
use broadcast::BroadcastTest;
use burst::BurstTest;
use congestion::CongestionTest;
use echo::EchoTest;
use faults::FaultTest;
use forward_pressure::ForwardPressureTest;
use forwarding::ForwardingTest;
use hosts::HostTest;
use latency::LatencyTest;
use linerate_model::{
    Calibrated, Caveat, CaveatKind, DeviceFound, DevicePlan, DeviceTest, DirectionCounts, FrameFault, FrameForm,
    FrameReceiver, FrameStream, FrameStreamCounts, FramesRun, FramesTask, Latency, Message, MessageValue, Outcome,
    Record, RunSummary, Task, Throughput, Timing, Trial, TrialResult, message,
};
use linerate_units::{FrameRate, FrameSize, Nanos};
use loss::LossTest;
use recovery::RecoveryTest;
use std::net::IpAddr;
use throughput::ThroughputTest;

/// The length that RFC 2544 section 24 asks of the trial that decides.
const STANDARD_TRIAL: Nanos = Nanos::from_secs(60);

/// A device test under way.
#[derive(Debug, Clone)]
pub struct Device {
    plan: DevicePlan,
    tester_limits: Vec<TesterLimit>,
    /// Shares of errored frames that arrived over a cable.
    fault_shares: Vec<(FrameFault, f64)>,
    found: DeviceFound,
    /// The throughput of the size being measured, once it is known.
    throughput: Option<Throughput>,
    /// What is being measured; none when all is done.
    current: Option<Current>,
    /// Trials taken.
    done: usize,
}

/// One part of the test at one size.
#[derive(Debug, Clone)]
struct Current {
    /// Index of the size.
    size: usize,
    /// Index of the part.
    part: usize,
    test: SizeTest,
}

/// What the test at a size consists of. Those that need the throughput come after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Throughput,
    Latency(Option<FrameRate>),
    Loss { step_percent: u32 },
    Burst { repeats: u32 },
    Recovery { repeats: u32 },
    Echo { target: IpAddr },
    Addresses { most: u32, learn_rate: FrameRate, ageing: Nanos },
    Hosts { most: u32, learn_rate: FrameRate, rate: FrameRate },
    Forwarding { step_percent: u32 },
    Congestion,
    ForwardPressure,
    Errors { cable: bool },
    Broadcast,
}

fn parts(plan: &DevicePlan) -> Vec<Part> {
    let mut parts = all_parts(&plan.test);
    if left_out(plan).is_some() {
        parts.retain(|part| !matches!(part, Part::Latency(_)));
    }
    parts
}

/// What of a test that has many parts cannot be measured between its ports, and why.
fn left_out(plan: &DevicePlan) -> Option<Caveat> {
    let left_out = matches!(plan.test, DeviceTest::All { .. }) && plan.has_several_hosts();
    left_out.then(|| {
        let text = message!(
            "caveat-latency-several-clocks",
            "latency was not measured: the ports are of hosts whose clocks differ; give ports of one host for it"
        );
        Caveat::new(CaveatKind::NotMeasured, text)
    })
}

fn all_parts(test: &DeviceTest) -> Vec<Part> {
    match *test {
        DeviceTest::Throughput | DeviceTest::Calibrate | DeviceTest::Goals { .. } => vec![Part::Throughput],
        DeviceTest::Latency { rate: Some(rate) } => vec![Part::Latency(Some(rate))],
        DeviceTest::Latency { rate: None } => vec![Part::Throughput, Part::Latency(None)],
        DeviceTest::Loss { step_percent } => vec![Part::Loss { step_percent }],
        DeviceTest::Burst { repeats } => vec![Part::Throughput, Part::Burst { repeats }],
        DeviceTest::Recovery { repeats } => vec![Part::Throughput, Part::Recovery { repeats }],
        DeviceTest::Echo { target } => vec![Part::Echo { target }],
        DeviceTest::Addresses { most, learn_rate, ageing } => vec![Part::Addresses { most, learn_rate, ageing }],
        DeviceTest::Hosts { most, learn_rate, rate } => vec![Part::Hosts { most, learn_rate, rate }],
        DeviceTest::Forwarding { step_percent } => vec![Part::Throughput, Part::Forwarding { step_percent }],
        DeviceTest::Congestion => vec![Part::Congestion],
        DeviceTest::ForwardPressure => vec![Part::ForwardPressure],
        DeviceTest::Errors { cable } => vec![Part::Errors { cable }],
        DeviceTest::Broadcast => vec![Part::Throughput, Part::Broadcast],
        DeviceTest::All { step_percent, repeats } => vec![
            Part::Throughput,
            Part::Latency(None),
            Part::Loss { step_percent },
            Part::Burst { repeats },
            Part::Recovery { repeats },
        ],
    }
}

/// What the tester reaches with the device bypassed.
#[derive(Debug, Clone)]
pub(crate) struct TesterLimit {
    record: linerate_model::RecordId,
    interleaved: bool,
    frame_bytes: u32,
    frames_per_s: f64,
}

/// The test at one size.
#[derive(Debug, Clone)]
enum SizeTest {
    Throughput(ThroughputTest),
    Latency(LatencyTest),
    Loss(LossTest),
    Burst(BurstTest),
    Recovery(RecoveryTest),
    Echo(EchoTest),
    Addresses(AddressTest),
    Hosts(HostTest),
    Forwarding(ForwardingTest),
    Congestion(CongestionTest),
    ForwardPressure(ForwardPressureTest),
    Errors(FaultTest),
    Broadcast(BroadcastTest),
}

impl SizeTest {
    /// Takes a trial of `plan`; true when nothing more is needed.
    fn record(&mut self, run: &FramesRun<'_>, plan: &DevicePlan) -> bool {
        match self {
            Self::Throughput(test) => test.record(run),
            Self::Latency(test) => test.record(run),
            Self::Loss(test) => test.record(run),
            Self::Burst(test) => test.record(run),
            Self::Recovery(test) => test.record(run),
            Self::Echo(test) => test.record(run),
            Self::Addresses(test) => test.record(run, plan),
            Self::Hosts(test) => test.record(run, plan),
            Self::Forwarding(test) => test.record(run),
            Self::Congestion(test) => test.record(run),
            Self::ForwardPressure(test) => test.record(run),
            Self::Errors(test) => test.record(run),
            Self::Broadcast(test) => test.record(run),
        }
    }

    /// What is known so far; none at the beginning of some tests.
    fn known(&self) -> Option<Message> {
        Some(match self {
            Self::Throughput(test) => message!("known-throughput", "throughput {bounds}", bounds = test.known()),
            Self::Latency(test) => return test.known(),
            Self::Loss(test) => return test.known(),
            Self::Burst(test) => test.known(),
            Self::Recovery(test) => test.known(),
            Self::Echo(test) => message!("known-echo", "echo {bounds}", bounds = test.known()),
            Self::Addresses(test) => test.known(),
            Self::Hosts(test) => test.known(),
            Self::Errors(test) => test.known(),
            Self::Forwarding(test) => return test.known(),
            Self::Congestion(_) | Self::ForwardPressure(_) | Self::Broadcast(_) => return None,
        })
    }
}

impl Device {
    /// The test of `plan`, nothing run yet. `calibrated` is what [`DeviceTest::Calibrate`] found between the same ports.
    pub fn new(plan: &DevicePlan, calibrated: &[Calibrated]) -> Self {
        let tester_limits = calibrated.iter().filter_map(faults::tester_limit).collect();
        let fault_shares = faults::shares(calibrated);
        let found = DeviceFound::default();
        let mut device =
            Self { plan: plan.clone(), tester_limits, fault_shares, found, throughput: None, current: None, done: 0 };
        device.begin(0, 0);
        device
    }

    /// Whether a trial is run again where the tester spoilt it.
    fn again(&self, task: &FramesTask) -> Again {
        match self.current.as_ref().map(|current| &current.test) {
            Some(SizeTest::Hosts(test)) if !test.hangs_on_pace() => Again::Never,
            Some(SizeTest::Addresses(test)) if test.needs_new_addresses() => Again::Never,
            // A shorter trial is a step of a search, which decides nothing.
            _ if (1..self.plan.final_time.get()).contains(&task.time.get()) => Again::Search,
            _ => Again::Decides,
        }
    }

    /// How far it is, in words: the size, and what is known of it.
    fn known(&self) -> Message {
        let Some(current) = &self.current else { return message!("known-done", "done") };
        let size = message!(
            "known-size",
            "size {number} of {all}: {bytes} bytes",
            number = current.size + 1,
            all = self.plan.sizes.len(),
            bytes = self.plan.sizes[current.size].get()
        );
        match current.test.known() {
            Some(known) => message!("known-of-size", "{size}, {known}", size, known),
            None => size,
        }
    }

    /// Goes on with that part of that size, or with the first one after it that has something to try.
    fn begin(&mut self, mut size: usize, mut part: usize) {
        let parts = parts(&self.plan);
        while let Some(frame) = self.plan.sizes.get(size).copied() {
            let Some(wanted) = parts.get(part) else {
                (size, part, self.throughput) = (size + 1, 0, None);
                continue;
            };
            let test = self.test(*wanted, frame);
            if self.wanted(frame, &test).is_some() {
                self.current = Some(Current { size, part, test });
                return;
            }
            self.put_down(&test);
            part += 1;
        }
    }

    fn test(&self, part: Part, size: FrameSize) -> SizeTest {
        let tester_limit = self.tester_limits.iter().find(|tester_limit| tester_limit.frame_bytes == size.get());
        let (plan, throughput) = (&self.plan, self.throughput.as_ref());
        match part {
            Part::Throughput => SizeTest::Throughput(ThroughputTest::new(
                plan,
                size,
                tester_limit.cloned(),
                self.found.throughput.last(),
            )),
            Part::Latency(rate) => {
                let all = rate.map(|rate| rate.get() * plan.directions.len() as u64);
                let load = all.or_else(|| throughput.map(|found| found.frames_per_s as u64)).filter(|load| *load > 0);
                SizeTest::Latency(LatencyTest::new(plan, size, load.map(FrameRate::per_second)))
            }
            Part::Loss { step_percent } => SizeTest::Loss(LossTest::new(plan, size, step_percent, tester_limit)),
            Part::Burst { repeats } => SizeTest::Burst(BurstTest::new(plan, size, repeats, throughput.cloned())),
            Part::Recovery { repeats } => {
                SizeTest::Recovery(RecoveryTest::new(plan, size, repeats, throughput, tester_limit))
            }
            Part::Echo { target } => SizeTest::Echo(EchoTest::new(plan, size, target)),
            Part::Addresses { most, learn_rate, ageing } => {
                let highest = highest_load(plan, size, tester_limit);
                SizeTest::Addresses(AddressTest::new(plan, size, (most, learn_rate, ageing), highest))
            }
            Part::Hosts { most, learn_rate, rate } => SizeTest::Hosts(HostTest::new(size, most, learn_rate, rate)),
            Part::Forwarding { step_percent } => {
                SizeTest::Forwarding(ForwardingTest::new(plan, size, step_percent, throughput))
            }
            Part::Congestion => SizeTest::Congestion(CongestionTest::new(size)),
            Part::ForwardPressure => SizeTest::ForwardPressure(ForwardPressureTest::new(plan, size, tester_limit)),
            Part::Errors { cable } => SizeTest::Errors(FaultTest::new(plan, &self.fault_shares, cable)),
            Part::Broadcast => SizeTest::Broadcast(BroadcastTest::new(size, throughput)),
        }
    }

    /// The next trial; none when all is done.
    fn asked(&self) -> Option<Trial> {
        let current = self.current.as_ref()?;
        self.wanted(self.plan.sizes[current.size], &current.test)
    }

    /// The trial that a test asks for.
    fn wanted(&self, size: FrameSize, test: &SizeTest) -> Option<Trial> {
        let shaped = |what: &str, task| trial(format!("{what} {}", size.get()), task);
        let load = |what, (load, time)| shaped(what, self.task(size, load, time));
        match test {
            SizeTest::Throughput(test) => test.next().map(|wanted| load("throughput", wanted)),
            SizeTest::Latency(test) => test.next().map(|wanted| load("latency", wanted)),
            SizeTest::Loss(test) => test.next().map(|wanted| load("loss", wanted)),
            SizeTest::Echo(test) => test.next().map(|wanted| load("echo", wanted)),
            SizeTest::Burst(test) => test.next().map(|frames| {
                let mut task = self.task(size, FrameRate::per_second(1), Nanos::default());
                burst::shape(&mut task, self.plan.line, frames);
                shaped("burst", task)
            }),
            SizeTest::Recovery(test) => test.next().map(|loads| {
                let mut task = self.task(size, loads.overload, loads.time);
                recovery::shape(&mut task, loads);
                shaped("recovery", task)
            }),
            SizeTest::Addresses(test) => test.next(&self.plan),
            SizeTest::Hosts(test) => test.next(&self.plan),
            SizeTest::Forwarding(test) => test.next().map(|wanted| load("forwarding", wanted)),
            SizeTest::ForwardPressure(test) => test.next().map(|wanted| load("forward pressure", wanted)),
            SizeTest::Congestion(test) => test.is_due().then(|| {
                let mut task = self.task(size, FrameRate::per_second(1), self.plan.final_time);
                congestion::shape(&mut task, &self.plan, size);
                shaped("congestion", task)
            }),
            SizeTest::Errors(test) => test.next().map(|(fault, rate, time)| {
                let mut task = self.task(size, rate, time);
                faults::shape(&mut task, fault);
                trial(format!("{} frames at {rate}", fault.name()), task)
            }),
            SizeTest::Broadcast(test) => test.is_due().then(|| {
                let mut task = self.task(size, FrameRate::per_second(1), Nanos::default());
                broadcast::shape(&mut task);
                shaped("broadcast latency", task)
            }),
        }
    }

    /// Puts down what a part that is over amounts to.
    fn put_down(&mut self, test: &SizeTest) {
        let (plan, outcome) = (&self.plan, &mut self.found);
        match test {
            SizeTest::Throughput(test) => {
                let found = test.outcomes(plan);
                self.throughput = found.first().cloned();
                outcome.throughput.extend(found);
            }
            SizeTest::Latency(test) if test.has_load() => outcome.latency.extend(test.outcome(plan)),
            SizeTest::Latency(_) => {
                if let Some(found) = outcome.throughput.last_mut() {
                    let text = message!(
                        "caveat-latency-no-rate",
                        "latency was not measured: no rate is known that the device carries"
                    );
                    found.caveats.push(Caveat::new(CaveatKind::NotMeasured, text));
                }
            }
            SizeTest::Loss(test) => outcome.loss.push(test.outcome(plan)),
            SizeTest::Burst(test) => outcome.burst.push(test.outcome(plan)),
            SizeTest::Recovery(test) => outcome.recovery.push(test.outcome(plan)),
            SizeTest::Echo(test) => outcome.echo.extend(test.outcome(plan)),
            SizeTest::Addresses(test) => outcome.addresses = Some(test.outcome()),
            SizeTest::Hosts(test) => outcome.hosts = Some(test.outcome(plan)),
            SizeTest::Forwarding(test) => outcome.forwarding.extend(test.outcome(plan)),
            SizeTest::Congestion(test) => outcome.congestion.extend(test.outcome(plan)),
            SizeTest::ForwardPressure(test) => outcome.forward_pressure.extend(test.outcome()),
            SizeTest::Errors(test) => outcome.faults = test.outcome(),
            SizeTest::Broadcast(test) => outcome.broadcast.extend(test.outcome()),
        }
    }

    /// Takes a trial that could not be made. A port that cannot send errored frames ends only their part of the test.
    fn record_failure(&mut self, reason: &str) -> After {
        let Some(Current { test: SizeTest::Errors(test), .. }) = &mut self.current else { return After::End };
        self.done += 1;
        let is_over = test.record_failure(reason);
        if is_over && let Some(Current { size, part, test }) = self.current.take() {
            self.put_down(&test);
            self.begin(size, part + 1);
        }
        After::GoOn
    }

    fn task(&self, size: FrameSize, load: FrameRate, time: Nanos) -> FramesTask {
        let share = FrameRate::per_second((load.get() / self.plan.directions.len().max(1) as u64).max(1));
        let mut streams: Vec<FrameStream> = Vec::with_capacity(self.plan.directions.len());
        for pair in &self.plan.directions {
            // A sender takes its receivers in turn.
            let turn = streams.iter().filter(|stream| stream.from == pair.from).count() as u64;
            let of_sender = self.plan.directions.iter().filter(|other| other.from == pair.from).count() as u64;
            let after = Nanos::new(1_000_000_000 / share.get() * turn / of_sender.max(1));
            streams.push(FrameStream {
                from: pair.from,
                to: pair.to,
                copies_to: pair.copies_to.clone(),
                size,
                rate: Some(share),
                count: None,
                after: after.min(Nanos::new(time.get() / 2)),
                time: None,
                headers: pair.headers.clone(),
                form: FrameForm::default(),
            });
        }
        FramesTask {
            home: self.plan.host.clone(),
            ports: self.plan.ports.clone(),
            streams,
            time,
            settle: self.plan.settle,
            engine: self.plan.engine,
            receiver: FrameReceiver::Port,
            line: None,
            hosts: Vec::new(),
        }
    }
}

impl Method for Device {
    fn next(&self) -> Step {
        let Some(trial) = self.asked() else { return Step::Done };
        let again = if let Task::Frames(task) = trial.task() { self.again(task) } else { Again::Never };
        Step::run(trial, again)
    }

    fn record(&mut self, result: &TrialResult) -> After {
        if let Some(reason) = result.failure() {
            return self.record_failure(reason);
        }
        let Some(run) = result.frames().filter(|_| result.is_counted()) else { return After::GoOn };
        let asked = self.asked();
        let Some(current) = &mut self.current else { return After::GoOn };
        // A record of another version may hold trials that this search would not ask for. They are no steps of it.
        if asked.as_ref() != Some(&result.trial) {
            return After::GoOn;
        }
        self.done += 1;
        if current.test.record(&run, &self.plan)
            && let Some(Current { size, part, test }) = self.current.take()
        {
            self.put_down(&test);
            self.begin(size, part + 1);
        }
        After::GoOn
    }

    fn progress(&self) -> Progress {
        let at_most = self.current.is_none().then_some(self.done);
        Progress { done: self.done, at_most, known: Some(self.known()) }
    }

    fn summary(&self) -> RunSummary {
        summary::of(&self.found)
    }

    fn conclude(&self, record: &mut Record) {
        record.results = Vec::new();
        record.outcome = Outcome::Device(Box::new(self.found.clone()));
        tell(record, left_out(&self.plan));
        tell_repeats(record);
    }
}

/// A bound of a search, in words.
fn bound<T: Into<MessageValue>>(bound: Option<T>) -> MessageValue {
    bound.map_or_else(|| "?".into(), Into::into)
}

/// A trial of a device test.
fn trial(name: String, task: FramesTask) -> Trial {
    Trial::new(name, Task::Frames(task), Timing::UntilDone)
}

/// The highest load of all directions together: what the lines carry, or what the tester is known to reach.
fn highest_load(plan: &DevicePlan, size: FrameSize, tester_limit: Option<&TesterLimit>) -> FrameRate {
    let lines = plan.line_frames(size);
    let reach = tester_limit.map(|tester_limit| tester_limit.frames_per_s as u64);
    FrameRate::per_second([lines, reach].into_iter().flatten().min().unwrap_or(UNKNOWN_LINE).max(2))
}

/// Where nothing is known of the line: beyond what any tester reaches.
const UNKNOWN_LINE: u64 = 200_000_000;

fn sum(run: &FramesRun<'_>, count: impl Fn(&FrameStreamCounts) -> u64) -> u64 {
    run.counts.streams.iter().map(count).sum()
}

fn directions(run: &FramesRun<'_>) -> Vec<DirectionCounts> {
    let port = |index: u16| run.task.ports.get(usize::from(index)).map(ToString::to_string).unwrap_or_default();
    let seconds = run.task.time.as_secs_f64();
    let mut directions = Vec::new();
    for (stream, counts) in run.streams() {
        let own = DirectionCounts {
            from: port(stream.from),
            to: port(stream.to),
            intended: counts.intended,
            sent: counts.sent,
            received: counts.received,
            duplicates: counts.duplicates,
            reordered: counts.reordered,
            frames_per_s: counts.received as f64 / seconds,
        };
        let copies = counts.copies.iter().map(|copy| DirectionCounts {
            to: port(copy.port),
            received: copy.arrived.received,
            duplicates: copy.arrived.duplicates,
            reordered: copy.arrived.reordered,
            frames_per_s: copy.arrived.received as f64 / seconds,
            ..own.clone()
        });
        let copies: Vec<DirectionCounts> = copies.collect();
        directions.push(own);
        directions.extend(copies);
    }
    directions
}

/// The latency of all directions together.
fn latency(run: &FramesRun<'_>) -> Option<Latency> {
    let mut all = linerate_model::Histogram::default();
    run.counts.streams.iter().for_each(|stream| all.merge(&stream.latency));
    latency_if_any(&all)
}

/// A rate for a sentence: `254,311`.
pub(crate) fn whole(rate: f64) -> MessageValue {
    MessageValue::Count(rate.round() as u64)
}

/// Doubts that hold for every test of this plan.
fn doubts(plan: &DevicePlan) -> Vec<Caveat> {
    let mut doubts = Vec::new();
    if plan.final_time < STANDARD_TRIAL {
        doubts.push(Caveat::new(
            CaveatKind::ShortTrial,
            message!(
                "caveat-short-trial",
                "the trial that decided took {time}; RFC 2544 section 24 asks for 60 s: give --time 60s for a \
                 figure to be compared with others",
                time = plan.final_time
            ),
        ));
    }
    doubts
}

#[cfg(test)]
mod firmness_tests;
#[cfg(test)]
mod part_tests;
#[cfg(test)]
pub(crate) mod tests;
