//! Time of each page of `linerate view` over a store of many records.

use super::many_records::{ManyRecords, copy, times};
use crate::process;
use anyhow::{Context, Result, bail, ensure};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Maximum median time of a page.
const PAGE: Duration = Duration::from_millis(200);

/// Options of the benchmark.
pub(super) struct Visits<'a> {
    pub(super) folder: &'a Path,
    pub(super) records: u32,
    pub(super) repeats: u32,
    pub(super) program: Option<&'a Path>,
}

/// Fetches each page repeatedly from a full store, and compares the medians with the goal.
pub(super) fn run(visits: &Visits<'_>) -> Result<()> {
    process::catch_interrupts()?;
    let many = ManyRecords::new(visits.program, visits.folder)?;
    let id = many.fill(visits.records)?;
    let pages = Pages::open(many.linerate(&["view"]))?;
    let middle = copy(&id, visits.records / 2);
    let after = copy(&id, visits.records / 2 - 1);
    let mut met = true;
    for (name, page) in [
        ("list", String::new()),
        ("list, oldest page", format!("?page={}", visits.records.div_ceil(50))),
        ("list, two words", "?text=host-777+local".to_owned()),
        ("list, no such word", "?text=nosuch".to_owned()),
        ("list, kind and state", "?kind=stream&ended=finished".to_owned()),
        ("list, limit of no record", "?limit=latency".to_owned()),
        ("list, changed", "?changed=yes".to_owned()),
        ("list, changed, of a kind", "?changed=yes&kind=stream&page=200".to_owned()),
        ("list, changed, no such word", "?changed=yes&text=nosuch".to_owned()),
        ("list, a day", "?from=2026-01-01&to=2026-01-01".to_owned()),
        ("record with neighbours", format!("record?id={middle}")),
        ("compare", format!("compare?with={middle}&with={after}")),
        ("trend", format!("trend?id={middle}")),
    ] {
        let times = times(visits.repeats as usize, || pages.get(&page))?;
        let at = |share: f64| times[((times.len() as f64 * share).ceil() as usize).clamp(1, times.len()) - 1];
        let p50 = at(0.5);
        let p99 = at(0.99);
        println!(
            "{name:<26} p50 {:.3} s, p99 {:.3} s, goal: p50 under {} s",
            p50.as_secs_f64(),
            p99.as_secs_f64(),
            PAGE.as_secs_f64()
        );
        met &= p50 < PAGE;
    }
    ensure!(met, "a goal was not met");
    Ok(())
}

/// A running `linerate view`, which is ended on drop.
struct Pages {
    child: Child,
    /// `127.0.0.1:PORT`.
    address: String,
    /// Path of all pages.
    path: String,
}

impl Pages {
    fn open(mut command: Command) -> Result<Self> {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().context("starting `linerate view`")?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no standard output")?).read_line(&mut line)?;
        let url = line.trim().strip_prefix("http://").and_then(|rest| rest.split_once('/'));
        let (address, path) = url.map(|(address, path)| (address.to_owned(), format!("/{path}"))).unwrap_or_default();
        Ok(Self { child, address, path })
    }

    /// Fetches a page. Fails if it does not exist.
    fn get(&self, page: &str) -> Result<()> {
        let mut connection = TcpStream::connect(&self.address).context("connecting to `linerate view`")?;
        let Self { path, address, .. } = self;
        write!(connection, "GET {path}{page} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        if !answer.starts_with("HTTP/1.1 200") {
            bail!("`linerate view` answers to {page} with {}", answer.lines().next().unwrap_or("nothing"));
        }
        Ok(())
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
