//! The document that every form of report walks: a new form is a walk over it, and knows no record.

use crate::{attempts, copy, device, frames, ladder, nfs, sample};
use linerate_model::{Caveat, CaveatKind, Message, Record};
use linerate_report::{Block, Depth, Document, Language, answer, document, html, markdown, text};
use std::collections::BTreeSet;

/// A form of report in a dozen lines: a plain outline.
fn outline(document: &Document) -> String {
    let mut lines = vec![document.title.clone()];
    for section in &document.sections {
        lines.push(format!("+ {}", section.heading));
        for block in &section.blocks {
            match block {
                Block::Sentences(sentences) => lines.extend(sentences.iter().map(|sentence| format!("  {sentence}"))),
                Block::Entries(entries) => lines.extend(entries.iter().map(|entry| format!("  {}:", entry.name))),
                Block::Table(table) => lines.push(format!("  table: {}", table.caption)),
                Block::Chart(chart) => lines.push(format!("  chart: {}", chart.title)),
                Block::Caveats(caveats) => {
                    lines.extend(caveats.iter().map(|(_, caveat)| format!("  ! {}", caveat.text)))
                }
            }
        }
    }
    lines.join("\n")
}

fn of(record: Record) -> Document {
    document(Language::English, &[record])
}

/// A record of every kind.
fn records() -> Vec<(String, Record)> {
    let others = [
        ("ladder", ladder::record()),
        ("device", device::record()),
        ("nfs", nfs::record()),
        ("copy", copy::record()),
        ("frames", frames::record()),
        ("attempts", attempts::record()),
        ("nothing", sample::record(&["a"], "b", vec![])),
    ];
    sample::all().into_iter().chain(others).map(|(name, record)| (name.to_owned(), record)).collect()
}

#[test]
fn a_new_form_of_report_is_a_walk_over_the_document() {
    let shown = outline(&of(sample::udp_sweep()));
    let expected = [
        "a to b\n+ Results\n  From 277 Mbit/s (udp 64) to 956 Mbit/s (udp 1472).\n",
        "\n+ Caveats (2): both ends on one machine, runs differ widely\n  ! both hosts are this machine",
        "\n+ Path\n  chart: Path of udp 64\n+ Figures\n  table: Streams\n+ Charts\n  chart: UDP over IPv4 by message size\n",
        "\n+ Each result in words\n  udp 64:\n  udp 512:\n  udp 1024:\n  udp 1472:\n+ What limited the results\n",
        "\n+ Hosts\n  table: Hosts\n  table: Interfaces that were up\n+ How it was measured\n  Each result is",
    ];
    for part in expected {
        assert!(shown.to_lowercase().contains(&part.to_lowercase()), "{part}: {shown}");
    }
}

#[test]
fn sections_stand_in_one_order_in_every_form() {
    for (name, record) in records() {
        let document = of(record.clone());
        let ids: BTreeSet<&str> = document.sections.iter().map(|section| section.id).collect();
        assert_eq!(ids.len(), document.sections.len(), "{name}: each section stands once");
        let page = html(Language::English, &record);
        let headings: Vec<String> = document
            .sections
            .iter()
            .map(|section| format!("<h2 id=\"{}\">{}</h2>", section.id, section.heading))
            .collect();
        assert_in_order(&name, &page, &headings);
        let drawn = |block: &Block| matches!(block, Block::Chart(chart) if chart.in_a_line().is_none());
        let marked = document.sections.iter().filter(|section| !section.blocks.iter().all(drawn));
        let headings: Vec<String> = marked.map(|section| format!("\n## {}\n", section.heading)).collect();
        assert_in_order(&name, &markdown(Language::English, &record), &headings);
        let short = document.sections.iter().filter(|section| section.depth != Depth::Full);
        let firsts = short.filter_map(|section| match section.blocks.iter().find(|block| !drawn(block))? {
            Block::Table(table) => Some(format!("\n{}\n", table.caption)),
            _ => Some(format!("\n{}\n", section.heading)),
        });
        assert_in_order(&name, &text(&record, &Default::default()), &firsts.collect::<Vec<_>>());
    }
}

fn assert_in_order(name: &str, whole: &str, parts: &[String]) {
    assert!(!parts.is_empty(), "{name}");
    let mut from = 0;
    for part in parts {
        let found =
            whole[from..].find(part.as_str()).unwrap_or_else(|| panic!("{name}: {part} is not next in {whole}"));
        from += found + part.len() - 1;
    }
}

#[test]
fn the_answer_comes_first_then_doubts_then_figures() {
    let mut record = sample::udp_sweep();
    record.caveats = vec![Caveat::new(CaveatKind::FewRuns, Message::untranslated("two runs only"))];
    let ids: Vec<&str> = of(record).sections.iter().map(|section| section.id).collect();
    assert_eq!(
        ids,
        ["results", "caveats", "path", "figures", "charts", "in-words", "verdicts", "further", "hosts", "method"]
    );
}

#[test]
fn several_records_are_one_document() {
    let (streams, device) = (sample::tcp_directions(), device::record());
    let whole = document(Language::English, &[streams.clone(), device.clone(), streams.clone()]);
    let ids: Vec<&str> = whole.sections.iter().map(|section| section.id).collect();
    assert!(ids.contains(&"device") && ids.contains(&"results"), "{ids:?}");
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
    let entries = |document: &Document| -> usize {
        let blocks =
            document.sections.iter().filter(|section| section.id == "results").flat_map(|section| &section.blocks);
        blocks.map(|block| if let Block::Entries(entries) = block { entries.len() } else { 0 }).sum()
    };
    assert_eq!(entries(&whole), 2 * entries(&of(streams.clone())));
    let caveats = |document: &Document| -> usize {
        let blocks = document.sections.iter().flat_map(|section| &section.blocks);
        blocks.map(|block| if let Block::Caveats(caveats) = block { caveats.len() } else { 0 }).sum()
    };
    let twice = document(Language::English, &[streams.clone(), streams.clone()]);
    assert_eq!(caveats(&twice), caveats(&of(streams)), "the same doubt of two records stands once");
}

/// A terminal shows at the end of a run: the answer, the doubts in a few words, the path, and a table.
#[test]
fn the_short_answer_fits_a_terminal() {
    let few = sample::udp_sweep();
    for (name, record) in records() {
        let shown = answer(&record, &Default::default());
        let lines: Vec<&str> = shown.lines().collect();
        let rows = record.results.len().max(12);
        assert!(lines.len() <= 12 + rows, "{name}: {} lines\n{shown}", lines.len());
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{name}: {shown}");
        let more = linerate_report::more(&record, &Default::default());
        assert!(more.split_whitespace().collect::<String>().contains(&record.id.0), "{name}: {shown}");
    }
    let shown = answer(&few, &Default::default());
    assert!(shown.lines().count() <= 24, "{shown}");
    let parts = ["Limits of the 4 results", "! both ends on one machine; runs differ widely", " > eth0 > ", "of link"];
    assert_in_order("udp_sweep", &shown, &parts.map(str::to_owned));
    // Why is behind -v.
    assert!(
        !shown.contains("What limited the results")
            && text(&few, &Default::default()).contains("What limited the results")
    );
}
