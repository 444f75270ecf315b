//! Words that messages hold, each with the key of its translations.

use linerate_model::{Text, text};

pub(crate) const SENDING: &Text = text!("term-sending", "sending");
pub(crate) const RECEIVING: &Text = text!("term-receiving", "receiving");
pub(crate) const ASKING: &Text = text!("term-asking", "asking");
pub(crate) const ANSWERING: &Text = text!("term-answering", "answering");
pub(crate) const READING: &Text = text!("term-reading", "reading");
pub(crate) const WRITING: &Text = text!("term-writing", "writing");
pub(crate) const SOURCES: &Text = text!("term-sources", "source's");
pub(crate) const DESTINATIONS: &Text = text!("term-destinations", "destination's");
pub(crate) const SENDING_HOST: &Text = text!("term-sending-host", "sending host");
pub(crate) const RECEIVING_HOST: &Text = text!("term-receiving-host", "receiving host");
pub(crate) const MACHINE: &Text = text!("term-machine", "machine");
pub(crate) const CALLING_END: &Text = text!("term-calling-end", "calling");
pub(crate) const ASKING_END: &Text = text!("term-asking-end", "asking");
pub(crate) const SERVING_END: &Text = text!("term-serving-end", "serving");
pub(crate) const SENT: &Text = text!("term-sent", "sent");
pub(crate) const RECEIVED: &Text = text!("term-received", "received");
pub(crate) const COMPLETED: &Text = text!("term-completed", "completed");
pub(crate) const MORE: &Text = text!("term-more", "more");
pub(crate) const LESS: &Text = text!("term-less", "less");
pub(crate) const ADDRESSES: &Text = text!("term-addresses", "addresses");
pub(crate) const DATAGRAMS: &Text = text!("term-datagrams", "datagrams");
pub(crate) const FRAMES_IN_A_ROW: &Text = text!("term-frames-in-a-row", "frames in a row");
pub(crate) const HOSTS: &Text = text!("term-hosts", "hosts");
pub(crate) const SEGMENTS: &Text = text!("term-segments", "segments");
pub(crate) const READS: &Text = text!("term-reads", "reads");
pub(crate) const WRITES: &Text = text!("term-writes", "writes");
pub(crate) const OTHER_OPERATIONS: &Text = text!("term-other-operations", "other operations");
pub(crate) const RESPONSES: &Text = text!("term-responses", "responses");
pub(crate) const ROUND_TRIPS: &Text = text!("term-round-trips", "round trips");
