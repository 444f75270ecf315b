//! Reports in each language: all words are there in all, and none is left in English.

use crate::{copy, device, ladder, limits, nfs, over_time, sample};
use linerate_model::Limit;
use linerate_report::{Language, Style};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const ENGLISH: &str = include_str!("../../locales/en.ftl");
const JAPANESE: &str = include_str!("../../locales/ja.ftl");

/// Keys and attributes with their patterns; what stands deeper goes on with the line before.
fn messages(source: &str) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    let (mut last, mut of) = (String::new(), String::new());
    for line in source.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let is_further = line.starts_with(' ') && !line.trim_start().starts_with('.');
        if let Some(pattern) = all.get_mut(&of).filter(|_| is_further) {
            *pattern = format!("{pattern}\n{line}");
            continue;
        }
        let (key, pattern) = line.split_once(" = ").unwrap_or_else(|| panic!("{line}: no message"));
        let key = match key.trim().strip_prefix('.') {
            Some(attribute) => format!("{last}.{attribute}"),
            None => key.to_owned(),
        };
        if !key.contains('.') {
            last.clone_from(&key);
        }
        of.clone_from(&key);
        assert!(all.insert(key, pattern.to_owned()).is_none(), "{line}: twice");
    }
    all
}

/// The names of what a pattern holds.
fn held(pattern: &str) -> BTreeSet<&str> {
    pattern
        .split('$')
        .skip(1)
        .map(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default())
        .collect()
}

#[test]
fn all_languages_have_the_same_words_with_the_same_holes() {
    let (english, japanese) = (messages(ENGLISH), messages(JAPANESE));
    assert!(english.len() > 500);
    assert_eq!(english.keys().collect::<Vec<_>>(), japanese.keys().collect::<Vec<_>>());
    for (key, pattern) in &english {
        assert_eq!(held(pattern), held(&japanese[key]), "{key}");
    }
}

/// Every message can be read: Fluent leaves out what it cannot.
#[test]
fn every_message_is_known() {
    for (language, source) in [(Language::English, ENGLISH), (Language::Japanese, JAPANESE)] {
        for key in messages(source).keys().filter(|key| !key.contains('.')) {
            assert_ne!(language.tell(key, &[]), *key, "{key}");
        }
    }
}

/// The source of the crates that say something.
fn source() -> String {
    fn read(folder: &Path, text: &mut String) {
        for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            match entry.is_dir() {
                true => read(&entry, text),
                false => text.push_str(&std::fs::read_to_string(&entry).expect("a source")),
            }
        }
    }
    let mut text = String::new();
    for crate_ in ["report", "study", "view", "cli"] {
        read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(crate_).join("src"), &mut text);
    }
    text
}

#[test]
fn every_key_of_the_source_exists_and_every_message_is_used() {
    let source = source();
    let known = messages(ENGLISH);
    let mut asked: BTreeSet<&str> =
        source.split("\"column-").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let columns: BTreeSet<String> = asked.iter().map(|key| format!("column-{key}")).collect();
    // What `said!` is given second.
    asked = source
        .split("said!(")
        .skip(1)
        .filter_map(|rest| rest.split_once(',')?.1.trim_start().strip_prefix('"')?.split('"').next())
        .collect();
    // One of two.
    let pairs = source.split(".either(").skip(1).filter_map(|rest| rest.split(')').next());
    asked.extend(pairs.flat_map(|pair| pair.split('"').skip(1).step_by(2)));
    let missing: Vec<&str> = asked
        .iter()
        .copied()
        .chain(columns.iter().map(String::as_str))
        .filter(|key| !known.contains_key(*key))
        .collect();
    assert!(asked.len() > 300 && columns.len() > 200, "{} {}", asked.len(), columns.len());
    assert_eq!(missing, Vec::<&str>::new());
    for kind in linerate_model::CaveatKind::ALL {
        assert!(known.contains_key(&format!("doubt-{}", kind.name())), "{kind:?} has no heading");
    }
    // Names of the model's kinds are put together.
    let kinds = [
        "doubt",
        "limit",
        "support",
        "condition",
        "quantity",
        "change",
        "samples",
        "ladder-layer",
        "class",
        "missed",
        "stage",
        "call",
        "layer",
        "place",
        "finding",
        "preparing",
    ];
    let put_together = |key: &str| kinds.iter().any(|kind| key.starts_with(&format!("{kind}-")));
    let unused: Vec<&String> = known
        .keys()
        .filter(|key| !key.contains('.') && !put_together(key) && !source.contains(&format!("\"{key}\"")))
        .collect();
    assert_eq!(unused, Vec::<&String>::new());
}

/// What stands between the tags of these elements, which may be named with their first attribute.
fn inside<'a>(page: &'a str, element: &str) -> Vec<&'a str> {
    let end = format!("</{}>", element.split(' ').next().unwrap_or(element));
    page.split(&format!("<{element}"))
        .skip(1)
        .filter(|rest| rest.starts_with(['>', ' ']))
        .filter_map(|rest| rest.split_once('>')?.1.split(end.as_str()).next())
        .collect()
}

/// Whether a text is told in English: it is one of its messages, and Japanese says it otherwise.
fn english(text: &str) -> bool {
    let (english, japanese) = (messages(ENGLISH), messages(JAPANESE));
    english.iter().any(|(key, pattern)| pattern == text && japanese[key] != text)
}

