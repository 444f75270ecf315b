//! The load of the device, or of a file server, during each trial: read by SNMP, or from a linerate agent on it.

use crate::AgentHandle;
use crate::clock::Clock;
use futures_util::future::BoxFuture;
use linerate_control::{AgentError, Client};
use linerate_model::{
    CopyParts, CoreUse, DeviceInterface, DeviceLoad, Host, HostCounters, InterfaceCounters, Readings, Sampling, Series,
    SeriesBuilder, SeriesQuantity, Task, Trial, TrialResult,
};
use linerate_observe::snmp::Watcher;
use linerate_units::Nanos;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// Number of polls of a device's agent in a trial. The load of up to one poll interval may be missing at both ends of
/// the trial.
const POLLS: u64 = 50;
const MIN_INTERVAL: Duration = Duration::from_millis(50);
const MAX_INTERVAL: Duration = Duration::from_millis(500);
/// Poll interval for a trial of unknown length.
const OPEN_ENDED: Duration = Duration::from_millis(100);

/// Watch of a device from trial to trial. Missing answers become notes of the load, never a failure of the trial.
pub enum DeviceWatch {
    /// By SNMP.
    Snmp(Box<Watcher>),
    /// By an agent on it.
    Agent(AgentWatch),
}

impl DeviceWatch {
    /// Watches by the agent `device`, which the ports of `testers` test.
    pub fn of_agent<'a>(device: &AgentHandle, mut testers: impl Iterator<Item = &'a Host>) -> Self {
        let boot_id = &device.host.boot_id;
        let one_machine = !boot_id.is_empty() && testers.any(|tester| tester.boot_id == *boot_id);
        Self::reading(Arc::new(device.client.clone()), one_machine)
    }

    /// Watches by reading `counters`. `one_machine` says that the device runs on the tester's machine.
    pub(crate) fn reading(counters: Arc<dyn ReadCounters>, one_machine: bool) -> Self {
        Self::Agent(AgentWatch { counters, clock: Clock::begin(), one_machine, polls: None })
    }

    /// Begins to read the counters, just before `trial`.
    pub(crate) async fn start(&mut self, trial: &Trial) {
        match self {
            Self::Snmp(watcher) => watcher.start().await,
            Self::Agent(watch) => watch.start(trial),
        }
    }

    /// Ends the watch of a trial, and returns the load of the device in it. `patient` waits for counters that a device
    /// renews only every few seconds.
    pub(crate) async fn stop(&mut self, result: &TrialResult, patient: bool) -> DeviceLoad {
        match self {
            Self::Snmp(watcher) if patient => watcher.stop().await,
            Self::Snmp(watcher) => watcher.stop_at_once().await,
            Self::Agent(watch) => watch.stop(result).await,
        }
    }

    /// Ends the watch of a trial that failed.
    pub(crate) fn give_up(&mut self) {
        if let Self::Agent(watch) = self {
            watch.polls = None;
        }
    }
}

/// Source of a device's counters.
pub(crate) trait ReadCounters: Send + Sync {
    /// Reads the counters since the device was started.
    ///
    /// # Errors
    /// The device does not report them.
    fn counters(&self) -> BoxFuture<'_, Result<HostCounters, AgentError>>;
}

impl ReadCounters for Client {
    fn counters(&self) -> BoxFuture<'_, Result<HostCounters, AgentError>> {
        Box::pin(self.counters())
    }
}

/// Watch that polls an agent on the device while a trial runs.
pub struct AgentWatch {
    counters: Arc<dyn ReadCounters>,
    clock: Clock,
    /// Device and tester share a machine's cores.
    one_machine: bool,
    polls: Option<Polls>,
}

/// Polling during one trial.
struct Polls {
    began: Nanos,
    stop: oneshot::Sender<()>,
    log: JoinHandle<Log>,
}

/// Answers of the device.
#[derive(Debug, Default)]
struct Log {
    samples: Vec<Sample>,
    asked: u32,
    failed: u32,
    error: Option<String>,
}

/// Counters, and the times since 1970 between which they were read.
#[derive(Debug, Clone)]
struct Sample {
    asked: Nanos,
    answered: Nanos,
    counters: HostCounters,
}

impl AgentWatch {
    fn start(&mut self, trial: &Trial) {
        let every = match length(trial).0.get() {
            0 => OPEN_ENDED,
            length => Duration::from_nanos(length / POLLS).clamp(MIN_INTERVAL, MAX_INTERVAL),
        };
        let (stop, stopped) = oneshot::channel();
        let log = tokio::spawn(follow(Arc::clone(&self.counters), self.clock, every, stopped));
        self.polls = Some(Polls { began: self.clock.now(), stop, log });
    }

