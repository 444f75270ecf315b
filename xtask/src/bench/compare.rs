//! Compares linerate with its peers on one link. In each repeat every tool runs once, in an order that rotates, so that
//! a machine that becomes slower or faster affects all tools. Ratios are taken within a repeat.

use super::figure::{Figure, Spread};
use super::lab::{Lab, RECEIVER, SENDER};
use super::peers::{Installed, Peer, port};
use super::read::{self, WorkUnit, Written};
use super::work::{Load, WORKS, Wait, Work};
use super::{Comparison, FOLDER};
use crate::process::{self, Running};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// The CPUs that every tool is pinned to.
const SENDER_CPU: &str = "0";
const RECEIVER_CPU: &str = "1";

/// Name of linerate in tables and results.
const OURS: &str = "linerate";

/// One tool's runs of one work.
struct Track {
    tool: String,
    /// Whether the congestion control is cubic. Otherwise it is the machine's default.
    cubic: bool,
    /// Whether the goal refers to this tool.
    counts: bool,
    /// Figure of each repeat. `None` if the run failed.
    runs: Vec<Option<Figure>>,
    failure: Option<String>,
}

/// Runs of one work. linerate's come first.
struct Table {
    work: &'static Work,
    tracks: Vec<Track>,
}

/// Runs the comparison, prints it and writes it as JSON.
pub(super) fn run(comparison: &Comparison, peer_path: Option<&Path>) -> Result<()> {
    let works: Vec<&'static Work> = WORKS.iter().filter(|work| comparison.has(work.name)).collect();
    if works.is_empty() {
        let names: Vec<&str> = WORKS.iter().map(|work| work.name).collect();
        bail!("no work is called {:?}; there are {}", comparison.only.as_deref().unwrap_or_default(), names.join(", "));
    }
    let installed = Installed::find(peer_path);
    let (present, missing) = installed.present_and_missing();
    eprintln!("peers: {}; not installed: {}", join_names(&present), join_names(&missing));

    process::catch_interrupts()?;
    let lab = Lab::up(comparison.program.as_deref(), Path::new(FOLDER))?;
    let to = lab.address(RECEIVER)?;
    let default = lab.ask(SENDER, &["cat", "/proc/sys/net/ipv4/tcp_congestion_control"])?.stdout.trim().to_owned();
    let mut tables = Vec::new();
    let result = measure(comparison, &lab, &installed, &to, &works, &mut tables);
    let down = lab.down();

    for table in &tables {
        print(table, &default);
    }
    let file = Path::new(FOLDER).join("streams.json");
    let json = serde_json::to_string_pretty(&to_json(comparison, &default, &tables))?;
    std::fs::write(&file, json).with_context(|| format!("writing {}", file.display()))?;
    println!("kept in {}", file.display());
    result.and(down)?;
    match tables.iter().find_map(|table| table.tracks[0].failure.as_deref()) {
        Some(failure) => bail!("linerate itself failed: {failure}"),
        None => Ok(()),
    }
}

