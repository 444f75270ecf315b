//! Compares `linerate copy` with its peers: the same tree, storage, link and caches, each tool in turn. The order
//! rotates and ratios are taken within a repeat, so that a machine that becomes slower affects all tools.

mod clients;
mod ground;
mod memory;
mod ways;

pub(super) use clients::table;
pub(super) use memory::million;

use super::figure::Spread;
use crate::process;
use anyhow::{Context, Result, bail};
use ground::{Cache, Ground};
use serde_json::{Value, json};
use std::path::Path;
use ways::{WAYS, Way};

/// Options of the comparison.
#[derive(Clone, Copy)]
pub(super) struct Comparison<'a> {
    /// Folder of results and records.
    pub(super) folder: &'a Path,
    /// Folder of the tree and its copies.
    pub(super) storage: &'a Path,
    /// Tree to generate, as for `linerate copy --tree`.
    pub(super) tree: &'a str,
    pub(super) repeats: u32,
    /// Only ways with this in their names.
    pub(super) only: Option<&'a str>,
    /// Whether the time of a copy lasts until all data is durable.
    pub(super) durable: bool,
    /// The linerate to compare. `None` builds one with the release profile.
    pub(super) program: Option<&'a Path>,
}

/// One way with one state of the caches, and the seconds of each tool in each repeat.
struct Work {
    way: &'static Way,
    cache: Cache,
    seconds: Vec<Vec<f64>>,
}

/// Runs the comparison, prints it and keeps it as JSON; fails if a goal is missed.
pub(super) fn run(comparison: &Comparison<'_>) -> Result<()> {
    let ways = WAYS.iter().filter(|way| comparison.only.is_none_or(|only| way.name.contains(only)));
    let mut works: Vec<Work> = ways
        .flat_map(|way| [Cache::Warm, Cache::Cold].map(|cache| (way, cache)))
        .map(|(way, cache)| Work { way, cache, seconds: vec![Vec::new(); way.tools.len()] })
        .collect();
    if works.is_empty() {
        let names: Vec<&str> = WAYS.iter().map(|way| way.name).collect();
        bail!("no way is called {:?}; there are {}", comparison.only.unwrap_or_default(), names.join(", "));
    }
    process::catch_interrupts()?;
    let Comparison { tree, durable, .. } = *comparison;
    let mut ground = Ground::lay(comparison, &["--bench", "cable"])?;
    let measured = measure(comparison.repeats, &mut ground, &mut works);
    let bytes = ground.bytes();
    let down = ground.lab.down();
    println!("{tree}, {} MB, {} runs each, {}", bytes / 1_000_000, comparison.repeats, policy(durable));
    for work in &works {
        print(work, bytes);
    }
    let file = comparison.folder.join("copy.json");
    let json = serde_json::to_string_pretty(&to_json(comparison, bytes, &works))?;
    std::fs::write(&file, json).with_context(|| format!("writing {}", file.display()))?;
    println!("kept in {}", file.display());
    measured.and(down)?;
    let missed: Vec<String> = works.iter().filter(|work| work.met() == Some(false)).map(Work::name).collect();
    if missed.is_empty() { Ok(()) } else { bail!("goals missed: {}", missed.join(", ")) }
}

fn policy(durable: bool) -> &'static str {
    if durable {
        "until all is durable: linerate --sync end, peers and then syncfs"
    } else {
        "nothing made durable (--sync none)"
    }
}

/// Fills `works` run by run, so that the runs before an interrupt are kept.
fn measure(repeats: u32, ground: &mut Ground, works: &mut [Work]) -> Result<()> {
    for repeat in 0..repeats {
        for work in works.iter_mut() {
            let tools = work.way.tools.len();
            for turn in 0..tools {
                let tool = (turn + repeat as usize) % tools;
                let seconds = ground.time(&work.way.tools[tool], work.cache)?;
                process::check_interrupt()?;
                eprintln!("[{}/{repeats}] {} {}: {seconds:.3} s", repeat + 1, work.name(), work.way.tools[tool].name);
                work.seconds[tool].push(seconds);
            }
        }
    }
    Ok(())
}

impl Work {
    fn name(&self) -> String {
        format!("{}, {} caches", self.way.name, self.cache.name())
    }

