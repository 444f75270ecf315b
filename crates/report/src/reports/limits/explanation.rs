//! Each byte of the packets of a message, in order, and the arithmetic from them to a rate.

use super::{LimitCell, Limits, bits, mtu, name};
use crate::blocks::table::Table;
use crate::column;
use crate::figures::{grouped, per_second, percent};
use crate::forms::page::Page;
use crate::language::Language;
use crate::said;
use linerate_model::{Carried, HeaderField, Layer, Packet, Transport};

/// Packets of one form, and which of the message's they are: `Packets 2 to 5 of 6`; then what answers them on the same medium.
fn numbered(lang: Language, cell: &LimitCell) -> impl Iterator<Item = (String, &Packet)> {
    let Carried { packets, acknowledgement, .. } = &cell.carried;
    let answer = acknowledgement.iter().map(move |packet| {
        (said!(lang, "limits-explanation-acknowledgement", "The acknowledgement, after every two segments"), packet)
    });
    let all: u64 = packets.iter().map(|packet| packet.count).sum();
    let ends = packets.iter().scan(0, |end, packet| {
        *end += packet.count;
        Some(*end)
    });
    let sent = packets.iter().zip(ends).map(move |(packet, end)| {
        let which = match packet.count {
            _ if all == 1 => said!(lang, "limits-explanation-one-packet", "The packet"),
            1 => said!(lang, "limits-explanation-packet", "Packet {end} of {all}", end = end, all = all),
            count => said!(
                lang,
                "limits-explanation-packets",
                "Packets {count} to {end} of {all}",
                count = end - count + 1,
                end = end,
                all = all
            ),
        };
        (said!(lang, "limits-explanation-order", "{which}, in the order sent", which = which), packet)
    });
    sent.chain(answer)
}

/// From bytes to rates, in sentences.
fn arithmetic(lang: Language, cell: &LimitCell) -> Vec<String> {
    let carried = &cell.carried;
    let at = |layer| carried.bytes.at(layer);
    let sums: Vec<String> =
        Layer::ALL.into_iter().map(|layer| format!("{} {}", lang.text(layer.text()), grouped(at(layer)))).collect();
    let mut sentences =
        vec![said!(lang, "limits-explanation-layers", "Bytes by layer: {sums}.", sums = lang.list(&sums))];
    let capacity = grouped(carried.medium.capacity().get());
    if let Some(cells) = carried.cells() {
        sentences.push(said!(
            lang,
            "limits-explanation-cells",
            "{cells} cells of 53 bytes are {wire}. Of {line} bit/s on the line, 260 of 270 columns carry cells: \
             {capacity} bit/s.",
            cells = grouped(cells),
            wire = grouped(at(Layer::Wire)),
            line = grouped(carried.medium.line().get()),
            capacity = capacity
        ));
    }
    let (messages, wire) = carried.turn();
    if carried.acknowledgement.is_some() {
        sentences.push(said!(
            lang,
            "limits-explanation-half-duplex",
            "Half duplex: an acknowledgement of {answer} bytes follows every two segments on the same medium: 2 x \
             {wire} + {answer} = {all} bytes.",
            wire = grouped(at(Layer::Wire)),
            answer = grouped(wire - messages * at(Layer::Wire)),
            all = grouped(wire)
        ));
    }
    let one = match cell.transport {
        _ if carried.acknowledgement.is_some() => said!(lang, "limits-explanation-pairs", "pairs of segments"),
        Transport::Udp => said!(lang, "limits-explanation-messages", "messages"),
        Transport::Tcp => said!(lang, "limits-explanation-segments", "segments"),
    };
    let rate = per_second(carried.messages_per_s() / messages as f64).unwrap_or_default();
    sentences.push(said!(
        lang,
        "limits-explanation-rate",
        "{capacity} bit/s / (8 x {wire} bytes) = {value} {one} a second.",
        capacity = capacity,
        wire = grouped(wire),
        value = rate,
        one = one
    ));
    sentences.push(said!(
        lang,
        "limits-explanation-payload",
        "{capacity} bit/s x {payload} / {wire} = {payload2} of payload, {share_of_line} of the line.",
        capacity = capacity,
        payload = grouped(at(Layer::Payload) * messages),
        wire = grouped(wire),
        payload2 = bits(carried.rate(Layer::Payload), 6),
        share_of_line = percent(carried.share_of_line()).unwrap_or_default()
    ));
    sentences
}

impl Limits {
    fn explained(&self, lang: Language, cell: &LimitCell) -> String {
        format!("{}, {}: {}, {}", name(&cell.stack), cell.load(lang), self.ip(lang), mtu(lang, cell))
    }

    /// Writes each cell's packets byte by byte.
    pub(super) fn explain_on(&self, lang: Language, page: &mut Page) {
        for cell in &self.cells {
            page.blank();
            page.heading(&self.explained(lang, cell));
            for (which, packet) in numbered(lang, cell) {
                page.paragraph("  ", &format!("{which}:"));
                for HeaderField { name, bytes, layer, source } in &packet.parts {
                    let text = if source.is_empty() { (*name).to_owned() } else { format!("{name} ({source})") };
                    page.paragraph(&format!("  {bytes:>7}  {layer:<18}"), &text);
                }
            }
            for sentence in arithmetic(lang, cell) {
                page.paragraph("  ", &sentence);
            }
        }
    }

    /// Returns tables, each with the sentences below it.
    pub(super) fn explanations(&self, lang: Language) -> Vec<(Table, Vec<String>)> {
        let of_cell = |cell: &LimitCell| {
            let packets: Vec<_> = numbered(lang, cell).collect();
            let last = packets.len() - 1;
            let table = |(index, (which, packet)): (usize, &(String, &Packet))| {
                let row = |part: &HeaderField| {
                    vec![
                        Some(part.name.to_owned()),
                        Some(part.bytes.to_string()),
                        Some(lang.text(part.layer.text())),
                        Some(part.source.to_owned()).filter(|source| !source.is_empty()),
                    ]
                };
                let table = Table {
                    caption: format!("{}. {which}", self.explained(lang, cell)),
                    columns: vec![
                        column!("column-part", "part", "what it is"),
                        column!("column-limits-explanation-bytes", "bytes", "how long it is"),
                        column!("column-counts-from", "counts from", "the first layer that counts it"),
                        column!("column-source", "source", "what says so"),
                    ],
                    rows: packet.parts.iter().map(row).collect(),
                };
                (table, if index == last { arithmetic(lang, cell) } else { Vec::new() })
            };
            packets.iter().enumerate().map(table).collect::<Vec<_>>()
        };
        if self.explain { self.cells.iter().flat_map(of_cell).collect() } else { Vec::new() }
    }
}
