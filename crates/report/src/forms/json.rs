//! The records themselves.

use crate::records::Records;

/// Returns a record as a JSON object, several as an array of them, on one line, as docs/result-format.md describes it.
pub fn json<'a>(records: impl Into<Records<'a>>) -> String {
    let text = match records.into().0 {
        [record] => serde_json::to_string(record),
        records => serde_json::to_string(records),
    };
    let mut text = text.expect("a record holds only text keys and plain data");
    text.push('\n');
    text
}
