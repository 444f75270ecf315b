//! The matrix of a test: its newest results by pairs of hosts or of sites.

use super::result::of_name;
use crate::backend::Session;
use crate::sql::{SqlRow, UnexpectedColumn, Values};
use crate::{Store, StoreError};
use linerate_model::{Confidence, Limit, MeasureUnit, Quantity, RecordId};
use std::collections::HashMap;

/// Which part of a matrix to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatrixQuery {
    /// Test, as [`Store::tests`] names it. `None` selects the first of them.
    pub test: Option<String>,
    /// Names of rows and columns.
    pub by: Level,
    /// Rows.
    pub from: Selection,
    /// Columns.
    pub to: Selection,
    /// Part of the selected rows.
    pub rows: Page,
    /// Part of the selected columns.
    pub columns: Page,
}

impl MatrixQuery {
    /// Returns a query for the first rows and columns of all hosts or sites.
    pub fn all(by: Level) -> Self {
        Self { test: None, by, from: Selection::All, to: Selection::All, rows: Page::FIRST, columns: Page::FIRST }
    }
}

/// Names of a matrix's rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Each host.
    Host,
    /// Each value of the label `site`. Hosts without the label are in the site of the empty name.
    Site,
}

/// Hosts or sites to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    All,
    /// Those of these sites.
    Sites(Vec<String>),
    /// These hosts. Has no effect on a matrix of sites.
    Hosts(Vec<String>),
}

/// Part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    pub skipped: usize,
    pub limit: usize,
}

impl Page {
    /// Number of rows and columns of [`Page::FIRST`].
    pub const SIZE: usize = 100;
    /// The first part.
    pub const FIRST: Self = Self { skipped: 0, limit: Self::SIZE };
}

/// Newest results of a test.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    /// Test. `None` if the store has no results of pairs.
    pub test: Option<String>,
    /// Names of the rows, sorted.
    pub rows: Vec<String>,
    /// Names of the columns, sorted.
    pub columns: Vec<String>,
    /// Number of rows without paging.
    pub all_rows: usize,
    /// Number of columns without paging.
    pub all_columns: usize,
    /// Cells with results, by row and column.
    pub cells: Vec<MatrixCell>,
}

/// Cell of a matrix: the newest result of a pair of hosts; of two sites the worst of these.
#[derive(Debug, Clone, PartialEq)]
pub struct MatrixCell {
    /// Index in [`Matrix::rows`].
    pub row: usize,
    /// Index in [`Matrix::columns`].
    pub column: usize,
    /// Host that opens the connections.
    pub from: String,
    /// Host that accepts them.
    pub to: String,
    pub value: f64,
    pub unit: MeasureUnit,
    pub quantity: Quantity,
    /// Share of the link, 0 to 1. `None` if no link speed is known.
    pub link_share: Option<f64>,
    pub limit: Option<Limit>,
    pub confidence: Option<Confidence>,
    /// Start of the run with this value, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// Start of the newest run of the cell.
    pub last_unix_ns: u64,
    /// Number of pairs of hosts.
    pub pairs: u32,
    /// Number of results so far.
    pub results: u64,
    /// Start of the newest run of the cell that differs from the one before. Of a pair of hosts, only if it is the newest run.
    pub changed_unix_ns: Option<u64>,
    /// Record of the value. `None` if it is no longer stored.
    pub record: Option<RecordId>,
}

impl Store {
    /// Returns the tests that have results of pairs, by name.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn tests(&self) -> Result<Vec<String>, StoreError> {
        self.read(tests)
    }

    /// Returns the newest results of a test as a matrix.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn matrix(&self, query: &MatrixQuery) -> Result<Matrix, StoreError> {
        self.snapshot(|session| {
            let test = match &query.test {
                Some(test) => Some(test.clone()),
                None => tests(session)?.into_iter().next(),
            };
            let empty = Matrix {
                test: test.clone(),
                rows: Vec::new(),
                columns: Vec::new(),
                all_rows: 0,
                all_columns: 0,
                cells: Vec::new(),
            };
            let Some(test) = test else { return Ok(empty) };
            let rows = axis(session, &test, query.by, "from", &query.from)?;
            let columns = axis(session, &test, query.by, "to", &query.to)?;
            let mut matrix = Matrix { all_rows: rows.len(), all_columns: columns.len(), ..empty };
            matrix.rows = rows.into_iter().skip(query.rows.skipped).take(query.rows.limit).collect();
            matrix.columns = columns.into_iter().skip(query.columns.skipped).take(query.columns.limit).collect();
            matrix.cells = cells(session, &test, query.by, &matrix.rows, &matrix.columns)?;
            Ok(matrix)
        })
    }
}

