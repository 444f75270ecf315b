//! Counts of the kernel by CPU while a tool runs. `/proc/stat` and `/proc/softirqs` cost the tool nothing. `perf stat`
//! counts what they lack: context switches, wake-ups and system calls, and the processor's own counters if it has any.

use crate::process::{self, Running};
use anyhow::{Context, Result};
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Interval between two readings. Long enough not to disturb a measurement.
const INTERVAL: Duration = Duration::from_millis(100);

/// Time limit of a trial of `perf stat`.
const PROBE_LIMIT: Duration = Duration::from_secs(10);

/// Ticks of `/proc/stat` per second (USER_HZ, which is 100 on every architecture of Linux that linerate runs on).
const TICKS_PER_SECOND: f64 = 100.0;

/// Share of the busiest interval's received packets from which an interval counts as loaded.
const LOADED: f64 = 0.25;

/// Event or time that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    UserTime,
    SystemTime,
    SoftirqTime,
    IdleTime,
    StolenTime,
    ContextSwitches,
    WakeUps,
    SystemCalls,
    NetRx,
    NetTx,
    OtherSoftirqs,
    Cycles,
    Instructions,
    CacheMisses,
}

impl Event {
    /// Every event, in the order of a table.
    pub(super) const ALL: [Self; 14] = [
        Self::UserTime,
        Self::SystemTime,
        Self::SoftirqTime,
        Self::IdleTime,
        Self::StolenTime,
        Self::ContextSwitches,
        Self::WakeUps,
        Self::SystemCalls,
        Self::NetRx,
        Self::NetTx,
        Self::OtherSoftirqs,
        Self::Cycles,
        Self::Instructions,
        Self::CacheMisses,
    ];

    /// Name in tables and JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::UserTime => "user time, ns",
            Self::SystemTime => "system time, ns",
            Self::SoftirqTime => "softirq time, ns",
            Self::IdleTime => "idle time, ns",
            Self::StolenTime => "stolen time, ns",
            Self::ContextSwitches => "context switches",
            Self::WakeUps => "wake-ups",
            Self::SystemCalls => "system calls",
            Self::NetRx => "softirqs NET_RX",
            Self::NetTx => "softirqs NET_TX",
            Self::OtherSoftirqs => "softirqs, others",
            Self::Cycles => "cycles",
            Self::Instructions => "instructions",
            Self::CacheMisses => "cache misses",
        }
    }

    /// Name of the event in `perf stat`. `None` if `/proc` has it.
    fn perf(self) -> Option<&'static str> {
        match self {
            Self::ContextSwitches => Some("context-switches"),
            Self::WakeUps => Some("sched:sched_wakeup"),
            Self::SystemCalls => Some("raw_syscalls:sys_enter"),
            Self::Cycles => Some("cycles"),
            Self::Instructions => Some("instructions"),
            Self::CacheMisses => Some("cache-misses"),
            _ => None,
        }
    }
}

/// Counts by event and CPU.
pub(super) type Counts = BTreeMap<(Event, usize), f64>;

/// Counts of a span of time since the start of counting.
#[derive(Debug, Clone, PartialEq)]
struct Interval {
    from: Duration,
    to: Duration,
    counts: Counts,
}

/// Events that `perf stat` counts on this machine.
pub(super) struct Perf {
    events: Vec<Event>,
}

impl Perf {
    /// Tries every event that `/proc` lacks.
    pub(super) fn find() -> Self {
        Self { events: Event::ALL.into_iter().filter(|event| event.perf().is_some_and(is_counted)).collect() }
    }

    /// Returns whether perf counts this event here.
    pub(super) fn counts(&self, event: Event) -> bool {
        self.events.contains(&event)
    }

    /// Returns the events that nothing counts on this machine.
    pub(super) fn missing(&self) -> Vec<&'static str> {
        let missing = Event::ALL.into_iter().filter(|event| event.perf().is_some() && !self.counts(*event));
        missing.map(Event::name).collect()
    }

    /// Starts to count on every CPU until SIGINT.
    fn start(&self) -> Result<Option<Running>> {
        if self.events.is_empty() {
            return Ok(None);
        }
        let names: Vec<&str> = self.events.iter().filter_map(|event| event.perf()).collect();
        let mut command = Command::new("perf");
        command.args(["stat", "-a", "-A", "-x", ",", "-I"]).arg(INTERVAL.as_millis().to_string());
        command.arg("-e").arg(names.join(","));
        Running::start(command).map(Some)
    }
}

fn is_counted(event: &str) -> bool {
    let mut command = Command::new("perf");
    command.args(["stat", "-a", "-x", ",", "-e", event, "true"]);
    let written = process::run(command, PROBE_LIMIT);
    written.is_ok_and(|written| written.stderr.lines().any(|line| line.starts_with(|c: char| c.is_ascii_digit())))
}

