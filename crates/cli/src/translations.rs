//! Every text of the program has a translation, and every translation a text.

use linerate_model::TEXTS;
use linerate_report::Language;
use std::collections::{BTreeMap, BTreeSet};

const JAPANESE: &str = include_str!("../../report/locales/ja.ftl");

/// Returns the texts of a locale file by key; the key of an attribute is `message.attribute`.
fn entries(file: &str) -> BTreeMap<String, String> {
    let mut entries: BTreeMap<String, String> = BTreeMap::new();
    let (mut message, mut last) = (String::new(), String::new());
    for line in file.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let attribute = line.trim_start().strip_prefix('.');
        if line.starts_with(' ') && attribute.is_none() {
            let text = entries.get_mut(&last).unwrap_or_else(|| panic!("{line}: stands before the first message"));
            text.push_str(line);
            continue;
        }
        let (name, text) = attribute.unwrap_or(line).split_once('=').unwrap_or_else(|| panic!("{line}: no message"));
        let name = name.trim();
        last = if attribute.is_some() { format!("{message}.{name}") } else { name.to_owned() };
        if attribute.is_none() {
            name.clone_into(&mut message);
        }
        if !text.trim().is_empty() {
            assert!(entries.insert(last.clone(), text.to_owned()).is_none(), "{last} is defined twice");
        }
    }
    entries
}

/// Returns the names of the values that a text shows, each after `open`. A value that only selects a variant is not shown.
fn values<'a>(text: &'a str, open: &str) -> BTreeSet<&'a str> {
    let name = |rest: &'a str| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        Some(name).filter(|name| !name.is_empty() && !after.starts_with(" ->"))
    };
    text.split(open).skip(1).filter_map(name).collect()
}

#[test]
fn a_key_has_one_english_text() {
    let mut texts: BTreeMap<&str, &str> = BTreeMap::new();
    for text in TEXTS {
        assert_eq!(*texts.entry(text.key).or_insert(text.english), text.english, "{}", text.key);
    }
    assert!(texts.len() > 1_500, "{}", texts.len());
}

#[test]
fn every_text_has_a_japanese_translation_with_the_same_values() {
    let japanese = entries(JAPANESE);
    let mut faults = Vec::new();
    for text in TEXTS {
        match japanese.get(text.key) {
            None => faults.push(format!("{}: no Japanese text", text.key)),
            Some(told) if values(text.english, "{") != values(told, "$") => {
                faults.push(format!("{}: the values differ from those of `{}`", text.key, text.english));
            }
            Some(_) => {}
        }
    }
    faults.sort();
    faults.dedup();
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn every_japanese_text_is_used() {
    let keys: BTreeSet<&str> = TEXTS.iter().map(|text| text.key).collect();
    let unused: Vec<String> = entries(JAPANESE).into_keys().filter(|key| !keys.contains(key.as_str())).collect();
    assert_eq!(unused, Vec::<String>::new());
}

/// Fluent leaves out a message that it cannot read.
#[test]
fn every_japanese_text_is_read() {
    for text in TEXTS {
        assert!(Language::Japanese.has(text), "{}", text.key);
    }
}