#[test]
fn a_japanese_page_has_no_english_heading() {
    let language = Language::Japanese;
    let records = sample::all().into_iter().map(|(_, record)| record).chain([
        ladder::record(),
        device::record(),
        nfs::record(),
        nfs::rpc(),
        copy::record(),
    ]);
    let records = records.chain(over_time::all().map(|(_, record)| record));
    let pages: Vec<String> = records
        .map(|record| linerate_report::html(language, &record))
        .chain([linerate_report::limits::html(language, &limits::overview())])
        .collect();
    for page in &pages {
        assert!(page.contains("<html lang=\"ja\">"));
        let mut seen = 0;
        for element in ["h2", "h3", "th scope=\"col\"", "caption", "summary", "dt", "b", "li", "text", "figcaption"] {
            for text in inside(page, element) {
                let said = text.trim().replace("&#39;", "'").replace("&quot;", "\"").replace("&amp;", "&");
                // Names in the samples; those at the head of a row are not looked at.
                let named = ["copy", "empty", "tester", "device", "throughput", "receiver"].contains(&said.as_str());
                assert!(named || !english(&said), "<{element}> {said}");
                seen += 1;
            }
        }
        assert!(seen > 10, "{seen}");
    }
}

#[test]
fn a_terminal_is_told_in_japanese_within_its_width() {
    for width in [60, 80, 120] {
        let style = Style { width, language: Language::Japanese, ..Style::default() };
        for (name, record) in sample::all() {
            let text = linerate_report::text(&record, &style);
            for line in text.lines() {
                let columns: usize = line.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum();
                // Dashes and the like are narrow.
                assert!(
                    columns <= width + line.matches(['\u{2013}', '\u{2026}', '\u{2588}']).count(),
                    "{name} {width}: {line}"
                );
            }
        }
    }
    let text =
        linerate_report::text(&sample::demonstration(), &Style { language: Language::Japanese, ..Style::default() });
    for said in ["結果を制限したもの", "注意事項", "ペイロード", "2026 年 11 月 21 日"] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn every_limit_has_a_japanese_name() {
    let japanese = messages(JAPANESE);
    for limit in [
        Limit::OfferedLoad,
        Limit::Wire,
        Limit::Tester,
        Limit::Server,
        Limit::SenderCpu,
        Limit::ReceiverCpu,
        Limit::ReceiverBuffer,
        Limit::Window,
        Limit::PathLoss,
        Limit::Device,
        Limit::Shaper,
        Limit::Latency,
        Limit::CannotTell,
    ] {
        let key: String = limit
            .to_string()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
            .collect();
        assert!(japanese.contains_key(&format!("limit-{key}")), "{limit}");
    }
}

#[test]
fn a_language_is_asked_for_by_its_tag() {
    assert_eq!("ja".parse(), Ok(Language::Japanese));
    let refused = "fr".parse::<Language>().expect_err("no such reports").to_string();
    assert!(refused.contains("`fr`") && refused.contains("en or ja"), "{refused}");
    assert_eq!(Language::of_locale("ja_JP.UTF-8"), Language::Japanese);
    assert_eq!(Language::of_locale("C"), Language::English);
}

#[test]
fn one_thing_is_not_told_in_the_plural() {
    let english = Language::English;
    let results = |count: u64| linerate_report::said!(english, "view-results", results = count);
    assert_eq!([results(1), results(2), results(1_200)], ["1 result", "2 results", "1,200 results"]);
    let mut record = copy::record();
    let linerate_model::Detail::Copy(found) = &mut record.results[0].detail else { panic!("a copy") };
    (found.files, found.faults_total) = (1, 1);
    let shown = linerate_report::markdown(english, &record);
    for said in ["1 file (1.36 GB)", "1 item was not copied."] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    let compared = |figures: u64| {
        let said = linerate_report::said!(
            english,
            "comparison-summary",
            figures = figures,
            counts = "1 worse",
            tolerance = "5 %",
            confidence = "95"
        );
        said.split(':').next().unwrap_or_default().to_owned()
    };
    assert_eq!([compared(1), compared(4)], ["Of 1 figure", "Of 4 figures"]);
}

/// A message's key where its words should stand means that a name was given to a message and not told first.
#[test]
fn no_form_shows_the_key_of_a_message() {
    let english = messages(ENGLISH);
    // Keys of two words or fewer may be words of a text.
    let keys: Vec<&str> = english.keys().map(String::as_str).filter(|key| key.matches('-').count() > 1).collect();
    let records = sample::all().into_iter().map(|(_, record)| record).chain([
        ladder::record(),
        device::record(),
        nfs::record(),
        nfs::rpc(),
        copy::record(),
    ]);
    for record in records {
        for language in Language::ALL {
            let page = linerate_report::html(language, &record);
            let page = page.split("<script id=\"record\"").next().expect("a page");
            let text = linerate_report::text(&record, &Style { language, width: 200, ..Style::default() });
            for key in &keys {
                assert!(!page.contains(key) && !text.contains(key), "{key}: {}", record.id.0);
            }
        }
    }
}

/// A screen reader would spell English out by Japanese rules: what older records say, commands, and what hosts say of themselves.
#[test]
fn english_on_a_japanese_page_is_marked_as_such() {
    let page = |lang, record| linerate_report::linked_html(lang, record, &[], Some("linerate stream a b --udp"));
    let record = ladder::record();
    let japanese = page(Language::Japanese, &record);
    for marked in [
        "（英語）<span lang=\"en\">Both hosts are this machine",
        "<code lang=\"en\">linerate stream a b",
        "<span lang=\"en\">: linerate stream a b",
    ] {
        assert!(japanese.contains(marked), "{marked}: {japanese}");
    }
    let marked = japanese.split("<span lang=\"en\">").skip(1).filter_map(|rest| rest.split("</span>").next());
    for text in marked {
        assert!(text.is_ascii() || !text.chars().any(|c| c >= '\u{2e80}'), "{text}");
    }
    let english = page(Language::English, &record);
    assert_eq!(english.matches("lang=").count(), 1, "the page's own");
}
