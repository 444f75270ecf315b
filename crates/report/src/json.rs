//! The record itself.

use linerate_model::Record;

/// The record as one JSON object on one line, as docs/result-format.md describes it.
pub fn json(record: &Record) -> String {
    let mut text = serde_json::to_string(record).expect("a record holds only text keys and plain data");
    text.push('\n');
    text
}
