//! Texts of a study in another language than that of its file.

use std::collections::BTreeMap;

/// A study's own texts in one language. A text that is `None` or absent has no translation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Translation {
    /// Title of the study.
    pub title: Option<String>,
    /// Its question.
    pub question: Option<String>,
    /// Author, subject and reason of the measurements.
    pub about: Option<String>,
    /// Method of the measurements.
    pub method: Option<String>,
    /// Source of the numbers.
    pub source: Option<String>,
    /// Currency of prices.
    pub currency: Option<String>,
    /// Caveats of the study's file, in their order; empty without translations.
    pub caveats: Vec<String>,
    /// Factors, by their columns.
    pub factors: BTreeMap<String, FactorTranslation>,
    /// Titles of measures, by their columns.
    pub measures: BTreeMap<String, String>,
    /// Conclusions, in their order; empty without translations.
    pub conclusions: Vec<ConclusionTranslation>,
}

/// Texts of a factor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FactorTranslation {
    /// Name of the factor in sentences.
    pub title: Option<String>,
    /// Unit of numeric levels.
    pub unit: Option<String>,
    /// Names of levels, and what else differs at a level, by their English.
    pub levels: BTreeMap<String, String>,
}

/// Texts of a conclusion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConclusionTranslation {
    /// The conclusion in words.
    pub text: String,
    /// What would have to be measured, for a claim that needs it.
    pub needs: Option<String>,
}
