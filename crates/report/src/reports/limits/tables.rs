//! The limits as tables: an overview of payload by medium and message, or each layer of each cell.

use super::{LimitCell, Limits, bits, mtu, name};
use crate::blocks::columns;
use crate::blocks::table::{Column, Table};
use crate::column;
use crate::figures::{grouped, per_second, percent};
use crate::language::Language;
use crate::said;
use linerate_model::{Layer, Transport};

/// The overview's messages: what it calls them, and how early a narrow output leaves them out.
const OVERVIEW: [(&str, Transport, u64, u8); 7] = [
    ("UDP 64", Transport::Udp, 64, 0),
    ("UDP 128", Transport::Udp, 128, 5),
    ("UDP 256", Transport::Udp, 256, 4),
    ("UDP 512", Transport::Udp, 512, 2),
    ("UDP 1024", Transport::Udp, 1024, 3),
    ("UDP 1472", Transport::Udp, 1472, 0),
    ("TCP", Transport::Tcp, 0, 0),
];

impl Limits {
    /// Sizes of UDP messages that an overview shows.
    pub const SIZES: [u64; 6] = [64, 128, 256, 512, 1024, 1472];

    /// The tables that answer what was asked.
    pub(super) fn tables(&self, lang: Language) -> Vec<Table> {
        if self.is_overview() {
            vec![self.overview_table(lang)]
        } else {
            let caption = match self.cells.first() {
                Some(first) if self.is_one_stack() => {
                    format!("{}: {}, {}", name(&first.stack), self.ip(lang), mtu(lang, first))
                }
                _ => said!(lang, "limits-caption-layers", "What each layer can carry ({ip})", ip = self.ip(lang)),
            };
            vec![self.layer_table(lang, caption)]
        }
    }

    pub(super) fn is_overview(&self) -> bool {
        self.overview && !self.is_one_stack()
    }

    fn overview_table(&self, lang: Language) -> Table {
        let columns = OVERVIEW.iter().map(|(title, transport, _, rank)| {
            let meaning = match transport {
                Transport::Udp => said!(lang, "limits-meaning-udp", "payload in UDP messages of this many bytes"),
                Transport::Tcp => said!(lang, "limits-meaning-tcp", "payload in full TCP segments"),
            };
            Column::named((*title).to_owned(), meaning).ranked(*rank)
        });
        let row = |cells: &[LimitCell]| {
            let payload = |(_, transport, size, _): &(&str, Transport, u64, u8)| {
                let fits = |cell: &&LimitCell| {
                    cell.transport == *transport && (*transport == Transport::Tcp || cell.message_bytes == *size)
                };
                cells.iter().find(fits).map(|cell| bits(cell.carried.rate(Layer::Payload), 3))
            };
            let stack = [Some(name(&cells[0].stack)), Some(grouped(u64::from(cells[0].carried.inner_mtu)))];
            stack.into_iter().chain(OVERVIEW.iter().map(payload)).collect()
        };
        let stack = [columns::MEDIUM, column!("column-mtu", "MTU", "of the IP packets, bytes").ranked(1)];
        Table {
            caption: said!(
                lang,
                "limits-caption-overview",
                "The most payload a medium can carry ({ip})",
                ip = self.ip(lang)
            ),
            columns: stack.into_iter().chain(columns).collect(),
            rows: self.stacks().map(row).collect(),
        }
    }

    fn layer_table(&self, lang: Language, caption: String) -> Table {
        let has_cells = self.cells.iter().any(|cell| cell.carried.cells().is_some());
        let row = |cell: &LimitCell| {
            let carried = &cell.carried;
            let rate = |layer| Some(bits(carried.rate(layer), 5));
            let mut row = vec![
                Some(self.name(lang, cell)),
                rate(Layer::Payload),
                percent(carried.share_of_line()),
                rate(Layer::Ip),
                rate(Layer::Layer2),
                rate(Layer::Layer2Fcs),
                rate(Layer::Wire),
                per_second(carried.packets_per_s()),
            ];
            if has_cells {
                row.push(carried.cells().and_then(|cells| per_second(carried.messages_per_s() * cells as f64)));
            }
            row
        };
        let mut columns = vec![
            column!("column-limits-messages", "messages", "transport, and bytes of a UDP message"),
            column!("column-limits-payload", "payload", "bits of payload a second"),
            column!("column-limits-of-line", "of line", "the payload as a share of the medium's line").ranked(3),
            column!("column-limits-ip", "IP", "with the headers of IP and of UDP or TCP").ranked(1),
            column!("column-limits-layer-2", "layer 2", "frames without FCS, as a host's interface counts them")
                .ranked(2),
            column!("column-limits-with-fcs", "with FCS", "frames with FCS, as RFC 2544 counts them").ranked(1),
            column!("column-limits-wire", "wire", "everything that occupies the medium, with preamble and gap")
                .ranked(4),
            column!("column-limits-packets-s", "packets/s", "IP packets a second, each a frame"),
        ];
        if has_cells {
            columns.push(column!("column-limits-cells-s", "cells/s", "ATM cells a second").ranked(5));
        }
        Table { caption, columns, rows: self.cells.iter().map(row).collect() }
    }
}

/// Returns what the overview leaves for a closer look, `None` if it was closer already.
pub(super) fn closer(lang: Language, limits: &Limits) -> Option<String> {
    let text = said!(
        lang,
        "limits-options",
        "--medium NAME shows every layer of one medium, --explain shows each byte of a packet, --over vlan,vxlan \
         subtracts tunnels, and --claim RATE checks whether a rate is possible."
    );
    limits.is_overview().then(|| text.to_owned())
}
