//! Streams: latency under load and the places of loss.

pub(crate) mod loaded_latency;
pub(crate) mod loss_waterfall;
