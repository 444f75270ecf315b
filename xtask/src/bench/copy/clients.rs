//! Copies a tree over each way, on a slow and on an unshaped link, to one client and to several, and prints a table of
//! rates, shares and stages.

use super::Comparison;
use super::ground::{Copied, Ground, words};
use super::ways::{THROUGH_GANESHA, THROUGH_SAMBA, Tool};
use crate::bench::lab::find_or_build;
use crate::process;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Time limit of one copy. Three clients at 100 Mbit/s need three minutes.
const LIMIT: Duration = Duration::from_secs(900);
/// Minimum busy share of a stage that is shown.
const MIN_BUSY: f64 = 0.1;

/// Operation of one or several clients at the same time.
pub(super) struct Load {
    pub(super) clients: u32,
    /// Direction: the clients read from one server, write to it, or each serve NFS to one client.
    ///
    /// An agent serves NFS only as a destination, so reading over NFS needs another server.
    pub(super) they: &'static str,
    /// Arguments of `linerate copy`.
    pub(super) words: &'static str,
}

const fn load(clients: u32, they: &'static str, words: &'static str) -> Load {
    Load { clients, they, words }
}

/// Each way and its loads.
const WAYS: &[(&str, &[Load])] = &[
    (
        "linerate",
        &[
            load(1, "read", "a b --over linerate"),
            load(3, "read", "a --to b,c,d --over linerate"),
            load(3, "write", "b,c,d a --over linerate"),
        ],
    ),
    (
        "nfs",
        &[
            load(1, "write", "a b --over nfs"),
            load(3, "serve", "a --to b,c,d --over nfs"),
            load(3, "write", "b,c,d a --over nfs"),
        ],
    ),
    ("path", &[load(1, "copy", "a --over path")]),
];

/// Name of each link, and the rate of the lab's links.
const LINKS: &[(&str, Option<&str>)] = &[("100 Mbit/s", Some("100Mbit/s")), ("unshaped", None)];

/// Measures the loads, prints a row after each, and writes the table as Markdown.
pub(in crate::bench) fn table(comparison: &Comparison<'_>) -> Result<()> {
    process::catch_interrupts()?;
    let program = find_or_build(comparison.program)?;
    let scratch = comparison.storage.join("scratch");
    fs::create_dir_all(&scratch).with_context(|| format!("making {}", scratch.display()))?;
    let file = comparison.folder.join("copy-table.md");
    let mut all = format!(
        "| {} over | link | clients | they | MB/s together | time | each client's share | busiest stage | stages busy |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        comparison.tree
    );
    print!("{all}");
    let is_selected = |way: &str| comparison.only.is_none_or(|only| way.contains(only));
    for (way, loads) in WAYS.iter().filter(|(way, _)| is_selected(way)) {
        // A copy within one host uses no link.
        let links = if *way == "path" { &[("none", None)][..] } else { LINKS };
        for (link, rate) in links {
            for load in *loads {
                let copied = copy(&program, &scratch, comparison, *rate, load.words)?;
                let row = format!("| {way} | {link} | {} | {} | {}", load.clients, load.they, row(&copied));
                println!("{row}");
                all += &(row + "\n");
                // After each row, so that the rows before an interrupt are kept.
                fs::write(&file, &all).with_context(|| format!("writing {}", file.display()))?;
            }
        }
    }
    let servers: [(&str, &Tool, &[Load]); 2] =
        [("nfs-ganesha", &THROUGH_GANESHA.0, &THROUGH_GANESHA.1), ("smb", &THROUGH_SAMBA.0, &THROUGH_SAMBA.1)];
    for (way, server, loads) in servers.iter().filter(|(way, ..)| is_selected(way)) {
        for (link, rate) in LINKS {
            through_server(comparison, *rate, server, loads, &mut |load, copied| {
                let row = format!("| {way} | {link} | {} | {} | {}", load.clients, load.they, row(copied));
                println!("{row}");
                all += &(row + "\n");
                fs::write(&file, &all).with_context(|| format!("writing {}", file.display()))
            })?;
        }
    }
    fs::remove_dir(&scratch).with_context(|| format!("removing {}", scratch.display()))?;
    println!("kept in {}", file.display());
    Ok(())
}

/// Measures copies between a server at one host of a lab and one or three others.
fn through_server(
    comparison: &Comparison<'_>,
    rate: Option<&str>,
    server: &Tool,
    loads: &[Load],
    take: &mut dyn FnMut(&Load, &Copied) -> Result<()>,
) -> Result<()> {
    let mut bench = vec!["--bench", "switch"];
    bench.extend(rate.iter().flat_map(|rate| ["--link", rate]));
    let mut ground = Ground::lay(comparison, &bench)?;
    let result = loads.iter().try_for_each(|load| {
        let copied = ground.copied(server, load.words)?;
        take(load, &copied)
    });
    result.and(ground.lab.down())
}

fn copy(
    program: &Path,
    scratch: &Path,
    comparison: &Comparison<'_>,
    rate: Option<&str>,
    hosts: &str,
) -> Result<Copied> {
    let mut command = Command::new(program);
    // The agents create their own folders below TMPDIR.
    command.env("TMPDIR", scratch.canonicalize()?).args(["lab", "--bench", "switch"]);
    if let Some(rate) = rate {
        command.args(["--link", rate]);
    }
    let sync = if comparison.durable { "end" } else { "none" };
    let line = format!("-- copy {hosts} --tree {} --sync {sync} --cache warm --repeats 1 --json", comparison.tree);
    command.args(words(&line)).arg("--store").arg(comparison.folder.join("store.sqlite"));
    Copied::read(&process::run(command, LIMIT)?.stdout)
}

/// Formats the figures of a row.
fn row(copied: &Copied) -> String {
    let shares: Vec<String> = copied.shares.iter().map(|(to, share)| format!("{to} {:.1} %", share * 100.0)).collect();
    let mut stages: Vec<&(String, f64)> = copied.stages.iter().filter(|(_, busy)| *busy >= MIN_BUSY).collect();
    stages.sort_by(|(_, busy), (_, other)| other.total_cmp(busy));
    let stages: Vec<String> = stages.iter().map(|(name, busy)| format!("{name} {:.0} %", busy * 100.0)).collect();
    format!(
        "{:.1} | {:.1} s | {} | {} | {} |",
        copied.bytes_per_s / 1e6,
        copied.time_ns / 1e9,
        shares.join(", "),
        copied.busiest,
        stages.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_lists_busy_stages_by_share() {
        let copied = Copied {
            time_ns: 58.4e9,
            bytes_per_s: 11.64e6,
            shares: vec![("b".to_owned(), 0.502), ("c".to_owned(), 0.498)],
            stages: vec![("read".to_owned(), 0.02), ("write".to_owned(), 0.2), ("send".to_owned(), 0.99)],
            busiest: "send".to_owned(),
        };
        assert_eq!(row(&copied), "11.6 | 58.4 s | b 50.2 %, c 49.8 % | send | send 99 %, write 20 % |");
    }
}
