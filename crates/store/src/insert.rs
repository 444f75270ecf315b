//! Statements that write many rows.

use crate::StoreError;
use crate::backend::Session;
use crate::sql::{SqlRow, SqlValue, Values};

/// Most rows of one statement, a power of two.
pub(crate) const MOST_ROWS: usize = 128;

/// Runs `head VALUES (...), (...) tail` until all rows are written. Returns the rows that `tail` returns.
///
/// The rows are cut into powers of two, so that few different statements are prepared.
pub(crate) fn insert_rows(
    session: &mut dyn Session,
    head: &str,
    rows: Vec<Vec<SqlValue>>,
    tail: &str,
) -> Result<Vec<SqlRow>, StoreError> {
    let mut returned = Vec::new();
    let mut rows = rows.into_iter();
    while rows.len() > 0 {
        let count = rows_of_statement(rows.len());
        let mut values = Values::default();
        let lists: Vec<String> = rows.by_ref().take(count).map(|row| values.list(row)).collect();
        let sql = format!("{head} VALUES {} {tail}", lists.join(", "));
        returned.extend(session.query(&sql, values.all())?);
    }
    Ok(returned)
}

/// Runs `head VALUES (...), (...) tail` like [`insert_rows`], where no column decides the `types` of the values.
pub(crate) fn update_rows(
    session: &mut dyn Session,
    head: &str,
    types: &[&str],
    rows: Vec<Vec<SqlValue>>,
    tail: &str,
) -> Result<Vec<SqlRow>, StoreError> {
    let mut returned = Vec::new();
    let mut rows = rows.into_iter();
    while rows.len() > 0 {
        let count = rows_of_statement(rows.len());
        let mut values = Values::default();
        let mut lists = Vec::with_capacity(count);
        for row in rows.by_ref().take(count) {
            let typed =
                row.into_iter().zip(types).map(|(value, name)| format!("CAST({} AS {name})", values.add(value)));
            lists.push(format!("({})", typed.collect::<Vec<_>>().join(", ")));
        }
        let sql = format!("{head} VALUES {} {tail}", lists.join(", "));
        returned.extend(session.query(&sql, values.all())?);
    }
    Ok(returned)
}

/// Returns the number of rows of the next statement, if `rows` are left.
fn rows_of_statement(rows: usize) -> usize {
    if rows >= MOST_ROWS { MOST_ROWS } else { 1 << rows.ilog2() }
}
