//! The mix of operations: one of the built-in ones by name, or a file of percentages.

use linerate_model::{IoSizes, NfsMix, NfsOperation};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The text of such a file: how much reads and writes move, and percent by operation.
#[derive(Deserialize)]
struct Table {
    #[serde(default)]
    sizes: IoSizes,
    #[serde(flatten)]
    percent: BTreeMap<NfsOperation, f64>,
}

/// The mix called `text`, or in the file of that name.
pub(super) fn read(text: &str) -> Result<NfsMix, String> {
    if !text.ends_with(".toml") {
        return NfsMix::named(text).map_err(|error| format!("--mix: {error} in a file, as in my-mix.toml"));
    }
    let fail = |problem: String| format!("--mix: cannot read the table {text}: {problem}");
    let path = Path::new(text);
    let name = path.file_stem().map_or_else(|| text.into(), |stem| stem.to_string_lossy());
    parse(&name, &std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))?).map_err(fail)
}

fn parse(name: &str, table: &str) -> Result<NfsMix, String> {
    let Table { sizes, percent } = toml::from_str(table)
        .map_err(|error| format!("{}; write one operation a line, as in `read = 60`", error.message()))?;
    NfsMix::new(name, percent, sizes).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_a_mix() {
        let mix = parse("mine", "sizes = \"whole\"\nread = 60\nwrite = 39.5\ncommit = 0.5\n").expect("a mix");
        assert_eq!((mix.name.as_str(), mix.sizes), ("mine", IoSizes::Whole));
        assert_eq!(mix.percent(NfsOperation::Write), 39.5);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (table, needle) in [
            ("read = 60", "add up to 60"),
            ("raed = 100", "raed"),
            ("read = \"all\"", "read = 60"),
            ("read = [", "read = 60"),
        ] {
            assert!(parse("mine", table).is_err_and(|why| why.contains(needle)), "{table}: {:?}", parse("mine", table));
        }
        assert!(read("laddis").is_err_and(|why| why.contains("sfs97-like")));
        assert!(read("/no/such.toml").is_err_and(|why| why.contains("/no/such.toml")));
    }
}