fn join_names(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Fills `tables` run by run, so that the runs before an interrupt are kept.
fn measure(
    comparison: &Comparison,
    lab: &Lab,
    installed: &Installed,
    to: &str,
    works: &[&'static Work],
    tables: &mut Vec<Table>,
) -> Result<()> {
    let seconds = comparison.seconds;
    tables.extend(works.iter().map(|&work| Table::new(work, &installed.peers(work.load, to, port(0), seconds))));
    let mut run = 0;
    for repeat in 0..comparison.repeats {
        for table in tables.iter_mut() {
            let tools = table.tracks.len();
            for turn in 0..tools {
                let tool = (turn + repeat as usize) % tools;
                let figure = match tool.checked_sub(1) {
                    None => run_linerate(lab, table.work, seconds),
                    Some(peer) => {
                        run += 1;
                        let peers = installed.peers(table.work.load, to, port(run), seconds);
                        run_peer(lab, table.work, &peers[peer], seconds)
                    }
                };
                process::check_interrupt()?;
                table.record(repeat, tool, figure, comparison.repeats);
            }
        }
    }
    Ok(())
}

impl Table {
    fn new(work: &'static Work, peers: &[Peer]) -> Self {
        let track =
            |tool: &str, cubic, counts| Track { tool: tool.to_owned(), cubic, counts, runs: Vec::new(), failure: None };
        let ours = track(OURS, true, false);
        let theirs = peers.iter().map(|peer| track(&peer.tool, peer.cubic, peer.counts));
        Self { work, tracks: std::iter::once(ours).chain(theirs).collect() }
    }

    fn record(&mut self, repeat: u32, tool: usize, figure: Result<Figure>, repeats: u32) {
        let track = &mut self.tracks[tool];
        let text = match &figure {
            Ok(figure) => self.work.unit().show(figure.value),
            Err(error) => format!("FAILED: {error:#}"),
        };
        eprintln!("[{}/{repeats}] {} {}: {text}", repeat + 1, self.work.name, track.tool);
        match figure {
            Ok(figure) => track.runs.push(Some(figure)),
            Err(error) => {
                track.runs.push(None);
                track.failure = Some(format!("{} {}: {error:#}", self.work.name, track.tool));
            }
        }
    }

    /// Returns the ratio of linerate's figure to a peer's, over the repeats that both finished.
    fn ratio(&self, peer: &Track) -> Option<Spread> {
        let pairs = self.tracks[0].runs.iter().zip(&peer.runs);
        Spread::of(pairs.filter_map(|(ours, theirs)| Some((*ours)?.value / (*theirs)?.value)))
    }

    /// Returns the peer that the goal refers to: the strongest of those that count.
    fn rival(&self) -> Option<(&Track, Spread)> {
        let ratios =
            self.tracks.iter().filter(|track| track.counts).filter_map(|track| Some((track, self.ratio(track)?)));
        ratios.min_by(|(_, ratio), (_, other)| ratio.median.total_cmp(&other.median))
    }
}

impl Track {
    fn values(&self) -> Option<Spread> {
        Spread::of(self.figures().map(|figure| figure.value))
    }

    fn lost(&self) -> Option<Spread> {
        Spread::of(self.figures().filter_map(|figure| figure.lost))
    }

    fn p50_ns(&self) -> Option<Spread> {
        Spread::of(self.figures().filter_map(|figure| figure.p50_ns))
    }

    fn figures(&self) -> impl Iterator<Item = &Figure> {
        self.runs.iter().flatten()
    }
}

fn run_linerate(lab: &Lab, work: &Work, seconds: u32) -> Result<Figure> {
    let output = process::run(lab.linerate(&linerate_arguments(work.load, seconds)), limit(seconds))?;
    read::linerate(&Written { client: &output.stdout, server: "" }, work_unit(work))
}

/// Returns linerate's arguments for a load. Its defaults are its fastest flags, so plain and best are the same.
fn linerate_arguments(load: Load, seconds: u32) -> Vec<String> {
    let line = match load {
        Load::Tcp { flows, .. } => format!("stream {SENDER} {RECEIVER} --flows {flows} --congestion cubic"),
        Load::Udp { size, offload } => {
            let offload = if offload { "" } else { "--no-offload" };
            format!("stream {SENDER} {RECEIVER} --udp --size {size} {offload}")
        }
        Load::Transact { udp, wait } => {
            let transport = if udp { "--udp" } else { "--tcp" };
            let wait = if wait == Wait::BusyPoll { "--busy-poll" } else { "" };
            format!("transact {SENDER} {RECEIVER} {transport} --request 1 --response 1 {wait}")
        }
    };
    let pinned = format!("{line} --cpus-sender {SENDER_CPU} --cpus-receiver {RECEIVER_CPU}");
    format!("{pinned} --time {seconds}s --repeats 1").split_whitespace().map(str::to_owned).collect()
}

/// Runs the peer's server in the receiving host and its client in the sending host, and reads their output.
fn run_peer(lab: &Lab, work: &Work, peer: &Peer, seconds: u32) -> Result<Figure> {
    let mut server = Running::start(lab.inside(RECEIVER, pinned(RECEIVER_CPU, &peer.server)))?;
    if let Err(error) = lab.await_listening(&mut server, peer.port) {
        let output = server.stop(peer.stop)?;
        bail!("{error:#}: {} {}", output.stdout.trim(), output.stderr.trim());
    }
    let client = process::run(lab.inside(SENDER, pinned(SENDER_CPU, &peer.client)), limit(seconds))?;
    let server = server.stop(peer.stop)?;
    (peer.read)(&Written { client: &client.stdout, server: &server.stdout }, work_unit(work))
}

fn pinned<'a>(cpu: &'a str, words: &'a [String]) -> impl Iterator<Item = &'a str> {
    ["taskset", "-c", cpu].into_iter().chain(words.iter().map(String::as_str))
}

fn work_unit(work: &Work) -> WorkUnit {
    let datagram = match work.load {
        Load::Udp { size, .. } => Some(size),
        Load::Tcp { .. } | Load::Transact { .. } => None,
    };
    WorkUnit { unit: work.unit(), datagram }
}

/// Returns the time limit of a run, with its warm-up and set-up.
fn limit(seconds: u32) -> Duration {
    Duration::from_secs(u64::from(seconds) + 20)
}

fn print(table: &Table, default: &str) {
    let unit = table.work.unit();
    println!("\n{}", table.work.name);
    println!("  {:<34} {:>14} {:>32} {:>9} {:>9}  linerate / peer", "tool", "median", "min..max", "lost", "p50");
    for track in &table.tracks {
        let tool = match (track.cubic, table.work.load) {
            (false, Load::Tcp { .. }) => format!("{} [{default}]", track.tool),
            _ => track.tool.clone(),
        };
        let Some(values) = track.values() else {
            println!("  {tool:<34} {}", if track.failure.is_some() { "failed, see above" } else { "not run" });
            continue;
        };
        let range = format!("{} .. {}", unit.show(values.low), unit.show(values.high));
        let lost = track.lost().map_or(String::new(), |lost| format!("{:.2} %", lost.median * 100.0));
        let p50 = track.p50_ns().map_or(String::new(), |p50| format!("{:.1} us", p50.median / 1e3));
        let ratio = if track.tool == OURS { None } else { table.ratio(track) };
        let ratio = ratio.map_or(String::new(), |ratio| ratio.to_string());
        println!("  {tool:<34} {:>14} {range:>32} {lost:>9} {p50:>9}  {ratio}", unit.show(values.median));
    }
    match table.rival() {
        Some((rival, ratio)) => println!(
            "  goal: {:.2} x the best peer; {:.2} x {}: {}",
            table.work.goal,
            ratio.median,
            rival.tool,
            if ratio.median >= table.work.goal { "met" } else { "NOT MET" }
        ),
        None => println!("  goal: {:.2} x the best peer; nothing to compare with", table.work.goal),
    }
}

fn to_json(comparison: &Comparison, default: &str, tables: &[Table]) -> Value {
    json!({
        "repeats": comparison.repeats,
        "seconds": comparison.seconds,
        "default_congestion_control": default,
        "works": tables.iter().map(Table::to_json).collect::<Vec<_>>(),
    })
}

fn spread_json(spread: Option<Spread>) -> Option<Value> {
    spread.map(|spread| json!({ "median": spread.median, "low": spread.low, "high": spread.high }))
}

impl Table {
    fn track_json(&self, track: &Track) -> Value {
        json!({
            "tool": track.tool,
            "cubic": track.cubic,
            "counts": track.counts,
            "values": track.runs.iter().map(|run| run.map(|figure| figure.value)).collect::<Vec<_>>(),
            "value": spread_json(track.values()),
            "lost": spread_json(track.lost()),
            "p50_ns": spread_json(track.p50_ns()),
            "linerate_over_peer": spread_json(self.ratio(track)),
            "failure": track.failure,
        })
    }

    fn to_json(&self) -> Value {
        let rival = self.rival();
        json!({
            "work": self.work.name,
            "unit": self.work.unit().name(),
            "goal": self.work.goal,
            "rival": rival.map(|(rival, _)| rival.tool.clone()),
            "met": rival.map(|(_, ratio)| ratio.median >= self.work.goal),
            "tools": self.tracks.iter().map(|track| self.track_json(track)).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(goal_work: &'static str, runs: &[(&str, bool, &[Option<f64>])]) -> Table {
        let track = |(tool, counts, values): &(&str, bool, &[Option<f64>])| Track {
            tool: (*tool).to_owned(),
            cubic: true,
            counts: *counts,
            runs: values.iter().map(|value| value.map(|value| Figure { value, ..Figure::default() })).collect(),
            failure: None,
        };
        let work = WORKS.iter().find(|work| work.name == goal_work).unwrap();
        Table { work, tracks: runs.iter().map(track).collect() }
    }

    #[test]
    fn ratios_pair_the_runs_of_a_repeat() {
        // The machine halves its speed after the first repeat; the tools' ratio stays.
        let table = table(
            "tcp-rr",
            &[
                (OURS, false, &[Some(200.0), Some(100.0), None, Some(110.0)]),
                ("peer", true, &[Some(100.0), Some(50.0), Some(60.0), Some(50.0)]),
            ],
        );
        assert_eq!(table.ratio(&table.tracks[1]), Some(Spread { median: 2.0, low: 2.0, high: 2.2 }));
    }

    #[test]
    fn goal_refers_to_the_strongest_peer_that_counts() {
        let table = table(
            "tcp-rr-busy-poll",
            &[
                (OURS, false, &[Some(300.0)]),
                ("slow", true, &[Some(100.0)]),
                ("fast", true, &[Some(150.0)]),
                ("polls too", false, &[Some(299.0)]),
                ("failed", true, &[None]),
            ],
        );
        let (rival, ratio) = table.rival().unwrap();
        assert_eq!((rival.tool.as_str(), ratio.median), ("fast", 2.0));
        let comparison = Comparison { repeats: 1, seconds: 1, only: None, program: None };
        let json = to_json(&comparison, "bbr", &[table]);
        assert_eq!(json["works"][0]["met"], json!(true));
        assert_eq!(json["works"][0]["tools"][4]["values"], json!([null]));
    }

    #[test]
    fn table_without_peers_has_no_rival() {
        assert!(table("tcp-rr", &[(OURS, false, &[Some(1.0)])]).rival().is_none());
    }

    #[test]
    fn every_linerate_command_is_pinned_and_runs_once() {
        for work in WORKS {
            let line = linerate_arguments(work.load, 2).join(" ");
            assert!(line.ends_with("--cpus-sender 0 --cpus-receiver 1 --time 2s --repeats 1"), "{line}");
        }
        let line = linerate_arguments(Load::Udp { size: 64, offload: false }, 2).join(" ");
        assert!(line.starts_with("stream a b --udp --size 64 --no-offload "), "{line}");
    }
}