    async fn stop(&mut self, result: &TrialResult) -> DeviceLoad {
        let mut load = DeviceLoad { source: "agent".into(), ..DeviceLoad::default() };
        let Some(polls) = self.polls.take() else { return load };
        let ended = self.clock.now();
        // If the receiver is gone, the polling has ended by itself.
        let _ = polls.stop.send(());
        let Ok(log) = polls.log.await else {
            load.notes.push("the questions to the device's agent were cut off".into());
            return load;
        };
        let (from, to) = sending(result, polls.began, ended);
        log.report(&mut load, from, to);
        load.shares_machine = self.one_machine;
        if self.one_machine {
            load.notes.push(
                "the device runs on the tester's machine: its CPU figures are the machine's, and hold the tester's own \
                 work"
                    .into(),
            );
        }
        load
    }
}

/// Returns how long a trial's measured load sends, and how long it waits for stragglers after that.
fn length(trial: &Trial) -> (Nanos, Nanos) {
    match (trial.task(), trial.window()) {
        (Task::Frames(task), _) => (task.time, task.settle),
        (_, Some(window)) => (window.measure, Nanos::default()),
        (_, None) => (Nanos::default(), Nanos::default()),
    }
}

/// Returns when the trial sent, by this host's clock. The tester's clock is used within these bounds: sending began
/// after the trial was requested, and ended before its result came, by at least the time to settle.
fn sending(result: &TrialResult, asked: Nanos, answered: Nanos) -> (Nanos, Nanos) {
    let (time, settle) = match result.copy() {
        Some(parts) => (copied_for(parts), Nanos::default()),
        None if result.trial.volume().is_some() => (moved_for(result), Nanos::default()),
        None => length(&result.trial),
    };
    let latest = Nanos::new(answered.get().saturating_sub((time + settle).get())).max(asked);
    let from = Nanos::new(result.started_unix_ns).clamp(asked, latest);
    (from, from + time)
}

/// Returns how long a copy took.
fn copied_for(parts: &CopyParts) -> Nanos {
    let sides = parts.destinations.iter().flat_map(|part| &part.counted.sides);
    sides.map(|side| side.time).max().unwrap_or_default()
}

/// Returns how long the volume of a stream took.
fn moved_for(result: &TrialResult) -> Nanos {
    let ends = result.paths().iter().flat_map(|path| [&path.client, &path.server]);
    let windows = ends.flat_map(|end| {
        let sent = end.sent.as_ref().map(|sent| sent.window);
        sent.into_iter().chain(end.received.as_ref().map(|received| received.window))
    });
    windows.max().unwrap_or_default()
}

/// Polls the device until it is stopped or the watch is dropped.
async fn follow(
    device: Arc<dyn ReadCounters>,
    clock: Clock,
    every: Duration,
    mut stopped: oneshot::Receiver<()>,
) -> Log {
    let mut log = Log::default();
    loop {
        let question = async {
            let asked = clock.now();
            let answer = device.counters().await;
            (asked, clock.now(), answer)
        };
        tokio::select! {
            biased;
            _ = &mut stopped => return log,
            (asked, answered, answer) = question => log.add(asked, answered, answer),
        }
        tokio::select! {
            biased;
            _ = &mut stopped => return log,
            () = sleep(every) => {}
        }
    }
}

impl Log {
    fn add(&mut self, asked: Nanos, answered: Nanos, answer: Result<HostCounters, AgentError>) {
        self.asked += 1;
        match answer {
            Ok(counters) => self.samples.push(Sample { asked, answered, counters }),
            Err(error) => {
                self.failed += 1;
                self.error = Some(error.to_string());
            }
        }
    }

    /// Adds the differences between the first and the last answer from `from` to `to` to `load`.
    fn report(&self, load: &mut DeviceLoad, from: Nanos, to: Nanos) {
        if let Some(error) = &self.error {
            load.notes.push(format!(
                "the device's agent left {} of {} questions unanswered; the last: {error}",
                self.failed, self.asked
            ));
        }
        let within = self.samples.iter().filter(|sample| sample.asked >= from && sample.answered <= to);
        let within: Vec<&HostCounters> = within.map(|sample| &sample.counters).collect();
        match (within.first(), within.get(1..).and_then(<[_]>::last)) {
            (Some(first), Some(last)) if last.at > first.at => {
                add_difference(load, first, last);
                load.series = series(&within);
            }
            (Some(_), Some(_)) => load.notes.push("the device was started anew within the trial".into()),
            _ => load.notes.push(format!(
                "the device's agent did not answer twice within the trial's {}: use longer trials",
                Nanos::new(to.get().saturating_sub(from.get()))
            )),
        }
    }
}

