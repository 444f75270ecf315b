//! Values and rows of SQL, for both backends.

/// A value in a statement or a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SqlValue {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
}

impl From<i64> for SqlValue {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<u32> for SqlValue {
    fn from(value: u32) -> Self {
        Self::Integer(value.into())
    }
}

impl From<bool> for SqlValue {
    fn from(value: bool) -> Self {
        Self::Integer(value.into())
    }
}

impl From<f64> for SqlValue {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl From<&str> for SqlValue {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for SqlValue {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl<T: Into<SqlValue>> From<Option<T>> for SqlValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A row that a query returned.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SqlRow(pub(crate) Vec<SqlValue>);

/// A column of another type than the tables of this version have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("column {0} of a row has another type than this version of linerate writes")]
pub(crate) struct UnexpectedColumn(pub(crate) usize);

impl SqlRow {
    pub(crate) fn integer(&self, column: usize) -> Result<i64, UnexpectedColumn> {
        self.optional_integer(column)?.ok_or(UnexpectedColumn(column))
    }

    pub(crate) fn optional_integer(&self, column: usize) -> Result<Option<i64>, UnexpectedColumn> {
        match self.0.get(column) {
            Some(SqlValue::Integer(value)) => Ok(Some(*value)),
            Some(SqlValue::Null) => Ok(None),
            _ => Err(UnexpectedColumn(column)),
        }
    }

    /// Returns a count, which is zero or more.
    pub(crate) fn count<T: TryFrom<i64>>(&self, column: usize) -> Result<T, UnexpectedColumn> {
        T::try_from(self.integer(column)?).map_err(|_| UnexpectedColumn(column))
    }

    /// Returns a time in nanoseconds since 1970.
    pub(crate) fn instant(&self, column: usize) -> Result<u64, UnexpectedColumn> {
        self.count(column)
    }

    pub(crate) fn flag(&self, column: usize) -> Result<bool, UnexpectedColumn> {
        Ok(self.integer(column)? != 0)
    }

    pub(crate) fn real(&self, column: usize) -> Result<f64, UnexpectedColumn> {
        self.optional_real(column)?.ok_or(UnexpectedColumn(column))
    }

    pub(crate) fn optional_real(&self, column: usize) -> Result<Option<f64>, UnexpectedColumn> {
        match self.0.get(column) {
            Some(SqlValue::Real(value)) => Ok(Some(*value)),
            // SQLite keeps whole numbers as integers.
            Some(SqlValue::Integer(value)) => Ok(Some(*value as f64)),
            Some(SqlValue::Null) => Ok(None),
            _ => Err(UnexpectedColumn(column)),
        }
    }

    pub(crate) fn text(&self, column: usize) -> Result<&str, UnexpectedColumn> {
        self.optional_text(column)?.ok_or(UnexpectedColumn(column))
    }

    pub(crate) fn optional_text(&self, column: usize) -> Result<Option<&str>, UnexpectedColumn> {
        match self.0.get(column) {
            Some(SqlValue::Text(value)) => Ok(Some(value)),
            Some(SqlValue::Null) => Ok(None),
            _ => Err(UnexpectedColumn(column)),
        }
    }
}

/// Values of one statement, numbered as they are added.
#[derive(Debug, Default)]
pub(crate) struct Values(Vec<SqlValue>);

impl Values {
    /// Adds a value. Returns its placeholder, as in `?3`.
    pub(crate) fn add(&mut self, value: impl Into<SqlValue>) -> String {
        self.0.push(value.into());
        format!("?{}", self.0.len())
    }

    /// Adds values. Returns their placeholders in brackets, as in `(?1, ?2)`; of no values a list that contains nothing.
    pub(crate) fn list<T: Into<SqlValue>>(&mut self, values: impl IntoIterator<Item = T>) -> String {
        let names: Vec<String> = values.into_iter().map(|value| self.add(value)).collect();
        if names.is_empty() { "(NULL)".to_owned() } else { format!("({})", names.join(", ")) }
    }

    pub(crate) fn all(&self) -> &[SqlValue] {
        &self.0
    }
}

/// Returns a time as the tables keep it.
pub(crate) fn instant(unix_ns: u64) -> i64 {
    i64::try_from(unix_ns).unwrap_or(i64::MAX)
}
