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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::Event;
    use std::io;
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};

    /// Packets that nobody answers.
    struct Unanswered;

    impl Packets for Unanswered {
        fn peer(&self) -> Option<SocketAddr> {
            None
        }

        fn local(&self) -> IpAddr {
            Ipv4Addr::LOCALHOST.into()
        }

        fn headers(&self) -> u32 {
            28
        }

        fn send(&mut self, _sequence: u32, _payload: &[u8], _ttl: u8) -> io::Result<u32> {
            Ok(28)
        }

        fn wait(&self, _nanos: u64) -> Result<bool, SocketError> {
            Ok(false)
        }

        fn event(&mut self, _into: &mut [u8]) -> Result<Option<Event>, SocketError> {
            Ok(None)
        }
    }

    /// Returns a function that opens all kinds but these.
    fn open_except(denied: &'static [ProbePacket]) -> Open {
        Box::new(|packet| {
            if denied.contains(&packet) {
                return Err(SocketError::InvalidRequest("denied".to_owned()));
            }
            Ok(Box::new(Unanswered))
        })
    }

    #[test]
    fn kinds_follow_each_other_with_their_reasons() {
        let (_, mut kinds) = FallBack::first(&ProbePacket::ALL, open_except(&[ProbePacket::Ping])).expect("UDP");
        assert!(kinds.next("silent".to_owned()).is_some());
        assert!(kinds.next("silent as well".to_owned()).is_some() && kinds.is_settled());
        assert!(kinds.next("nothing is left".to_owned()).is_none());
        let (packet, given_up) = kinds.into_packet();
        let expected = [
            (ProbePacket::Udp, "silent".to_owned()),
            (ProbePacket::Ping, "denied".to_owned()),
            (ProbePacket::RawIcmp, "silent as well".to_owned()),
        ];
        assert_eq!((packet, given_up), (ProbePacket::TcpSyn, expected.to_vec()));
    }

    #[test]
    fn present_kind_is_kept_if_no_other_opens() {
        let denied = &[ProbePacket::RawIcmp, ProbePacket::TcpSyn];
        let (_, mut kinds) = FallBack::first(&ProbePacket::ALL[1..], open_except(denied)).expect("ping");
        assert!(kinds.next("silent".to_owned()).is_none() && kinds.is_settled());
        let (packet, given_up) = kinds.into_packet();
        let denied: Vec<ProbePacket> = given_up.iter().map(|(packet, _)| *packet).collect();
        assert_eq!((packet, denied), (ProbePacket::Ping, vec![ProbePacket::RawIcmp, ProbePacket::TcpSyn]));
    }

    #[test]
    fn first_kind_that_opens_is_tried() {
        let udp = &[ProbePacket::Udp];
        let (_, kinds) = FallBack::first(&ProbePacket::ALL, open_except(udp)).expect("ping");
        assert_eq!(kinds.into_packet(), (ProbePacket::Ping, vec![(ProbePacket::Udp, "denied".to_owned())]));
        let error = FallBack::first(udp, open_except(udp)).err().expect("nothing opens");
        assert_eq!(error.to_string(), "denied");
    }

    #[test]
    fn trial_lasts_as_long_as_the_warm_up_within_bounds() {
        const MS: u64 = 1_000_000;
        let (_, mut kinds) = FallBack::first(&ProbePacket::ALL, open_except(&[])).expect("UDP");
        assert_eq!(kinds.unanswered_within(u64::MAX), None, "it has not begun");
        for (warmup, length) in [(0, 500), (700 * MS, 700), (u64::MAX / 4, 1_500)] {
            kinds.begin(1_000, warmup);
            assert_eq!(kinds.unanswered_within(999 + length * MS), None);
            assert_eq!(kinds.unanswered_within(1_000 + length * MS), Some(Nanos::from_millis(length)));
        }
    }
}
