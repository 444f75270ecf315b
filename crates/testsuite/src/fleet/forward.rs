//! A port of the lab that this host can reach.

use linerate_sys::namespace::NetNamespace;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Interval of looking for a connection, and for the end.
const LOOK: Duration = Duration::from_millis(20);

/// A listener on this host's loopback that passes connections on to a port of the lab. It ends on drop.
pub struct Forward {
    /// Address on this host.
    pub address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Forward {
    /// Passes connections on to `port` of loopback in the network namespace of process `pid`.
    pub(super) fn start(pid: u32, port: u16) -> io::Result<Self> {
        let namespace = NetNamespace::of_process(pid).map_err(|error| io::Error::other(error.to_string()))?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = thread::spawn(move || accept(&listener, &namespace, port, &over));
        Ok(Self { address, is_over, thread: Some(thread) })
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, namespace: &NetNamespace, port: u16, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((near, _)) => {
                let far = namespace.enter(|| TcpStream::connect((Ipv4Addr::LOCALHOST, port)));
                // A browser sees a closed connection if nothing listens there.
                if let Ok(Ok(far)) = far {
                    let _ = pass_on(near, far);
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(LOOK),
            Err(_) => return,
        }
    }
}

/// Copies both ways until both ends are closed. The threads end with the connections.
fn pass_on(near: TcpStream, far: TcpStream) -> io::Result<()> {
    near.set_nonblocking(false)?;
    for (mut from, mut to) in [(near.try_clone()?, far.try_clone()?), (far, near)] {
        thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        });
    }
    Ok(())
}
