//! Values and rows as PostgreSQL has them.

use crate::backend::Body;
use crate::sql::{SqlRow, SqlValue};
use bytes::BytesMut;
use std::error::Error;
use std::fmt::Write as _;
use tokio_postgres::Row;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

impl ToSql for SqlValue {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Integer(value) if *kind == Type::INT4 => i32::try_from(*value)?.to_sql(kind, out),
            Self::Integer(value) => value.to_sql(kind, out),
            Self::Real(value) => value.to_sql(kind, out),
            Self::Text(value) => without_nul(value).to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        [Type::INT4, Type::INT8, Type::FLOAT8, Type::TEXT, Type::VARCHAR].contains(kind)
    }

    to_sql_checked!();
}

/// Returns a text without NUL, which PostgreSQL refuses.
fn without_nul(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { text.into() }
}

/// Returns a row as both backends have it.
pub(super) fn sql_row(row: &Row) -> Result<SqlRow, tokio_postgres::Error> {
    let mut values = Vec::with_capacity(row.len());
    for (index, column) in row.columns().iter().enumerate() {
        let value: SqlValue = match *column.type_() {
            Type::INT8 => row.try_get::<_, Option<i64>>(index)?.into(),
            Type::INT4 => row.try_get::<_, Option<i32>>(index)?.map(i64::from).into(),
            Type::FLOAT8 => row.try_get::<_, Option<f64>>(index)?.into(),
            Type::BOOL => row.try_get::<_, Option<bool>>(index)?.into(),
            _ => row.try_get::<_, Option<&str>>(index)?.into(),
        };
        values.push(value);
    }
    Ok(SqlRow(values))
}

/// Returns a statement with the placeholders of PostgreSQL: `$1` for `?1`.
pub(super) fn with_dollars(sql: &str) -> String {
    sql.replace('?', "$")
}

/// Returns rows in the text format of COPY.
pub(super) fn copy_text(bodies: &[Body]) -> Vec<u8> {
    let mut text = String::new();
    for body in bodies {
        // Writing to a string cannot fail.
        let _ = write!(text, "{}\t{}", body.run, crate::sql::instant(body.started_unix_ns));
        for value in &body.values {
            text.push('\t');
            push_value(&mut text, value);
        }
        text.push('\n');
    }
    text.into_bytes()
}

fn push_value(text: &mut String, value: &SqlValue) {
    match value {
        SqlValue::Null => text.push_str("\\N"),
        SqlValue::Integer(value) => {
            let _ = write!(text, "{value}");
        }
        SqlValue::Real(value) => {
            let _ = write!(text, "{value:?}");
        }
        SqlValue::Text(value) => {
            let mut rest = value.as_str();
            // Most of a body needs no escape: it is copied in long pieces.
            while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'\\' | b'\t' | b'\n' | b'\r' | 0)) {
                text.push_str(&rest[..at]);
                text.push_str(match rest.as_bytes()[at] {
                    b'\\' => "\\\\",
                    b'\t' => "\\t",
                    b'\n' => "\\n",
                    b'\r' => "\\r",
                    _ => "\u{fffd}",
                });
                rest = &rest[at + 1..];
            }
            text.push_str(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_for_copy() {
        let values = vec!["a\\b\tc\nd\re\0".into(), SqlValue::Null, 7_i64.into(), SqlValue::Real(0.5)];
        let text = copy_text(&[Body { run: 1, started_unix_ns: 2, values }]);
        assert_eq!(String::from_utf8(text).expect("text"), "1\t2\ta\\\\b\\tc\\nd\\re\u{fffd}\t\\N\t7\t0.5\n");
    }
}
