//! Entry points for fuzzing: JSON texts of a server of others, and of clients that are strangers.

use crate::message;
use crate::results::TestResults;
use crate::server::fuzzing::asked;

/// Reads a text with its length before it: the number of flows, then the message.
pub fn text(bytes: &[u8]) {
    let Some((&flows, bytes)) = bytes.split_first() else { return };
    let Some((head, text)) = bytes.split_first_chunk() else { return };
    if let Ok(length) = message::length(*head, message::LONGEST) {
        assert!((1..=message::LONGEST as usize).contains(&length));
    }
    let Ok(value) = message::decode(text) else { return };
    let flows = usize::from(flows);
    if let Ok(told) = TestResults::decode(&value, flows) {
        assert_eq!(told.flows.len(), flows);
        assert_eq!(TestResults::decode(&told.encode(), flows).map(|again| again.flows.len()), Ok(flows));
    }
    asked(&value);
}
