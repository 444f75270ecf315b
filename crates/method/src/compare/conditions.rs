//! What was not the same when two sides were measured: another cause that a difference may have.

use linerate_model::{
    Duplex, Host, Measurement, Message, MessageValue, Net, Nic, Record, Repeats, Trial, Warmup, from_command_name,
    message,
};
use std::collections::{BTreeMap, BTreeSet};

/// A sentence for each condition that differs between the sides, with the values of both.
pub(super) fn warnings(before: &[Record], after: &[Record]) -> Vec<Message> {
    let (before, after) = (Conditions::of(before), Conditions::of(after));
    before
        .0
        .iter()
        .filter_map(|(what, old)| {
            let new = after.0.get(what).filter(|new| *new != old)?;
            Some(message!(
                "compared-condition",
                "{what}: {old} before, {new} after",
                what = what.clone(),
                old = listed(old),
                new = listed(new)
            ))
        })
        .collect()
}

/// The values of each condition on one side. What is not known on a side is not compared.
#[derive(Default)]
struct Conditions(BTreeMap<Message, BTreeSet<Message>>);

impl Conditions {
    fn of(records: &[Record]) -> Self {
        let mut all = Self::default();
        for record in records {
            all.add_record(record);
        }
        all
    }

    fn add(&mut self, what: Message, value: Message) {
        if !value.is_empty() {
            self.0.entry(what).or_default().insert(value);
        }
    }

    fn add_record(&mut self, record: &Record) {
        self.add(message!("compared-version", "version of linerate"), value(&record.version));
        if let Some(bench) = bench(&record.command) {
            self.add(message!("compared-bench", "bench"), bench);
        }
        if let Some(repeats) = record.plan.repeats() {
            self.add(message!("compared-repeats", "repeats"), said(&repeats));
        }
        let asked = super::cells(record).collect::<Vec<_>>();
        for cell in &asked {
            self.add_timing(cell);
        }
        let seen: Vec<&str> = record
            .flows()
            .filter_map(Measurement::tcp)
            .map(|tcp| tcp.congestion.as_str())
            .filter(|name| !name.is_empty())
            .collect();
        let asked = asked.iter().filter_map(|cell| cell.net()).filter_map(|net: &Net| net.socket.congestion.as_deref());
        // What was seen tells more than what was asked for.
        let names: Vec<&str> = if seen.is_empty() { asked.collect() } else { seen };
        for name in names {
            self.add(message!("compared-congestion", "congestion control"), value(name));
        }
        let names: Vec<&str> = record.hosts.iter().map(|host| host.name.0.as_str()).collect();
        self.add(message!("compared-hosts", "hosts"), value(names.join(", ")));
        for host in &record.hosts {
            self.add_host(host, &used(record, host));
        }
    }

    fn add_timing(&mut self, cell: &Trial) {
        let Some(window) = cell.window() else { return };
        let measured = match cell.volume() {
            Some(volume) => value(volume),
            None => value(window.measure),
        };
        self.add(message!("compared-window", "measured window"), measured);
        self.add(
            message!("compared-warm-up", "warm-up"),
            match window.warmup {
                Warmup::Fixed(time) => value(time),
                Warmup::Steady { at_most, .. } => {
                    message!("compared-until-steady", "until steady, at most {at_most}", at_most)
                }
            },
        );
    }

    fn add_host(&mut self, host: &Host, used: &BTreeSet<&str>) {
        let host_name = &host.name;
        self.add(message!("compared-kernel", "kernel of host {host}", host = host_name), value(&host.system));
        let processor = message!(
            "compared-model-and-cores",
            "{model} ({cores} cores)",
            model = &host.cpu_model,
            cores = host.cores
        );
        self.add(message!("compared-processor", "processor of host {host}", host = host_name), processor);
        self.add(message!("compared-agent", "linerate on host {host}", host = host_name), value(&host.version));
        for nic in host.nics.iter().filter(|nic| used.contains(nic.name.as_str())) {
            let interface = &nic.name;
            let place =
                message!("compared-interface", "interface {interface} of host {host}", interface, host = host_name);
            self.add_nic(&place, nic);
        }
    }

