//! The congestion control of connections that are accepted before it is known which one they are to have.

use socket2::SockRef;
use std::io;
use std::net::TcpListener;

/// How the names of congestion controls begin that have the kernel pace what they send: BBR and its later versions.
const PACES: &[u8] = b"bbr";
/// One that does not pace, and that every kernel has.
const PLAIN: &[u8] = b"reno";

/// What connections of a listener get that ask for no congestion control.
///
/// Linux paces a connection that BBR has begun for as long as it lives, also after it was given another congestion control
/// (`sk_pacing_status` in net/ipv4/tcp_bbr.c). Over a path that loses 2 %, Reno carries an eighth less then. So where BBR is the
/// host's default, the listener begins its connections with Reno, and each gets its own before it carries data.
#[derive(Debug, Clone, Default)]
pub struct DefaultCongestion(Option<Vec<u8>>);

impl DefaultCongestion {
    /// Keeps the congestion control of `listener` for its connections, and has it begin them with one that does not pace.
    ///
    /// # Errors
    /// The kernel does not tell or take a congestion control.
    pub fn of(listener: &TcpListener) -> io::Result<Self> {
        let listener = SockRef::from(listener);
        let mut default = listener.tcp_congestion()?;
        default.retain(|byte| *byte != 0);
        if !default.starts_with(PACES) {
            return Ok(Self(None));
        }
        listener.set_tcp_congestion(PLAIN)?;
        // With its end: emulators (qemu-user) take no value shorter than an integer.
        default.push(0);
        Ok(Self(Some(default)))
    }

    /// Gives it to a connection for which nobody asked for another one.
    ///
    /// # Errors
    /// The kernel does not take it any more.
    pub fn give(&self, connection: &SockRef<'_>) -> io::Result<()> {
        self.0.as_ref().map_or(Ok(()), |default| connection.set_tcp_congestion(default))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    fn name(socket: SockRef<'_>) -> Vec<u8> {
        let mut name = socket.tcp_congestion().expect("told");
        name.retain(|byte| *byte != 0);
        name
    }

    /// On a host whose default is another one, nothing is changed.
    #[test]
    fn bbr_begins_no_connection_that_may_get_another_congestion_control() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
        let before = name(SockRef::from(&listener));
        let default = DefaultCongestion::of(&listener).expect("told");
        let _client = TcpStream::connect(listener.local_addr().expect("listens")).expect("connects");
        let (stream, _) = listener.accept().expect("accepts");
        let begun = name(SockRef::from(&stream));
        match before.starts_with(b"bbr") {
            true => assert_eq!(begun, b"reno"),
            false => assert_eq!(begun, before),
        }
        default.give(&SockRef::from(&stream)).expect("given");
        assert_eq!(name(SockRef::from(&stream)), before, "who asks for nothing gets the host's default");
    }
}