fn tests(session: &mut dyn Session) -> Result<Vec<String>, StoreError> {
    session.rows("SELECT DISTINCT test FROM pair_axis ORDER BY test", &[], |row| Ok(row.text(0)?.to_owned()))
}

/// Returns the names of an axis, sorted.
fn axis(
    session: &mut dyn Session,
    test: &str,
    by: Level,
    axis: &str,
    selection: &Selection,
) -> Result<Vec<String>, StoreError> {
    let name = match by {
        Level::Host => "host",
        Level::Site => "coalesce(site, '')",
    };
    let mut values = Values::default();
    let test = values.add(test);
    let axis = values.add(axis);
    let condition = match (selection, by) {
        (Selection::All, _) | (Selection::Hosts(_), Level::Site) => String::new(),
        (Selection::Sites(sites), _) => {
            format!("AND coalesce(site, '') IN {}", values.list(sites.iter().map(String::as_str)))
        }
        (Selection::Hosts(hosts), Level::Host) => {
            format!("AND host IN {}", values.list(hosts.iter().map(String::as_str)))
        }
    };
    let sql = format!(
        "SELECT DISTINCT {name} AS shown FROM pair_axis LEFT JOIN fleet_host ON fleet_host.name = host
         WHERE test = {test} AND axis = {axis} {condition} ORDER BY shown"
    );
    session.rows(&sql, values.all(), |row| Ok(row.text(0)?.to_owned()))
}

/// Returns the cells of these rows and columns.
fn cells(
    session: &mut dyn Session,
    test: &str,
    by: Level,
    rows: &[String],
    columns: &[String],
) -> Result<Vec<MatrixCell>, StoreError> {
    let mut values = Values::default();
    let test = values.add(test);
    let row_list = values.list(rows.iter().map(String::as_str));
    let column_list = values.list(columns.iter().map(String::as_str));
    let sql = match by {
        Level::Host => format!(
            "SELECT {RESULT}, pair.from_host, pair.to_host, pair.started_unix_ns, 1, pair.results,
                    CASE WHEN pair.changed = 1 THEN pair.started_unix_ns ELSE 0 END
             FROM pair_latest AS pair
             WHERE pair.test = {test} AND pair.from_host IN {row_list} AND pair.to_host IN {column_list}"
        ),
        Level::Site => format!(
            "SELECT {RESULT}, site.from_site, site.to_site, site.last_unix_ns, site.pairs, site.results, site.changed_unix_ns
             FROM site_latest AS site JOIN pair_latest AS pair
                  ON pair.test = site.test AND pair.from_host = site.worst_from AND pair.to_host = site.worst_to
             WHERE site.test = {test} AND site.from_site IN {row_list} AND site.to_site IN {column_list}"
        ),
    };
    let row_indexes = indexes(rows);
    let column_indexes = indexes(columns);
    let read = session.rows(&sql, values.all(), |row| {
        let place = row_indexes.get(row.text(10)?).zip(column_indexes.get(row.text(11)?));
        let Some((row_index, column_index)) = place else { return Ok(None) };
        read_cell(row, *row_index, *column_index)
    })?;
    // A unit or a quantity of a later version has no name here.
    let mut cells: Vec<MatrixCell> = read.into_iter().flatten().collect();
    cells.sort_by_key(|cell| (cell.row, cell.column));
    Ok(cells)
}

/// Columns of the result that a cell shows.
const RESULT: &str = "pair.from_host, pair.to_host, pair.value, pair.unit, pair.quantity, pair.link_share, pair.limit_name, \
                      pair.confidence, pair.record, pair.started_unix_ns";

fn indexes(names: &[String]) -> HashMap<&str, usize> {
    names.iter().enumerate().map(|(index, name)| (name.as_str(), index)).collect()
}

fn read_cell(row: &SqlRow, row_index: usize, column_index: usize) -> Result<Option<MatrixCell>, UnexpectedColumn> {
    let (Some(unit), Some(quantity)) = (of_name(row.text(3)?), of_name(row.text(4)?)) else { return Ok(None) };
    Ok(Some(MatrixCell {
        row: row_index,
        column: column_index,
        from: row.text(0)?.to_owned(),
        to: row.text(1)?.to_owned(),
        value: row.real(2)?,
        unit,
        quantity,
        link_share: row.optional_real(5)?,
        limit: row.optional_text(6)?.and_then(of_name),
        confidence: row.optional_text(7)?.and_then(of_name),
        record: row.optional_text(8)?.map(|record| RecordId(record.to_owned())),
        started_unix_ns: row.instant(9)?,
        last_unix_ns: row.instant(12)?,
        pairs: row.count(13)?,
        results: row.count(14)?,
        changed_unix_ns: Some(row.instant(15)?).filter(|instant| *instant > 0),
    }))
}
