//! Records out of text.

use linerate_model::{Record, SCHEMA};
use serde::Deserialize;
use serde_json::error::Category;

/// What the names of all formats begin with.
const FORMATS: &str = "linerate.record/";

/// Text that is no record that can be read.
#[derive(Debug, thiserror::Error)]
pub enum BadRecord {
    /// It ends before the record does.
    #[error("the record is cut short: its text ends in line {line}; take the whole file, or export the run again")]
    CutShort {
        /// The last line.
        line: usize,
    },
    /// It is not JSON.
    #[error("this is no record: it is not JSON: {0}")]
    NotJson(serde_json::Error),
    /// It is JSON of another kind.
    #[error("this is no record: its `schema` is {found}, and that of records is {SCHEMA}")]
    NotRecord {
        /// What it says it is.
        found: String,
    },
    /// A program with another format wrote it.
    #[error(
        "the record is of format {found}, written by linerate {version}, and this linerate reads {SCHEMA} alone: use linerate {version}, \
         or measure again"
    )]
    OtherFormat {
        /// Its format.
        found: String,
        /// The program that wrote it.
        version: String,
    },
    /// Something in it is missing or cannot be.
    #[error("the record of format {SCHEMA} cannot be read: {0}")]
    Invalid(serde_json::Error),
}

/// Reads a record.
///
/// # Errors
/// The text is no record, is cut short, or is of another format.
pub fn read_record(text: &str) -> Result<Record, BadRecord> {
    let missing = || "missing".to_owned();
    let head: Head = serde_json::from_str(text).map_err(|error| match error.classify() {
        Category::Eof => BadRecord::CutShort { line: error.line() },
        Category::Syntax | Category::Io => BadRecord::NotJson(error),
        Category::Data => BadRecord::NotRecord { found: missing() },
    })?;
    let found = head.schema.unwrap_or_else(missing);
    match found.as_str() {
        SCHEMA => Record::from_json(text).map_err(BadRecord::Invalid),
        _ => match found.strip_prefix(FORMATS).and_then(|version| version.parse::<u32>().ok()) {
            Some(_) => Err(BadRecord::OtherFormat {
                found,
                version: head.version.unwrap_or_else(|| "of unknown version".to_owned()),
            }),
            None => Err(BadRecord::NotRecord { found }),
        },
    }
}

/// What tells the format of a record.
#[derive(Debug, Deserialize)]
struct Head {
    schema: Option<String>,
    version: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::tests::record_of;
    use crate::transfer::tests::trial;

    fn text() -> String {
        serde_json::to_string_pretty(&record_of(&[], &[trial(1_000, 0)], Vec::new())).expect("it is JSON")
    }

    fn refused(text: &str) -> String {
        read_record(text).expect_err("it is no record").to_string()
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let record = read_record(&text()).expect("a record");
        assert_eq!(record, record_of(&[], &[trial(1_000, 0)], Vec::new()));
    }

    #[test]
    fn a_record_that_is_cut_short_is_named_so() {
        let text = text();
        let half = &text[..text.len() / 2];
        assert!(refused(half).contains("cut short"), "{}", refused(half));
        assert!(refused("").contains("cut short"));
    }

    #[test]
    fn another_format_is_named_with_its_program() {
        for format in ["linerate.record/1", "linerate.record/3"] {
            let other = text().replace(SCHEMA, format).replace("\"version\": \"\"", "\"version\": \"9.1.0\"");
            let said = refused(&other);
            assert!([format, SCHEMA, "linerate 9.1.0"].iter().all(|word| said.contains(word)), "{said}");
        }
    }

    #[test]
    fn other_json_and_other_text_are_no_records() {
        assert!(refused("{\"schema\": \"linerate.study/1\"}").contains("linerate.study/1"));
        assert!(refused("[]").contains("missing"));
        assert!(refused("name: x").contains("not JSON"));
    }

    #[test]
    fn a_trial_without_a_load_and_a_missing_field_are_named() {
        let mut record = record_of(&[], &[trial(1_000, 0)], Vec::new());
        record.trials[0].trial.loads.clear();
        assert!(refused(&serde_json::to_string(&record).expect("JSON")).contains("`udp 1000` has no load"));
        let said = refused(&text().replace("\"trials\"", "\"runs\""));
        assert!(said.contains("missing field `trials`"), "{said}");
    }
}
