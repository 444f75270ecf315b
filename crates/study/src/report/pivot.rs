//! Pivots: factors in the rows and in the columns of a table, and the cells of each field.

use crate::findings::data::Data;
use crate::findings::words::with_commas;
use crate::study::{Factor, Study};
use linerate_report::columns;
use linerate_report::{Language, plain};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Factors in the rows and in the columns of a study's tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pivot {
    /// Indices into the study's factors.
    pub(super) rows: Vec<usize>,
    /// Whether the rows are all other factors, and need no name.
    pub(super) rows_implied: bool,
    /// Indices into the study's factors. Empty: the measures are in the columns.
    pub(super) columns: Vec<usize>,
}

/// A pivot that a study cannot have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadPivot {
    /// The study has no such factor.
    Unknown {
        /// Name in the request.
        name: String,
        /// Factors of the study.
        known: Vec<String>,
    },
    /// A factor is named more than once.
    Twice {
        /// The factor.
        name: String,
    },
}

impl fmt::Display for BadPivot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, known } => {
                write!(f, "the study has no factor `{}`; its factors are {}", plain(name), known.join(", "))
            }
            Self::Twice { name } => {
                write!(f, "the factor `{name}` is named twice; a factor has the rows or the columns, once")
            }
        }
    }
}

impl std::error::Error for BadPivot {}

impl Pivot {
    /// Returns the pivot with these factors in rows and columns, each named by its column in the data or by its title.
    /// Without rows, all other factors are in the rows. Returns `None` if nothing is named.
    ///
    /// # Errors
    ///
    /// An unknown factor, or a factor that is named twice.
    pub fn asked(study: &Study, rows: &[String], columns: &[String]) -> Result<Option<Self>, BadPivot> {
        let mut seen = BTreeSet::new();
        let mut factor = |name: &String| {
            let index = index_of(study, name)?;
            let first = seen.insert(index);
            if first { Ok(index) } else { Err(BadPivot::Twice { name: plain(&study.factors[index].column) }) }
        };
        let rows = rows.iter().map(&mut factor).collect::<Result<Vec<usize>, BadPivot>>()?;
        let columns = columns.iter().map(&mut factor).collect::<Result<Vec<usize>, BadPivot>>()?;
        Ok(match (rows.is_empty(), columns.is_empty()) {
            (true, true) => None,
            (true, false) => Some(Self { rows: all_but(study, &columns), rows_implied: true, columns }),
            (false, _) => Some(Self { rows, rows_implied: false, columns }),
        })
    }

    /// Returns the pivot with one factor in the columns and all others in the rows.
    pub(super) fn by(study: &Study, factor: usize) -> Self {
        Self { rows: all_but(study, &[factor]), rows_implied: true, columns: vec![factor] }
    }

    /// Returns the pivot of a mesh of hosts: two factors with levels of the same names.
    pub(super) fn mesh(study: &Study) -> Option<Self> {
        /// Two levels make no mesh.
        const FEWEST: usize = 3;
        let names = |factor: usize| -> BTreeSet<&str> {
            study.factors[factor].levels.iter().map(|level| level.name.as_str()).collect()
        };
        let all = 0..study.factors.len();
        let mut pairs = all.clone().flat_map(|from| all.clone().skip(from + 1).map(move |to| (from, to)));
        let mesh = pairs.find(|(from, to)| names(*from).len() >= FEWEST && names(*from) == names(*to));
        mesh.map(|(from, to)| Self { rows: vec![from], rows_implied: false, columns: vec![to] })
    }

    /// Returns the pivot of the only two factors with several levels, if levels of each were tried with several of the
    /// other. The factor with more levels is in the rows.
    pub(super) fn of_two(study: &Study) -> Option<Self> {
        let levels = |factor: &usize| study.factors[*factor].levels.len();
        let several: Vec<usize> = (0..study.factors.len()).filter(|factor| levels(factor) > 1).collect();
        let [one, other] = several[..] else { return None };
        let varies = |factor: usize, within: usize| {
            let mut first: BTreeMap<usize, usize> = BTreeMap::new();
            let pairs = study.cells.iter().filter_map(|cell| Some((cell.levels[within]?, cell.levels[factor]?)));
            pairs.into_iter().any(|(held, level)| *first.entry(held).or_insert(level) != level)
        };
        if !varies(one, other) || !varies(other, one) {
            return None;
        }
        let (rows, columns) = if levels(&other) > levels(&one) { (other, one) } else { (one, other) };
        Some(Self { rows: vec![rows], rows_implied: false, columns: vec![columns] })
    }

