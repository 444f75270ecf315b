//! Calls over a TCP connection.

use super::REPLY_MAXIMUM;
use super::waiting::Waiting;
use crate::error::RpcError;
use crate::message::{Credential, Procedure, Reply, put_call, read_reply};
use crate::record::{Records, put_record};
use linerate_sys::handle::AsSocket as _;
use linerate_sys::socket;
use linerate_sys::socket::is_timeout;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct TcpCaller {
    pub(super) stream: Arc<TcpStream>,
    server: SocketAddr,
    /// Calls queued; the first `sent` bytes are with the kernel.
    out: Vec<u8>,
    sent: usize,
    records: Records,
    pub(super) waiting: Waiting<()>,
    pub(super) strays: u64,
}

impl TcpCaller {
    pub(super) fn new(stream: TcpStream, server: SocketAddr) -> Result<Self, RpcError> {
        stream
            .set_nonblocking(true)
            .and_then(|()| stream.set_nodelay(true))
            .map_err(RpcError::socket("setting up a connection"))?;
        let records = Records::new(REPLY_MAXIMUM);
        let stream = Arc::new(stream);
        Ok(Self { stream, server, out: Vec::new(), sent: 0, records, waiting: Waiting::default(), strays: 0 })
    }

    pub(super) fn call(&mut self, to: Procedure, credential: &Credential, args: &[u8]) -> u32 {
        let xid = self.waiting.next();
        put_record(&mut self.out, |out| put_call(out, xid, to, credential, args));
        self.waiting.add(());
        xid
    }

    pub(super) fn flush(&mut self) -> Result<(), RpcError> {
        while self.sent < self.out.len() {
            match (&*self.stream).write(&self.out[self.sent..]) {
                Ok(taken) => self.sent += taken,
                Err(error) if is_timeout(&error) => {
                    // What has gone is not kept for as long as the rest waits.
                    if self.sent > self.out.len() / 2 {
                        self.out.drain(..self.sent);
                        self.sent = 0;
                    }
                    return Ok(());
                }
                Err(error) => return Err(self.gone(&error)),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(())
    }

    pub(super) fn poll(&mut self, timeout_ns: u64, on_reply: &mut dyn FnMut(u32, Reply<'_>)) -> Result<(), RpcError> {
        self.flush()?;
        let descriptor = self.stream.as_socket();
        if self.out.is_empty() {
            if !socket::wait_readable(&[descriptor], timeout_ns)? {
                return Ok(());
            }
        } else if socket::wait_ready(descriptor, timeout_ns)? {
            self.flush()?;
        }
        let room = self.records.room();
        match (&*self.stream).read(room) {
            Ok(0) => {
                let what = format!("it closed the connection with {} calls unanswered", self.waiting.count());
                return Err(RpcError::Gone { peer: self.server, what });
            }
            Ok(taken) => self.records.filled(taken),
            Err(error) if is_timeout(&error) => return Ok(()),
            Err(error) => return Err(self.gone(&error)),
        }
        let malformed = |what| RpcError::Malformed { peer: self.server, what };
        while let Some(record) = self.records.next().map_err(|error| malformed(error.to_string()))? {
            let (xid, reply) =
                read_reply(record).ok_or_else(|| malformed("it sent a record that is no reply".to_owned()))?;
            if self.waiting.take(xid).is_some() {
                on_reply(xid, reply);
            } else {
                self.strays += 1;
            }
        }
        Ok(())
    }

    fn gone(&self, error: &std::io::Error) -> RpcError {
        RpcError::Gone { peer: self.server, what: format!("{error}, with {} calls unanswered", self.waiting.count()) }
    }
}
