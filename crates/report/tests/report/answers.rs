//! The short answer of a terminal: figures once, doubts before what they are about.

use crate::{copy, device, nfs, recorded, sample};
use linerate_model::Record;
use linerate_report::{Language, Style, answer, markdown};

/// The answer in one line.
fn told(record: &Record, language: Language) -> String {
    let text = answer(record, &Style { language, ..Style::default() });
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_figure_stands_once_before_its_runs() {
    for (record, words, twice) in [
        (recorded::record("transact"), "tcp transactions: 1,000 transactions a second", "1,000 /s"),
        (recorded::record("nfs"), "nfs 200 ops/s: 225 operations a second", "225 /s"),
        (nfs::record(), "nfs peak: The peak is 4,000 operations a second", "4,000 /s"),
    ] {
        let english = told(&record, Language::English);
        assert!(english.contains(words) && !english.contains(twice), "{english}");
        let japanese = told(&record, Language::Japanese);
        assert!(!japanese.contains(twice), "{japanese}");
    }
    // What the words do not have stays.
    let one = told(&recorded::record("device-throughput"), Language::English);
    assert!(one.contains(" /s. "), "{one}");
}

#[test]
fn what_is_not_firm_is_said_before_the_range() {
    for text in [told(&device::not_firm(), Language::English), markdown(Language::English, &device::not_firm())] {
        let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}: {text}"));
        assert!(at("NOT FIRM: rate at 64 bytes") < at("Throughput from"), "{text}");
        assert_eq!(text.matches("NOT FIRM: rate at 64 bytes").count(), 1, "{text}");
    }
}

/// A copy said that it was busiest sending beside a verdict of the storage.
#[test]
fn a_copy_names_no_stage_but_that_of_the_verdict() {
    let record = copy::record();
    let english = markdown(Language::English, &record);
    assert!(english.contains("storage write") && !english.to_lowercase().contains("busiest stage"), "{english}");
}

#[test]
fn offered_stands_beside_received() {
    let english = told(&sample::udp_sweep(), Language::English);
    assert!(english.contains("payload offered"), "{english}");
}

/// Operations of both ways are no share of a link: no answer gives them in bits a second.
#[test]
fn operations_of_nfs_are_told_in_operations() {
    for record in [recorded::record("nfs"), nfs::record()] {
        let english = told(&record, Language::English);
        assert!(english.contains("operations a second") && !english.contains("bit/s"), "{english}");
    }
}