    fn add_nic(&mut self, place: &Message, nic: &Nic) {
        let at = || place.clone();
        self.add(message!("compared-driver", "driver of {place}", place = at()), value(&nic.driver));
        self.add(message!("compared-mtu", "MTU of {place}", place = at()), value(nic.mtu));
        self.add(message!("compared-qdisc", "queueing discipline of {place}", place = at()), value(&nic.qdisc));
        let speed = nic.speed.map_or_else(|| message!("compared-unknown", "unknown"), value);
        self.add(message!("compared-speed", "speed of {place}", place = at()), speed);
        let duplex = match nic.duplex {
            Some(Duplex::Half) => message!("compared-half-duplex", "half"),
            Some(Duplex::Full) => message!("compared-full-duplex", "full"),
            None => message!("compared-unknown", "unknown"),
        };
        self.add(message!("compared-duplex", "duplex of {place}", place = at()), duplex);
        for (offload, on) in &nic.offloads {
            let state = if *on { message!("compared-on", "on") } else { message!("compared-off", "off") };
            self.add(message!("compared-offload", "{offload} of {place}", offload, place = at()), state);
        }
    }
}

/// The interfaces of a host that the trials' data crossed.
fn used<'a>(record: &'a Record, host: &Host) -> BTreeSet<&'a str> {
    let transfers = record.counted().flat_map(crate::transfers);
    let ends = transfers.flat_map(|transfer| [(transfer.from, transfer.sender), (transfer.to, transfer.receiver)]);
    ends.filter(|(name, _)| **name == host.name).filter_map(|(_, end)| end.interface.as_deref()).collect()
}

/// The words that built the lab, from a command as it was typed; none if there is no command.
fn bench(command: &[String]) -> Option<Message> {
    let [first, rest @ ..] = from_command_name(command.get(1..)?) else { return None };
    if first != "lab" {
        return Some(message!("compared-no-lab", "no lab"));
    }
    let options: Vec<&str> = rest.iter().map(String::as_str).take_while(|word| *word != "--").collect();
    Some(match options.is_empty() {
        true => message!("compared-lab", "a lab"),
        false => message!("compared-lab-with", "a lab with `{options}`", options = options.join(" ")),
    })
}

fn said(repeats: &Repeats) -> Message {
    match repeats {
        Repeats::Times(times) => value(*times),
        Repeats::Until { confidence_percent, within, at_most, .. } => message!(
            "compared-until-known",
            "until the mean is known to {within} with {confidence} % confidence, at most {at_most}",
            within = MessageValue::percent(*within, 1),
            confidence = confidence_percent.to_string(),
            at_most = *at_most
        ),
    }
}

/// A value that is the same in every language.
fn value(value: impl Into<MessageValue>) -> Message {
    let value: MessageValue = value.into();
    message!("compared-value", "{value}", value)
}

fn listed(values: &BTreeSet<Message>) -> Message {
    let or = |first: Message, further: Message| message!("compared-or", "{first} or {further}", first, further);
    values.iter().cloned().reduce(or).unwrap_or_default()
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
            core_groups: Vec::new(),
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
            duplex: None,
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
        after.hosts[0].nics[0].duplex = Some(Duplex::Half);
        let found = warnings(std::slice::from_ref(&before), &[after]);
        assert_eq!(
            found,
            [
                "bench: a lab with `--link 1Gbit/s` before, no lab after",
                "congestion control: cubic before, bbr after",
                "duplex of interface eth0 of host b: unknown before, half after",
                "kernel of host b: Linux 6.1 before, Linux 6.18 after",
                "measured window: 10 s before, 3 s after",
                "repeats: 3 before, 5 after",
                "rx-gro of interface eth0 of host b: on before, off after",
                "version of linerate: 1.0.0 before, 1.1.0 after",
                "warm-up: until steady, at most 10 s before, 2 s after",
            ]
        );
        assert_eq!(warnings(std::slice::from_ref(&before), std::slice::from_ref(&before)), Vec::<Message>::new());
    }
}
