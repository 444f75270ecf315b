//! Values of axes, filled into a test and a bench.
//!
//! `{rate}` in a text stands for the value of the axis `rate`. A text that consists of `{rate}` alone becomes a number
//! or a boolean if the value is one. The value `-` omits the field; in a list of tables it omits the whole table.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;

/// Value that omits its field.
const OMITTED: &str = "-";

/// A value of an axis.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum Value {
    Integer(i64),
    Boolean(bool),
    Text(String),
    /// Values that vary together, by their names. These names stand for them instead of the axis's name.
    Together(BTreeMap<String, Value>),
}

/// Values of the names in one case.
#[derive(Debug, Clone, Default)]
pub(super) struct Bindings(BTreeMap<String, Value>);

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(f, "{number}"),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Text(text) => f.write_str(text),
            Self::Together(values) => {
                let texts: Vec<String> = values.values().map(Self::to_string).collect();
                f.write_str(&texts.join("+"))
            }
        }
    }
}

impl Bindings {
    /// Binds the value of an axis. Values that vary together are bound to their own names.
    ///
    /// # Errors
    ///
    /// The name is bound already, or values are nested.
    pub(super) fn bind(&mut self, axis: &str, value: &Value) -> Result<(), String> {
        match value {
            Value::Together(values) => {
                for (name, value) in values {
                    if matches!(value, Value::Together(_)) {
                        return Err(format!("axis `{axis}`: `{name}` is a table in a table"));
                    }
                    self.bind(name, value)?;
                }
                Ok(())
            }
            _ => match self.0.insert(axis.to_owned(), value.clone()) {
                None => Ok(()),
                Some(_) => Err(format!("two axes give `{axis}`")),
            },
        }
    }

    /// Returns the first name that neither text mentions.
    pub(super) fn unused<'a>(&'a self, test: &str, bench: &str) -> Option<&'a str> {
        self.0.keys().map(String::as_str).find(|name| {
            let reference = format!("{{{name}}}");
            !test.contains(&reference) && !bench.contains(&reference)
        })
    }

    /// Fills in a text.
    ///
    /// # Errors
    ///
    /// A name in braces is not bound.
    pub(super) fn fill_text(&self, template: &str) -> Result<String, String> {
        let mut text = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').ok_or_else(|| format!("`{template}` lacks a closing brace"))?;
            let value = self.0.get(name).ok_or_else(|| format!("`{template}`: no axis gives `{name}`"))?;
            text.push_str(before);
            text.push_str(&value.to_string());
            rest = after;
        }
        text.push_str(rest);
        Ok(text)
    }

    /// Fills in a table of a bench.
    ///
    /// # Errors
    ///
    /// A name in braces is not bound.
    pub(super) fn fill_table(&self, template: &toml::Table) -> Result<toml::Table, String> {
        let mut table = toml::Table::new();
        for (key, value) in template {
            if let Some(value) = self.fill(value)? {
                table.insert(key.clone(), value);
            }
        }
        Ok(table)
    }

    /// Fills in a value. Returns `None` if it is omitted.
    fn fill(&self, template: &toml::Value) -> Result<Option<toml::Value>, String> {
        Ok(match template {
            toml::Value::String(text) => {
                let whole = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
                match whole.and_then(|name| self.0.get(name)) {
                    Some(Value::Text(text)) if text == OMITTED => None,
                    Some(Value::Integer(number)) => Some(toml::Value::Integer(*number)),
                    Some(Value::Boolean(value)) => Some(toml::Value::Boolean(*value)),
                    _ => Some(toml::Value::String(self.fill_text(text)?)),
                }
            }
            toml::Value::Table(table) => Some(toml::Value::Table(self.fill_table(table)?)),
            toml::Value::Array(values) => {
                let mut filled = Vec::new();
                for value in values {
                    match (value, self.fill(value)?) {
                        // A field of the table was omitted.
                        (toml::Value::Table(before), Some(toml::Value::Table(after))) if after.len() < before.len() => {
                        }
                        (_, value) => filled.extend(value),
                    }
                }
                (values.is_empty() || !filled.is_empty()).then_some(toml::Value::Array(filled))
            }
            other => Some(other.clone()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bindings(text: &str) -> Result<Bindings, String> {
        let axes: BTreeMap<String, Value> = toml::from_str(text).unwrap();
        let mut bindings = Bindings::default();
        for (axis, value) in &axes {
            bindings.bind(axis, value)?;
        }
        Ok(bindings)
    }

    fn filled(axes: &str, template: &str) -> String {
        let template: toml::Table = toml::from_str(template).unwrap();
        toml::to_string(&bindings(axes).unwrap().fill_table(&template).unwrap()).unwrap()
    }

    #[test]
    fn values_keep_their_types() {
        let axes = "rate = '20Mbit/s'\ncount = 8\nsilent = true";
        assert_eq!(
            bindings(axes).unwrap().fill_text("stream -P {count} -b {rate}"),
            Ok("stream -P 8 -b 20Mbit/s".into())
        );
        assert_eq!(filled(axes, "a = '{rate}'\nb = '{count}'\nc = '{silent}'"), "a = \"20Mbit/s\"\nb = 8\nc = true\n");
    }

    #[test]
    fn values_that_vary_together_have_their_own_names() {
        let axes = "strength = { rate = '20Mbit/s', queue = '64KiB' }";
        assert_eq!(
            filled(axes, "[device]\nq = '{queue}'\nr = '{rate}'"),
            "[device]\nq = \"64KiB\"\nr = \"20Mbit/s\"\n"
        );
        let twice = bindings("rate = '1Mbit/s'\nstrength = { rate = '2Mbit/s' }").unwrap_err();
        assert!(twice.contains("two axes give `rate`"), "{twice}");
    }

    #[test]
    fn dash_omits_a_field_or_a_table_of_a_list() {
        let template = "[device]\nkind = 'path'\njitter = '{jitter}'\n[[cross]]\nfrom = 'c'\nrate = '{background}'";
        assert_eq!(filled("jitter = '-'\nbackground = '-'", template), "[device]\nkind = \"path\"\n");
        let with = filled("jitter = '1ms'\nbackground = '5Mbit/s'", template);
        assert!(with.contains("jitter = \"1ms\"") && with.contains("[[cross]]"), "{with}");
    }

    #[test]
    fn unbound_names_and_unused_axes_are_found() {
        let bindings = bindings("rate = '1Mbit/s'").unwrap();
        assert!(bindings.fill_text("-b {load}").unwrap_err().contains("no axis gives `load`"));
        assert!(bindings.fill_text("-b {rate").unwrap_err().contains("closing brace"));
        assert_eq!(bindings.unused("-b {rates}", "x = 1"), Some("rate"));
        assert_eq!(bindings.unused("", "x = '{rate}'"), None);
    }
}
