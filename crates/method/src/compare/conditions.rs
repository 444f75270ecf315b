//! What was not the same when two sides were measured: another cause that a difference may have.

use linerate_model::{Host, Net, Nic, Record, Repeats, Trial, Warmup};
use std::collections::{BTreeMap, BTreeSet};

/// A sentence for each condition that differs between the sides, with the values of both.
pub(super) fn warnings(before: &[Record], after: &[Record]) -> Vec<String> {
    let (before, after) = (Conditions::of(before), Conditions::of(after));
    before
        .0
        .iter()
        .filter_map(|(what, old)| {
            let new = after.0.get(what).filter(|new| *new != old)?;
            Some(format!("{what}: {} before, {} after", listed(old), listed(new)))
        })
        .collect()
}

/// The values of each condition on one side. What is not known on a side is not compared.
#[derive(Default)]
struct Conditions(BTreeMap<String, BTreeSet<String>>);

impl Conditions {
    fn of(records: &[Record]) -> Self {
        let mut all = Self::default();
        for record in records {
            all.add_record(record);
        }
        all
    }

    fn add(&mut self, what: impl Into<String>, value: impl Into<String>) {
        let value = value.into();
        if !value.is_empty() {
            self.0.entry(what.into()).or_default().insert(value);
        }
    }

    fn add_record(&mut self, record: &Record) {
        self.add("version of linerate", &record.version);
        self.add("bench", bench(&record.command));
        if let Some(repeats) = record.plan.repeats() {
            self.add("repeats", said(&repeats));
        }
        let asked = super::cells(record).collect::<Vec<_>>();
        for cell in &asked {
            self.add_timing(cell);
        }
        let seen: Vec<&str> = record
            .flows()
            .filter_map(|(_, figures)| figures.tcp.as_ref())
            .map(|tcp| tcp.congestion.as_str())
            .filter(|name| !name.is_empty())
            .collect();
        let asked = asked.iter().filter_map(|cell| cell.net()).filter_map(|net: &Net| net.socket.congestion.as_deref());
        // What was seen tells more than what was asked for.
        let names: Vec<&str> = if seen.is_empty() { asked.collect() } else { seen };
        for name in names {
            self.add("congestion control", name);
        }
        let names: Vec<&str> = record.hosts.iter().map(|host| host.name.0.as_str()).collect();
        self.add("hosts", names.join(", "));
        for host in &record.hosts {
            self.add_host(host, &used(record, host));
        }
    }

    fn add_timing(&mut self, cell: &Trial) {
        let Some(window) = cell.window() else { return };
        self.add("measured window", window.measure.to_string());
        self.add(
            "warm-up",
            match window.warmup {
                Warmup::Fixed(time) => time.to_string(),
                Warmup::Steady { at_most, .. } => format!("until steady, at most {at_most}"),
            },
        );
    }

    fn add_host(&mut self, host: &Host, used: &BTreeSet<&str>) {
        let name = &host.name;
        self.add(format!("kernel of host {name}"), &host.system);
        self.add(format!("processor of host {name}"), format!("{} ({} cores)", host.cpu_model, host.cores));
        self.add(format!("linerate on host {name}"), &host.version);
        for nic in host.nics.iter().filter(|nic| used.contains(nic.name.as_str())) {
            self.add_nic(&format!("interface {} of host {name}", nic.name), nic);
        }
    }

    fn add_nic(&mut self, place: &str, nic: &Nic) {
        self.add(format!("driver of {place}"), &nic.driver);
        self.add(format!("MTU of {place}"), nic.mtu.to_string());
        self.add(format!("queueing discipline of {place}"), &nic.qdisc);
        let speed = nic.speed.map_or_else(|| "unknown".to_owned(), |speed| speed.to_string());
        self.add(format!("speed of {place}"), speed);
        for (offload, on) in &nic.offloads {
            self.add(format!("{offload} of {place}"), if *on { "on" } else { "off" });
        }
    }
}

/// The interfaces of a host that the trials' data crossed.
fn used<'a>(record: &'a Record, host: &Host) -> BTreeSet<&'a str> {
    let transfers = record.counted().flat_map(crate::transfers);
    let ends = transfers.flat_map(|transfer| [(transfer.from, transfer.sender), (transfer.to, transfer.receiver)]);
    ends.filter(|(name, _)| **name == host.name).filter_map(|(_, end)| end.interface.as_deref()).collect()
}

