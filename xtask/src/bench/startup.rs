//! Time that a user waits for the first figure and for the end of a command, next to iperf3 and xfr. In each repeat every
//! command runs once.

use super::FOLDER;
use super::figure::Spread;
use super::many_records::ManyRecords;
use super::peers::find_program;
use crate::process::{self, Running};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Address and ports of the servers.
const AGENT: &str = "127.0.0.1:4750";
const IPERF3_PORT: &str = "5320";
const XFR_PORT: &str = "5322";

/// Time within which a server must listen.
const START_LIMIT: Duration = Duration::from_secs(10);

/// Time that the servers of the peers have to listen.
const PAUSE: Duration = Duration::from_millis(500);

/// Options of linerate for one second without warm-up.
const SECOND: &str = "--time 1s --warmup 0s --repeats 1";

/// Line of a command's output that is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaited {
    Nothing,
    /// First line with a rate.
    Rate,
    /// Start of the first trial.
    Trial,
}

impl Awaited {
    fn is_in(self, line: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::Rate => ["bit/s", "bits/sec", "bps"].iter().any(|unit| line.contains(unit)),
            Self::Trial => line.starts_with("Trial "),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::Rate => "first figure",
            Self::Trial => "first trial",
        }
    }
}

/// A command, and its times in milliseconds.
struct Row {
    name: &'static str,
    command: Vec<String>,
    awaited: Awaited,
    /// Times from the start to the awaited line.
    waits: Vec<f64>,
    /// Times from the start to the end.
    ends: Vec<f64>,
}

impl Row {
    fn new(name: &'static str, program: &Path, arguments: &str, awaited: Awaited) -> Self {
        let program = program.to_string_lossy().into_owned();
        let arguments = arguments.split_whitespace().map(str::to_owned);
        let command = std::iter::once(program).chain(arguments).collect();
        Self { name, command, awaited, waits: Vec::new(), ends: Vec::new() }
    }

    /// Runs the command to its end.
    fn run(&mut self) -> Result<()> {
        // Some lines are written to standard error.
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$@\" 2>&1", "sh"]).args(&self.command);
        let start = Instant::now();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context(self.name)?;
        let output = child.stdout.take().context("no standard output")?;
        let mut wait = None;
        let mut last = String::new();
        for line in BufReader::new(output).lines() {
            last = line?;
            if wait.is_none() && self.awaited.is_in(&last) {
                wait = Some(milliseconds(start));
            }
        }
        let status = child.wait()?;
        self.ends.push(milliseconds(start));
        process::check_interrupt()?;
        anyhow::ensure!(status.success(), "`{}` failed ({status}): {last}", self.command.join(" "));
        if self.awaited != Awaited::Nothing {
            self.waits.push(wait.with_context(|| format!("{}: no line with the {}", self.name, self.awaited.name()))?);
        }
        Ok(())
    }

    fn print(&self) {
        println!(
            "{:<32} {:<14} {:>26} {:>26}",
            self.name,
            self.awaited.name(),
            spread(&self.waits),
            spread(&self.ends)
        );
    }

    fn to_json(&self) -> Value {
        json!({ "name": self.name, "awaited": self.awaited.name(), "waits_ms": self.waits, "ends_ms": self.ends })
    }
}

fn milliseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

/// Returns median and range.
fn spread(times: &[f64]) -> String {
    let spread = Spread::of(times.iter().copied());
    spread.map_or(String::new(), |Spread { median, low, high }| format!("{median:.1} ({low:.1} to {high:.1})"))
}

