//! `[[factors]]` of a study's file.

use super::StudyError;
use super::document::{Reading, Source, once};
use super::measured::Setting;
use super::run::SetEntry;
use crate::study::{Conditions, Expected, Factor, FactorOf, Level, Price};
use linerate_model::{Encapsulation, Medium, Transport};
use serde::Deserialize;
use std::collections::BTreeSet;
use toml::Spanned;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FactorEntry {
    pub(super) column: Spanned<String>,
    title: Option<String>,
    unit: Option<String>,
    of: Option<FactorOf>,
    expect: Option<Spanned<Expected>>,
    #[serde(default)]
    pub(super) optional: bool,
    set: Option<Spanned<SetEntry>>,
    pub(super) levels: Option<Vec<LevelEntry>>,
}

impl FactorEntry {
    /// Returns the factor, and how it is set in a measured study.
    pub(super) fn factor(self, source: &Source<'_>, reading: &Reading) -> Result<(Factor, Setting), StudyError> {
        let numeric = self.unit.is_some() || self.of == Some(FactorOf::Message);
        if let Some(expect) = self.expect.as_ref().filter(|_| !numeric) {
            let problem = "is for a factor whose levels are numbers; expected `unit`, or the field to be left out";
            return Err(source.fault(expect, "expect", problem.to_owned()));
        }
        let mut known = BTreeSet::new();
        let mut levels = Vec::new();
        for entry in self.levels.into_iter().flatten() {
            once(source, &mut known, &entry.name, "name")?;
            if let (Some(words), Reading::Data(_)) = (&entry.words, reading) {
                return Err(source.fault(words, "words", only_measured()));
            }
            let words = entry.words.as_ref().map(|words| words.get_ref().clone());
            levels.push((entry.level(source, numeric, self.of)?, words));
        }
        if numeric {
            levels.sort_by(|(a, _), (b, _)| a.value.unwrap_or(0.0).total_cmp(&b.value.unwrap_or(0.0)));
        }
        let (levels, words): (Vec<Level>, _) = levels.into_iter().unzip();
        let set = match (self.set, reading) {
            (Some(set), Reading::Data(_)) => return Err(source.fault(&set, "set", only_measured())),
            (Some(set), Reading::Run(run, _)) => Some(set.get_ref().clone().set(source, &set, run)?),
            (None, _) => None,
        };
        if let Reading::Run(..) = reading {
            let missing = |problem: &str| Err(source.fault(&self.column, "column", problem.to_owned()));
            if levels.is_empty() {
                return missing("has no levels; expected `levels` with those to measure in");
            }
            if self.optional {
                return missing("is optional; each factor of a study that is measured has a level in each cell");
            }
        }
        let setting = Setting { column: self.column.clone(), words, set };
        let column = self.column.into_inner();
        let unit = self.unit.or((self.of == Some(FactorOf::Message)).then(|| "bytes".to_owned()));
        let title = self.title.unwrap_or_else(|| column.replace('_', " "));
        let expect = self.expect.map(Spanned::into_inner);
        Ok((Factor { title, column, unit, of: self.of, expect, levels }, setting))
    }
}

/// Returns the error text for a field that an imported study must not have.
pub(super) fn only_measured() -> String {
    "is for studies that are measured, which have `[run]`; this one is imported: expected it to be left out".to_owned()
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LevelEntry {
    name: Spanned<String>,
    words: Option<Spanned<String>>,
    medium: Option<Medium>,
    #[serde(default)]
    over: Vec<Encapsulation>,
    transport: Option<Transport>,
    mtu: Option<u32>,
    half_duplex: Option<bool>,
    #[serde(default)]
    message_bytes: Vec<u64>,
    clients: Option<Spanned<u32>>,
    also: Option<String>,
    price: Option<Spanned<PriceEntry>>,
    #[serde(default)]
    tester: bool,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged, expecting = "expected a price, or the lowest and the highest, as in 15000 or [50000, 80000]")]
enum PriceEntry {
    One(f64),
    Range([f64; 2]),
}

impl LevelEntry {
    fn level(self, source: &Source<'_>, numeric: bool, of: Option<FactorOf>) -> Result<Level, StudyError> {
        let value = if numeric {
            Some(number(self.name.get_ref()).map_err(|problem| source.fault(&self.name, "name", problem))?)
        } else {
            None
        };
        if let (Some(FactorOf::Message), Some(bytes)) = (of, value) {
            whole_bytes(self.name.get_ref(), bytes).map_err(|problem| source.fault(&self.name, "name", problem))?;
        }
        let price = self.price.map(|entry| {
            let (low, high) = match *entry.get_ref() {
                PriceEntry::One(price) => (price, price),
                PriceEntry::Range([low, high]) => (low, high),
            };
            if low > 0.0 && low <= high && high.is_finite() {
                return Ok(Price { low, high });
            }
            let problem = "expected a price above zero, or the lowest and the highest, as in [50000, 80000]".to_owned();
            Err(source.fault(&entry, "price", problem))
        });
        if let Some(none) = self.clients.as_ref().filter(|clients| *clients.get_ref() == 0) {
            let problem = "`0` is no number of clients; expected 1 or more".to_owned();
            return Err(source.fault(none, "clients", problem));
        }
        let path = Conditions {
            medium: self.medium,
            over: self.over,
            transport: self.transport,
            mtu: self.mtu,
            half_duplex: self.half_duplex,
            message_bytes: self.message_bytes,
            ..Conditions::default()
        };
        Ok(Level {
            name: self.name.into_inner(),
            value,
            price: price.transpose()?,
            clients: self.clients.map(Spanned::into_inner),
            also: self.also,
            tester: self.tester,
            path,
        })
    }
}

/// Checks that a message size is a whole number of bytes.
pub(super) fn whole_bytes(name: &str, value: f64) -> Result<(), String> {
    if value.fract() == 0.0 && value <= f64::from(u32::MAX) {
        return Ok(());
    }
    Err(format!("`{name}` is no size of a message; expected whole bytes, as in 1472"))
}

/// Parses a number of the data: finite and not negative.
pub(super) fn number(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 && text.trim().starts_with(|c: char| c.is_ascii_digit()) => {
            Ok(value)
        }
        _ => Err(format!("`{text}` is no number; expected one that is not negative, as in 94.1")),
    }
}
