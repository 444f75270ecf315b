//! Reports of studies in Japanese: none of their words is left in English.

use crate::published::{PUBLISHED, files, published_in_japanese, texts};
use linerate_report::{Language, Style};
use linerate_study::{html, json, markdown, text};
use std::collections::BTreeSet;

/// What stands between the tags of these elements, which may be named with their first attribute.
fn inside<'a>(page: &'a str, element: &str) -> Vec<&'a str> {
    let end = format!("</{}>", element.split(' ').next().unwrap_or(element));
    page.split(&format!("<{element}"))
        .skip(1)
        .filter(|rest| rest.starts_with(['>', ' ']))
        .filter_map(|rest| rest.split_once('>')?.1.split(end.as_str()).next())
        .collect()
}

/// Returns the text of a piece of HTML.
fn without_tags(html: &str) -> String {
    let texts = html.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    texts.collect::<String>().replace("&quot;", "")
}

/// A text that stands on the English page too is the author's own, or figures.
#[test]
fn a_japanese_page_has_no_english_heading() {
    let report = published_in_japanese("hirosaki-1998");
    let (english, japanese) = (html(Language::English, &report, None), html(Language::Japanese, &report, None));
    assert!(japanese.contains("<html lang=\"ja\">"));
    let (toml, csv) = files("hirosaki-1998");
    let own = (toml + &csv + &texts("hirosaki-1998")).to_lowercase();
    let mut seen = 0;
    for element in ["h2", "h3", "th scope=\"col\"", "caption", "summary", "dt", "b", "li", "text", "figcaption"] {
        let shared: BTreeSet<&str> = inside(&english, element).into_iter().collect();
        for text in inside(&japanese, element) {
            let letters = without_tags(text);
            let mut words = letters.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| word.len() > 3);
            let is_own = words.all(|word| own.contains(&word.to_lowercase()) || word.ends_with("bit"));
            assert!(!shared.contains(text) || is_own, "<{element}> {text}");
            seen += 1;
        }
    }
    assert!(seen > 10, "{seen}");
}

/// The findings of a study are told anew in the reader's language; JSON, which programs read, has them in English.
#[test]
fn findings_are_in_japanese() {
    for name in PUBLISHED {
        let report = published_in_japanese(name);
        let page = html(Language::Japanese, &report, None);
        let found = page.split_once("<ul class=\"findings\">").expect("findings").1;
        let found = found.split_once("</section>").expect("the end of the section").0;
        assert_eq!(found.matches("class=\"kind\"").count(), report.findings.len(), "{name}");
        let mut seen = 0;
        for text in inside(found, "p").into_iter().chain(inside(found, "li")) {
            // What comes before the evidence that a finding holds, if it is one.
            let text = text.split("<details>").next().unwrap_or_default();
            assert!(text.contains(['は', 'が', 'で', '、', '：', '。']), "{name}: {text}");
            assert!(
                !text.contains('{') && !text.contains("pairs of cells") && !text.contains(" the "),
                "{name}: {text}"
            );
            seen += 1;
        }
        assert!(seen > 2 * report.findings.len(), "{name}: {seen}");
        let style = Style { language: Language::Japanese, ..Style::default() };
        let terminal = text(&report, &style, None);
        let markdown = markdown(Language::Japanese, &report, None);
        for finding in &report.findings {
            assert!(!markdown.contains(&finding.text) && !terminal.contains(&finding.text), "{name}: {}", finding.text);
        }
        let programs = json(&report);
        assert!(report.findings.iter().all(|finding| programs.contains(&serde_json::json!(finding.text).to_string())));
    }
    let page = html(Language::Japanese, &published_in_japanese("hirosaki-1998"), None);
    let page = page.replace('\u{a0}', " ");
    for said in [
        "Windows NT 4.0 は Windows 95 よりスループットが高くなっています",
        "インターフェース別のスループット、高い順:",
        "を超えるのは ATM-OC3-LANE 上の UDP だけです",
        "20.0 倍",
        "符号検定、正確、両側、調査全体でホルム補正",
    ] {
        assert!(page.contains(said), "{said}");
    }
}
