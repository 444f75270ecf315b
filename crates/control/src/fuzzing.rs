//! Entry points for fuzzing: answers of a hostile agent.

use crate::pairing::{Paired, PairingMessage};
use crate::sse::Events;
use crate::{ApiError, ClockReading, Closed};
use linerate_model::{Host, HostCounters, HostCounts, Mac, PortInfo, Stage};
use serde::de::DeserializeOwned;

/// Reads bytes as every body of an agent's answers, and as a stream of events. The first byte is the size of the pieces
/// of events.
pub fn answer(bytes: &[u8]) {
    let Some((piece, bytes)) = bytes.split_first() else { return };
    read::<Host>(bytes);
    read::<HostCounters>(bytes);
    read::<HostCounts>(bytes);
    read::<Vec<PortInfo>>(bytes);
    read::<ClockReading>(bytes);
    read::<Closed>(bytes);
    read::<ApiError>(bytes);
    read::<Mac>(bytes);
    read::<PairingMessage>(bytes);
    read::<Paired>(bytes);
    let mut events = Events::default();
    for piece in bytes.chunks(usize::from(*piece) + 1) {
        let Ok(ended) = events.push(piece) else { return };
        ended.iter().for_each(|event| read::<Stage>(event.as_bytes()));
    }
}

/// Reads a body, and asserts that the value can be written again.
fn read<T: DeserializeOwned + serde::Serialize>(bytes: &[u8]) {
    if let Ok(value) = serde_json::from_slice::<T>(bytes) {
        assert!(serde_json::to_string(&value).is_ok(), "the value can be kept");
    }
}