/// Runs a tool and returns the result with the counts of each CPU per second while the tool loaded the link.
pub(super) fn count<T>(perf: &Perf, run: impl FnOnce() -> Result<T>) -> Result<(T, Counts)> {
    let counting = perf.start()?;
    let kernel = KernelCounts::start();
    let result = run();
    let kernel = kernel.stop()?;
    let counted = counting.map(|counting| counting.stop(Signal::SIGINT)).transpose()?;
    let result = result?;
    let (from, to) = loaded(&kernel).context("the kernel counted no received packets during the run")?;
    let mut rates = rates(&kernel, from, to);
    if let Some(counted) = counted {
        rates.extend(self::rates(&read_perf(&counted.stderr), from, to));
    }
    Ok((result, rates))
}

/// Thread that reads the counts of `/proc` until it is stopped.
struct KernelCounts {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<Interval>>>,
}

impl KernelCounts {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let started = Instant::now();
        let thread = thread::spawn(move || {
            let mut intervals = Vec::new();
            let mut before = read_kernel()?;
            let mut from = started.elapsed();
            while !stopped.load(Ordering::Relaxed) {
                thread::sleep(INTERVAL);
                let after = read_kernel()?;
                let to = started.elapsed();
                let counts = after.iter().map(|(key, count)| (*key, count - before.get(key).unwrap_or(count)));
                intervals.push(Interval { from, to, counts: counts.collect() });
                before = after;
                from = to;
            }
            Ok(intervals)
        });
        Self { stop, thread }
    }

    fn stop(self) -> Result<Vec<Interval>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow::anyhow!("the thread that reads /proc panicked"))?
    }
}

/// Returns the kernel's counts since boot.
fn read_kernel() -> Result<Counts> {
    let mut counts = Counts::new();
    let stat = std::fs::read_to_string("/proc/stat").context("reading /proc/stat")?;
    read_stat(&stat, &mut counts);
    let softirqs = std::fs::read_to_string("/proc/softirqs").context("reading /proc/softirqs")?;
    read_softirqs(&softirqs, &mut counts);
    Ok(counts)
}

/// Adds the times of each CPU in `/proc/stat` (proc_stat(5)), in nanoseconds.
fn read_stat(text: &str, counts: &mut Counts) {
    /// Event of each column: user, nice, system, idle, iowait, irq, softirq, steal.
    const COLUMNS: [Event; 8] = [
        Event::UserTime,
        Event::UserTime,
        Event::SystemTime,
        Event::IdleTime,
        Event::IdleTime,
        Event::SystemTime,
        Event::SoftirqTime,
        Event::StolenTime,
    ];
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let name = words.next().and_then(|name| name.strip_prefix("cpu"));
        let Some(cpu) = name.and_then(|number| number.parse().ok()) else { continue };
        for (event, ticks) in COLUMNS.into_iter().zip(words) {
            let ticks: f64 = ticks.parse().unwrap_or_default();
            *counts.entry((event, cpu)).or_default() += ticks * 1e9 / TICKS_PER_SECOND;
        }
    }
}

/// Adds the soft interrupts of each CPU in `/proc/softirqs`, which has a column for each CPU.
fn read_softirqs(text: &str, counts: &mut Counts) {
    let mut lines = text.lines();
    let names = lines.next().unwrap_or_default().split_whitespace();
    let cpus: Vec<usize> = names.filter_map(|name| name.strip_prefix("CPU")?.parse().ok()).collect();
    for line in lines {
        let Some((name, values)) = line.split_once(':') else { continue };
        let event = match name.trim() {
            "NET_RX" => Event::NetRx,
            "NET_TX" => Event::NetTx,
            _ => Event::OtherSoftirqs,
        };
        for (cpu, value) in cpus.iter().zip(values.split_whitespace()) {
            *counts.entry((event, *cpu)).or_default() += value.parse::<f64>().unwrap_or_default();
        }
    }
}

/// Reads the output of `perf stat -A -x , -I`: time in seconds, CPU, count, unit, event.
fn read_perf(text: &str) -> Vec<Interval> {
    let mut intervals: Vec<Interval> = Vec::new();
    for line in text.lines() {
        let columns: Vec<&str> = line.split(',').map(str::trim).collect();
        let &[time, cpu, count, _, name, ..] = columns.as_slice() else { continue };
        let seconds = time.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let cpu = cpu.strip_prefix("CPU").and_then(|number| number.parse().ok());
        // perf may append a modifier, as in `cycles:u`.
        let event = Event::ALL.into_iter().find(|event| event.perf().is_some_and(|perf| name.starts_with(perf)));
        let (Some(to), Some(cpu), Some(event), Ok(count)) = (seconds, cpu, event, count.parse()) else { continue };
        if intervals.last().is_none_or(|interval| interval.to != to) {
            let from = intervals.last().map_or(Duration::ZERO, |interval| interval.to);
            intervals.push(Interval { from, to, counts: Counts::new() });
        }
        if let Some(interval) = intervals.last_mut() {
            interval.counts.insert((event, cpu), count);
        }
    }
    intervals
}

