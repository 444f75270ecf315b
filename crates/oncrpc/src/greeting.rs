//! Mutual authentication of callers and servers of a session: a call that only holders of the session's key can make,
//! and results that only they can give.
//!
//! ```text
//! call LINERATE_GREET:  salt of 16 bytes | proof of the key over it
//! its results:          ticket of 16 bytes | proof of the key over salt and ticket
//! ```
//!
//! The key itself never travels, and nobody else can choose a byte of a call before the server has proved that it holds
//! the key: see [`linerate_engine::proof`]. The ticket is the credential of all later calls (AUTH_SHORT, RFC 5531
//! section 8.2). It is good for one address and port only, so that a caller over UDP proves by it that it reads the
//! replies there.
//!
//! A server takes each salt from one address and port only. Whoever has seen a greeting gets no ticket by sending it
//! again from elsewhere; its own caller may, since over UDP the results can be lost.

use crate::message::{AUTH_SHORT, CallMessage, Credential, Presented, Procedure, Refused, read_call};
use linerate_engine::proof::{PROOF, SALT, Salt, is_same, proof};
use linerate_model::SessionKey;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Mutex;

/// Its number, out of the range that RFC 5531 leaves to users (0x20000000 to 0x3fffffff).
pub const PROGRAM: u32 = 0x2000_4c52;

/// Its version.
pub const VERSION: u32 = 1;

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

/// Greetings that a server takes at the most for each caller that it expects. It never forgets one, since that one
/// could be sent again.
const TAKEN_EACH: usize = 16;

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

/// Returns whether `bytes` are a call that greets with `key`: in a datagram, or over TCP after the mark of its record.
pub(crate) fn is_greeting(key: &SessionKey, bytes: &[u8]) -> bool {
    const MARK: usize = 4;
    [bytes, bytes.get(MARK..).unwrap_or_default()].into_iter().any(|call| {
        let Ok(CallMessage { to: GREET, args, .. }) = read_call(call) else { return false };
        args.len() == GREETING && is_same(&args[SALT..], &proof(key, GREETS, &[&args[..SALT]]))
    })
}

/// Authenticates callers by the session's key.
pub(crate) struct GreetingServer {
    key: SessionKey,
    /// Known to this server only: tickets are made with it.
    secret: SessionKey,
    /// Salts of the greetings so far, with the address of the caller.
    taken: Mutex<TakenGreetings>,
}

impl GreetingServer {
    /// Makes a server that expects `callers`.
    pub(crate) fn new(key: SessionKey, callers: usize) -> Self {
        let taken = Mutex::new(TakenGreetings::within(callers.saturating_mul(TAKEN_EACH)));
        Self { key, secret: SessionKey(rand::random()), taken }
    }

    /// Returns the results of a greeting that came from `peer`.
    ///
    /// # Errors
    /// AUTH_BADCRED if the caller does not hold the key, or sends the greeting of another; SYSTEM_ERR if no more are
    /// taken.
    pub(crate) fn answer(&self, arguments: &[u8], peer: SocketAddr) -> Result<[u8; GREETING], Refused> {
        let (salt, proved) = arguments.split_first_chunk::<SALT>().ok_or(Refused::BAD_CREDENTIAL)?;
        if !is_same(proved, &proof(&self.key, GREETS, &[salt])) {
            return Err(Refused::BAD_CREDENTIAL);
        }
        self.taken.lock().expect("no holder panics").take(*salt, peer)?;
        let ticket = self.ticket(peer);
        Ok(joined(&ticket, &proof(&self.key, ANSWERS, &[salt, &ticket])))
    }

    fn ticket(&self, peer: SocketAddr) -> Ticket {
        let address = match peer.ip() {
            std::net::IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            std::net::IpAddr::V6(v6) => v6,
        };
        proof(&self.secret, TICKETS, &[&address.octets(), &peer.port().to_be_bytes()])
    }
}

/// Greetings that a server has accepted. Each belongs to one caller.
#[derive(Debug)]
struct TakenGreetings {
    callers: HashMap<Salt, SocketAddr>,
    maximum: usize,
}

impl TakenGreetings {
    fn within(maximum: usize) -> Self {
        Self { callers: HashMap::new(), maximum }
    }

