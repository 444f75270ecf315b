//! Compares linerate with its peers on one link. In each repeat every tool runs once, in an order that rotates, so that
//! a machine that becomes slower or faster affects all tools. Ratios are taken within a repeat.

use super::against;
use super::callgrind::{self, Instructions};
use super::counters::{self, Perf};
use super::figure::{Figure, Spread};
use super::flags::{self, FlagRun};
use super::flames;
use super::lab::{Lab, SENDER};
use super::peers::{Installed, Peer};
use super::runs::{OURS, Runner};
use super::why::{self, Column, Why};
use super::work::{Load, WORKS, Work};
use super::{Comparison, FOLDER};
use crate::process;
use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Options of the comparison.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    comparison: Comparison,
    /// Look for peers here before PATH, for versions the distribution does not have.
    #[arg(long)]
    peer_path: Option<PathBuf>,
    /// Run each tool once more and count what each CPU does for a message: time, context switches, wake-ups, system calls,
    /// soft interrupts.
    #[arg(long)]
    why: bool,
    /// With --why, also count the instructions of linerate and of the nearest peer in user space by valgrind.
    #[arg(long, requires = "why")]
    instructions: bool,
    /// Draw flame graphs of linerate and of the nearest peer in this folder, in one further run of each.
    #[arg(long, value_name = "DIR")]
    flames: Option<PathBuf>,
    /// Instead of the peers: another linerate program, in turn with this one.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["why", "flames", "peer_path"])]
    against: Option<PathBuf>,
}

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
    why: Option<Why>,
    instructions: Option<Instructions>,
}

/// Runs of one work. linerate's come first.
struct Table {
    work: &'static Work,
    tracks: Vec<Track>,
    /// Runs by which the flags of the peers were chosen.
    flags: Vec<FlagRun>,
}

/// Runs the comparison, prints it and writes it as JSON.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let comparison = &arguments.comparison;
    if let Some(other) = &arguments.against {
        return against::run(comparison, other);
    }
    let works: Vec<&'static Work> = WORKS.iter().filter(|work| comparison.has(work.name)).collect();
    if works.is_empty() {
        let names: Vec<&str> = WORKS.iter().map(|work| work.name).collect();
        bail!("no work is called {:?}; there are {}", comparison.only.as_deref().unwrap_or_default(), names.join(", "));
    }
    let installed = Installed::find(arguments.peer_path.as_deref());
    let (present, missing) = installed.present_and_missing();
    eprintln!("peers: {}; not installed: {}", join_names(&present), join_names(&missing));

    process::catch_interrupts()?;
    let program = super::lab::find_or_build(comparison.program.as_deref())?;
    let lab = Lab::up(Some(&program), Path::new(FOLDER))?;
    let default = lab.ask(SENDER, &["cat", "/proc/sys/net/ipv4/tcp_congestion_control"])?.stdout.trim().to_owned();
    let mut tables = Vec::new();
    let result = Runner::new(&lab, &installed)
        .and_then(|mut runner| measure(arguments, &program, &mut runner, &works, &mut tables));
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
    arguments: &Arguments,
    program: &Path,
    runner: &mut Runner<'_>,
    works: &[&'static Work],
    tables: &mut Vec<Table>,
) -> Result<()> {
    let Comparison { seconds, repeats, .. } = arguments.comparison;
    for &work in works {
        let flags = flags::search(runner, work)?;
        tables.push(Table::new(work, &flags::fastest(runner.peers(work, seconds), &flags), flags));
    }
    for repeat in 0..repeats {
        for table in tables.iter_mut() {
            let tools = table.tracks.len();
            for turn in 0..tools {
                let tool = (turn + repeat as usize) % tools;
                let figure = runner.run(table.work, &table.tracks[tool].tool, seconds);
                process::check_interrupt()?;
                table.record(repeat, tool, figure, repeats);
            }
        }
    }
    if !arguments.why && arguments.flames.is_none() {
        return Ok(());
    }
    let perf = Perf::find();
    if arguments.why {
        explain(arguments, program, &perf, runner, tables)?;
    }
    if let Some(folder) = &arguments.flames {
        draw_flames(folder, &perf, seconds, runner, tables)?;
    }
    Ok(())
}

