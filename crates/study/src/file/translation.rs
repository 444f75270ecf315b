//! The translation of a study, in a file next to that of the study: `links.ja.toml` for `links.toml`.

use super::StudyError;
use super::document::{Source, unknown};
use crate::study::{Claim, Study};
use crate::translation::{ConclusionTranslation, FactorTranslation, Translation};
use linerate_report::Language;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use toml::Spanned;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    title: Option<String>,
    question: Option<Spanned<String>>,
    about: Option<String>,
    method: Option<String>,
    source: Option<Spanned<String>>,
    currency: Option<Spanned<String>>,
    caveats: Option<Spanned<Vec<String>>>,
    #[serde(default)]
    factors: BTreeMap<String, Spanned<FactorEntry>>,
    #[serde(default)]
    measures: BTreeMap<String, Spanned<String>>,
    conclusions: Option<Spanned<Vec<ConclusionEntry>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FactorEntry {
    title: Option<String>,
    unit: Option<Spanned<String>>,
    #[serde(default)]
    levels: BTreeMap<String, Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConclusionEntry {
    text: String,
    needs: Option<Spanned<String>>,
}

impl Study {
    /// Returns the study with its own texts in a language, from the text of the file `name`.
    ///
    /// # Errors
    ///
    /// No such file of texts, or a text that this study does not have.
    pub fn translated(mut self, language: Language, name: &Path, text: &str) -> Result<Self, StudyError> {
        let file = name.display().to_string();
        let document: Document = toml::from_str(text).map_err(|error| StudyError::Toml {
            file: file.clone(),
            message: error.to_string().trim_end().to_owned(),
        })?;
        let translation = document.translation(&self, &Source { file: &file, text })?;
        self.translation = Some((language, translation));
        Ok(self)
    }
}

impl Document {
    fn translation(self, study: &Study, source: &Source<'_>) -> Result<Translation, StudyError> {
        for (field, written, has) in [
            ("question", &self.question, study.question.is_some()),
            ("source", &self.source, study.source.is_some()),
            ("currency", &self.currency, study.currency.is_some()),
        ] {
            if let (Some(written), false) = (written, has) {
                return Err(source.fault(written, field, not_in_study()));
            }
        }
        let mut factors = BTreeMap::new();
        for (column, entry) in self.factors {
            let known = study.factors.iter().map(|factor| &factor.column);
            let Some(factor) = study.factors.iter().find(|factor| factor.column == column) else {
                return Err(source.fault(&entry, "factors", unknown("factor", &column, known)));
            };
            let entry = entry.into_inner();
            if let (Some(unit), None) = (&entry.unit, &factor.unit) {
                return Err(source.fault(unit, "unit", not_in_study()));
            }
            let names = || factor.levels.iter().flat_map(|level| std::iter::once(&level.name).chain(&level.also));
            let mut translated = BTreeSet::new();
            for (name, text) in &entry.levels {
                if !names().any(|known| known == name) {
                    return Err(source.fault(text, "levels", unknown("level", name, names())));
                }
                if factor.levels.iter().any(|level| level.name == *name) && !translated.insert(text.get_ref()) {
                    let problem = format!("`{}` stands twice; each level has a name of its own", text.get_ref());
                    return Err(source.fault(text, "levels", problem));
                }
            }
            let levels = inner(entry.levels);
            let unit = entry.unit.map(Spanned::into_inner);
            factors.insert(column, FactorTranslation { title: entry.title, unit, levels });
        }
        for (column, text) in &self.measures {
            if study.measures.iter().all(|measure| measure.column != *column) {
                let known = study.measures.iter().map(|measure| &measure.column);
                return Err(source.fault(text, "measures", unknown("measure", column, known)));
            }
        }
        let caveats = as_many(source, "caveats", self.caveats, study.caveats.len())?;
        let conclusions = as_many(source, "conclusions", self.conclusions, study.conclusions.len())?;
        for (entry, conclusion) in conclusions.iter().zip(&study.conclusions) {
            if let (Some(needs), false) = (&entry.needs, matches!(conclusion.claim, Claim::Needs { .. })) {
                return Err(source.fault(needs, "needs", not_in_study()));
            }
        }
        let mut translated = Vec::new();
        for entry in conclusions {
            translated.push(ConclusionTranslation { text: entry.text, needs: entry.needs.map(Spanned::into_inner) });
        }
        Ok(Translation {
            title: self.title,
            question: self.question.map(Spanned::into_inner),
            about: self.about,
            method: self.method,
            source: self.source.map(Spanned::into_inner),
            currency: self.currency.map(Spanned::into_inner),
            caveats,
            factors,
            measures: inner(self.measures),
            conclusions: translated,
        })
    }
}

/// Returns a list that has as many texts as the study; an absent list is empty.
fn as_many<T>(
    source: &Source<'_>,
    field: &str,
    texts: Option<Spanned<Vec<T>>>,
    expected: usize,
) -> Result<Vec<T>, StudyError> {
    let Some(texts) = texts else { return Ok(Vec::new()) };
    let count = texts.get_ref().len();
    if count != expected {
        let problem = format!("has {count} texts; expected {expected}, in the order of the study's file");
        return Err(source.fault(&texts, field, problem));
    }
    Ok(texts.into_inner())
}

fn inner(texts: BTreeMap<String, Spanned<String>>) -> BTreeMap<String, String> {
    texts.into_iter().map(|(key, text)| (key, text.into_inner())).collect()
}

fn not_in_study() -> String {
    "translates a text that the study does not have; expected it to be left out".to_owned()
}
