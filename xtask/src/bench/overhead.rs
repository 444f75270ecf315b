//! CPU cost of the agent and its observer while a trial runs, without the engine's threads.

use super::lab::Lab;
use crate::process::{self, Running};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Share of a core that the agent may use in addition to its engine.
const GOAL: f64 = 0.01;

/// Share of a core that the sampling of a trial may use. By default trials are sampled every 100 ms.
const SAMPLING_GOAL: f64 = 0.005;

/// Name of the agent's thread that samples a trial. It also reports progress and watches the host.
const SAMPLING_THREAD: &str = "watch";

/// Interval between two looks at these threads.
const LOOK: Duration = Duration::from_millis(100);

/// Minimum time that a thread was observed for its cost to count.
const MIN_OBSERVED: Duration = Duration::from_secs(1);

/// Loads, each of which runs on both agents.
const LOADS: &[&[&str]] = &[
    &["stream", "a", "b"],
    &["stream", "a", "b", "--udp", "--size", "64", "--no-offload"],
    &["stream", "a", "b", "--udp", "--size", "1472", "--rate", "100Mbit/s"],
    &["transact", "a", "b", "--tcp"],
];

/// One agent's cost in one trial.
#[derive(Debug, PartialEq)]
struct Cost {
    trial: String,
    host: String,
    /// Share of a core. `None` if the observation names no engine thread, so that the engine's part is unknown.
    share: Option<f64>,
}

impl Cost {
    fn print(&self) {
        let share = self.share.map_or("cannot tell".to_owned(), |share| format!("{:.3}", share * 100.0));
        println!("{:<32} {:<8} {share:>14}", self.trial, self.host);
    }
}

fn largest_share(costs: &[Cost]) -> f64 {
    costs.iter().filter_map(|cost| cost.share).fold(0.0, f64::max)
}

/// Runs the loads and prints the cost of every agent in every trial.
pub(super) fn run(program: Option<&Path>, folder: &Path, seconds: u32, repeats: u32) -> Result<()> {
    process::catch_interrupts()?;
    let lab = Lab::up(program, folder)?;
    let mut costs = Vec::new();
    let mut sampling = Vec::new();
    for load in LOADS {
        let timing = ["--time".to_owned(), format!("{seconds}s"), "--repeats".to_owned(), repeats.to_string()];
        let arguments: Vec<String> = load.iter().map(|&word| word.to_owned()).chain(timing).collect();
        let limit = Duration::from_secs(u64::from(seconds + 20) * u64::from(repeats));
        let (record, threads) = run_watched(lab.linerate(&arguments), limit)?;
        costs.extend(read(&record)?);
        sampling.extend(threads.shares(&load.join(" ")));
    }
    lab.down()?;
    println!("{:<32} {:<8} {:>14}", "trial", "host", "% of a core");
    costs.iter().for_each(Cost::print);
    let worst = largest_share(&costs);
    println!("worst {:.3} %; goal: under {:.0} %", worst * 100.0, GOAL * 100.0);
    print_sampling(&sampling);
    if worst >= GOAL {
        bail!("agent and observer cost {:.2} % of a core, the goal is under {:.0} %", worst * 100.0, GOAL * 100.0);
    }
    let worst = largest_share(&sampling);
    if worst >= SAMPLING_GOAL {
        bail!("sampling costs {:.2} % of a core, the goal is under {:.1} %", worst * 100.0, SAMPLING_GOAL * 100.0);
    }
    if sampling.is_empty() {
        bail!("no thread `{SAMPLING_THREAD}` was seen for a second: what sampling cost cannot be told");
    }
    let unknown = costs.iter().filter(|cost| cost.share.is_none()).count();
    if unknown > 0 {
        bail!(
            "{unknown} of {} observations name no engine thread: what the agent cost there cannot be told",
            costs.len()
        );
    }
    Ok(())
}

fn print_sampling(sampling: &[Cost]) {
    println!();
    println!("{:<64} {:<8} {:>14}", "sampling every 100 ms, the worst trial of", "host", "% of a core");
    for cost in sampling {
        println!("{:<64} {:<8} {:>14.3}", cost.trial, cost.host, cost.share.unwrap_or_default() * 100.0);
    }
    println!("worst {:.3} %; goal: under {:.1} %", largest_share(sampling) * 100.0, SAMPLING_GOAL * 100.0);
}

/// Runs linerate to its end and observes the agents' sampling threads meanwhile. Returns linerate's output and the
/// threads.
fn run_watched(command: Command, limit: Duration) -> Result<(String, Threads)> {
    let program = Path::new(command.get_program()).canonicalize().context("finding linerate")?;
    let mut threads = Threads::default();
    let mut linerate = Running::start(command)?;
    let started = Instant::now();
    while linerate.is_running()? && started.elapsed() < limit {
        process::check_interrupt()?;
        threads.look(&program);
        thread::sleep(LOOK);
    }
    Ok((linerate.finish(limit.saturating_sub(started.elapsed()))?.stdout, threads))
}

/// Sampling threads by their numbers.
#[derive(Default)]
struct Threads(BTreeMap<u32, ObservedThread>);

/// Host of a thread, and its CPU time when it was first and last observed.
struct ObservedThread {
    host: String,
    first: (Instant, Duration),
    last: (Instant, Duration),
}

impl Threads {
    /// Observes the sampling threads of all agents that run `program`.
    fn look(&mut self, program: &Path) {
        for process in numbers("/proc") {
            if fs::read_link(format!("/proc/{process}/exe")).is_ok_and(|file| file == program) {
                self.look_at(process);
            }
        }
    }

