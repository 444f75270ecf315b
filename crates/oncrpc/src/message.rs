//! Calls and replies of ONC RPC version 2 as bytes: RFC 5531 section 9, in the XDR of RFC 4506.
//!
//! Reading never allocates: what is read borrows from the message, and every length is checked against it.

use linerate_engine::proof::is_same;

/// Message types.
const CALL: u32 = 0;
const REPLY: u32 = 1;
/// The only version of the protocol.
const RPC_VERSION: u32 = 2;
/// Authentication flavours: RFC 5531 section 8.2 and appendix A, and the IANA registry.
pub(crate) const AUTH_NONE: u32 = 0;
pub(crate) const AUTH_SYS: u32 = 1;
/// A credential that the server gave out beforehand.
pub(crate) const AUTH_SHORT: u32 = 2;
/// The most bytes of a credential or verifier.
const AUTH_BYTES_MAXIMUM: usize = 400;

/// A procedure of a program in one of its versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Procedure {
    /// The program's number.
    pub program: u32,
    /// Its version.
    pub version: u32,
    /// The procedure's number in that version.
    pub procedure: u32,
}

/// Authentication of a caller: a credential and the empty verifier that goes with it, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential(Vec<u8>);

impl Credential {
    /// AUTH_NONE.
    pub fn none() -> Self {
        Self::of(AUTH_NONE, &[])
    }

    /// AUTH_SHORT: what the server gave out beforehand.
    pub(crate) fn short(body: &[u8]) -> Self {
        Self::of(AUTH_SHORT, body)
    }

    /// AUTH_SYS: a user and a group of `machine`, with no further groups.
    pub fn sys(machine: &str, uid: u32, gid: u32) -> Self {
        let mut body = Vec::new();
        // The stamp is "an arbitrary ID which the caller machine may generate".
        put(&mut body, rand::random());
        // At most 255 bytes of name.
        let name = &machine.as_bytes()[..machine.len().min(255)];
        put_opaque(&mut body, name);
        put(&mut body, uid);
        put(&mut body, gid);
        put(&mut body, 0);
        Self::of(AUTH_SYS, &body)
    }

    fn of(flavour: u32, body: &[u8]) -> Self {
        let mut bytes = Vec::new();
        put(&mut bytes, flavour);
        put_opaque(&mut bytes, body);
        put(&mut bytes, AUTH_NONE);
        put(&mut bytes, 0);
        Self(bytes)
    }
}

/// The credential that a call shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Presented<'a> {
    /// The authentication flavour, as in [`AUTH_SHORT`].
    pub(crate) flavour: u32,
    /// Body of the credential.
    pub(crate) body: &'a [u8],
}

impl Presented<'_> {
    /// Returns whether the credential is the one with `body` that the server issued.
    pub(crate) fn is_short(&self, body: &[u8]) -> bool {
        self.flavour == AUTH_SHORT && is_same(self.body, body)
    }
}

/// Appends a call; `args` are XDR already.
pub(crate) fn put_call(into: &mut Vec<u8>, xid: u32, to: Procedure, credential: &Credential, args: &[u8]) {
    for word in [xid, CALL, RPC_VERSION, to.program, to.version, to.procedure] {
        put(into, word);
    }
    into.extend_from_slice(&credential.0);
    into.extend_from_slice(args);
}

/// A call as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallMessage<'a> {
    pub(crate) xid: u32,
    pub(crate) to: Procedure,
    pub(crate) credential: Presented<'a>,
    pub(crate) args: &'a [u8],
}

/// Why a call cannot be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadCall {
    /// The bytes are no call, or not a whole one: nothing can be answered.
    NoCall,
    /// The call of this xid is of another version of the protocol.
    Version(u32),
}

/// Reads a call.
pub(crate) fn read_call(bytes: &[u8]) -> Result<CallMessage<'_>, BadCall> {
    let mut rest = Rest(bytes);
    let xid = rest.word();
    let kind = rest.word();
    let version = rest.word();
    let (Some(xid), Some(CALL), Some(version)) = (xid, kind, version) else { return Err(BadCall::NoCall) };
    if version != RPC_VERSION {
        return Err(BadCall::Version(xid));
    }
    let mut whole = || {
        let to = Procedure { program: rest.word()?, version: rest.word()?, procedure: rest.word()? };
        let credential = Presented { flavour: rest.word()?, body: rest.opaque(AUTH_BYTES_MAXIMUM)? };
        rest.word()?;
        rest.opaque(AUTH_BYTES_MAXIMUM)?;
        Some(CallMessage { xid, to, credential, args: rest.0 })
    };
    whole().ok_or(BadCall::NoCall)
}

