//! Capacity of the buses between a card and memory by frame size: calculated, nothing measured.

use crate::blocks::table::Table;
use crate::column;
use crate::figures::{per_second, rate};
use crate::forms::csv::line;
use crate::forms::markdown::{escaped, push_table};
use crate::forms::page::{Page, Style};
use crate::language::Language;
use crate::said;
use linerate_model::{Bus, Medium};
use serde_json::{Value, json};

/// Frame sizes with FCS: those of RFC 2544 section 9.1, and a jumbo frame.
const SIZES: [u64; 8] = [64, 128, 256, 512, 1_024, 1_280, 1_518, 9_018];
/// Bytes that a frame takes on an Ethernet wire in addition to its own: preamble 8, gap 12.
const AROUND: u64 = 20;

/// The limits for a terminal of this style; ends with a newline.
pub fn text(buses: &[Bus], style: &Style) -> String {
    let mut page = Page::new(style);
    for bus in buses {
        let table = table(style.language, *bus);
        page.heading(&table.caption);
        page.table(&table);
    }
    page.blank();
    for sentence in method(style.language, buses) {
        page.paragraph("  ", &sentence);
    }
    page.finish(style.unicode)
}

/// Tables and sentences in GitHub's Markdown.
pub fn markdown(lang: Language, buses: &[Bus]) -> String {
    let mut text = format!("# linerate: {}\n", said!(lang, "limits-bus-title", "what buses can carry"));
    for bus in buses {
        push_table(lang, &mut text, &table(lang, *bus));
    }
    text.push_str(&format!("\n## {}\n\n", said!(lang, "limits-section-method", "How it is counted")));
    for sentence in method(lang, buses) {
        text.push_str(&format!("- {}\n", escaped(&sentence)));
    }
    text
}

/// An array with an object for each bus and frame size; docs/limits.md names the fields.
pub fn json(buses: &[Bus]) -> String {
    let all: Value = rows(buses).map(|row| row.into_iter().collect::<serde_json::Map<_, _>>()).collect();
    format!("{all}\n")
}

/// Comma-separated values (RFC 4180) with a header line: the fields of the JSON form.
pub fn csv(buses: &[Bus]) -> String {
    let mut text = String::new();
    for (number, row) in rows(buses).enumerate() {
        if number == 0 {
            line(&mut text, row.iter().map(|(name, _)| name.clone()));
        }
        let cell = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        line(&mut text, row.iter().map(|(_, value)| cell(value)));
    }
    text
}

