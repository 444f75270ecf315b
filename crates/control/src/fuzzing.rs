//! Entry points for fuzzing: what an agent that may be hostile answers a runner.

use crate::pairing::{Paired, PairingMessage};
use crate::sse::Events;
use crate::{ApiError, ClockReading, Closed};
use linerate_model::{Host, HostCounters, HostCounts, Mac, PortInfo, Stage};
use serde::de::DeserializeOwned;

/// Reads bytes as every body that an agent answers with, and as a stream of events. Their first byte says in pieces of how many
/// bytes events come.
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

/// Reads a body. What is read can be written again, since it is kept.
fn read<T: DeserializeOwned + serde::Serialize>(bytes: &[u8]) {
    if let Ok(value) = serde_json::from_slice::<T>(bytes) {
        assert!(serde_json::to_string(&value).is_ok(), "what was read can be kept");
    }
}