/// Builds the series of several readings: each processor's busy share, and the bytes of each interface. `None` if the
/// device was restarted in between.
fn series(readings: &[&HostCounters]) -> Option<Series> {
    let first = readings.first()?;
    let last = readings.last()?;
    if !readings.is_sorted_by(|one, next| one.at < next.at) {
        return None;
    }
    let mut series = SeriesBuilder::new(Sampling::default(), first.at.get(), interfaces_of(first));
    for pair in readings.windows(2) {
        let mut values = interfaces_of(pair[1]);
        for now in &pair[1].cores {
            if let Some(then) = pair[0].cores.iter().find(|then| then.core == now.core) {
                let percent = (now.since(then).busy_share() * 100.0).round() as u64;
                values.add(SeriesQuantity::DeviceCpu, &now.core.to_string(), percent);
            }
        }
        series.take(pair[1].at.get(), values, false);
    }
    Some(series.finish(first.at.get(), last.at.get()))
}

fn interfaces_of(counters: &HostCounters) -> Readings {
    let mut readings = Readings::default();
    for interface in &counters.interfaces {
        readings.add(SeriesQuantity::InterfaceReceivedBytes, &interface.name, interface.rx_bytes);
        readings.add(SeriesQuantity::InterfaceSentBytes, &interface.name, interface.tx_bytes);
    }
    readings
}

/// Adds the differences between two readings of a host to `load`.
fn add_difference(load: &mut DeviceLoad, before: &HostCounters, after: &HostCounters) {
    load.window = Nanos::new(after.at.get() - before.at.get());
    let cores: Vec<CoreUse> = after
        .cores
        .iter()
        .filter_map(|now| Some(now.since(before.cores.iter().find(|then| then.core == now.core)?)))
        .collect();
    let all = |part: fn(&CoreUse) -> Nanos| cores.iter().map(|core| part(core).get()).sum::<u64>() as f64;
    let time = all(|core| core.busy() + core.steal + core.idle);
    if time > 0.0 {
        load.cpu = Some(all(CoreUse::busy) / time);
        load.softirq = Some(all(|core| core.softirq) / time);
        load.per_cpu = cores.iter().map(CoreUse::busy_share).collect();
        load.busiest_cpu = load.per_cpu.iter().copied().reduce(f64::max);
    }
    let zero = InterfaceCounters::default();
    load.interfaces = after
        .interfaces
        .iter()
        .map(|now| interface_since(now, before.interfaces.iter().find(|then| then.name == now.name).unwrap_or(&zero)))
        .filter(|interface| !interface.is_silent())
        .collect();
    for now in &after.disks {
        let Some(then) = before.disks.iter().find(|then| then.name == now.name) else { continue };
        let difference = now.since(then);
        if difference.reads + difference.writes > 0 {
            load.disks.push(difference);
        }
    }
}

