//! Entry point for fuzzing: messages of anyone on the local network.

use crate::agent::{AnnouncedAgent, FoundAgent};
use crate::message::Message;
use std::net::{Ipv4Addr, SocketAddr};

/// Reads a message as a responder and as a browser do, and writes it again.
pub fn message(bytes: &[u8]) {
    let Some(message) = Message::read(bytes) else { return };
    let agent = AnnouncedAgent {
        name: "rack-1".to_owned(),
        fingerprint: "0f".repeat(32),
        listening: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 4_747)),
        version: "1.2.3".to_owned(),
        protocol: 4,
    };
    let _ = agent.is_asked_for(&message);
    for found in FoundAgent::read(&message) {
        assert!([found.name, found.version, found.protocol].iter().all(|text| !text.contains(char::is_control)));
    }
    let is_known = |record: &crate::message::Record| record.data != crate::message::RecordData::Other;
    if message.records.iter().all(is_known) {
        assert_eq!(Message::read(&message.encode()), Some(message));
    }
}
