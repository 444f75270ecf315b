//! A study with its own texts in the reader's language.

use crate::study::{Claim, Conclusion, Factor, FactorOf, Study};
use crate::translation::{FactorTranslation, Translation};
use linerate_model::Message;
use linerate_report::parts::wording::{in_a_row, sentence};
use linerate_report::{Language, said};
use std::borrow::Cow;

impl Study {
    /// Returns the study as a reader of this language sees it, with the order of the runs in its method and all caveats
    /// in one list. Sentences without a translation are marked as English; names without one stand as they are.
    pub(crate) fn in_language(&self, lang: Language) -> Cow<'_, Self> {
        if lang == Language::English && self.design.is_none() && self.notes.is_empty() {
            return Cow::Borrowed(self);
        }
        let empty = Translation::default();
        let texts = match &self.translation {
            Some((language, texts)) if *language == lang => texts,
            _ => &empty,
        };
        let mut study = self.clone();
        study.design = None;
        study.notes.clear();
        study.title = translated(lang, texts.title.as_deref(), &self.title);
        study.about = translated(lang, texts.about.as_deref(), &self.about);
        if let Some(question) = &mut study.question {
            question.text = translated(lang, texts.question.as_deref(), &question.text);
        }
        study.source = self.source.as_ref().map(|source| translated(lang, texts.source.as_deref(), source));
        study.currency = self.currency.as_ref().map(|currency| texts.currency.as_ref().unwrap_or(currency).clone());
        study.caveats = caveats(lang, self, &texts.caveats);
        for factor in &mut study.factors {
            translate_factor(lang, factor, texts.factors.get(&factor.column));
        }
        for measure in &mut study.measures {
            if let Some(title) = texts.measures.get(&measure.column) {
                measure.title.clone_from(title);
            }
        }
        study.method = method(lang, self, &study.factors, texts.method.as_deref());
        for (at, conclusion) in study.conclusions.iter_mut().enumerate() {
            let entry = texts.conclusions.get(at);
            conclusion.text = translated(lang, entry.map(|entry| entry.text.as_str()), &conclusion.text);
            let needs = entry.and_then(|entry| entry.needs.as_deref());
            translate_claim(lang, conclusion, needs, self, texts);
        }
        Cow::Owned(study)
    }
}

/// Returns the translation of a text, or else the text itself, marked as English.
fn translated(lang: Language, translation: Option<&str>, text: &str) -> String {
    translation.map_or_else(|| marked(lang, text), str::to_owned)
}

/// Marks a text as English, unless it is written in the reader's language anyway.
fn marked(lang: Language, text: &str) -> String {
    if lang.wrote(text) { text.to_owned() } else { lang.message(&Message::untranslated(text.trim())) }
}

/// Returns the caveats of the author, then those that linerate found.
fn caveats(lang: Language, study: &Study, translated: &[String]) -> Vec<String> {
    let mut caveats: Vec<String> = match translated {
        [] => study.caveats.iter().map(|caveat| marked(lang, caveat)).collect(),
        translated => translated.to_vec(),
    };
    caveats.extend(study.notes.iter().map(|note| lang.message(note)));
    caveats
}

/// Returns the method of the author, then the order of the runs.
fn method(lang: Language, study: &Study, factors: &[Factor], translation: Option<&str>) -> String {
    let own = sentence(&translated(lang, translation, &study.method));
    match &study.design {
        Some(design) => in_a_row(&[own, design.text(lang, factors)]),
        None => own,
    }
}

fn translate_factor(lang: Language, factor: &mut Factor, texts: Option<&FactorTranslation>) {
    let unit = texts.and_then(|texts| texts.unit.clone());
    let bytes = (factor.of == Some(FactorOf::Message) && factor.unit.as_deref() == Some("bytes"))
        .then(|| said!(lang, "study-unit-bytes", "bytes"));
    if let Some(unit) = unit.or(bytes) {
        factor.unit = Some(unit);
    }
    let Some(texts) = texts else { return };
    if let Some(title) = &texts.title {
        factor.title.clone_from(title);
    }
    for level in &mut factor.levels {
        if let Some(name) = texts.levels.get(&level.name) {
            level.name.clone_from(name);
        }
        if let Some(text) = level.also.as_mut().and_then(|also| texts.levels.get(also.as_str())) {
            level.also = Some(text.clone());
        }
    }
}

/// Translates the levels that a claim names, and what it needs.
fn translate_claim(
    lang: Language,
    conclusion: &mut Conclusion,
    needs: Option<&str>,
    study: &Study,
    texts: &Translation,
) {
    for (factor, levels) in &mut conclusion.only {
        for level in levels {
            translate_level(level, &study.factors[*factor], texts);
        }
    }
    match &mut conclusion.claim {
        Claim::Ahead { ahead: one, of: other } | Claim::DoesNotPay { dear: one, cheap: other } => {
            let of_both = study.factors.iter().find(|factor| has(factor, one) && has(factor, other));
            if let Some(factor) = of_both {
                translate_level(one, factor, texts);
                translate_level(other, factor, texts);
            }
        }
        Claim::Finding { names, .. } => {
            for name in names {
                if let Some(factor) = study.factors.iter().find(|factor| has(factor, name)) {
                    translate_level(name, factor, texts);
                }
            }
        }
        Claim::Needs { needs: text } => {
            *text = translated(lang, needs, text);
        }
        Claim::Share { .. } | Claim::Value { .. } => {}
    }
}

fn has(factor: &Factor, level: &str) -> bool {
    factor.levels.iter().any(|known| known.name == level)
}

fn translate_level(name: &mut String, factor: &Factor, texts: &Translation) {
    if let Some(text) = texts.factors.get(&factor.column).and_then(|texts| texts.levels.get(name)) {
        name.clone_from(text);
    }
}
