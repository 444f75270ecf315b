//! Entry points for fuzzing: what a server that may be anyone's answers.

use crate::answers::{Answer, read};
use linerate_model::NfsOperation;

/// Reads results. The first byte chooses the operation that was asked for.
pub fn answer(bytes: &[u8]) {
    let Some((operation, results)) = bytes.split_first() else { return };
    let operation = NfsOperation::ALL[usize::from(*operation) % NfsOperation::ALL.len()];
    match read(operation, results) {
        Some(Answer::Entries(entries)) => {
            let bytes: usize = entries.map(|entry| entry.name.len()).sum();
            assert!(bytes < results.len(), "names are a part of the results");
        }
        Some(Answer::Data { bytes, .. } | Answer::Path(bytes)) => {
            assert!(bytes.len() < results.len(), "data are a part of the results");
        }
        _ => {}
    }
}
