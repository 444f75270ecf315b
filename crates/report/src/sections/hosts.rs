//! The hosts that measured, and their interfaces.

use crate::blocks::section::{Block, Section};
use crate::blocks::table::{Column, Table};
use crate::figures::plain;
use crate::language::Language;
use crate::said;
use linerate_model::{Host, Nic, Record};
use linerate_units::ByteCount;

/// A table of the hosts and one of their interfaces.
pub(crate) fn section(lang: Language, record: &Record) -> Option<Section> {
    let tables = [hosts(lang, &record.hosts), interfaces(lang, &record.hosts)];
    Section::full("hosts", said!(lang, "section-hosts"), tables.map(Block::Table).into()).map(Section::folded)
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
        caption: said!(lang, "section-hosts"),
        columns: vec![
            Column::new("column-host").of_words(),
            Column::new("column-system").of_words(),
            Column::new("column-cpu").of_words(),
            Column::new("column-cores").of_words(),
            Column::new("column-memory").of_words(),
            Column::new("column-tcp-default").of_words(),
            Column::new("column-linerate").of_words(),
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
            nic.speed.map(|speed| match nic.is_half_duplex() {
                true => said!(lang, "nic-half-duplex", speed = speed.to_string()),
                false => speed.to_string(),
            }),
            Some(nic.mtu.to_string()),
            Some(plain(&nic.driver)).filter(|driver| !driver.is_empty()),
            Some(plain(&nic.qdisc)).filter(|qdisc| !qdisc.is_empty()),
            Some(on.join(", ")).filter(|offloads| !offloads.is_empty()),
        ]
    };
    let rows = hosts.iter().flat_map(|host| host.nics.iter().filter(|nic| nic.up).map(move |nic| row(host, nic)));
    Table {
        caption: said!(lang, "hosts-interfaces-up"),
        columns: vec![
            Column::new("column-interface").of_words(),
            Column::new("column-speed").of_words(),
            Column::new("column-mtu-b").of_words(),
            Column::new("column-driver").of_words(),
            Column::new("column-queue").of_words(),
            Column::new("column-cuts-or-joins-packets").of_words(),
        ],
        rows: rows.collect(),
    }
}
