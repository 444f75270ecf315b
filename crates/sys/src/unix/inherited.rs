//! Sockets that the parent process opened for this one.

use crate::Error;
use std::io;
use std::net::TcpListener;
use std::os::fd::FromRawFd as _;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a descriptor was taken: a second owner of one would close it under the first.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Takes over an inherited TCP listener, as a supervisor (or the lab) hands one over, and keeps it from this process's own
/// children. Succeeds only once.
///
/// Whatever Rust's libraries open in this process is closed on exec, so that a descriptor without that mark came from outside,
/// and nobody in here owns it. Standard input, output and error have owners.
///
/// # Errors
/// The descriptor is none, does not listen, belongs to this process, or one was taken over before.
pub fn listener(fd: i32) -> Result<TcpListener, Error> {
    let object = || format!("descriptor {fd}");
    let mut listening: libc::c_int = 0;
    let mut size = size_of_val(&listening) as libc::socklen_t;
    // SAFETY: the pointers are to locals of the sizes given, and outlive the call; a descriptor that is none is an error.
    let result = unsafe {
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_ACCEPTCONN, (&raw mut listening).cast(), &raw mut size)
    };
    if result != 0 {
        return Err(Error::last("getsockopt(SO_ACCEPTCONN)", object()));
    }
    if listening == 0 {
        let problem = io::Error::new(io::ErrorKind::InvalidInput, "the socket does not listen");
        return Err(Error::new("getsockopt(SO_ACCEPTCONN)", object(), problem));
    }
    // SAFETY: fcntl(F_GETFD) reads no memory.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
    if flags < 0 {
        return Err(Error::last("fcntl(F_GETFD)", object()));
    }
    if flags & libc::FD_CLOEXEC != 0 || fd <= libc::STDERR_FILENO {
        let problem = io::Error::new(io::ErrorKind::PermissionDenied, "it was not inherited: this process owns it");
        return Err(Error::new("taking over a listener", object(), problem));
    }
    // SAFETY: fcntl(F_SETFD) reads no memory; the descriptor is open, for the call above succeeded on it.
    if unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
        return Err(Error::last("fcntl(F_SETFD)", object()));
    }
    if TAKEN.swap(true, Ordering::Relaxed) {
        let problem = io::Error::new(io::ErrorKind::AlreadyExists, "this process has taken over a listener already");
        return Err(Error::new("taking over a listener", object(), problem));
    }
    // SAFETY: the descriptor is open, nobody took it before (see `TAKEN`), and it came across exec, so that nobody else in
    // this process owns it.
    Ok(unsafe { TcpListener::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsRawFd as _, IntoRawFd as _};

    #[test]
    fn only_an_inherited_listening_socket_is_taken_and_only_once() {
        let file = std::fs::File::open("/dev/null").expect("/dev/null can be opened");
        assert!(super::listener(file.as_raw_fd()).is_err());
        assert!(super::listener(-1).is_err());

        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback can be listened on");
        let address = listener.local_addr().expect("it has an address");
        // What this process opened itself has an owner, who would close it under another one.
        let owned = super::listener(listener.as_raw_fd()).expect_err("it has an owner").to_string();
        assert!(owned.contains("not inherited"), "{owned}");
        let fd = listener.into_raw_fd();
        // As it comes from a parent: open across exec.
        // SAFETY: fcntl(F_SETFD) reads no memory; the descriptor is open.
        assert_eq!(unsafe { libc::fcntl(fd, libc::F_SETFD, 0) }, 0);
        let taken = super::listener(fd).expect("it listens");
        assert_eq!(taken.local_addr().expect("it has an address"), address);
        // SAFETY: fcntl(F_GETFD) reads no memory; the descriptor is open.
        assert_eq!(unsafe { libc::fcntl(fd, libc::F_GETFD) }, libc::FD_CLOEXEC);
        assert!(super::listener(fd).is_err(), "it has an owner now");
        let other = TcpListener::bind("127.0.0.1:0").expect("loopback can be listened on").into_raw_fd();
        // SAFETY: fcntl(F_SETFD) reads no memory; the descriptor is open.
        assert_eq!(unsafe { libc::fcntl(other, libc::F_SETFD, 0) }, 0);
        let again = super::listener(other).expect_err("one was taken").to_string();
        assert!(again.contains("already"), "{again}");
    }
}