/// Measures every command `repeats` times, prints the times and writes them as JSON.
pub(super) fn run(program: Option<&Path>, repeats: u32) -> Result<()> {
    process::catch_interrupts()?;
    let folder = Path::new(FOLDER);
    let many = ManyRecords::new(program, folder)?;
    let record = folder.join("startup.json");
    std::fs::write(&record, many.measured()?.to_string()).context("writing the record")?;
    let mut servers = Vec::new();
    let mut agent = Command::new(&many.program);
    agent.args(["serve", "--ephemeral", "--listen", AGENT]);
    let mut agent = Running::start(agent)?;
    let url = agent.first_line(START_LIMIT)?;
    servers.push(agent);

    let ours = many.program.as_path();
    let store = folder.join("startup.sqlite");
    let store = format!("--store {}", store.display());
    let page = folder.join("startup.html");
    let report = format!("report {} --out {}", record.display(), page.display());
    let mut rows = vec![
        Row::new("linerate --help", ours, "--help", Awaited::Nothing),
        Row::new("linerate stream URL, 1 s", ours, &format!("stream {url} {SECOND} {store}"), Awaited::Rate),
        Row::new("linerate lab -- stream, 1 s", ours, &format!("lab -- stream a b {SECOND} {store}"), Awaited::Trial),
        Row::new("linerate report RECORD", ours, &report, Awaited::Nothing),
    ];
    if let Some(iperf3) = find_program("iperf3", None) {
        servers.push(server(&iperf3, &["-s", "-p", IPERF3_PORT])?);
        rows.push(Row::new("iperf3 --help", &iperf3, "--help", Awaited::Nothing));
        let client = format!("-c 127.0.0.1 -p {IPERF3_PORT} -t 1 --forceflush");
        rows.push(Row::new("iperf3 -c HOST, 1 s", &iperf3, &client, Awaited::Rate));
    }
    if let Some(xfr) = find_program("xfr", None) {
        servers.push(server(&xfr, &["serve", "-p", XFR_PORT])?);
        rows.push(Row::new("xfr --help", &xfr, "--help", Awaited::Nothing));
        let client = format!("127.0.0.1 -p {XFR_PORT} -t 1s --no-tui");
        rows.push(Row::new("xfr HOST, 1 s", &xfr, &client, Awaited::Rate));
    }
    thread::sleep(PAUSE);
    for repeat in 0..repeats {
        eprintln!("[{}/{repeats}]", repeat + 1);
        for row in &mut rows {
            row.run()?;
        }
    }
    drop(servers);

    println!("{:<32} {:<14} {:>26} {:>26}", "command", "", "ms to it", "ms to the end");
    rows.iter().for_each(Row::print);
    println!("A run of 1 s shows its first figure after 1 s at the earliest.");
    let file = folder.join("startup-times.json");
    let json: Value = rows.iter().map(Row::to_json).collect();
    std::fs::write(&file, serde_json::to_string_pretty(&json)?)
        .with_context(|| format!("writing {}", file.display()))?;
    println!("kept in {}", file.display());
    Ok(())
}

fn server(program: &Path, arguments: &[&str]) -> Result<Running> {
    let mut command = Command::new(program);
    command.args(arguments);
    Running::start(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_figure_is_the_first_interval() {
        let iperf3 = [
            "[  5] local 127.0.0.1 port 52446 connected to 127.0.0.1 port 5998",
            "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd",
            "[  5]   0.00-1.00   sec  2.58 GBytes  22.1 Gbits/sec    3   1023 KBytes       ",
        ];
        assert_eq!(iperf3.iter().position(|line| Awaited::Rate.is_in(line)), Some(2));
        let ours = [
            "Trial 1 of 1: tcp",
            "  Interval, s  Received         Rate    Retr     srtt  Busiest thread",
            "  0.00-1.00     1.62 GB    13 Gbit/s       0    93 us   63 % 127.0.0. (warm-up)",
        ];
        assert_eq!(ours.iter().position(|line| Awaited::Rate.is_in(line)), Some(2));
        assert_eq!(ours.iter().position(|line| Awaited::Trial.is_in(line)), Some(0));
    }

    #[test]
    fn times_of_a_command_are_taken() {
        let mut row = Row::new("sh", Path::new("sh"), "-c true", Awaited::Nothing);
        row.run().unwrap();
        assert_eq!((row.waits.len(), row.ends.len()), (0, 1));
        let mut row = Row::new("echo", Path::new("echo"), "22.1 Gbit/s", Awaited::Rate);
        row.run().unwrap();
        assert!(row.waits[0] <= row.ends[0]);
        let mut row = Row::new("echo", Path::new("echo"), "no rate", Awaited::Rate);
        assert!(row.run().unwrap_err().to_string().contains("no line with the first figure"));
    }
}