/// Why a server does not do what it was asked: the errors of RFC 5531 section 9.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// PROG_UNAVAIL.
    #[error("it does not have this program")]
    ProgramUnavailable,
    /// PROG_MISMATCH.
    #[error("it has versions {low} to {high} of this program only")]
    ProgramMismatch {
        /// The lowest version it has.
        low: u32,
        /// The highest.
        high: u32,
    },
    /// PROC_UNAVAIL.
    #[error("it does not have this procedure")]
    ProcedureUnavailable,
    /// GARBAGE_ARGS.
    #[error("it cannot read the arguments")]
    GarbageArguments,
    /// SYSTEM_ERR.
    #[error("it failed by a fault of its own (SYSTEM_ERR)")]
    SystemError,
    /// RPC_MISMATCH.
    #[error("it speaks versions {low} to {high} of ONC RPC only")]
    RpcMismatch {
        /// The lowest version it speaks.
        low: u32,
        /// The highest.
        high: u32,
    },
    /// AUTH_ERROR, with the kind.
    #[error("it does not accept the credential ({})", auth_name(*.0))]
    Auth(u32),
}

impl Refused {
    /// AUTH_BADCRED: the credential is not the one asked for.
    pub const BAD_CREDENTIAL: Self = Self::Auth(1);
    /// AUTH_TOOWEAK: a credential is needed.
    pub(crate) const TOO_WEAK: Self = Self::Auth(5);
}

/// The name of an `auth_stat`.
fn auth_name(status: u32) -> &'static str {
    match status {
        1 => "AUTH_BADCRED",
        2 => "AUTH_REJECTEDCRED",
        3 => "AUTH_BADVERF",
        4 => "AUTH_REJECTEDVERF",
        5 => "AUTH_TOOWEAK",
        6 => "AUTH_INVALIDRESP",
        7 => "AUTH_FAILED",
        _ => "an authentication error of another kind",
    }
}

/// Appends the head of a successful reply; its results follow.
pub(crate) fn put_accepted(into: &mut Vec<u8>, xid: u32) {
    // MSG_ACCEPTED, an AUTH_NONE verifier of no bytes, SUCCESS.
    for word in [xid, REPLY, 0, AUTH_NONE, 0, 0] {
        put(into, word);
    }
}

/// Appends a whole reply that refuses.
pub(crate) fn put_refused(into: &mut Vec<u8>, xid: u32, why: Refused) {
    put(into, xid);
    put(into, REPLY);
    let accepted: &[u32] = match why {
        Refused::RpcMismatch { low, high } => return [1, 0, low, high].into_iter().for_each(|word| put(into, word)),
        Refused::Auth(status) => return [1, 1, status].into_iter().for_each(|word| put(into, word)),
        Refused::ProgramUnavailable => &[1],
        Refused::ProgramMismatch { low, high } => &[2, low, high],
        Refused::ProcedureUnavailable => &[3],
        Refused::GarbageArguments => &[4],
        Refused::SystemError => &[5],
    };
    for word in [0, AUTH_NONE, 0].iter().chain(accepted) {
        put(into, *word);
    }
}

/// A server's answer to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply<'a> {
    /// The results, in XDR.
    Accepted(&'a [u8]),
    /// The server refused the call.
    Refused(Refused),
    /// No reply came to any transmission of the call (UDP).
    Lost,
}

/// Reads a reply and its xid. Returns `None` if it is no reply, or not whole.
pub(crate) fn read_reply(bytes: &[u8]) -> Option<(u32, Reply<'_>)> {
    let mut rest = Rest(bytes);
    let xid = rest.word()?;
    if rest.word()? != REPLY {
        return None;
    }
    let refused = match rest.word()? {
        0 => {
            rest.word()?;
            rest.opaque(AUTH_BYTES_MAXIMUM)?;
            match rest.word()? {
                0 => return Some((xid, Reply::Accepted(rest.0))),
                1 => Refused::ProgramUnavailable,
                2 => Refused::ProgramMismatch { low: rest.word()?, high: rest.word()? },
                3 => Refused::ProcedureUnavailable,
                4 => Refused::GarbageArguments,
                5 => Refused::SystemError,
                _ => return None,
            }
        }
        1 => match rest.word()? {
            0 => Refused::RpcMismatch { low: rest.word()?, high: rest.word()? },
            1 => Refused::Auth(rest.word()?),
            _ => return None,
        },
        _ => return None,
    };
    Some((xid, Reply::Refused(refused)))
}

/// Appends an XDR unsigned integer.
pub fn put(into: &mut Vec<u8>, word: u32) {
    into.extend_from_slice(&word.to_be_bytes());
}

/// Appends XDR opaque data of any length: its length, itself, and zeroes up to a multiple of four.
pub fn put_opaque(into: &mut Vec<u8>, bytes: &[u8]) {
    put(into, bytes.len() as u32);
    into.extend_from_slice(bytes);
    into.resize(into.len() + padding(bytes.len()), 0);
}

/// The zeroes that fill up `length` bytes to a multiple of four.
pub(crate) fn padding(length: usize) -> usize {
    length.wrapping_neg() % 4
}

