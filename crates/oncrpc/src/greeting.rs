//! How callers and servers of a session come to know each other: a call that only holders of the session's key can make, and
//! results that only they can give.
//!
//! ```text
//! call LINERATE_GREET:  salt of 16 bytes | proof of the key over it
//! its results:          ticket of 16 bytes | proof of the key over salt and ticket
//! ```
//!
//! The key itself never travels, and nobody else can choose a byte of a call before the server has proved that it holds the key:
//! see [`linerate_engine::proof`]. The ticket is the credential of all later calls (AUTH_SHORT, RFC 5531 section 8.2). It is
//! good for one address and port only, so that a caller over UDP proves by it that it reads the replies there.

use crate::message::{Credential, Presented, Procedure};
use crate::program::{PROGRAM, VERSION};
use linerate_engine::proof::{PROOF, SALT, Salt, is_same, proof};
use linerate_model::SessionKey;
use std::collections::HashMap;
use std::net::SocketAddr;

/// The procedure of linerate's own program that every server of a session has, whatever else it serves.
pub(crate) const GREET: Procedure = Procedure { program: PROGRAM, version: VERSION, procedure: 4 };

/// Bytes of a ticket.
const TICKET: usize = 16;
/// Bytes of the arguments of a greeting, and of its results.
const GREETING: usize = SALT + PROOF;

const GREETS: [u8; 8] = *b"lnrt-rg1";
const ANSWERS: [u8; 8] = *b"lnrt-ra1";
const TICKETS: [u8; 8] = *b"lnrt-rt1";

/// Callers over UDP that one thread keeps in mind; others have their tickets made again to be compared.
const KNOWN_MAXIMUM: usize = 4_096;

type Ticket = [u8; TICKET];

/// Returns the arguments of a greeting with `salt`, which is new for each.
pub(crate) fn arguments(key: &SessionKey, salt: &Salt) -> [u8; GREETING] {
    joined(salt, &proof(key, GREETS, &[salt]))
}

/// Returns the credential in the results of the greeting with `salt`; `None` if the server does not hold the key.
pub(crate) fn credential(key: &SessionKey, salt: &Salt, results: &[u8]) -> Option<Credential> {
    let (ticket, proved) = results.split_at_checked(TICKET)?;
    is_same(proved, &proof(key, ANSWERS, &[salt, ticket])).then(|| Credential::short(ticket))
}

/// Tells callers that hold the session's key from others.
pub(crate) struct Admission {
    key: SessionKey,
    /// Known to this server only: tickets are made with it.
    secret: SessionKey,
}

impl Admission {
    pub(crate) fn new(key: SessionKey) -> Self {
        Self { key, secret: SessionKey(rand::random()) }
    }

    /// Returns the results of a greeting that came from `peer`; `None` if the caller does not hold the key.
    pub(crate) fn answer(&self, arguments: &[u8], peer: SocketAddr) -> Option<[u8; GREETING]> {
        let (salt, proved) = arguments.split_at_checked(SALT)?;
        if !is_same(proved, &proof(&self.key, GREETS, &[salt])) {
            return None;
        }
        let ticket = self.ticket(peer);
        Some(joined(&ticket, &proof(&self.key, ANSWERS, &[salt, &ticket])))
    }

    fn ticket(&self, peer: SocketAddr) -> Ticket {
        let address = match peer.ip() {
            std::net::IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            std::net::IpAddr::V6(v6) => v6,
        };
        proof(&self.secret, TICKETS, &[&address.octets(), &peer.port().to_be_bytes()])
    }
}

/// The callers that one thread knows by their tickets. A hash is computed for the first call of each only.
#[derive(Debug, Default)]
pub(crate) struct KnownCallers {
    last: Option<(SocketAddr, Ticket)>,
    all: HashMap<SocketAddr, Ticket>,
}

impl KnownCallers {
    /// Whether a call from `peer` shows the ticket that `peer` was given.
    #[inline]
    pub(crate) fn admits(&mut self, admission: &Admission, peer: SocketAddr, shown: Presented<'_>) -> bool {
        match &self.last {
            Some((last, ticket)) if *last == peer => shown.is_short(ticket),
            _ => self.look_up(admission, peer, shown),
        }
    }

    fn look_up(&mut self, admission: &Admission, peer: SocketAddr, shown: Presented<'_>) -> bool {
        let known = self.all.get(&peer).copied();
        let ticket = known.unwrap_or_else(|| admission.ticket(peer));
        if !shown.is_short(&ticket) {
            return false;
        }
        if known.is_none() {
            if self.all.len() >= KNOWN_MAXIMUM {
                self.all.clear();
            }
            self.all.insert(peer, ticket);
        }
        self.last = Some((peer, ticket));
        true
    }
}

fn joined(first: &[u8], second: &[u8]) -> [u8; GREETING] {
    std::array::from_fn(|at| if at < first.len() { first[at] } else { second[at - first.len()] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{AUTH_SHORT, AUTH_SYS};

    const KEY: SessionKey = SessionKey([7; 16]);
    const SALT: Salt = [1; 16];

    fn peer(port: u16) -> SocketAddr {
        SocketAddr::from(([198, 18, 0, 1], port))
    }

    #[test]
    fn a_ticket_is_for_who_holds_the_key_and_for_one_address() {
        let admission = Admission::new(KEY);
        let greeting = arguments(&KEY, &SALT);
        assert_eq!(admission.answer(&arguments(&SessionKey([8; 16]), &SALT), peer(1)), None);
        assert_eq!(admission.answer(&greeting[..31], peer(1)), None);
        let results = admission.answer(&greeting, peer(1)).expect("the key is right");
        assert!(credential(&KEY, &SALT, &results).is_some());
        assert_eq!(credential(&KEY, &[2; 16], &results), None, "results of another greeting");
        assert_eq!(credential(&SessionKey([8; 16]), &SALT, &results), None, "a server without the key");

        let shown = |flavour, body| Presented { flavour, body };
        let ticket = &results[..TICKET];
        let mut known = KnownCallers::default();
        for _ in 0..2 {
            assert!(known.admits(&admission, peer(1), shown(AUTH_SHORT, ticket)));
            assert!(!known.admits(&admission, peer(2), shown(AUTH_SHORT, ticket)), "it was given to another");
            assert!(!known.admits(&admission, peer(1), shown(AUTH_SYS, ticket)));
            assert!(!known.admits(&admission, peer(1), shown(AUTH_SHORT, &ticket[1..])));
        }
        assert!(!KnownCallers::default().admits(&Admission::new(KEY), peer(1), shown(AUTH_SHORT, ticket)));
    }
}