fn rows(buses: &[Bus]) -> impl Iterator<Item = Vec<(String, Value)>> {
    let row = |(bus, bytes): (Bus, u64)| {
        let frames = bus.frames_per_s(bytes);
        [
            ("bus", json!(bus)),
            ("capacity_bps", json!(bus.capacity())),
            ("shared", json!(bus.is_shared())),
            ("frame_bytes", json!(bytes)),
            ("frames_per_s", json!(frames)),
            ("layer2_fcs_bps", json!(frames * (bytes * 8) as f64)),
            ("fills", json!(fills(bus, bytes))),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    };
    buses.iter().flat_map(|bus| SIZES.map(|bytes| (*bus, bytes))).map(row)
}

fn table(lang: Language, bus: Bus) -> Table {
    let columns = [
        column!("column-bus-frame", "frame", "bytes of a frame with FCS"),
        column!("column-bus-frames-s", "frames/s", "the most in one direction"),
        column!("column-bus-rate", "rate", "bits of frames with FCS"),
        column!(
            "column-bus-fills",
            "fills",
            "the fastest Ethernet that one direction of the bus can keep full of such frames"
        ),
    ];
    let row = |bytes: u64| {
        let frames = bus.frames_per_s(bytes);
        let full = fills(bus, bytes).map(|medium| medium.to_string());
        vec![Some(bytes.to_string()), per_second(frames), rate(frames * (bytes * 8) as f64, "bit/s"), full]
    };
    let capacity = rate(bus.capacity().get() as f64, "bit/s").unwrap_or_default();
    let caption = if bus.is_shared() {
        said!(
            lang,
            "limits-bus-caption-pci",
            "{bus}: {rate}, shared by both directions and all cards",
            bus = bus.to_string(),
            rate = capacity
        )
    } else {
        said!(
            lang,
            "limits-bus-caption-pcie",
            "{bus}: {rate} in each direction, once encoded",
            bus = bus.to_string(),
            rate = capacity
        )
    };
    Table { caption, columns: columns.to_vec(), rows: SIZES.map(row).to_vec() }
}

/// The fastest Ethernet with a name that one direction of the bus can keep full of frames of this size.
fn fills(bus: Bus, frame_bytes: u64) -> Option<Medium> {
    let on_wire = ((frame_bytes + AROUND) * 8) as f64;
    let kept_full = |medium: &Medium| matches!(medium, Medium::Ethernet(line) if line.get() as f64 / on_wire <= bus.frames_per_s(frame_bytes));
    Medium::named().filter(kept_full).max_by_key(|medium| medium.line())
}

fn method(lang: Language, buses: &[Bus]) -> Vec<String> {
    let shared = buses.iter().any(|bus| bus.is_shared());
    let lanes = buses.iter().any(|bus| !bus.is_shared());
    let pci = shared.then(|| said!(lang, "limits-bus-method-pci", "PCI: a frame without FCS is one burst: an address phase, a clock for each word, and a turn-around clock (PCI \
         Local Bus Specification 3.0, section 3.3)."));
    let pcie = lanes.then(|| said!(lang, "limits-bus-method-pcie", "PCI Express: 8b/10b encoding up to generation 2, then 128b/130b. A frame without FCS travels in packets of at \
         most 256 bytes. Each adds 20 bytes: framing and sequence number 4, header 12, LCRC 4 (Intel AN 708: 5 to 7 \
         doublewords)."));
    pci.into_iter()
        .chain(pcie)
        .chain([said!(
            lang,
            "limits-bus-method-more",
            "Descriptors, doorbells, acknowledgements and flow control come on top, so a card reaches less."
        )])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bus(name: &str) -> Bus {
        name.parse().expect(name)
    }

    #[test]
    fn the_fastest_ethernet_that_stays_full_is_named() {
        let name = |of: &str, bytes| fills(bus(of), bytes).map(|medium| medium.to_string());
        // 87,489 frames of 1,518 bytes per second, of 81,274 that Gigabit Ethernet carries.
        assert_eq!(name("pci-32-33", 1_518).as_deref(), Some("1000BASE-T"));
        // 3.1 million frames of 64 bytes in 80 bytes each, of 1.49 and 3.7 million.
        assert_eq!(name("pcie-1-x1", 64).as_deref(), Some("1000BASE-T"));
        assert_eq!(name("pcie-3-x8", 1_518).as_deref(), Some("50GBASE-R"));
    }

    #[test]
    fn every_form_has_every_size_of_every_bus() {
        let buses = [bus("pci-32-33"), bus("pcie-3-x4")];
        let rows: Vec<Value> = serde_json::from_str(&json(&buses)).expect("JSON");
        assert_eq!(rows.len(), 2 * SIZES.len());
        assert_eq!((rows[0]["bus"].as_str(), rows[0]["shared"].as_bool()), (Some("pci-32-33"), Some(true)));
        let csv = csv(&buses);
        assert_eq!(csv.lines().count(), 1 + rows.len());
        assert!(csv.starts_with("bus,capacity_bps,shared,frame_bytes,frames_per_s,layer2_fcs_bps,fills"), "{csv}");
        for lang in [Language::English, Language::Japanese] {
            let page = markdown(lang, &buses);
            assert!(
                page.contains("pcie-3-x4: ") && page.contains("31.5 Gbit/s") && page.contains("1000BASE-T"),
                "{page}"
            );
        }
    }
}
