//! linerate and its peers in turn on one link. Repeat by repeat every tool runs once, in an order that turns with each
//! repeat, so that a machine that grows slower or faster meanwhile does so for all. Ratios are taken within a repeat.

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

/// The tool that everything is compared with.
const OURS: &str = "linerate";

/// One tool's runs of one work.
struct Track {
    tool: String,
    /// The congestion control is cubic; otherwise the machine's default.
    cubic: bool,
    /// The goal is held against it.
    counts: bool,
    /// One entry a repeat; none where it failed.
    runs: Vec<Option<Figure>>,
    failure: Option<String>,
}

/// One work's runs; linerate's come first.
struct Table {
    work: &'static Work,
    tracks: Vec<Track>,
}

/// Runs the comparison, prints it and keeps it as JSON.
pub(super) fn run(comparison: &Comparison, peer_path: Option<&Path>) -> Result<()> {
    let works: Vec<&'static Work> = WORKS.iter().filter(|work| comparison.has(work.name)).collect();
    if works.is_empty() {
        let names: Vec<&str> = WORKS.iter().map(|work| work.name).collect();
        bail!("no work is called {:?}; there are {}", comparison.only.as_deref().unwrap_or_default(), names.join(", "));
    }
    let installed = Installed::find(peer_path);
    let (found, missing) = installed.found_and_missing();
    eprintln!("peers: {}; not installed: {}", listed(&found), listed(&missing));

    process::catch_interrupts()?;
    let lab = Lab::up(comparison.program.as_deref(), Path::new(FOLDER))?;
    let to = lab.address(RECEIVER)?;
    let default = lab.ask(SENDER, &["cat", "/proc/sys/net/ipv4/tcp_congestion_control"])?.stdout.trim().to_owned();
    let mut tables = Vec::new();
    let ended = measure(comparison, &lab, &installed, &to, &works, &mut tables);
    let down = lab.down();

    for table in &tables {
        print(table, &default);
    }
    let file = Path::new(FOLDER).join("streams.json");
    let kept = serde_json::to_string_pretty(&to_json(comparison, &default, &tables))?;
    std::fs::write(&file, kept).with_context(|| format!("writing {}", file.display()))?;
    println!("kept in {}", file.display());
    ended.and(down)?;
    match tables.iter().find_map(|table| table.tracks[0].failure.as_deref()) {
        Some(failure) => bail!("linerate itself failed: {failure}"),
        None => Ok(()),
    }
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Fills `tables` run by run, so that what was measured before an interrupt is kept.
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
        let shown = match &figure {
            Ok(figure) => self.work.unit().show(figure.value),
            Err(error) => format!("FAILED: {error:#}"),
        };
        eprintln!("[{}/{repeats}] {} {}: {shown}", repeat + 1, self.work.name, track.tool);
        match figure {
            Ok(figure) => track.runs.push(Some(figure)),
            Err(error) => {
                track.runs.push(None);
                track.failure = Some(format!("{} {}: {error:#}", self.work.name, track.tool));
            }
        }
    }

    /// linerate's figure over a peer's, within each repeat that both finished.
    fn ratio(&self, peer: &Track) -> Option<Spread> {
        let pairs = self.tracks[0].runs.iter().zip(&peer.runs);
        Spread::of(pairs.filter_map(|(ours, theirs)| Some((*ours)?.value / (*theirs)?.value)))
    }

    /// The peer that the goal is held against: of those that count, the one linerate is least ahead of.
    fn rival(&self) -> Option<(&Track, Spread)> {
        let ratios =
            self.tracks.iter().filter(|track| track.counts).filter_map(|track| Some((track, self.ratio(track)?)));
        ratios.min_by(|(_, one), (_, other)| one.median.total_cmp(&other.median))
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
    read::linerate(&Written { client: &output.stdout, server: "" }, asked(work))
}

/// linerate's own command for a load. It has no faster flags than its defaults, so plain and best are the same.
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

/// Starts the peer's server in the receiving host, its client in the sending one, and reads what they wrote.
fn run_peer(lab: &Lab, work: &Work, peer: &Peer, seconds: u32) -> Result<Figure> {
    let mut server = Running::start(lab.inside(RECEIVER, pinned(RECEIVER_CPU, &peer.server)))?;
    if let Err(error) = lab.await_listening(&mut server, peer.port) {
        let said = server.stop(peer.stop)?;
        bail!("{error:#}: {} {}", said.stdout.trim(), said.stderr.trim());
    }
    let client = process::run(lab.inside(SENDER, pinned(SENDER_CPU, &peer.client)), limit(seconds))?;
    let server = server.stop(peer.stop)?;
    (peer.read)(&Written { client: &client.stdout, server: &server.stdout }, asked(work))
}

fn pinned<'a>(cpu: &'a str, words: &'a [String]) -> impl Iterator<Item = &'a str> {
    ["taskset", "-c", cpu].into_iter().chain(words.iter().map(String::as_str))
}

fn asked(work: &Work) -> WorkUnit {
    let datagram = match work.load {
        Load::Udp { size, .. } => Some(size),
        Load::Tcp { .. } | Load::Transact { .. } => None,
    };
    WorkUnit { unit: work.unit(), datagram }
}

/// The run itself, its warm-up, and set-up at leisure.
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
    let spread = |spread: Option<Spread>| {
        spread.map(|spread| json!({ "median": spread.median, "low": spread.low, "high": spread.high }))
    };
    let tool = |table: &Table, track: &Track| {
        json!({
            "tool": track.tool,
            "cubic": track.cubic,
            "counts": track.counts,
            "values": track.runs.iter().map(|run| run.map(|figure| figure.value)).collect::<Vec<_>>(),
            "value": spread(track.values()),
            "lost": spread(track.lost()),
            "p50_ns": spread(track.p50_ns()),
            "linerate_over_peer": spread(table.ratio(track)),
            "failure": track.failure,
        })
    };
    let work = |table: &Table| {
        let rival = table.rival();
        json!({
            "work": table.work.name,
            "unit": table.work.unit().name(),
            "goal": table.work.goal,
            "rival": rival.map(|(rival, _)| rival.tool.clone()),
            "met": rival.map(|(_, ratio)| ratio.median >= table.work.goal),
            "tools": table.tracks.iter().map(|track| tool(table, track)).collect::<Vec<_>>(),
        })
    };
    json!({
        "repeats": comparison.repeats,
        "seconds": comparison.seconds,
        "default_congestion_control": default,
        "works": tables.iter().map(work).collect::<Vec<_>>(),
    })
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
    fn the_goal_is_held_against_the_strongest_peer_that_counts() {
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
        let kept = to_json(&comparison, "bbr", &[table]);
        assert_eq!(kept["works"][0]["met"], json!(true));
        assert_eq!(kept["works"][0]["tools"][4]["values"], json!([null]));
    }

    #[test]
    fn a_table_without_peers_has_no_rival() {
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
