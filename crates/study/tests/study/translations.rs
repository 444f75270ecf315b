//! The Japanese texts of the shipped studies, and studies that have none.

use crate::published::{PUBLISHED, files, published, texts};
use linerate_report::{Language, Style};
use linerate_study::{Claim, Study, StudyFile, Translation, html, json, markdown, studied, text};
use std::path::Path;

/// Studies that are measured in the lab.
const MEASURED: [&str; 4] = ["lab-devices", "lab-hirosaki", "lab-kdd", "lab-l3switch"];
const JAPANESE: Language = Language::Japanese;

/// Returns a study of the tree without its Japanese texts.
fn study(name: &str) -> Study {
    let (toml, csv) = files(name);
    let path = format!("studies/{name}.toml");
    match StudyFile::parse(Path::new(&path), &toml).expect("a study") {
        StudyFile::Imported(file) => file.with_data(name, &csv).expect("its data"),
        StudyFile::Measured(study) => study.gathered(&[], &[]).expect("no record is none too many"),
    }
}

/// Returns a study of the tree with its Japanese texts.
fn in_japanese(name: &str) -> Study {
    let path = format!("studies/{name}.ja.toml");
    study(name).translated(JAPANESE, Path::new(&path), &texts(name)).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the texts of a study that a reader needs in Japanese and that have no translation. Names need none, such as
/// `Windows NT 4.0` or `FDDI`: their words begin with a capital or a digit.
fn untranslated(study: &Study, texts: &Translation) -> Vec<String> {
    let is_name = |text: &str| text.split([' ', '(']).all(|word| !word.starts_with(|c: char| c.is_ascii_lowercase()));
    let mut missing = Vec::new();
    for (field, is_missing) in [
        ("title", texts.title.is_none()),
        ("question", study.question.is_some() && texts.question.is_none()),
        ("about", texts.about.is_none()),
        ("method", texts.method.is_none()),
        ("source", study.source.is_some() && texts.source.is_none()),
        ("currency", study.currency.is_some() && texts.currency.is_none()),
        ("caveats", study.caveats.len() != texts.caveats.len()),
        ("conclusions", study.conclusions.len() != texts.conclusions.len()),
    ] {
        if is_missing {
            missing.push(field.to_owned());
        }
    }
    for factor in &study.factors {
        let translated = texts.factors.get(&factor.column);
        if translated.is_none_or(|texts| texts.title.is_none()) {
            missing.push(format!("title of {}", factor.column));
        }
        for name in factor.levels.iter().flat_map(|level| std::iter::once(&level.name).chain(&level.also)) {
            let is_translated = translated.is_some_and(|texts| texts.levels.contains_key(name));
            if factor.unit.is_none() && !is_name(name) && !is_translated {
                missing.push(format!("level {name}"));
            }
        }
    }
    for measure in study.measures.iter().filter(|measure| !texts.measures.contains_key(&measure.column)) {
        missing.push(format!("title of {}", measure.column));
    }
    for (conclusion, translated) in study.conclusions.iter().zip(&texts.conclusions) {
        if matches!(conclusion.claim, Claim::Needs { .. }) && translated.needs.is_none() {
            missing.push(format!("needs of {}", conclusion.text));
        }
    }
    missing
}

#[test]
fn every_shipped_study_is_translated_completely() {
    for name in PUBLISHED.into_iter().chain(MEASURED) {
        let study = in_japanese(name);
        let (language, texts) = study.translation.as_ref().expect("its texts");
        assert_eq!(*language, JAPANESE);
        assert_eq!(untranslated(&study, texts), Vec::<String>::new(), "{name}");
    }
}

/// English sentences of the author are not on a translated page, in the terminal or in Markdown, and nothing is marked.
#[test]
fn a_translated_study_has_no_english_sentence() {
    for name in PUBLISHED {
        let (english, report) = (study(name), studied(in_japanese(name)));
        let style = Style { language: JAPANESE, width: 10_000, ..Style::default() };
        let forms = [html(JAPANESE, &report, None), text(&report, &style, None), markdown(JAPANESE, &report, None)];
        let conclusions = english.conclusions.iter().map(|conclusion| &conclusion.text);
        let own = [&english.title, &english.about, &english.method].into_iter();
        for form in &forms {
            // The data of the page are as they were published.
            let shown = form.split("<script").next().unwrap_or_default().replace('\u{a0}', " ");
            let shown = shown.split("data:text/csv").next().unwrap_or_default();
            assert!(!shown.contains("（英語）"), "{name}: {shown}");
            for sentence in own.clone().chain(&english.caveats).chain(conclusions.clone()) {
                assert!(!shown.contains(sentence.trim()), "{name}: {sentence}");
            }
        }
    }
}

/// Verdicts and kinds of findings follow from the numbers, not from the names of levels.
#[test]
fn a_translation_changes_no_verdict() {
    for name in PUBLISHED {
        let report = studied(in_japanese(name));
        let page = html(JAPANESE, &report, None);
        let verdicts: Vec<String> = report.answers.iter().map(|answer| JAPANESE.text(answer.verdict.text())).collect();
        let conclusions = page.split("id=\"conclusions\"").nth(1).expect("the section").split("</section>").next();
        let kinds = conclusions.expect("its end").split("class=\"kind\">").skip(1);
        let shown: Vec<&str> = kinds.filter_map(|rest| rest.split('<').next()).collect();
        assert_eq!(shown, verdicts, "{name}");
        assert_eq!(json(&report), json(&studied(study(name))), "{name}: JSON is the same in every language");
    }
}

/// Without a translation the author's sentences are marked as English, each once; names of levels are not.
#[test]
fn a_study_without_texts_is_marked_as_english() {
    let report = published("switches-2020");
    let style = Style { language: JAPANESE, width: 10_000, ..Style::default() };
    let terminal = text(&report, &style, None);
    assert!(terminal.starts_with("（英語）Three switches between two PCs, 2020\n"), "{terminal}");
    for start in ["Which of", "A network engineer's blog sent", "\"Nana\"", "Nothing is known of loss", "The PCs, not"]
    {
        assert!(terminal.contains(&format!("（英語）{start}")), "{start}: {terminal}");
    }
    assert!(!terminal.contains("（英語）none (PC to PC)"), "{terminal}");
    let page = html(JAPANESE, &report, None).replace('\u{a0}', " ");
    assert!(
        page.contains("（英語）<span lang=\"en\">Which of the three switches carries the most?</span>"),
        "no such mark"
    );
    // What is written in Japanese is not marked.
    let mut own = report.clone();
    own.study.title = "スイッチの比較".to_owned();
    assert!(text(&own, &style, None).starts_with("スイッチの比較\n"));
}