/// Returns the span from the first to the last interval in which packets arrived at a quarter or more of the highest
/// rate, without these two. `None` if there was no load.
///
/// Pauses between them count: the tool's own figure has them too.
fn loaded(intervals: &[Interval]) -> Option<(Duration, Duration)> {
    let highest = intervals.iter().map(received).fold(0.0, f64::max);
    let is_loaded = |interval: &Interval| highest > 0.0 && received(interval) >= highest * LOADED;
    let first = intervals.iter().position(is_loaded)?;
    let last = intervals.iter().rposition(is_loaded)?;
    let span = if last > first + 1 { &intervals[first + 1..last] } else { &intervals[first..=last] };
    Some((span.first()?.from, span.last()?.to))
}

fn received(interval: &Interval) -> f64 {
    interval.counts.iter().filter(|((event, _), _)| *event == Event::NetRx).map(|(_, count)| count).sum()
}

/// Returns the counts per second of the intervals that lie between two moments.
fn rates(intervals: &[Interval], from: Duration, to: Duration) -> Counts {
    let inside = intervals.iter().filter(|interval| interval.from >= from && interval.to <= to);
    let mut seconds = 0.0;
    let mut sums = Counts::new();
    for interval in inside {
        seconds += (interval.to - interval.from).as_secs_f64();
        for (key, count) in &interval.counts {
            *sums.entry(*key).or_default() += count;
        }
    }
    if seconds > 0.0 {
        sums.values_mut().for_each(|sum| *sum /= seconds);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_proc() {
        let mut counts = Counts::new();
        read_stat(
            "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 100 20 30 400 5 6 7 8 0 0\ncpu1 1 0 0 0 0 0 0 0\nctxt 5\n",
            &mut counts,
        );
        assert_eq!(counts[&(Event::UserTime, 0)], 1.2e9);
        assert_eq!(counts[&(Event::SystemTime, 0)], 0.36e9);
        assert_eq!(counts[&(Event::SoftirqTime, 0)], 0.07e9);
        assert_eq!(counts[&(Event::IdleTime, 0)], 4.05e9);
        assert_eq!(counts[&(Event::StolenTime, 0)], 0.08e9);
        assert_eq!(counts[&(Event::UserTime, 1)], 0.01e9);
        // CPU 1 is offline.
        let text = "        CPU0       CPU2\n  TIMER:   10   20\n NET_TX:  1  2\n NET_RX:  30  40\n  SCHED: 5 6\n";
        read_softirqs(text, &mut counts);
        assert_eq!(counts[&(Event::NetRx, 2)], 40.0);
        assert_eq!(counts[&(Event::NetTx, 0)], 1.0);
        assert_eq!(counts[&(Event::OtherSoftirqs, 0)], 15.0);
        assert_eq!(counts[&(Event::OtherSoftirqs, 2)], 26.0);
    }

    #[test]
    fn reads_perf_stat() {
        // perf 6.1.
        let intervals = read_perf(include_str!("captured/perf-stat-intervals.csv"));
        assert_eq!(intervals.len(), 3);
        assert_eq!(intervals[1].from, Duration::from_nanos(200_270_612));
        assert_eq!(intervals[0].counts[&(Event::SystemCalls, 0)], 3032.0);
        assert_eq!(intervals[2].counts[&(Event::ContextSwitches, 1)], 17.0);
        assert!(!intervals[0].counts.contains_key(&(Event::Cycles, 0)));
        assert!(read_perf("event syntax error: 'sched:sched_wakeup'").is_empty());
    }

    #[test]
    fn rates_are_those_under_load() {
        let interval = |(index, packets): (u64, f64)| Interval {
            from: Duration::from_millis(100 * index),
            to: Duration::from_millis(100 * (index + 1)),
            counts: Counts::from([((Event::NetRx, 0), packets), ((Event::NetTx, 1), 2.0)]),
        };
        // Other programs held the tool up for an interval.
        let packets = [0.0, 9.0, 1.0, 500.0, 1000.0, 100.0, 1100.0, 400.0, 3.0];
        let intervals: Vec<Interval> = (0..).zip(packets).map(interval).collect();
        let (from, to) = loaded(&intervals).unwrap();
        assert_eq!((from.as_millis(), to.as_millis()), (400, 700));
        let rates = rates(&intervals, from, to);
        assert!((rates[&(Event::NetRx, 0)] - 2200.0 / 0.3).abs() < 1e-6, "{rates:?}");
        assert!((rates[&(Event::NetTx, 1)] - 20.0).abs() < 1e-6);
        assert_eq!(loaded(&[]), None);
        assert_eq!(loaded(&intervals[..1]), None);
    }
}
