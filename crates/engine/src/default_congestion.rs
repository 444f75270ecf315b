//! Congestion control of connections that are accepted before their session's choice is known.

use socket2::SockRef;
use std::io;
use std::net::TcpListener;

/// Prefix of the names of congestion controls with pacing by the kernel: BBR and its later versions.
const PACES: &[u8] = b"bbr";
/// Congestion control without pacing that every kernel has.
const PLAIN: &[u8] = b"reno";

/// Congestion control of a listener's connections that request none.
///
/// Linux paces a connection that BBR has begun for as long as it lives, also after it was given another congestion
/// control (`sk_pacing_status` in net/ipv4/tcp_bbr.c). Over a path that loses 2 %, Reno carries an eighth less then. So
/// if BBR is the host's default, the listener begins its connections with Reno, and each gets its congestion control
/// before it carries data.
#[derive(Debug, Clone, Default)]
pub struct DefaultCongestion(Option<Vec<u8>>);

impl DefaultCongestion {
    /// Keeps the congestion control of `listener` for its connections, and makes it begin them with one that does not
    /// pace.
    ///
    /// # Errors
    /// The kernel refuses to read or set the congestion control.
    pub fn of(listener: &TcpListener) -> io::Result<Self> {
        let listener = SockRef::from(listener);
        let mut default = listener.tcp_congestion()?;
        default.retain(|byte| *byte != 0);
        if !default.starts_with(PACES) {
            return Ok(Self(None));
        }
        listener.set_tcp_congestion(PLAIN)?;
        // The final zero is for emulators (qemu-user), which refuse values shorter than an integer.
        default.push(0);
        Ok(Self(Some(default)))
    }

    /// Sets the congestion control of a connection that requests none.
    ///
    /// # Errors
    /// The kernel does not accept it any more.
    pub fn give(&self, connection: &SockRef<'_>) -> io::Result<()> {
        self.0.as_ref().map_or(Ok(()), |default| connection.set_tcp_congestion(default))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    fn name(socket: SockRef<'_>) -> Vec<u8> {
        let mut name = socket.tcp_congestion().expect("has one");
        name.retain(|byte| *byte != 0);
        name
    }

    /// On a host with another default, nothing is changed.
    #[test]
    fn listener_does_not_begin_connections_with_bbr() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
        let before = name(SockRef::from(&listener));
        let default = DefaultCongestion::of(&listener).expect("has one");
        let _client = TcpStream::connect(listener.local_addr().expect("listens")).expect("connects");
        let (stream, _) = listener.accept().expect("accepts");
        let expected = if before.starts_with(b"bbr") { &b"reno"[..] } else { &before[..] };
        assert_eq!(name(SockRef::from(&stream)), expected);
        default.give(&SockRef::from(&stream)).expect("set");
        assert_eq!(name(SockRef::from(&stream)), before, "connections get the host's default");
    }
}
