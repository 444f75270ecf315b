//! Congestion control of connections that are accepted before their session's choice is known.

use linerate_sys::handle::{AsSocket as _, BorrowedSocket};
use linerate_sys::tcp;
use std::io;
use std::net::TcpListener;

/// Prefix of the names of congestion controls with pacing by the kernel: BBR and its later versions.
const PACES: &str = "bbr";
/// Congestion control without pacing that every kernel has.
const PLAIN: &str = "reno";

/// Congestion control of a listener's connections that request none.
///
/// Linux paces a connection that BBR has begun for as long as it lives, also after it was given another congestion
/// control (`sk_pacing_status` in net/ipv4/tcp_bbr.c). Over a path that loses 2 %, Reno carries an eighth less then. So
/// if BBR is the host's default, the listener begins its connections with Reno, and each gets its congestion control
/// before it carries data.
#[derive(Debug, Clone, Default)]
pub struct DefaultCongestion(Option<String>);

impl DefaultCongestion {
    /// Keeps the congestion control of `listener` for its connections, and makes it begin them with one that does not
    /// pace.
    ///
    /// # Errors
    /// The kernel refuses to read or set the congestion control.
    pub fn of(listener: &TcpListener) -> io::Result<Self> {
        let default = tcp::congestion(listener.as_socket())?.filter(|name| name.starts_with(PACES));
        if default.is_some() {
            tcp::set_congestion(listener.as_socket(), PLAIN)?;
        }
        Ok(Self(default))
    }

    /// Sets the congestion control of a connection that requests none.
    ///
    /// # Errors
    /// The kernel does not accept it any more.
    pub fn give(&self, connection: BorrowedSocket<'_>) -> io::Result<()> {
        self.0.as_ref().map_or(Ok(()), |default| tcp::set_congestion(connection, default))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    fn name(socket: BorrowedSocket<'_>) -> Option<String> {
        tcp::congestion(socket).expect("a TCP socket")
    }

    /// On a host with another default, nothing is changed.
    #[test]
    fn listener_does_not_begin_connections_with_bbr() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
        let before = name(listener.as_socket());
        let default = DefaultCongestion::of(&listener).expect("has one");
        let _client = TcpStream::connect(listener.local_addr().expect("listens")).expect("connects");
        let (stream, _) = listener.accept().expect("accepts");
        let paces = before.as_ref().is_some_and(|name| name.starts_with(PACES));
        let expected = if paces { Some(PLAIN.to_owned()) } else { before.clone() };
        assert_eq!(name(stream.as_socket()), expected);
        default.give(stream.as_socket()).expect("set");
        assert_eq!(name(stream.as_socket()), before, "connections get the host's default");
    }
}