    /// Takes the greeting with `salt` from `peer`, for the first time or again.
    fn take(&mut self, salt: Salt, peer: SocketAddr) -> Result<(), Refused> {
        match self.callers.get(&salt) {
            Some(first) if *first == peer => Ok(()),
            Some(_) => Err(Refused::BAD_CREDENTIAL),
            None if self.callers.len() >= self.maximum => Err(Refused::SystemError),
            None => {
                self.callers.insert(salt, peer);
                Ok(())
            }
        }
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
    pub(crate) fn admits(&mut self, admission: &GreetingServer, peer: SocketAddr, shown: Presented<'_>) -> bool {
        match &self.last {
            Some((last, ticket)) if *last == peer => shown.is_short(ticket),
            _ => self.look_up(admission, peer, shown),
        }
    }

    fn look_up(&mut self, admission: &GreetingServer, peer: SocketAddr, shown: Presented<'_>) -> bool {
        // No hash for calls that show no ticket at all.
        if shown.flavour != AUTH_SHORT || shown.body.len() != TICKET {
            return false;
        }
        let cached = self.all.get(&peer).copied();
        let ticket = cached.unwrap_or_else(|| admission.ticket(peer));
        if !shown.is_short(&ticket) {
            return false;
        }
        if cached.is_none() {
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
    use crate::message::{AUTH_SYS, put_call};

    const KEY: SessionKey = SessionKey([7; 16]);
    const SALT: Salt = [1; 16];

    fn peer(port: u16) -> SocketAddr {
        SocketAddr::from(([198, 18, 0, 1], port))
    }

    #[test]
    fn a_ticket_is_for_who_holds_the_key_and_for_one_address() {
        let admission = GreetingServer::new(KEY, 64);
        let greeting = arguments(&KEY, &SALT);
        assert_eq!(admission.answer(&arguments(&SessionKey([8; 16]), &SALT), peer(1)), Err(Refused::BAD_CREDENTIAL));
        for length in [0, 15, 31] {
            assert_eq!(admission.answer(&greeting[..length], peer(1)), Err(Refused::BAD_CREDENTIAL));
        }
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
        assert!(!KnownCallers::default().admits(&GreetingServer::new(KEY, 64), peer(1), shown(AUTH_SHORT, ticket)));
    }

    #[test]
    fn a_greeting_is_known_by_its_key_over_both_transports() {
        let mut call = Vec::new();
        put_call(&mut call, 7, GREET, &Credential::none(), &arguments(&KEY, &SALT));
        let over_tcp = [&(1_u32 << 31 | call.len() as u32).to_be_bytes()[..], &call].concat();
        for bytes in [&call, &over_tcp] {
            assert!(is_greeting(&KEY, bytes));
            assert!(!is_greeting(&SessionKey([8; 16]), bytes), "another listener's");
            assert!(!is_greeting(&KEY, &bytes[..bytes.len() - 1]), "a part of one");
        }
        let mut null = Vec::new();
        put_call(&mut null, 7, Procedure { procedure: 0, ..GREET }, &Credential::none(), &arguments(&KEY, &SALT));
        assert!(!is_greeting(&KEY, &null));
        assert!(!is_greeting(&KEY, &[]));
    }

    /// The attack: someone has seen a greeting on its way, and sends it from an address of its own.
    #[test]
    fn a_greeting_replayed_from_another_address_gets_no_ticket() {
        let admission = GreetingServer::new(KEY, 64);
        let greeting = arguments(&KEY, &SALT);
        // Whoever does not hold the key keeps nobody's salt from being taken.
        let forged = arguments(&SessionKey([8; 16]), &SALT);
        assert_eq!(admission.answer(&forged, peer(2)), Err(Refused::BAD_CREDENTIAL));
        let results = admission.answer(&greeting, peer(1)).expect("the key is right");
        let elsewhere = SocketAddr::from(([198, 18, 0, 2], 1));
        for other in [peer(2), elsewhere] {
            assert_eq!(admission.answer(&greeting, other), Err(Refused::BAD_CREDENTIAL), "{other}");
        }
        assert_eq!(admission.answer(&greeting, peer(1)), Ok(results), "its results were lost");
        assert!(admission.answer(&arguments(&KEY, &[2; 16]), elsewhere).is_ok(), "a greeting of its own");
    }

    #[test]
    fn a_server_with_too_many_greetings_forgets_none_and_takes_no_more() {
        let mut taken = TakenGreetings::within(2);
        for salt in [1, 2] {
            assert_eq!(taken.take([salt; 16], peer(1)), Ok(()));
        }
        assert_eq!(taken.take([3; 16], peer(1)), Err(Refused::SystemError));
        assert_eq!(taken.take([1; 16], peer(1)), Ok(()), "sent again");
        assert_eq!(taken.take([1; 16], peer(2)), Err(Refused::BAD_CREDENTIAL));
    }
}
