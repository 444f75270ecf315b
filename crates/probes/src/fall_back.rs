//! Kinds of packets to try in turn, until a router or the far end answers.

use crate::packets::Packets;
use linerate_engine::SocketError;
use linerate_model::ProbePacket;
use linerate_units::Nanos;
use std::collections::VecDeque;

/// Time in which a kind of packets has to be answered, nanoseconds.
const TRIAL: u64 = 1_500_000_000;
/// Shortest time if the warm-up is shorter.
const MIN_TRIAL: u64 = 500_000_000;

/// Opens packets of a kind.
pub(crate) type Open = Box<dyn FnMut(ProbePacket) -> Result<Box<dyn Packets>, SocketError> + Send>;

/// Present kind of packets, and the kinds that are left.
pub(crate) struct FallBack {
    packet: ProbePacket,
    left: VecDeque<ProbePacket>,
    open: Open,
    given_up: Vec<(ProbePacket, String)>,
    /// Beginning and length of the trial of the present kind.
    trial: Option<(u64, u64)>,
}

impl FallBack {
    /// Returns one kind of packets that is never given up.
    pub(crate) fn only(packet: ProbePacket) -> Self {
        let open: Open = Box::new(|packet| Err(SocketError::InvalidRequest(format!("{packet} was not asked for"))));
        Self { packet, left: VecDeque::new(), open, given_up: Vec::new(), trial: None }
    }

    /// Opens the first of `kinds` that can be opened. Returns its packets, and the kinds after it as fall-backs.
    ///
    /// # Errors
    /// None of them can be opened. The error is the last kind's.
    pub(crate) fn first(kinds: &[ProbePacket], mut open: Open) -> Result<(Box<dyn Packets>, Self), SocketError> {
        let mut left: VecDeque<ProbePacket> = kinds.iter().copied().collect();
        let mut given_up = Vec::new();
        let mut last_error = SocketError::InvalidRequest("no kind of packets is given to probe with".to_owned());
        while let Some(packet) = left.pop_front() {
            match open(packet) {
                Ok(packets) => return Ok((packets, Self { packet, left, open, given_up, trial: None })),
                Err(error) => {
                    given_up.push((packet, error.to_string()));
                    last_error = error;
                }
            }
        }
        Err(last_error)
    }

    /// Begins the trial of the present kind, in a warm-up of this length.
    pub(crate) fn begin(&mut self, now: u64, warmup: u64) {
        self.trial = Some((now, warmup.clamp(MIN_TRIAL, TRIAL)));
    }

    /// Returns the length of the present trial if it is over. The caller knows that nobody has answered.
    pub(crate) fn unanswered_within(&self, now: u64) -> Option<Nanos> {
        let (began, length) = self.trial?;
        (now >= began.saturating_add(length)).then_some(Nanos::new(length))
    }

    /// Returns whether no other kind is left to try.
    pub(crate) fn is_settled(&self) -> bool {
        self.left.is_empty()
    }

    /// Keeps the present kind.
    pub(crate) fn settle(&mut self) {
        self.left.clear();
    }

    /// Gives up the present kind for this reason, and opens the next. Returns `None`, and keeps the present kind, if no other kind can
    /// be opened.
    pub(crate) fn next(&mut self, reason: String) -> Option<Box<dyn Packets>> {
        let mut given_up = vec![(self.packet, reason)];
        while let Some(packet) = self.left.pop_front() {
            match (self.open)(packet) {
                Ok(packets) => {
                    self.given_up.append(&mut given_up);
                    self.packet = packet;
                    self.trial = None;
                    return Some(packets);
                }
                Err(error) => given_up.push((packet, error.to_string())),
            }
        }
        // The present kind is kept; the others could not be opened.
        self.given_up.extend(given_up.drain(1..));
        None
    }

    /// Returns the present kind, and the kinds that were given up with their reasons.
    pub(crate) fn into_packet(self) -> (ProbePacket, Vec<(ProbePacket, String)>) {
        (self.packet, self.given_up)
    }
}
