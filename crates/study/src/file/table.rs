//! The CSV file of a study: a header line, then one line for each result. Lines that begin with `#` are comments.

use super::document::unknown;
use super::factor::{number, whole_bytes};
use super::{Imported, StudyError};
use crate::study::{ABOUT, Conditions, FactorOf, Level, StatedAs, StatedValue, Study, StudyCell};
use std::collections::HashMap;

/// Highest rate that is accepted, in bits or frames per second.
const MOST: f64 = 1e18;

impl Imported {
    /// Returns the study with the results in `text`, the text of the file `name`. Lines of the same levels are repeats.
    pub fn with_data(self, name: &str, text: &str) -> Result<Study, StudyError> {
        let table = Table::read(name, text)?;
        let Self { mut study, columns, scales, .. } = self;
        let at: Vec<usize> = {
            let named =
                study.factors.iter().map(|factor| &factor.column).chain(study.measures.iter().map(|m| &m.column));
            named.map(|column| table.column(column)).collect::<Result<_, _>>()?
        };
        table.nothing_else(&at)?;
        let (factors_at, measures_at) = at.split_at(study.factors.len());

        for (index, factor) in study.factors.iter_mut().enumerate().filter(|(index, _)| !columns[*index].closed) {
            let numeric = factor.unit.is_some();
            for row in &table.rows {
                let name = &row.fields[factors_at[index]];
                if name.is_empty() || factor.levels.iter().any(|level| level.name == *name) {
                    continue;
                }
                let value = if numeric {
                    Some(number(name).map_err(|problem| table.fault(row, factors_at[index], problem))?)
                } else {
                    None
                };
                factor.levels.push(Level {
                    name: name.clone(),
                    value,
                    price: None,
                    clients: None,
                    also: None,
                    tester: false,
                    path: Conditions::default(),
                });
            }
            if numeric {
                factor.levels.sort_by(|a, b| a.value.unwrap_or(0.0).total_cmp(&b.value.unwrap_or(0.0)));
            }
        }
        for (index, factor) in
            study.factors.iter().enumerate().filter(|(_, factor)| factor.of == Some(FactorOf::Message))
        {
            for level in &factor.levels {
                let whole = level.value.map_or(Ok(()), |bytes| whole_bytes(&level.name, bytes));
                let row = table.rows.iter().find(|row| row.fields[factors_at[index]] == level.name);
                whole.map_err(|problem| table.fault(row.unwrap_or(&table.rows[0]), factors_at[index], problem))?;
            }
        }

        let mut known: HashMap<Vec<Option<usize>>, usize> = HashMap::new();
        for row in &table.rows {
            let mut levels = Vec::with_capacity(factors_at.len());
            for (index, factor) in study.factors.iter().enumerate() {
                let (column, name) = (factors_at[index], &row.fields[factors_at[index]]);
                let level = factor.levels.iter().position(|level| level.name == *name);
                if level.is_none() && !(name.is_empty() && columns[index].optional) {
                    let problem = match name.is_empty() {
                        true => "is empty; expected a level, or `optional = true` in the study".to_owned(),
                        false => {
                            unknown(&format!("level of {}", factor.column), name, factor.levels.iter().map(|l| &l.name))
                        }
                    };
                    return Err(table.fault(row, column, problem));
                }
                levels.push(level);
            }
            let cell = *known.entry(levels.clone()).or_insert_with(|| {
                study.cells.push(StudyCell {
                    levels,
                    values: vec![Vec::new(); measures_at.len()],
                    stated: std::collections::BTreeMap::new(),
                    firmness: Vec::new(),
                });
                study.cells.len() - 1
            });
            let mut measured = false;
            for (measure, column) in measures_at.iter().enumerate() {
                let text = &row.fields[*column];
                if text.is_empty() {
                    continue;
                }
                let fault = |problem: String| table.fault(row, *column, problem);
                let stated = stated(text).map_err(fault)?.map(|stated| stated.scaled(scales[measure]));
                let taken = &study.cells[cell];
                if taken.stated.contains_key(&measure) || stated.is_some() && !taken.values[measure].is_empty() {
                    let problem = "stands beside another value of the same levels; expected a range or a bound alone";
                    return Err(fault(problem.to_owned()));
                }
                measured = true;
                let value = match stated {
                    None => number(text).map_err(fault)? * scales[measure],
                    Some(Stated { bound, .. })
                        if [bound.low, bound.high].into_iter().flatten().any(|end| end > MOST) =>
                    {
                        let problem =
                            format!("`{text}` is more than any link carries; expected a rate in the unit of the study");
                        return Err(fault(problem));
                    }
                    Some(Stated { bound, about }) => {
                        study.cells[cell].stated.insert(measure, bound);
                        match about {
                            Some(about) => about,
                            None => continue,
                        }
                    }
                };
                if value > MOST {
                    let problem =
                        format!("`{text}` is more than any link carries; expected a rate in the unit of the study");
                    return Err(table.fault(row, *column, problem));
                }
                study.cells[cell].values[measure].push(value);
            }
            if !measured {
                return Err(table.fault(row, measures_at[0], "is empty; expected a number, as in 94.1".to_owned()));
            }
            for measure in 0..study.measures.len() {
                study.conditions(&study.cells[cell], measure).carried().map_err(|error| StudyError::Line {
                    file: name.to_owned(),
                    line: row.line,
                    problem: format!("the path that the study gives these levels cannot be: {error}"),
                })?;
            }
        }
        Ok(study)
    }
}