    fn look_at(&mut self, process: u32) {
        let Some(host) = fs::read(format!("/proc/{process}/cmdline")).ok().and_then(|words| name(&words)) else {
            return;
        };
        let tasks = format!("/proc/{process}/task");
        for number in numbers(&tasks) {
            let text = |file: &str| fs::read_to_string(format!("{tasks}/{number}/{file}")).unwrap_or_default();
            if text("comm").trim_end() == SAMPLING_THREAD
                && let Some(cpu) = cpu(&text("schedstat"))
            {
                self.note(number, &host, Instant::now(), cpu);
            }
        }
    }

    fn note(&mut self, number: u32, host: &str, at: Instant, cpu: Duration) {
        let first = (at, cpu);
        let thread =
            self.0.entry(number).or_insert_with(|| ObservedThread { host: host.to_owned(), first, last: first });
        thread.last = (at, cpu);
    }

    /// Returns the largest share of a core that one thread used on each host.
    fn shares(&self, load: &str) -> Vec<Cost> {
        let mut hosts = BTreeMap::<&str, f64>::new();
        for ObservedThread { host, first, last } in self.0.values() {
            let time = last.0.duration_since(first.0);
            if time >= MIN_OBSERVED {
                let share = last.1.saturating_sub(first.1).as_secs_f64() / time.as_secs_f64();
                let worst = hosts.entry(host).or_default();
                *worst = worst.max(share);
            }
        }
        hosts
            .into_iter()
            .map(|(host, share)| Cost { trial: load.into(), host: host.into(), share: Some(share) })
            .collect()
    }
}

/// Lists the names in a folder that are numbers.
fn numbers(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the host of an agent by its command line.
fn name(words: &[u8]) -> Option<String> {
    let mut words = words.split(|byte| *byte == 0);
    words.find(|word| *word == b"--name")?;
    Some(String::from_utf8_lossy(words.next()?).into_owned())
}

/// Returns the CPU time in a thread's `schedstat` (Documentation/scheduler/sched-stats.rst): the first of three
/// numbers, in nanoseconds.
fn cpu(counts: &str) -> Option<Duration> {
    counts.split_ascii_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// Returns each agent's CPU time in each trial of a record, without its engine's threads, as a share of the window.
fn read(record: &str) -> Result<Vec<Cost>> {
    let record: Value = serde_json::from_str(record).context("reading linerate's record as JSON")?;
    let trials = record["trials"].as_array().filter(|trials| !trials.is_empty()).context("the record has no trials")?;
    let mut costs = Vec::new();
    for trial in trials {
        let name = trial["trial"]["name"].as_str().unwrap_or("?");
        for (host, seen) in trial["hosts"].as_object().context("a trial without hosts")? {
            let number = |field: &str| seen[field].as_f64().with_context(|| format!("host {host} lacks {field}"));
            let threads = seen["threads"].as_array().with_context(|| format!("host {host} lacks threads"))?;
            let engine: f64 = threads.iter().filter_map(|thread| thread["cpu"].as_f64()).sum();
            let window = number("window")?;
            if window <= 0.0 {
                bail!("trial {name}: host {host} observed an empty window");
            }
            let share = (!threads.is_empty()).then_some((number("agent_cpu")? - engine) / window);
            costs.push(Cost { trial: name.to_owned(), host: host.clone(), share });
        }
    }
    Ok(costs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engine_threads_are_subtracted() {
        let record = r#"{"trials":[{"trial":{"name":"tcp"},"hosts":{
            "a":{"window":2000000000,"agent_cpu":1510000000,"threads":[{"cpu":1000000000},{"cpu":500000000}]},
            "b":{"window":1000000000,"agent_cpu":470000000,"threads":[]}}}]}"#;
        let costs = read(record).unwrap();
        assert_eq!(costs.len(), 2);
        assert!((costs[0].share.unwrap() - 0.005).abs() < 1e-12, "{costs:?}");
        assert_eq!(costs[1], Cost { trial: "tcp".into(), host: "b".into(), share: None });
    }

    #[test]
    fn worst_sampling_thread_of_each_host_counts() {
        let mut threads = Threads::default();
        let started = Instant::now();
        for (number, host, last_ms, cpu_us) in
            [(1, "a", 2_000, 3_000), (2, "a", 4_000, 4_000), (3, "b", 999, 900_000), (4, "b", 1_000, 500)]
        {
            threads.note(number, host, started, Duration::from_micros(100));
            threads.note(number, host, started + Duration::from_millis(last_ms), Duration::from_micros(100 + cpu_us));
        }
        let shares = threads.shares("stream a b");
        let worst: Vec<_> = shares.iter().map(|cost| (cost.host.as_str(), cost.share.unwrap())).collect();
        assert_eq!(worst, [("a", 0.001_5), ("b", 0.000_5)]);
        assert_eq!(largest_share(&shares), 0.001_5);
    }

    #[test]
    fn host_and_cpu_time_of_a_thread_are_read() {
        assert_eq!(name(b"linerate\0agent\0--name\0a\0--allow-frames\0all\0").as_deref(), Some("a"));
        assert_eq!(name(b"linerate\0stream\0"), None);
        assert_eq!(cpu("2500 17 3\n"), Some(Duration::from_nanos(2_500)));
        assert_eq!(cpu(""), None);
    }

    #[test]
    fn record_without_trials_is_refused() {
        assert!(read(r#"{"trials":[]}"#).is_err());
        let empty = r#"{"trials":[{"trial":{"name":"x"},"hosts":{"a":{"window":0,"agent_cpu":0,"threads":[]}}}]}"#;
        assert!(read(empty).unwrap_err().to_string().contains("empty window"));
    }
}
