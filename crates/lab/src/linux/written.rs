//! Fields of a bench file's tables, as the file and the command line write them.

use serde::{Deserialize, Deserializer, de};
use std::fmt;
use std::str::FromStr;

/// The table that a line such as `at=b,cost=5us` stands for, with the fields `given` before it.
///
/// # Errors
/// Names the field that has no value, or is there twice.
pub(crate) fn table<const N: usize>(given: [(&str, &str); N], line: &str) -> Result<toml::Table, String> {
    let mut table: toml::Table =
        given.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned().into())).collect();
    for field in line.split(',').filter(|field| !field.is_empty()) {
        let (name, value) = field.split_once('=').ok_or_else(|| format!("`{field}` has no value: NAME=VALUE"))?;
        if table.insert(name.to_owned(), value.to_owned().into()).is_some() {
            return Err(format!("`{name}` is there twice"));
        }
    }
    Ok(table)
}

/// A quantity written as text.
pub(crate) fn text<'de, D: Deserializer<'de>, T: FromStr<Err: fmt::Display>>(deserializer: D) -> Result<T, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
}

/// A quantity written as text that may be missing.
pub(crate) fn optional<'de, D: Deserializer<'de>, T: FromStr<Err: fmt::Display>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    text(deserializer).map(Some)
}

/// True or false: a boolean in a bench file, or text.
pub(crate) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "true or false")]
    enum Flag {
        Value(bool),
        Text(String),
    }
    match Flag::deserialize(deserializer)? {
        Flag::Value(value) => Ok(value),
        Flag::Text(text) => text.parse().map_err(|_| de::Error::custom(format!("`{text}` is not true or false"))),
    }
}

/// A count or a rate: a number in a bench file, or text.
pub(crate) fn number<'de, D: Deserializer<'de>, T: FromStr<Err: fmt::Display>>(deserializer: D) -> Result<T, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a number, or text such as \"200k\"")]
    enum Number {
        Whole(u64),
        Text(String),
    }
    let written = match Number::deserialize(deserializer)? {
        Number::Whole(number) => number.to_string(),
        Number::Text(text) => text,
    };
    written.parse().map_err(|error| de::Error::custom(format!("`{written}`: {error}")))
}