/// A field with a range or a bound.
struct Stated {
    bound: StatedValue,
    /// Number that the value is about.
    about: Option<f64>,
}

impl Stated {
    fn scaled(self, scale: f64) -> Self {
        let Self { bound, about } = self;
        let times = |value: Option<f64>| value.map(|value| value * scale);
        Self { bound: StatedValue { low: times(bound.low), high: times(bound.high), ..bound }, about: times(about) }
    }
}

/// Parses a range or a bound: `about 10`, `at most 10`, `at least 10`, `less than 10`, `more than 10`, `10 to 19`.
/// Returns `None` for anything else.
fn stated(text: &str) -> Result<Option<Stated>, String> {
    let is = |as_a, low, high| Ok(Some(Stated { bound: StatedValue { as_a, low, high }, about: None }));
    let after = |words: &str| text.strip_prefix(words).map(number).transpose();
    if let Some(value) = after("about ")? {
        let bound =
            StatedValue { as_a: StatedAs::About, low: Some(value * (1.0 - ABOUT)), high: Some(value * (1.0 + ABOUT)) };
        return Ok(Some(Stated { bound, about: Some(value) }));
    }
    if let Some(most) = after("at most ")? {
        return is(StatedAs::AtMost, Some(0.0), Some(most));
    }
    if let Some(least) = after("at least ")? {
        return is(StatedAs::AtLeast, Some(least), None);
    }
    if let Some(most) = after("less than ")? {
        return is(StatedAs::LessThan, Some(0.0), Some(most));
    }
    if let Some(least) = after("more than ")? {
        return is(StatedAs::MoreThan, Some(least), None);
    }
    let Some((low, high)) = text.split_once(" to ") else { return Ok(None) };
    let (low, high) = (number(low)?, number(high)?);
    if low > high {
        return Err(format!("`{text}` has its ends swapped; expected the lower one first, as in 10 to 19"));
    }
    is(StatedAs::Range, Some(low), Some(high))
}

/// Fields of a CSV file, with their lines.
struct Table<'a> {
    name: &'a str,
    header: Row,
    rows: Vec<Row>,
}

struct Row {
    line: usize,
    fields: Vec<String>,
}

impl<'a> Table<'a> {
    fn read(name: &'a str, text: &str) -> Result<Self, StudyError> {
        // One kind of line end, also after the last line, so that lines can be counted.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n") + "\n";
        let broken = |line: usize, problem: String| StudyError::Line { file: name.to_owned(), line, problem };
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .comment(Some(b'#'))
            .from_reader(text.as_bytes());
        let mut rows: Vec<Row> = Vec::new();
        let mut record = csv::StringRecord::new();
        loop {
            let more = reader.read_record(&mut record);
            // The position is after the record; the start of a record is wrong right after a comment.
            let within = record.iter().map(|field| field.matches('\n').count()).sum::<usize>();
            // A quote that is never closed takes the last line end too.
            let own = usize::from(!record.iter().next_back().is_some_and(|field| field.ends_with('\n')));
            let line = (reader.position().line() as usize).saturating_sub(own + within);
            if !more.map_err(|error| broken(line, format!("is no line of comma-separated values: {error}")))? {
                break;
            }
            if within > 0 {
                let problem = "a field goes on over the end of the line; expected the quote that closes it".to_owned();
                return Err(broken(line, problem));
            }
            let fields: Vec<String> = record.iter().map(|field| field.trim().to_owned()).collect();
            if let Some(header) = rows.first().filter(|header| header.fields.len() != fields.len()) {
                let problem =
                    format!("has {} fields; expected {}, as the header has", fields.len(), header.fields.len());
                return Err(broken(line, problem));
            }
            rows.push(Row { line, fields });
        }
        if rows.len() < 2 {
            let problem = "there are no results; expected a header line and a line for each result".to_owned();
            return Err(broken(rows.len().max(1), problem));
        }
        let header = rows.remove(0);
        Ok(Self { name, header, rows })
    }

    /// Returns the index of a column.
    fn column(&self, name: &str) -> Result<usize, StudyError> {
        let mut places = (0..self.header.fields.len()).filter(|at| self.header.fields[*at] == name);
        let found = places.next();
        let problem = match (found, places.next()) {
            (Some(at), None) => return Ok(at),
            (Some(_), Some(_)) => format!("the column `{name}` stands twice; expected it once"),
            (None, _) => format!(
                "there is no column `{name}`, which the study names; there are {}",
                self.header.fields.join(", ")
            ),
        };
        Err(StudyError::Line { file: self.name.to_owned(), line: self.header.line, problem })
    }

    /// Refuses columns that the study does not name: a factor that is left out would make its levels repeats.
    fn nothing_else(&self, named: &[usize]) -> Result<(), StudyError> {
        match (0..self.header.fields.len()).find(|at| !named.contains(at)) {
            None => Ok(()),
            Some(at) => {
                let problem =
                    "the study names no such factor or measure; expected it to, or the data without it".to_owned();
                Err(self.fault(&self.header, at, problem))
            }
        }
    }

    fn fault(&self, row: &Row, column: usize, problem: String) -> StudyError {
        StudyError::Field {
            file: self.name.to_owned(),
            line: row.line,
            field: self.header.fields[column].clone(),
            problem,
        }
    }
}
