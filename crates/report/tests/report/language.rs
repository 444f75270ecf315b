//! Reports in each language: all words are there in all, and none is left in English.

use crate::{copy, device, ladder, limits, nfs, over_time, sample};
use linerate_model::TEXTS;
use linerate_report::{Language, Style};

/// What stands between the tags of these elements, which may be named with their first attribute.
fn inside<'a>(page: &'a str, element: &str) -> Vec<&'a str> {
    let end = format!("</{}>", element.split(' ').next().unwrap_or(element));
    page.split(&format!("<{element}"))
        .skip(1)
        .filter(|rest| rest.starts_with(['>', ' ']))
        .filter_map(|rest| rest.split_once('>')?.1.split(end.as_str()).next())
        .collect()
}

/// Returns whether a text is the English of one that Japanese translates.
fn english(text: &str) -> bool {
    TEXTS.iter().any(|known| known.english == text && Language::Japanese.text(known) != text)
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
    let results = |count: u64| {
        linerate_report::said!(
            english,
            "view-results",
            if results == 1 { "1 result" } else { "{results} results" },
            results = count
        )
    };
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
            if figures == 1 {
                "Of 1 figure: {counts}. Before and after are medians of the runs; the change is that of their means. \
                 The tolerance is {tolerance}. All verdicts together hold with {confidence} % confidence."
            } else {
                "Of {figures} figures: {counts}. Before and after are medians of the runs; the change is that of their \
                 means. The tolerance is {tolerance}. All verdicts together hold with {confidence} % confidence."
            },
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
    // Keys of two words or fewer may be words of a text.
    let keys: Vec<&str> = TEXTS.iter().map(|text| text.key).filter(|key| key.matches('-').count() > 1).collect();
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
