//! Registers programs with this host's portmapper: version 2 of its protocol (RFC 1833 section 3).

use crate::client::{Caller, Retransmission};
use crate::error::RpcError;
use crate::message::{Credential, Procedure, Rest, put};
use linerate_model::Transport;
use linerate_sys::clock;
use linerate_units::Nanos;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::net::{SocketAddr, UdpSocket};

/// Its own program and port.
const PROGRAM: u32 = 100_000;
pub(crate) const PORT: u16 = 111;
/// Time that the portmapper has to answer.
const TIMEOUT: Nanos = Nanos::from_secs(3);
/// Ports that only a privileged program may bind: a portmapper believes those about who runs them.
const PRIVILEGED: std::ops::RangeInclusive<u16> = 600..=1_023;

/// A program at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) program: u32,
    pub(crate) version: u32,
    pub(crate) transport: Transport,
    pub(crate) port: u16,
}

impl Mapping {
    /// The arguments of version 2's procedures: protocols by their numbers in IP.
    fn arguments(self) -> Vec<u8> {
        let protocol = match self.transport {
            Transport::Tcp => 6,
            Transport::Udp => 17,
        };
        let mut args = Vec::new();
        for word in [self.program, self.version, protocol, self.port.into()] {
            put(&mut args, word);
        }
        args
    }
}

/// Registers a program with this host's portmapper. An earlier registration of that number stays: see
/// [`unregister`].
pub(crate) fn register(portmapper: SocketAddr, mapping: Mapping) -> Result<(), RpcError> {
    let mut caller = caller(portmapper)?;
    // PMAPPROC_SET.
    agreed(portmapper, "to register a program", ask(&mut caller, 1, &mapping.arguments())?)
}

/// Unregisters a program's version from this host's portmapper, over all transports (RFC 1833 section 3.2).
pub(crate) fn unregister(portmapper: SocketAddr, mapping: Mapping) -> Result<(), RpcError> {
    let mut caller = caller(portmapper)?;
    // PMAPPROC_UNSET. Nothing to unregister is no error.
    ask(&mut caller, 2, &mapping.arguments()).map(drop)
}

fn agreed(server: SocketAddr, what: &str, results: Vec<u8>) -> Result<(), RpcError> {
    if Rest(&results).word() == Some(1) {
        return Ok(());
    }
    let reason =
        "a portmapper lets only this host's privileged programs do that: run as root, or start it with `rpcbind -i`";
    Err(RpcError::Refused { server, what: what.to_owned(), reason: reason.to_owned() })
}

fn ask(caller: &mut Caller, procedure: u32, args: &[u8]) -> Result<Vec<u8>, RpcError> {
    let to = Procedure { program: PROGRAM, version: 2, procedure };
    caller.ask("a call to its portmapper", to, &Credential::none(), args, TIMEOUT).map_err(|error| match error {
        RpcError::Gone { peer, .. } | RpcError::NoAnswer { server: peer, .. } => RpcError::InvalidRequest(format!(
            "no portmapper answers at {peer}: start one (rpcbind), or leave --portmap out"
        )),
        other => other,
    })
}

/// A socket to the portmapper, from a privileged port where that is permitted.
fn caller(portmapper: SocketAddr) -> Result<Caller, RpcError> {
    let from = portmapper.ip();
    let domain = Domain::for_address(portmapper);
    let socket =
        Socket::new(domain, Type::DGRAM, Some(Protocol::UDP)).map_err(RpcError::socket("a socket to a portmapper"))?;
    let bind = |port| socket.bind(&SockAddr::from(SocketAddr::new(from, port)));
    // Not all start at the same one.
    let start = PRIVILEGED.start() + (clock::now() % 200) as u16;
    if !(start..=*PRIVILEGED.end()).any(|port| bind(port).is_ok()) {
        bind(0).map_err(RpcError::socket(format!("binding to {from}")))?;
    }
    socket.connect(&SockAddr::from(portmapper)).map_err(RpcError::socket(format!("connecting to {portmapper}")))?;
    Caller::udp(UdpSocket::from(socket), Retransmission::default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Refused;
    use crate::server::{Call, Program, Server};
    use std::ops::RangeInclusive;
    use std::sync::{Arc, Mutex};

    /// A portmapper that keeps one mapping.
    struct One(Mutex<Option<Vec<u8>>>);

    impl Program for One {
        fn number(&self) -> u32 {
            PROGRAM
        }

        fn versions(&self) -> RangeInclusive<u32> {
            2..=2
        }

        fn call(&self, call: &Call<'_>, reply: &mut Vec<u8>) -> Result<Option<u64>, Refused> {
            let mut kept = self.0.lock().expect("no holder panics");
            let result = match call.procedure {
                1 => u32::from(kept.replace(call.args.to_vec()).is_none()),
                2 => u32::from(kept.take().is_some()),
                _ => return Err(Refused::ProcedureUnavailable),
            };
            put(reply, result);
            Ok(None)
        }
    }

    #[test]
    fn a_program_is_registered_once_and_taken_out_again() {
        let one = Arc::new(One(Mutex::default()));
        let server = Server::start(Transport::Udp, "127.0.0.1:0".parse().expect("an address"), vec![one.clone()]);
        let at = server.as_ref().expect("listens").address();
        let mapping = Mapping { program: 5, version: 1, transport: Transport::Tcp, port: 40_000 };
        register(at, mapping).expect("registers");
        let kept = one.0.lock().expect("no holder panics").clone().expect("it is there");
        let words: Vec<u32> = kept.chunks(4).map(|word| u32::from_be_bytes(word.try_into().expect("four"))).collect();
        assert_eq!(words, [5, 1, 6, 40_000]);
        let error = register(at, mapping).expect_err("is there already").to_string();
        assert!(error.contains("run as root"), "{error}");
        unregister(at, mapping).expect("is gone");
        assert_eq!(*one.0.lock().expect("no holder panics"), None);
    }
}
