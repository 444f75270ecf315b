//! Options whose values are the variants of an enum of the model, by the names that records give them.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;

/// The names that an option takes, and what help says of each; nothing where the name says it all.
pub(crate) type Choices = &'static [(&'static str, &'static str)];

/// Returns a parser of the variants called so in records.
///
/// # Panics
/// When it parses a name that `T` does not have. Each table of names has a test.
pub(crate) fn choice<T>(choices: Choices) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    let value = |(name, help): &(&'static str, &'static str)| {
        let value = PossibleValue::new(*name);
        if help.is_empty() { value } else { value.help(*help) }
    };
    PossibleValuesParser::new(choices.iter().map(value)).map(|name: String| variant(&name).expect("a variant's name"))
}

/// Returns the variant of `T` called `name` in records; none if there is none.
fn variant<T: DeserializeOwned>(name: &str) -> Option<T> {
    serde_json::from_value(name.into()).ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Checks that each name is a variant of `T`.
    pub(crate) fn check<T: DeserializeOwned>(choices: Choices) {
        for (name, _) in choices {
            assert!(variant::<T>(name).is_some(), "{name}");
        }
    }

    #[test]
    fn a_name_that_is_no_variant_is_none() {
        assert_eq!(variant::<linerate_model::Direction>("both"), Some(linerate_model::Direction::Both));
        assert_eq!(variant::<linerate_model::Direction>("Both"), None);
    }
}