    /// Returns how many times as fast as `peer` a tool was, over the repeats that both finished.
    fn ratio(&self, tool: usize, peer: usize) -> Option<Spread> {
        Spread::of(self.seconds[tool].iter().zip(&self.seconds[peer]).map(|(ours, theirs)| theirs / ours))
    }

    fn peers(&self) -> impl Iterator<Item = usize> {
        (0..self.way.tools.len()).filter(|tool| matches!(self.way.tools[*tool].client, ways::Client::Shell(_)))
    }

    /// Returns the peer that linerate is least ahead of.
    fn rival(&self) -> Option<(usize, Spread)> {
        let ratios = self.peers().filter_map(|peer| Some((peer, self.ratio(0, peer)?)));
        ratios.min_by(|(_, ratio), (_, other)| ratio.median.total_cmp(&other.median))
    }

    fn met(&self) -> Option<bool> {
        self.rival().map(|(_, ratio)| ratio.median >= self.way.goal)
    }
}

fn print(work: &Work, bytes: u64) {
    println!("\n{}", work.name());
    println!(
        "  {:<28} {:>9} {:>18} {:>9}  linerate / it         --verify none / it",
        "tool", "median", "range", "MB/s"
    );
    for (index, tool) in work.way.tools.iter().enumerate() {
        let Some(seconds) = Spread::of(work.seconds[index].iter().copied()) else { continue };
        let range = format!("{:.2} to {:.2} s", seconds.low, seconds.high);
        let rate = bytes as f64 / 1e6 / seconds.median;
        let ratios = if work.peers().any(|peer| peer == index) {
            [0, 1].map(|ours| work.ratio(ours, index).map_or(String::new(), |ratio| ratio.to_string())).join("     ")
        } else {
            String::new()
        };
        println!("  {:<28} {:>7.2} s {range:>18} {rate:>9.0}  {ratios}", tool.name, seconds.median);
    }
    if let Some((rival, ratio)) = work.rival() {
        let met = if ratio.median >= work.way.goal { "met" } else { "NOT MET" };
        let (goal, rival) = (work.way.goal, work.way.tools[rival].name);
        println!("  goal: {goal:.1} x the fastest peer; {:.2} x {rival}: {met}", ratio.median);
    }
}

fn to_json(comparison: &Comparison<'_>, bytes: u64, works: &[Work]) -> Value {
    let spread = |spread: Spread| json!({ "median": spread.median, "low": spread.low, "high": spread.high });
    let tool = |work: &Work, index: usize| {
        json!({
            "tool": work.way.tools[index].name,
            "seconds": work.seconds[index],
            "median": Spread::of(work.seconds[index].iter().copied()).map(spread),
            "linerate_over_it": work.ratio(0, index).map(spread),
        })
    };
    let work = |work: &Work| {
        json!({
            "way": work.way.name,
            "cache": work.cache.name(),
            "goal": work.way.goal,
            "met": work.met(),
            "tools": (0..work.way.tools.len()).map(|index| tool(work, index)).collect::<Vec<_>>(),
        })
    };
    json!({
        "tree": comparison.tree,
        "bytes": bytes,
        "repeats": comparison.repeats,
        "durable": comparison.durable,
        "works": works.iter().map(work).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(seconds: &[&[f64]]) -> Work {
        Work { way: &WAYS[0], cache: Cache::Warm, seconds: seconds.iter().map(|runs| runs.to_vec()).collect() }
    }

    #[test]
    fn goal_refers_to_the_fastest_peer_within_each_repeat() {
        // The machine halves its speed after the first repeat; the ratios stay.
        let work = work(&[&[1.0, 2.0], &[0.5, 1.0], &[2.0, 4.0], &[0.9, 1.8]]);
        let (rival, ratio) = work.rival().unwrap();
        assert_eq!((rival, ratio), (3, Spread { median: 0.9, low: 0.9, high: 0.9 }));
        assert_eq!(work.met(), Some(false), "what does not verify is not what the goal is for");
        assert_eq!(work.ratio(1, 2).unwrap().median, 4.0);
    }

    #[test]
    fn unmeasured_work_has_no_goal() {
        assert_eq!(work(&[&[1.0], &[], &[], &[]]).met(), None);
    }
}