/// The words that built the lab, from a command as it was typed.
fn bench(command: &[String]) -> String {
    let Some((_, words)) = command.split_first() else { return String::new() };
    let [first, rest @ ..] = words else { return String::new() };
    if first != "lab" {
        return "no lab".to_owned();
    }
    let options: Vec<&str> = rest.iter().map(String::as_str).take_while(|word| *word != "--").collect();
    match options.is_empty() {
        true => "a lab".to_owned(),
        false => format!("a lab with `{}`", options.join(" ")),
    }
}

fn said(repeats: &Repeats) -> String {
    match repeats {
        Repeats::Times(times) => times.to_string(),
        Repeats::Until { confidence_percent, within, at_most, .. } => {
            format!(
                "until the mean is known to {:.1} % with {confidence_percent} % confidence, at most {at_most}",
                within * 100.0
            )
        }
    }
}

fn listed(values: &BTreeSet<String>) -> String {
    values.iter().map(String::as_str).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::tests::{spec, stream_of, trial};
    use linerate_model::{Plan, RecordId, Timing};
    use linerate_units::Nanos;

    fn host(kernel: &str, gro: bool) -> Host {
        Host {
            name: "b".into(),
            version: "1.0.0".into(),
            protocol: 1,
            system: kernel.into(),
            cpu_model: "cpu".into(),
            cores: 2,
            memory_bytes: 1,
            boot_id: String::new(),
            congestion_controls: Vec::new(),
            nics: ["eth0", "eth1"].map(|name| nic(name, gro)).to_vec(),
            data_addresses: Vec::new(),
            capabilities: Vec::new(),
        }
    }

    fn nic(name: &str, gro: bool) -> Nic {
        Nic {
            name: name.into(),
            driver: "virtio_net".into(),
            speed: None,
            mtu: 1500,
            up: true,
            mac: String::new(),
            addresses: Vec::new(),
            offloads: BTreeMap::from([("rx-gro".to_owned(), gro)]),
            qdisc: "fq".into(),
            driver_version: String::new(),
            firmware: String::new(),
            slot: None,
        }
    }

    fn record(command: &str, cell: Trial, host: Host, repeats: u32) -> Record {
        Record {
            version: "1.0.0".into(),
            command: command.split(' ').map(str::to_owned).collect(),
            hosts: vec![host],
            trials: vec![trial(1000, 0)],
            ..Record::new(RecordId("r".into()), Plan::sweep(vec![cell], Repeats::Times(repeats)))
        }
    }

    #[test]
    fn each_difference_is_a_sentence_with_both_values() {
        let mut slow = spec();
        slow.loads[0].timing = Timing::when_steady(Nanos::from_secs(10));
        stream_of(&mut slow).net.socket.congestion = Some("cubic".into());
        let mut quick = spec();
        quick.loads[0].timing = Timing::of(Nanos::from_secs(2), Nanos::from_secs(3));
        stream_of(&mut quick).net.socket.congestion = Some("bbr".into());
        let before = record("linerate lab --link 1Gbit/s -- stream a b", slow, host("Linux 6.1", true), 3);
        let mut after = record("linerate stream a b", quick, host("Linux 6.18", false), 5);
        after.version = "1.1.0".into();
        let found = warnings(std::slice::from_ref(&before), &[after]);
        assert_eq!(
            found,
            [
                "bench: a lab with `--link 1Gbit/s` before, no lab after",
                "congestion control: cubic before, bbr after",
                "kernel of host b: Linux 6.1 before, Linux 6.18 after",
                "measured window: 10 s before, 3 s after",
                "repeats: 3 before, 5 after",
                "rx-gro of interface eth0 of host b: on before, off after",
                "version of linerate: 1.0.0 before, 1.1.0 after",
                "warm-up: until steady, at most 10 s before, 2 s after",
            ]
        );
        assert_eq!(warnings(std::slice::from_ref(&before), std::slice::from_ref(&before)), Vec::<String>::new());
    }
}
