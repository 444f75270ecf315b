//! Calls over connections: a thread for each.

use super::later::Later;
use super::{Shared, TICK_NS, name, spawn, wait_ns};
use crate::error::{RpcError, is_timeout};
use crate::record::{Records, put_record};
use linerate_model::Transport;
use linerate_sys::{clock, socket};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

/// No more calls are taken while so many bytes of replies wait for the caller to read them.
pub(super) const OWED_MAXIMUM: usize = 2 << 20;

/// Accepts connections until the server ends, and then waits for their threads.
pub(super) fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    while !shared.is_stopped() {
        if !socket::wait_readable(&[listener.as_fd()], TICK_NS).unwrap_or(false) {
            continue;
        }
        let Ok((stream, peer)) = listener.accept() else {
            // A connection that went away again, or no descriptor left for it: the others go on.
            clock::sleep_until(clock::now() + 1_000_000);
            continue;
        };
        threads.retain(|thread| !thread.is_finished());
        if shared.connections.fetch_add(1, Ordering::Relaxed) >= shared.options.connections {
            shared.connections.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let number = shared.numbers.fetch_add(1, Ordering::Relaxed);
        let own = Arc::clone(shared);
        let work = move || {
            // A connection that fails is its caller's to report.
            own.work(number, || drop(Connection::new(stream, peer).and_then(|connection| connection.serve(&own))));
            own.connections.fetch_sub(1, Ordering::Relaxed);
        };
        match spawn(name(number), work) {
            Ok(thread) => threads.push(thread),
            Err(_) => {
                shared.connections.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
    for thread in threads {
        let _ = thread.join();
    }
}

/// One caller's connection.
struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
    /// Replies; the first `sent` bytes are with the kernel.
    out: Vec<u8>,
    sent: usize,
    /// When the calls arrived whose replies are in `out`.
    arrived: Vec<u64>,
    later: Later<()>,
}

impl Connection {
    fn new(stream: TcpStream, peer: SocketAddr) -> Result<Self, RpcError> {
        stream
            .set_nonblocking(true)
            .and_then(|()| stream.set_nodelay(true))
            .map_err(RpcError::socket("setting up a connection"))?;
        Ok(Self { stream, peer, out: Vec::new(), sent: 0, arrived: Vec::new(), later: Later::new() })
    }

    fn serve(mut self, shared: &Shared) -> Result<(), RpcError> {
        let mut records = Records::new(shared.options.call_maximum);
        let mut heard = clock::now();
        while !shared.is_stopped() {
            while let Some(held) = self.later.take(clock::now()) {
                self.out.extend_from_slice(&held.bytes);
                self.arrived.push(held.arrived);
            }
            self.write(shared).map_err(RpcError::socket("sending replies"))?;
            let wait_ns = wait_ns(self.later.next_due());
            let descriptor = self.stream.as_fd();
            if self.out.is_empty() {
                socket::wait_readable(&[descriptor], wait_ns)?;
            } else if self.out.len() - self.sent < OWED_MAXIMUM {
                socket::wait_ready(descriptor, wait_ns)?;
            } else {
                socket::wait_writable(descriptor, wait_ns)?;
                continue;
            }
            match self.stream.read(records.room()) {
                Ok(0) => return Ok(()),
                Ok(taken) => records.filled(taken),
                Err(error) if is_timeout(&error) => {
                    let is_idle = |limit| clock::now() > heard + limit && self.later.next_due().is_none();
                    if shared.options.idle_ns.is_some_and(is_idle) {
                        return Ok(());
                    }
                    continue;
                }
                Err(error) => return Err(RpcError::socket("reading calls")(error)),
            }
            let now = clock::now();
            while let Some(call) = records.next().map_err(|error| self.malformed(error.to_string()))? {
                heard = now;
                let begin = self.out.len();
                let (peer, out) = (self.peer, &mut self.out);
                let due = put_record(out, |out| shared.execute(call, peer, Transport::Tcp, now, out));
                match due {
                    // The stream cannot be trusted from here on.
                    None => return Err(self.malformed("a record that is no call".to_owned())),
                    Some(due) if due > now => self.later.hold(due, now, self.out.split_off(begin), ()),
                    Some(_) => self.arrived.push(now),
                }
            }
        }
        Ok(())
    }

    /// Hands over as much as there is room for.
    fn write(&mut self, shared: &Shared) -> io::Result<()> {
        while self.sent < self.out.len() {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(taken) => self.sent += taken,
                Err(error) if is_timeout(&error) => {
                    if self.sent > self.out.len() / 2 {
                        self.out.drain(..self.sent);
                        self.sent = 0;
                    }
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.sent = 0;
        let now = clock::now();
        self.arrived.iter_mut().for_each(|at| *at = now.saturating_sub(*at));
        shared.account.answered(&mut self.arrived, now);
        Ok(())
    }

    fn malformed(&self, what: String) -> RpcError {
        RpcError::Malformed { peer: self.peer, what }
    }
}
