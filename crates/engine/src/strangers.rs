//! Connections of unauthenticated peers, with limits for their number, their number per address, and their time.
//!
//! At the limit, a new connection replaces the oldest. A peer with the session's key proves it within a round trip, so
//! other peers would have to open as many connections as there are places in that time to keep it out.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Limits for unauthenticated peers.
#[derive(Debug, Clone, Copy)]
pub struct StrangerLimits {
    /// Places for all peers together.
    pub places: usize,
    /// Places for one IPv4 address, or for one IPv6 network of 64 bits.
    pub places_each: usize,
    /// Time to prove the key, nanoseconds.
    pub time_ns: u64,
}

/// Unauthenticated peers of one listener. Dropping a `T` closes its connection.
#[derive(Debug)]
pub struct Strangers<T> {
    limits: StrangerLimits,
    /// Connections, the oldest first.
    all: Vec<Stranger<T>>,
}

#[derive(Debug)]
struct Stranger<T> {
    origin: IpAddr,
    until: u64,
    connection: T,
}

impl<T> Strangers<T> {
    /// Creates an empty set.
    pub fn new(limits: StrangerLimits) -> Self {
        Self { limits, all: Vec::new() }
    }

    /// Adds a connection from `peer` at `now`, nanoseconds. At a limit, closes the oldest of the same address, or of
    /// all.
    pub fn take(&mut self, peer: SocketAddr, now: u64, connection: T) {
        let origin = origin(peer.ip());
        let count = self.all.iter().filter(|other| other.origin == origin).count();
        if count >= self.limits.places_each {
            let oldest = self.all.iter().position(|other| other.origin == origin);
            oldest.map(|index| self.all.remove(index));
        } else if self.all.len() >= self.limits.places {
            self.all.remove(0);
        }
        self.all.push(Stranger { origin, until: now.saturating_add(self.limits.time_ns), connection });
    }

    /// Passes each connection to `attend`, which returns it if its peer is still unauthenticated. Closes those with no
    /// time left at `now`.
    pub fn attend(&mut self, now: u64, mut attend: impl FnMut(T) -> Option<T>) {
        let left = std::mem::take(&mut self.all).into_iter().filter_map(|stranger| {
            let connection = attend(stranger.connection)?;
            (now < stranger.until).then_some(Stranger { connection, ..stranger })
        });
        self.all = left.collect();
    }

    /// Iterates over the connections, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.all.iter().map(|stranger| &stranger.connection)
    }

    /// Returns whether there are no connections.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

/// Returns the part of an address that hosts cannot choose: the upper half of an IPv6 address (RFC 4291 section 2.5.1).
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

    fn numbers(strangers: &Strangers<u32>) -> Vec<u32> {
        strangers.iter().copied().collect()
    }

    fn peer(address: &str) -> SocketAddr {
        SocketAddr::new(address.parse().expect("an address"), 7)
    }

    #[test]
    fn places_are_limited_per_address_and_for_all() {
        let mut strangers = Strangers::new(LIMITS);
        for number in 0..5 {
            strangers.take(peer("198.18.0.1"), 0, number);
        }
        assert_eq!(numbers(&strangers), [3, 4], "the latest of one address");
        // Addresses of one IPv6 network count as one host.
        for (number, address) in [(5, "2001:2::1"), (6, "2001:2::2"), (7, "2001:2::3"), (8, "2001:2:0:1::1")] {
            strangers.take(peer(address), 0, number);
        }
        assert_eq!(numbers(&strangers), [4, 6, 7, 8], "the oldest of all was closed");
    }

    #[test]
    fn hosts_of_one_ipv6_network_and_mapped_addresses_are_one_origin() {
        for (first, second, is_same) in [
            ("2001:db8::1", "2001:db8::ffff:1", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
            ("::ffff:192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
        ] {
            assert_eq!(origin(peer(first).ip()) == origin(peer(second).ip()), is_same, "{first} {second}");
        }
    }

    #[test]
    fn connection_without_proof_in_time_is_closed() {
        let mut strangers = Strangers::new(LIMITS);
        strangers.take(peer("198.18.0.1"), 0, 1);
        strangers.take(peer("198.18.0.2"), 50, 2);
        strangers.attend(99, Some);
        assert_eq!(numbers(&strangers), [1, 2]);
        strangers.attend(100, Some);
        assert_eq!(numbers(&strangers), [2]);
        let mut proved = Vec::new();
        strangers.attend(101, |connection| {
            proved.push(connection);
            None
        });
        assert!(proved == [2] && strangers.is_empty());
    }
}