    /// Sorts cells into rows and columns, in the order of the levels.
    pub(super) fn matrix(&self, data: &Data<'_>, cells: &[usize]) -> Matrix {
        let of = |cell: usize, factors: &[usize]| -> Vec<Option<usize>> {
            factors.iter().map(|factor| data.study.cells[cell].levels[*factor]).collect()
        };
        let places = |factors: &[usize]| -> BTreeMap<Vec<Option<usize>>, usize> {
            let known: BTreeSet<_> = cells.iter().map(|cell| of(*cell, factors)).collect();
            known.into_iter().enumerate().map(|(place, levels)| (levels, place)).collect()
        };
        let (rows, columns) = (places(&self.rows), places(&self.columns));
        let mut fields = vec![vec![Vec::new(); columns.len()]; rows.len()];
        for cell in cells {
            fields[rows[&of(*cell, &self.rows)]][columns[&of(*cell, &self.columns)]].push(*cell);
        }
        let names = |factors: &[usize], of: &BTreeMap<Vec<Option<usize>>, usize>| {
            let name = |levels: &Vec<Option<usize>>| {
                let named =
                    factors.iter().zip(levels).filter_map(|(factor, level)| Some(data.name_of(*factor, (*level)?)));
                let name = with_commas(data.lang, &named.collect::<Vec<_>>());
                (!name.is_empty()).then(|| plain(&name))
            };
            of.keys().map(name).collect()
        };
        let (rows, columns): (Vec<_>, Vec<_>) = (names(&self.rows, &rows), names(&self.columns, &columns));
        Matrix { rows, columns, fields }.in_one_order()
    }

    /// Returns the headings of rows and columns.
    pub(super) fn heads(&self, lang: Language, study: &Study) -> [String; 2] {
        let titles = |factors: &[usize]| {
            let titles: Vec<String> = factors.iter().map(|factor| study.factors[*factor].title.clone()).collect();
            plain(&with_commas(lang, &titles))
        };
        let rows = if self.rows_implied { columns::ALL_ELSE.title(lang) } else { titles(&self.rows) };
        [rows, titles(&self.columns)]
    }

    /// Returns the titles of its factors, without those of rows that need no name.
    pub(super) fn titles(&self, study: &Study) -> Vec<String> {
        let rows = if self.rows_implied { &[][..] } else { &self.rows };
        rows.iter().chain(&self.columns).map(|factor| study.factors[*factor].title.clone()).collect()
    }
}

/// Cells by rows and columns.
pub(super) struct Matrix {
    /// Levels of each row; `None` if no factor applies.
    pub(super) rows: Vec<Option<String>>,
    /// Levels of each column; `None` if no factor applies.
    pub(super) columns: Vec<Option<String>>,
    /// Cells of each row and column: several if a factor is in neither.
    pub(super) fields: Vec<Vec<Vec<usize>>>,
}

impl Matrix {
    /// Puts the columns in the order of the rows if all columns are rows too, as in a mesh of hosts.
    fn in_one_order(mut self) -> Self {
        let place = |name: &Option<String>| self.rows.iter().position(|row| row == name);
        let mut order: Vec<usize> = (0..self.columns.len()).collect();
        if self.columns.iter().all(|name| place(name).is_some()) {
            order.sort_by_key(|column| place(&self.columns[*column]));
        }
        self.columns = order.iter().map(|column| self.columns[*column].clone()).collect();
        for row in &mut self.fields {
            *row = order.iter().map(|column| std::mem::take(&mut row[*column])).collect();
        }
        self
    }
}

/// Returns the factor of this name: by its column in the data, or else by its title.
fn index_of(study: &Study, name: &str) -> Result<usize, BadPivot> {
    let name = name.trim();
    let by_column = study.factors.iter().position(|factor| factor.column == name);
    let by_title = || study.factors.iter().position(|factor| factor.title.eq_ignore_ascii_case(name));
    let translated = |factor: &Factor| {
        let (_, texts) = study.translation.as_ref()?;
        texts.factors.get(&factor.column)?.title.as_deref()
    };
    let by_translation = || study.factors.iter().position(|factor| translated(factor) == Some(name));
    by_column.or_else(by_title).or_else(by_translation).ok_or_else(|| BadPivot::Unknown {
        name: name.to_owned(),
        known: study.factors.iter().map(|factor| format!("`{}`", plain(&factor.column))).collect(),
    })
}

fn all_but(study: &Study, factors: &[usize]) -> Vec<usize> {
    (0..study.factors.len()).filter(|factor| !factors.contains(factor)).collect()
}