/// Unread part of XDR data.
#[derive(Debug, Clone, Copy)]
pub struct Rest<'a>(pub &'a [u8]);

impl<'a> Rest<'a> {
    /// The next unsigned integer.
    pub fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*word))
    }

    /// The next opaque data, of at most `most` bytes.
    pub fn opaque(&mut self, most: usize) -> Option<&'a [u8]> {
        let length = self.word()? as usize;
        if length > most || length + padding(length) > self.0.len() {
            return None;
        }
        let (data, rest) = self.0.split_at(length + padding(length));
        self.0 = rest;
        Some(&data[..length])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Size of an accepted reply before its results: xid, type, status, an empty verifier, and the acceptance's status.
    const ACCEPTED_BYTES: usize = 24;
    const TO: Procedure = Procedure { program: 100_003, version: 3, procedure: 1 };

    #[test]
    fn a_call_is_the_bytes_of_the_standard() {
        let mut bytes = Vec::new();
        put_call(&mut bytes, 7, TO, &Credential::none(), &[0, 0, 0, 9]);
        let words: Vec<u32> = bytes.chunks(4).map(|word| u32::from_be_bytes(word.try_into().expect("four"))).collect();
        assert_eq!(words, [7, 0, 2, 100_003, 3, 1, 0, 0, 0, 0, 9]);
    }

    #[test]
    fn only_what_was_given_out_is_taken() {
        let mut bytes = Vec::new();
        put_call(&mut bytes, 7, TO, &Credential::short(&[7; 16]), &[]);
        let presented = read_call(&bytes).expect("a call").credential;
        assert!(presented.is_short(&[7; 16]));
        assert!(!presented.is_short(&[8; 16]));
        assert!(!Presented { body: &presented.body[..15], ..presented }.is_short(&[7; 16]));
        assert!(!Presented { flavour: AUTH_SYS, ..presented }.is_short(&[7; 16]));
    }

    #[test]
    fn error_replies_keep_their_kind_and_fit_into_the_shortest_call() {
        let mut call = Vec::new();
        put_call(&mut call, 7, TO, &Credential::none(), &[]);
        for why in [
            Refused::ProgramUnavailable,
            Refused::ProgramMismatch { low: 1, high: 3 },
            Refused::ProcedureUnavailable,
            Refused::GarbageArguments,
            Refused::SystemError,
            Refused::RpcMismatch { low: 2, high: 2 },
            Refused::BAD_CREDENTIAL,
        ] {
            let mut bytes = Vec::new();
            put_refused(&mut bytes, 9, why);
            assert_eq!(read_reply(&bytes), Some((9, Reply::Refused(why))));
            assert!(bytes.len() <= call.len(), "{why}: amplifies");
        }
        assert!(ACCEPTED_BYTES <= call.len());
    }

    #[test]
    fn another_version_of_the_protocol_is_told_apart_from_rubbish() {
        let mut bytes = Vec::new();
        put_call(&mut bytes, 7, TO, &Credential::none(), &[]);
        bytes[11] = 3;
        assert_eq!(read_call(&bytes), Err(BadCall::Version(7)));
        bytes[7] = 1;
        assert_eq!(read_call(&bytes), Err(BadCall::NoCall));
    }

    proptest! {
        #[test]
        fn calls_and_replies_survive_their_way(xid: u32, uid: u32, name in ".{0,300}", args: Vec<u8>) {
            let credential = Credential::sys(&name, uid, 5);
            let mut bytes = Vec::new();
            put_call(&mut bytes, xid, TO, &credential, &args);
            let call = read_call(&bytes).expect("a call");
            prop_assert_eq!((call.xid, call.to, call.credential.flavour, call.args), (xid, TO, AUTH_SYS, &args[..]));
            let mut bytes = Vec::new();
            put_accepted(&mut bytes, xid);
            prop_assert_eq!(bytes.len(), ACCEPTED_BYTES);
            bytes.extend_from_slice(&args);
            prop_assert_eq!(read_reply(&bytes), Some((xid, Reply::Accepted(&args))));
        }

        #[test]
        fn no_bytes_are_too_bad_to_read(bytes: Vec<u8>, cut in 0usize..64, word in 0usize..12, value: u32) {
            let _ = (read_call(&bytes), read_reply(&bytes));
            let mut call = Vec::new();
            put_call(&mut call, 1, TO, &Credential::short(&[1; 16]), &bytes);
            let at = (word * 4).min(call.len() - 4);
            call[at..at + 4].copy_from_slice(&value.to_be_bytes());
            call.truncate(call.len().saturating_sub(cut));
            if let Ok(read) = read_call(&call) {
                prop_assert!(read.args.len() <= call.len() && read.credential.body.len() <= AUTH_BYTES_MAXIMUM);
            }
            let _ = read_reply(&call);
        }
    }
}
