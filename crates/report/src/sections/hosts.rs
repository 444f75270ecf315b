//! The hosts that measured, and their interfaces.

use crate::blocks::section::{Block, Section};
use crate::blocks::table::Table;
use crate::column;
use crate::figures::plain;
use crate::language::Language;
use crate::said;
use linerate_model::{Host, Nic, Record};
use linerate_units::ByteCount;

/// A table of the hosts and one of their interfaces.
pub(crate) fn section(lang: Language, record: &Record) -> Option<Section> {
    let tables = [hosts(lang, &record.hosts), interfaces(lang, &record.hosts)];
    Section::full("hosts", said!(lang, "section-hosts", "Hosts"), tables.map(Block::Table).into()).map(Section::folded)
}

fn hosts(lang: Language, hosts: &[Host]) -> Table {
    let row = |host: &Host| {
        vec![
            Some(plain(&host.name.0)),
            Some(plain(&host.system)),
            Some(plain(&host.cpu_model)).filter(|model| !model.is_empty()),
            Some(host.cores.to_string()),
            Some(ByteCount::new(host.memory_bytes).to_string()),
            host.congestion_controls.first().map(|control| plain(control)),
            Some(plain(&host.version)),
        ]
    };
    Table {
        caption: said!(lang, "section-hosts", "Hosts"),
        columns: vec![
            column!("column-host", "host", "name of the result").of_words(),
            column!("column-system", "system", "operating system and release").of_words(),
            column!("column-cpu", "CPU", "as the system names it").of_words(),
            column!("column-cores", "cores", "cores online").of_words(),
            column!("column-memory", "memory", "main memory").of_words(),
            column!("column-tcp-default", "TCP default", "the system's default congestion control").of_words(),
            column!("column-linerate", "linerate", "version of the agent").of_words(),
        ],
        rows: hosts.iter().map(row).collect(),
    }
}

fn interfaces(lang: Language, hosts: &[Host]) -> Table {
    let row = |host: &Host, nic: &Nic| {
        // Of dozens of offloads, those decide what a packet counts.
        let joins = |name: &str| ["segmentation", "gro", "lro", "gso"].iter().any(|part| name.contains(part));
        let on = nic.offloads.iter().filter(|(name, on)| **on && joins(name));
        let on: Vec<String> = on.map(|(name, _)| plain(name)).collect();
        vec![
            Some(format!("{} {}", plain(&host.name.0), plain(&nic.name))),
            nic.speed.map(|speed| {
                if nic.is_half_duplex() {
                    said!(lang, "nic-half-duplex", "{speed}, half duplex", speed = speed)
                } else {
                    speed.to_string()
                }
            }),
            Some(nic.mtu.to_string()),
            Some(plain(&nic.driver)).filter(|driver| !driver.is_empty()),
            Some(plain(&nic.qdisc)).filter(|qdisc| !qdisc.is_empty()),
            Some(on.join(", ")).filter(|offloads| !offloads.is_empty()),
        ]
    };
    let rows = hosts.iter().flat_map(|host| host.nics.iter().filter(|nic| nic.up).map(move |nic| row(host, nic)));
    Table {
        caption: said!(lang, "hosts-interfaces-up", "Interfaces that were up"),
        columns: vec![
            column!("column-interface", "interface", "the host's name and its own").of_words(),
            column!("column-speed", "speed", "line rate, where the driver knows one or it was given").of_words(),
            column!("column-mtu-b", "MTU, B", "largest IP packet, bytes").of_words(),
            column!("column-driver", "driver", "as the system names it").of_words(),
            column!("column-queue", "queue", "root queueing discipline").of_words(),
            column!(
                "column-cuts-or-joins-packets",
                "offloads",
                "offloads that cut or join packets and are on, by the kernel's names"
            )
            .of_words(),
        ],
        rows: rows.collect(),
    }
}