/// Draws flame graphs of linerate and of each work's nearest peer.
fn draw_flames(folder: &Path, perf: &Perf, seconds: u32, runner: &mut Runner<'_>, tables: &[Table]) -> Result<()> {
    for table in tables {
        let work = table.work;
        for index in std::iter::once(0).chain(table.rival_index()) {
            let tool = &table.tracks[index].tool;
            let name = format!("{}-{}", work.name, tool.split(' ').next().unwrap_or(tool));
            let drawn = flames::record(perf, folder, &name, || runner.run(work, tool, seconds));
            process::check_interrupt()?;
            match drawn {
                Ok(_) => eprintln!("[flames] {}", folder.join(name + ".svg").display()),
                Err(error) => eprintln!("[flames] {} {tool}: FAILED: {error:#}", work.name),
            }
        }
    }
    Ok(())
}

/// Runs each tool once more, with counters. Failures are printed only, because the comparison is complete.
fn explain(
    arguments: &Arguments,
    program: &Path,
    perf: &Perf,
    runner: &mut Runner<'_>,
    tables: &mut [Table],
) -> Result<()> {
    eprintln!("not counted on this machine: {}", join_names(&perf.missing()));
    for table in tables {
        let work = table.work;
        for track in &mut table.tracks {
            let counted = counters::count(perf, || runner.run(work, &track.tool, arguments.comparison.seconds));
            process::check_interrupt()?;
            match counted {
                Ok((figure, counts)) => track.why = Some(Why::new(figure.value, counts)),
                Err(error) => eprintln!("[why] {} {}: FAILED: {error:#}", work.name, track.tool),
            }
        }
        if !arguments.instructions {
            continue;
        }
        for index in std::iter::once(0).chain(table.rival_index()) {
            let track = &mut table.tracks[index];
            let counted = callgrind::count(runner, work, &track.tool, program);
            process::check_interrupt()?;
            match counted {
                Ok(instructions) => track.instructions = Some(instructions),
                Err(error) => eprintln!("[instructions] {} {}: FAILED: {error:#}", work.name, track.tool),
            }
        }
    }
    Ok(())
}

impl Table {
    fn new(work: &'static Work, peers: &[Peer], flags: Vec<FlagRun>) -> Self {
        let ours = Track::new(OURS, true, false);
        let theirs = peers.iter().map(|peer| Track::new(&peer.tool, peer.cubic, peer.counts));
        Self { work, tracks: std::iter::once(ours).chain(theirs).collect(), flags }
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
        let track = &self.tracks[self.rival_index()?];
        Some((track, self.ratio(track)?))
    }

    fn rival_index(&self) -> Option<usize> {
        let counting = self.tracks.iter().enumerate().filter(|(_, track)| track.counts);
        let ratios = counting.filter_map(|(index, track)| Some((index, self.ratio(track)?.median)));
        ratios.min_by(|(_, ratio), (_, other)| ratio.total_cmp(other)).map(|(index, _)| index)
    }

    /// Returns the counts of linerate and of the nearest peer, as far as they were made.
    fn columns(&self) -> Vec<Column<'_>> {
        let tracks = std::iter::once(0).chain(self.rival_index()).map(|index| &self.tracks[index]);
        let columns = tracks.filter_map(|track| {
            Some(Column { tool: &track.tool, why: track.why.as_ref()?, instructions: track.instructions })
        });
        columns.collect()
    }
}

impl Track {
    fn new(tool: &str, cubic: bool, counts: bool) -> Self {
        let tool = tool.to_owned();
        Self { tool, cubic, counts, runs: Vec::new(), failure: None, why: None, instructions: None }
    }

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
    print!("{}", flags::list(&table.flags, unit));
    let columns = table.columns();
    if !columns.is_empty() {
        print!("\n{}", why::table(unit, &columns));
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
            "why": track.why.as_ref().map(|why| why.to_json(self.work.unit())),
            "instructions": track.instructions.map(Instructions::to_json),
        })
    }

    fn to_json(&self) -> Value {
        let rival = self.rival();
        json!({
            "work": self.work.name,
            "unit": self.work.unit().name(),
            "goal": self.work.goal,
            "rival": rival.map(|(rival, _)| rival.tool.clone()),
            "flags": flags::to_json(&self.flags),
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
            runs: values.iter().map(|value| value.map(|value| Figure { value, ..Figure::default() })).collect(),
            ..Track::new(tool, true, *counts)
        };
        let work = WORKS.iter().find(|work| work.name == goal_work).unwrap();
        Table { work, tracks: runs.iter().map(track).collect(), flags: Vec::new() }
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
}
