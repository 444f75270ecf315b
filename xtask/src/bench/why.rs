//! Work of each CPU for one message of a tool: time, context switches, wake-ups, system calls and soft interrupts.

use super::callgrind::Instructions;
use super::counters::{Counts, Event};
use super::figure::{Unit, three_digits};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Shown for a count that this machine does not have.
const UNKNOWN: &str = "–";

/// Counts of one run of a tool.
#[derive(Debug, Default)]
pub(super) struct Why {
    /// The tool's figure in that run, in the work's unit.
    value: f64,
    /// Counts per second.
    counts: Counts,
}

/// A tool of a table: its name, its counts, and its instructions in user space.
pub(super) struct Column<'a> {
    pub(super) tool: &'a str,
    pub(super) why: &'a Why,
    pub(super) instructions: Option<Instructions>,
}

impl Why {
    pub(super) fn new(value: f64, counts: Counts) -> Self {
        Self { value, counts }
    }

    /// Returns the count for each message.
    fn per_message(&self, unit: Unit, event: Event, cpu: usize) -> Option<f64> {
        let messages = unit.messages(self.value);
        self.counts.get(&(event, cpu)).map(|count| count / messages).filter(|count| count.is_finite())
    }

    fn cpus(&self) -> BTreeSet<usize> {
        self.counts.keys().map(|(_, cpu)| *cpu).collect()
    }

    pub(super) fn to_json(&self, unit: Unit) -> Value {
        let mut cpus = Map::new();
        for cpu in self.cpus() {
            let counts = Event::ALL.into_iter().map(|event| {
                let count = self.per_message(unit, event, cpu);
                (event.name().to_owned(), json!(count))
            });
            cpus.insert(cpu.to_string(), Value::Object(counts.collect()));
        }
        json!({ "value": self.value, "per": unit.message(), "cpus": cpus })
    }
}

/// Returns a table of the tools next to each other, with a column for each CPU.
pub(super) fn table(unit: Unit, columns: &[Column<'_>]) -> String {
    let tools: Vec<String> =
        columns.iter().map(|column| format!("{} {}", column.tool, unit.show(column.why.value))).collect();
    let mut text = format!("  per {}: {}\n  {:<28}", unit.message(), tools.join("; "), "");
    for column in columns {
        let program = column.tool.split(' ').next().unwrap_or_default();
        for cpu in column.why.cpus() {
            text += &format!("{:>16}", format!("{program} CPU {cpu}"));
        }
    }
    for event in Event::ALL {
        text += &format!("\n  {:<28}", event.name());
        for column in columns {
            for cpu in column.why.cpus() {
                text += &format!("{:>16}", shown(column.why.per_message(unit, event, cpu)));
            }
        }
    }
    if columns.iter().any(|column| column.instructions.is_some()) {
        text += &format!("\n  {:<28}", "user instructions, each end");
        for column in columns {
            // The sender runs on the first CPU, the receiver on the second.
            let ends = column.instructions.map(|count| [count.sender, count.receiver]);
            for index in 0..column.why.cpus().len() {
                let count = ends.and_then(|ends| ends.get(index).copied());
                text += &format!("{:>16}", shown(count));
            }
        }
    }
    text + "\n"
}

/// Returns a count with three significant digits.
fn shown(count: Option<f64>) -> String {
    count.map_or(UNKNOWN.to_owned(), three_digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_for_each_message() {
        let counts = Counts::from([
            ((Event::ContextSwitches, 0), 40_000.0),
            ((Event::ContextSwitches, 1), 20_000.0),
            ((Event::NetRx, 0), 30_000.0),
            ((Event::UserTime, 0), 3e8),
        ]);
        let ours = Why::new(20_000.0, counts);
        let peer = Why::new(10_000.0, Counts::from([((Event::NetRx, 0), 5.0), ((Event::NetRx, 1), 123.0)]));
        let instructions = Some(Instructions { sender: 812.0, receiver: 640.4 });
        let text = table(
            Unit::Transactions,
            &[
                Column { tool: "linerate", why: &ours, instructions },
                Column { tool: "qperf tcp_lat -m 1", why: &peer, instructions: None },
            ],
        );
        let row = |name: &str| text.lines().find_map(|line| line.trim().strip_prefix(name)).unwrap();
        let words = |name: &str| row(name).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words("context switches"), ["2.00", "1.00", "–", "–"]);
        assert_eq!(words("softirqs NET_RX"), ["1.50", "–", "0.000500", "0.0123"]);
        assert_eq!(words("user time, ns"), ["15000", "–", "–", "–"]);
        assert_eq!(words("user instructions, each end"), ["812", "640", "–", "–"]);
        assert!(text.starts_with("  per transaction: linerate 20000 /s; qperf tcp_lat -m 1 10000 /s\n"), "{text}");
        let json = ours.to_json(Unit::Transactions);
        assert_eq!(json["cpus"]["1"]["context switches"], 1.0);
        assert_eq!(json["cpus"]["1"]["cycles"], Value::Null);
    }

    #[test]
    fn bulk_is_counted_by_megabyte() {
        let why = Why::new(8e9, Counts::from([((Event::SystemCalls, 0), 7_630.0)]));
        assert_eq!(why.per_message(Unit::Payload, Event::SystemCalls, 0), Some(7.63));
    }
}
