//! Connections whose peers have yet to show the session's key: few at a time, few for each address, and not for long.
//!
//! Where there is no room, the oldest goes. A peer that holds the key shows it within a round trip, so strangers would have to
//! open as many connections as there are places in that time to keep it out.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// How many strangers there may be, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct StrangerLimits {
    /// Places for all together.
    pub places: usize,
    /// Places for one IPv4 address, or for one IPv6 network of 64 bits.
    pub places_each: usize,
    /// Time to show the key, nanoseconds.
    pub time_ns: u64,
}

/// The strangers of one listener. `T` is what is kept of a connection; to drop it closes it.
#[derive(Debug)]
pub struct Strangers<T> {
    limits: StrangerLimits,
    /// The oldest first.
    all: Vec<Stranger<T>>,
}

#[derive(Debug)]
struct Stranger<T> {
    origin: IpAddr,
    until: u64,
    connection: T,
}

impl<T> Strangers<T> {
    /// No strangers yet.
    pub fn new(limits: StrangerLimits) -> Self {
        Self { limits, all: Vec::new() }
    }

    /// Takes a connection from `peer` at `now`, nanoseconds. Closes the oldest from there, or of all, if there is no room.
    pub fn take(&mut self, peer: SocketAddr, now: u64, connection: T) {
        let origin = origin(peer.ip());
        let here = self.all.iter().filter(|other| other.origin == origin).count();
        if here >= self.limits.places_each {
            let oldest = self.all.iter().position(|other| other.origin == origin);
            oldest.map(|oldest| self.all.remove(oldest));
        } else if self.all.len() >= self.limits.places {
            self.all.remove(0);
        }
        self.all.push(Stranger { origin, until: now.saturating_add(self.limits.time_ns), connection });
    }

    /// Hands each connection to `attend`, which returns it if it remains a stranger's. Those whose time is over at `now` are
    /// closed then.
    pub fn attend(&mut self, now: u64, mut attend: impl FnMut(T) -> Option<T>) {
        let left = std::mem::take(&mut self.all).into_iter().filter_map(|stranger| {
            let connection = attend(stranger.connection)?;
            (now < stranger.until).then_some(Stranger { connection, ..stranger })
        });
        self.all = left.collect();
    }

    /// The connections, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.all.iter().map(|stranger| &stranger.connection)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

/// What counts as one address: hosts choose the lower half of an IPv6 address at will (RFC 4291 section 2.5.1).
pub fn origin(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: StrangerLimits = StrangerLimits { places: 4, places_each: 2, time_ns: 100 };

    fn kept(strangers: &Strangers<u32>) -> Vec<u32> {
        strangers.iter().copied().collect()
    }

    fn peer(address: &str) -> SocketAddr {
        SocketAddr::new(address.parse().expect("an address"), 7)
    }

    #[test]
    fn one_address_takes_no_more_than_its_places_and_all_no_more_than_there_are() {
        let mut strangers = Strangers::new(LIMITS);
        for number in 0..5 {
            strangers.take(peer("198.18.0.1"), 0, number);
        }
        assert_eq!(kept(&strangers), [3, 4], "the latest of one address");
        // Addresses of one IPv6 network are one host's.
        for (number, address) in [(5, "2001:2::1"), (6, "2001:2::2"), (7, "2001:2::3"), (8, "2001:2:0:1::1")] {
            strangers.take(peer(address), 0, number);
        }
        assert_eq!(kept(&strangers), [4, 6, 7, 8], "the oldest of all went");
    }

    #[test]
    fn hosts_of_one_ipv6_network_and_mapped_addresses_are_one_origin() {
        let of = |address: &str| origin(address.parse().expect("an address"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }

    #[test]
    fn whoever_shows_nothing_in_time_is_closed() {
        let mut strangers = Strangers::new(LIMITS);
        strangers.take(peer("198.18.0.1"), 0, 1);
        strangers.take(peer("198.18.0.2"), 50, 2);
        strangers.attend(99, Some);
        assert_eq!(kept(&strangers), [1, 2]);
        strangers.attend(100, Some);
        assert_eq!(kept(&strangers), [2]);
        let mut known = Vec::new();
        strangers.attend(101, |connection| {
            known.push(connection);
            None
        });
        assert!(known == [2] && strangers.is_empty());
    }
}
