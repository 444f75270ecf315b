//! Combinations of levels that do not exist, as `[[without]]` of a study names them: a design with gaps.

use super::StudyError;
use super::document::{Source, unknown};
use crate::study::Factor;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

/// `[[without]]`: a level, or several, for each factor that it names.
pub(super) type WithoutEntry = Spanned<BTreeMap<String, Spanned<Levels>>>;

/// Levels by their names.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "the name of a level, or a list of them")]
pub(super) enum Levels {
    One(String),
    Several(Vec<String>),
}

/// One `[[without]]`: levels, by factor, that do not exist together.
#[derive(Debug, Clone)]
pub(super) struct Without {
    /// Place in the file.
    pub(super) at: Spanned<()>,
    excluded: BTreeMap<usize, Vec<usize>>,
}

impl Without {
    pub(super) fn read(source: &Source<'_>, entry: WithoutEntry, factors: &[Factor]) -> Result<Self, StudyError> {
        let at = Spanned::new(entry.span(), ());
        let mut excluded = BTreeMap::new();
        for (column, levels) in entry.into_inner() {
            let factor = factors.iter().position(|factor| factor.column == column);
            let factor = factor.ok_or_else(|| {
                source.fault(&at, "without", unknown("factor", &column, factors.iter().map(|factor| &factor.column)))
            })?;
            let known = &factors[factor].levels;
            let names = match levels.get_ref() {
                Levels::One(name) => std::slice::from_ref(name),
                Levels::Several(names) => names,
            };
            let index = |name: &String| {
                let what = format!("level of `{column}`");
                known.iter().position(|level| level.name == *name).ok_or_else(|| {
                    source.fault(&levels, &column, unknown(&what, name, known.iter().map(|level| &level.name)))
                })
            };
            excluded.insert(factor, names.iter().map(index).collect::<Result<Vec<usize>, _>>()?);
        }
        if excluded.is_empty() {
            let problem =
                "names no factor; expected levels, as in { link = '10Mbit/s', size = ['64', '1472'] }".to_owned();
            return Err(source.fault(&at, "without", problem));
        }
        Ok(Self { at, excluded })
    }

    /// Returns whether the cell with these levels does not exist. A cell without a level of a named factor exists.
    pub(super) fn has(&self, cell: &[Option<usize>]) -> bool {
        self.excluded.iter().all(|(factor, levels)| cell[*factor].is_some_and(|level| levels.contains(&level)))
    }
}
