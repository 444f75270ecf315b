//! Search of each peer's fastest flags on this machine: every set of flags runs for a second before the comparison.

use super::figure::Unit;
use super::peers::Peer;
use super::runs::Runner;
use super::work::Work;
use crate::process;
use anyhow::Result;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Time that each set of flags is measured, in seconds. The shortest that every peer knows.
const SECONDS: u32 = 1;

/// One run of a peer with one set of flags.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FlagRun {
    program: String,
    tool: String,
    /// Figure in the work's unit. `None` if the run failed.
    value: Option<f64>,
}

/// Runs every way to call each peer once, if the work is one of fastest flags and a peer has several.
pub(super) fn search(runner: &mut Runner<'_>, work: &Work) -> Result<Vec<FlagRun>> {
    let mut runs = Vec::new();
    if !work.load.is_tuned() {
        return Ok(runs);
    }
    let peers = runner.peers(work, SECONDS);
    for peer in &peers {
        if peers.iter().filter(|other| other.program == peer.program).count() < 2 {
            continue;
        }
        let figure = runner.run(work, &peer.tool, SECONDS);
        process::check_interrupt()?;
        let text = figure.as_ref().map_or_else(|error| format!("{error:#}"), |figure| work.unit().show(figure.value));
        eprintln!("[flags] {} {}: {text}", work.name, peer.tool);
        let value = figure.ok().map(|figure| figure.value);
        runs.push(FlagRun { program: peer.program.clone(), tool: peer.tool.clone(), value });
    }
    Ok(runs)
}

/// Leaves of each program the way to call it that was fastest. A program that was not searched, or that failed each time,
/// stays as it is listed first.
pub(super) fn fastest(peers: Vec<Peer>, runs: &[FlagRun]) -> Vec<Peer> {
    if runs.is_empty() {
        return peers;
    }
    let mut left: Vec<Peer> = Vec::new();
    for peer in peers {
        let best = best(runs, &peer.program).map(|run| run.tool.as_str());
        let is_first = left.iter().all(|other| other.program != peer.program);
        if best.map_or(is_first, |tool| tool == peer.tool) {
            left.push(peer);
        }
    }
    left
}

fn best<'a>(runs: &'a [FlagRun], program: &str) -> Option<&'a FlagRun> {
    let finished = runs.iter().filter(|run| run.program == program && run.value.is_some());
    finished.max_by(|run, other| run.value.unwrap_or_default().total_cmp(&other.value.unwrap_or_default()))
}

/// Lists the runs of each program, fastest first.
pub(super) fn list(runs: &[FlagRun], unit: Unit) -> String {
    let mut text = String::new();
    for part in runs.chunk_by(|run, other| run.program == other.program) {
        let mut sorted: Vec<&FlagRun> = part.iter().collect();
        sorted.sort_by(|run, other| other.value.unwrap_or_default().total_cmp(&run.value.unwrap_or_default()));
        let runs = sorted.into_iter().map(|run| {
            let value = run.value.map_or("failed".to_owned(), |value| unit.show(value));
            format!("{} {value}", run.tool)
        });
        let _ = writeln!(text, "  flags tried: {}", runs.collect::<Vec<_>>().join(", "));
    }
    text
}

pub(super) fn to_json(runs: &[FlagRun]) -> Value {
    runs.iter().map(|run| json!({ "tool": run.tool, "value": run.value })).collect()
}

#[cfg(test)]
mod tests {
    use super::super::peers::tests::every_peer;
    use super::super::work::WORKS;
    use super::*;

    #[test]
    fn each_program_keeps_its_fastest_flags() {
        for work in WORKS.iter().filter(|work| work.load.is_tuned()) {
            let peers = every_peer(work.load);
            let programs = peers.chunk_by(|peer, other| peer.program == other.program).count();
            let last: Vec<String> = peers
                .chunk_by(|peer, other| peer.program == other.program)
                .map(|peers| peers[peers.len() - 1].tool.clone())
                .collect();
            let runs: Vec<FlagRun> = peers
                .iter()
                .map(|peer| FlagRun {
                    program: peer.program.clone(),
                    tool: peer.tool.clone(),
                    value: Some(if last.contains(&peer.tool) { 2e9 } else { 1e9 }),
                })
                .collect();
            let left: Vec<String> = fastest(peers, &runs).into_iter().map(|peer| peer.tool).collect();
            assert_eq!(left, last, "{}", work.name);
            assert_eq!(list(&runs, work.unit()).lines().count(), programs);
        }
    }

    #[test]
    fn failed_flags_are_not_chosen() {
        let run = |tool: &str, value| FlagRun { program: "iperf3".to_owned(), tool: tool.to_owned(), value };
        let runs = [run("iperf3 -w 4M", None), run("iperf3", Some(1e9)), run("iperf3 -Z", Some(3e9))];
        assert_eq!(best(&runs, "iperf3").unwrap().tool, "iperf3 -Z");
        assert_eq!(best(&runs, "iperf"), None);
        assert_eq!(
            list(&runs, Unit::Payload),
            "  flags tried: iperf3 -Z 3.00 Gbit/s, iperf3 1.00 Gbit/s, iperf3 -w 4M failed\n"
        );
    }
}