fn interface_since(now: &InterfaceCounters, then: &InterfaceCounters) -> DeviceInterface {
    DeviceInterface {
        name: now.name.clone(),
        in_frames: now.rx_packets.saturating_sub(then.rx_packets),
        out_frames: now.tx_packets.saturating_sub(then.tx_packets),
        in_bytes: now.rx_bytes.saturating_sub(then.rx_bytes),
        out_bytes: now.tx_bytes.saturating_sub(then.tx_bytes),
        in_discards: now.rx_dropped.saturating_sub(then.rx_dropped),
        out_discards: now.tx_dropped.saturating_sub(then.tx_dropped),
        in_errors: now.rx_errors.saturating_sub(then.rx_errors),
        out_errors: now.tx_errors.saturating_sub(then.tx_errors),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{CopyCounts, CopyPart, CopySide, DiskUse, FramesTask, Timing};

    const MS: u64 = 1_000_000;

    fn idle_disk() -> DiskUse {
        DiskUse { name: "sdb".into(), reads: 9, ..DiskUse::default() }
    }

    /// A device whose second core is busy a quarter of the time and one of whose disks half of it, and that forwards a
    /// frame a microsecond, asked each 100 ms from time 0.
    fn log(samples: u64) -> Log {
        let sample = |index: u64| {
            let at = index * 100 * MS;
            let core = |core, busy: u64| CoreUse {
                core,
                softirq: Nanos::new(busy),
                idle: Nanos::new(at - busy),
                ..CoreUse::default()
            };
            let port = InterfaceCounters {
                name: "p0".into(),
                rx_packets: at / 1_000,
                rx_bytes: at / 10,
                ..Default::default()
            };
            let idle = InterfaceCounters { name: "p1".into(), rx_packets: 9, ..Default::default() };
            Sample {
                asked: Nanos::new(at),
                answered: Nanos::new(at + MS),
                counters: HostCounters {
                    at: Nanos::new(at),
                    cores: vec![core(0, 0), core(1, at / 4)],
                    interfaces: vec![port, idle],
                    disks: vec![
                        DiskUse { name: "sda".into(), reads: at / MS, busy: Nanos::new(at / 2), ..idle_disk() },
                        idle_disk(),
                    ],
                },
            }
        };
        Log { samples: (0..samples).map(sample).collect(), ..Log::default() }
    }

    #[test]
    fn load_covers_the_answers_within_the_trial() {
        let mut load = DeviceLoad::default();
        log(20).report(&mut load, Nanos::new(150 * MS), Nanos::new(1_200 * MS));
        // From 200 to 1,100 ms: the answer asked for at 1,200 came after the end.
        assert_eq!(load.window, Nanos::new(900 * MS));
        assert_eq!((load.cpu, load.busiest_cpu, load.softirq), (Some(0.125), Some(0.25), Some(0.125)));
        assert_eq!(load.interfaces.len(), 1, "{:?}", load.interfaces);
        assert_eq!(load.interfaces[0].in_frames, 900_000);
        let [disk] = &load.disks[..] else { panic!("the other disk had no work: {:?}", load.disks) };
        assert_eq!((disk.name.as_str(), disk.reads, disk.busy), ("sda", 900, Nanos::new(450 * MS)));
        assert_eq!(load.notes, Vec::<String>::new());
        let series = load.series.expect("it was asked several times");
        assert_eq!((series.len(), series.window), (9, load.window));
        let track = |quantity| series.tracks_of(quantity).map(|track| (track.subject.as_str(), track.values[3]));
        assert_eq!(track(SeriesQuantity::DeviceCpu).collect::<Vec<_>>(), [("1", 25)], "core 0 is idle");
        let moved: Vec<_> = track(SeriesQuantity::InterfaceReceivedBytes).collect();
        assert_eq!(moved, [("p0", 10 * MS)], "bytes of 100 ms");
    }

    #[test]
    fn single_answer_gives_a_note_instead_of_a_load() {
        let mut load = DeviceLoad::default();
        log(20).report(&mut load, Nanos::new(150 * MS), Nanos::new(250 * MS));
        assert_eq!((load.cpu, load.interfaces.len()), (None, 0));
        assert!(load.notes[0].contains("longer trials"), "{:?}", load.notes);
    }

    #[test]
    fn wrong_tester_clock_is_clamped_to_the_possible_time() {
        let task = FramesTask {
            home: "local".into(),
            ports: vec![],
            streams: vec![],
            time: Nanos::from_secs(2),
            settle: Nanos::from_secs(1),
            engine: Default::default(),
            receiver: Default::default(),
            line: None,
            hosts: Vec::new(),
        };
        let trial = Trial::new("throughput 64", Task::Frames(task), Timing::UntilDone);
        let result = |started| TrialResult { started_unix_ns: started, ..TrialResult::failed(trial.clone(), 0, "") };
        let second = Nanos::from_secs;
        for (started, from) in [(11, 11), (0, 10), (99, 12)] {
            let placed = sending(&result(started * 1_000 * MS), second(10), second(15));
            assert_eq!(placed, (second(from), second(from + 2)), "{started}");
        }
    }

    #[test]
    fn copy_takes_as_long_as_its_last_destination() {
        let second = Nanos::from_secs;
        let part = |times: &[u64]| {
            let sides = times.iter().map(|time| CopySide { time: second(*time), ..CopySide::default() }).collect();
            CopyPart { host: "b".into(), counted: CopyCounts { sides, faults: Vec::new(), faults_total: 0 } }
        };
        let parts =
            CopyParts { sources: vec![part(&[9])], destinations: vec![part(&[2]), part(&[3, 1])], servers: Vec::new() };
        assert_eq!(copied_for(&parts), second(3));
    }
}
