//! Fields of limits, as the command line and bench files write them: `name=value`, separated by commas.

use linerate_units::ParseError;
use std::str::FromStr;

/// A field of limits.
pub(crate) struct LimitField {
    /// Name before the `=`.
    pub(crate) name: &'static str,
    /// Valid values, for errors.
    expected: &'static str,
    /// Valid field, for errors.
    example: &'static str,
}

/// Makes a field.
pub(crate) const fn field(name: &'static str, expected: &'static str, example: &'static str) -> LimitField {
    LimitField { name, expected, example }
}

impl LimitField {
    /// Returns the error for the value `text`.
    pub(crate) fn error(&self, text: &str) -> ParseError {
        ParseError { text: text.to_owned(), expected: self.expected, example: self.example }
    }

    /// Reads a value for which `is_valid` returns true.
    pub(crate) fn read<T: FromStr>(&self, text: &str, is_valid: impl FnOnce(&T) -> bool) -> Result<T, ParseError> {
        text.parse().ok().filter(is_valid).ok_or_else(|| self.error(text))
    }
}

/// Calls `set` with each name and value of a list separated by commas.
///
/// # Errors
/// Refuses an item without a value, with `expected` and `example` as the remedy, a name that is given twice, and what `set` refuses.
pub(crate) fn each_field(
    text: &str,
    expected: &'static str,
    example: &'static str,
    mut set: impl FnMut(&str, &str) -> Result<(), ParseError>,
) -> Result<(), ParseError> {
    let mut names = Vec::new();
    for item in text.split(',').filter(|item| !item.is_empty()) {
        let (name, value) =
            item.split_once('=').ok_or_else(|| ParseError { text: item.to_owned(), expected, example })?;
        let name = name.trim();
        if names.contains(&name) {
            return Err(ParseError { text: item.to_owned(), expected: "a field given once", example });
        }
        names.push(name);
        set(name, value.trim())?;
    }
    Ok(())
}

/// Writes the fields that have a value, as [`each_field`] reads them.
pub(crate) fn join_fields<const N: usize>(fields: [(&LimitField, Option<String>); N]) -> String {
    let mut items = Vec::new();
    for (field, value) in fields {
        if let Some(value) = value {
            items.push(format!("{}={value}", field.name));
        }
    }
    items.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_given_once() {
        let read = |text: &str| {
            let mut values = Vec::new();
            each_field(text, "a field", "rate=1Mbit/s", |name, value| {
                values.push((name.to_owned(), value.to_owned()));
                Ok(())
            })
            .map(|()| values)
        };
        let value = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(read("rate=1, queue=2"), Ok(vec![value("rate", "1"), value("queue", "2")]));
        let error = read("rate=1,queue=2,rate=3").expect_err("the rate is given twice").to_string();
        assert!(error.contains("rate=3") && error.contains("not a field given once"), "{error}");
    }
}
