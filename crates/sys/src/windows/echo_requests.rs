//! ICMP echo requests that the system sends and matches with their answers (IcmpSendEcho2Ex, Icmp6SendEcho2). They need no privilege.
//!
//! A thread sends the requests, and notes the time of each answer: the system reports an answer to the thread that sent the request, while
//! that waits alertably. The thread then wakes the program by a socket, next to which it may wait for others. The system could set an event
//! for each request instead. With events, Wine 8.0 frees a structure that it writes later.

pub use crate::echo_answer::{EchoAnswer, EchoAnswerKind, EchoRequest};
use crate::error_queue::{ErrorOrigin, QueuedError};
use crate::event::Event;
use crate::socket::EMSGSIZE;
use crate::{Error, clock};
use std::collections::VecDeque;
use std::ffi::c_void;
use std::io;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::windows::io::{AsRawHandle as _, AsSocket, BorrowedSocket};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use windows_sys::Win32::Foundation::{ERROR_IO_PENDING, GetLastError, HANDLE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::NetworkManagement::IpHelper::{
    ICMP_ECHO_REPLY, ICMPV6_ECHO_REPLY_LH, IP_DEST_HOST_UNREACHABLE, IP_DEST_NET_UNREACHABLE, IP_DEST_PORT_UNREACHABLE,
    IP_DEST_PROT_UNREACHABLE, IP_FLAG_DF, IP_OPTION_INFORMATION, IP_PACKET_TOO_BIG, IP_SUCCESS, IP_TTL_EXPIRED_REASSEM,
    IP_TTL_EXPIRED_TRANSIT, Icmp6CreateFile, Icmp6ParseReplies, Icmp6SendEcho2, IcmpCloseHandle, IcmpCreateFile,
    IcmpParseReplies, IcmpSendEcho2Ex,
};
use windows_sys::Win32::Networking::WinSock::{AF_INET6, IN6_ADDR, IN6_ADDR_0, SOCKADDR_IN6, SOCKADDR_IN6_0};
use windows_sys::Win32::System::IO::IO_STATUS_BLOCK;
use windows_sys::Win32::System::Threading::{INFINITE, QueueUserAPC, SleepEx};

/// Time after which the system gives up a request, milliseconds.
const TIMEOUT_MS: u32 = 10_000;
/// Most requests that wait for an answer.
const MAX_WAITING: usize = 4_096;
/// Room after a reply and its data: an ICMP error (8 bytes) and an IO_STATUS_BLOCK, by the documentation of IcmpSendEcho2Ex.
const REPLY_ROOM: usize = 64;

/// Echo requests of this program, of one IP version.
#[derive(Debug)]
pub struct EchoRequests {
    shared: Arc<Shared>,
    /// `None` once the requests are dropped.
    orders: Option<mpsc::Sender<Order>>,
    thread: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    file: IcmpFile,
    v6: bool,
    /// Requests that the system has.
    waiting: AtomicUsize,
    /// Answers that the system has reported. A wait of the thread may be interrupted by the next: no lock of this is held then.
    reported: Mutex<Vec<(EchoAnswer, Vec<u8>)>>,
    answers: Mutex<VecDeque<(EchoAnswer, Vec<u8>)>>,
    /// Above zero while there are answers.
    arrived: Event,
}

/// Handle of the ICMP driver.
#[derive(Debug)]
struct IcmpFile(HANDLE);

// SAFETY: the handle is a number of the process, which any thread may use.
unsafe impl Send for IcmpFile {}
// SAFETY: as above; the calls take the handle by value.
unsafe impl Sync for IcmpFile {}

impl Drop for IcmpFile {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and no request has it any more.
        unsafe { IcmpCloseHandle(self.0) };
    }
}

/// A request for the thread, and where it reports whether the request left.
struct Order {
    number: u32,
    from: IpAddr,
    to: IpAddr,
    scope: u32,
    ttl: u8,
    data: Vec<u8>,
    /// Time of the order by [`clock::now`].
    at: u64,
    result: mpsc::SyncSender<io::Result<()>>,
}

/// A request that waits for its answer. The system reads and writes it until it calls [`answered`].
struct Waiting {
    shared: Arc<Shared>,
    number: u32,
    local: IpAddr,
    data: Vec<u8>,
    options: IP_OPTION_INFORMATION,
    /// Time between the order and the sending, nanoseconds.
    late: u64,
    /// Aligned as [`ICMP_ECHO_REPLY`] is.
    reply: Vec<u64>,
}

impl EchoRequests {
    /// Opens the service.
    ///
    /// # Errors
    /// The system lacks it: Wine 8.0 has none for IPv6 (`Unsupported`).
    pub fn open(v6: bool) -> Result<Self, Error> {
        let call = if v6 { "Icmp6CreateFile" } else { "IcmpCreateFile" };
        // SAFETY: the calls take nothing.
        let file = unsafe { if v6 { Icmp6CreateFile() } else { IcmpCreateFile() } };
        if file == INVALID_HANDLE_VALUE {
            return Err(Error::last(call, "this host"));
        }
        let file = IcmpFile(file);
        let arrived = Event::new().map_err(|error| Error::new("opening a socket pair", "this host", error))?;
        let shared = Arc::new(Shared {
            file,
            v6,
            waiting: AtomicUsize::new(0),
            reported: Mutex::default(),
            answers: Mutex::default(),
            arrived,
        });
        let (orders, receiver) = mpsc::channel();
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new().name("echo".to_owned()).spawn(move || serve(&of_thread, &receiver));
        let thread = thread.map_err(|error| Error::new("starting a thread", "echo requests", error))?;
        Ok(Self { shared, orders: Some(orders), thread })
    }

    /// Sends a request, with DF.
    ///
    /// # Errors
    /// The packet is larger than the first link's MTU ([`EMSGSIZE`]), 4,096 requests wait for answers (`WouldBlock`), or it cannot be sent.
    pub fn send(&self, request: EchoRequest<'_>) -> io::Result<()> {
        if request.from.is_ipv6() != self.shared.v6 || request.to.is_ipv6() != self.shared.v6 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if request.data.len() > usize::from(u16::MAX) {
            return Err(io::Error::from_raw_os_error(EMSGSIZE));
        }
        if self.shared.waiting.load(Ordering::Relaxed) >= MAX_WAITING {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let (result, sent) = mpsc::sync_channel(1);
        let order = Order {
            number: request.number,
            from: request.from,
            to: request.to,
            scope: request.scope,
            ttl: request.ttl,
            data: request.data.to_vec(),
            at: clock::now(),
            result,
        };
        let given = self.orders.as_ref().is_some_and(|orders| orders.send(order).is_ok());
        if !given {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.wake();
        sent.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))
    }

    /// Takes the next answer. Writes the data of a reply to `into`. A request that nobody answers has none.
    pub fn take(&self, into: &mut [u8]) -> Option<EchoAnswer> {
        let mut answers = lock(&self.shared.answers);
        let (answer, data) = answers.pop_front()?;
        self.shared.arrived.take();
        let length = data.len().min(into.len());
        into[..length].copy_from_slice(&data[..length]);
        Some(answer)
    }

    /// Ends the wait of the thread.
    fn wake(&self) {
        // SAFETY: the handle of the thread is open, and the function may be called with any argument.
        unsafe { QueueUserAPC(Some(woken), self.thread.as_raw_handle(), 0) };
    }
}

impl Drop for EchoRequests {
    /// Ends the thread, once the system has given up the requests that wait.
    fn drop(&mut self) {
        self.orders = None;
        self.wake();
    }
}

impl AsSocket for EchoRequests {
    fn as_socket(&self) -> BorrowedSocket<'_> {
        self.shared.arrived.as_socket()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread: sends requests, and lets the system report their answers.
fn serve(shared: &Arc<Shared>, orders: &mpsc::Receiver<Order>) {
    loop {
        match orders.try_recv() {
            Ok(order) => {
                let result = order.result.clone();
                // A program that does not wait for the result has been stopped.
                let _ = result.send(start(shared, order));
                continue;
            }
            Err(mpsc::TryRecvError::Disconnected) if shared.waiting.load(Ordering::Relaxed) == 0 => return,
            Err(_) => {}
        }
        // SAFETY: the call takes numbers. The functions that it lets the system call are `answered` and `woken`.
        unsafe { SleepEx(INFINITE, 1) };
        publish(shared);
    }
}

/// Hands the reported answers to the program.
fn publish(shared: &Shared) {
    loop {
        let reported = mem::take(&mut *lock(&shared.reported));
        if reported.is_empty() {
            return;
        }
        for answer in reported {
            let mut answers = lock(&shared.answers);
            answers.push_back(answer);
            shared.arrived.add();
        }
    }
}

/// Called to end a wait.
unsafe extern "system" fn woken(_: usize) {}

/// Sends a request.
fn start(shared: &Arc<Shared>, order: Order) -> io::Result<()> {
    let source = socket_address(order.from, order.scope);
    let destination = socket_address(order.to, order.scope);
    let reply_bytes = mem::size_of::<ICMP_ECHO_REPLY>() + order.data.len() + REPLY_ROOM;
    let mut waiting = Box::new(Waiting {
        shared: Arc::clone(shared),
        number: order.number,
        local: order.from,
        data: order.data,
        options: IP_OPTION_INFORMATION {
            Ttl: order.ttl,
            Tos: 0,
            Flags: IP_FLAG_DF as u8,
            OptionsSize: 0,
            OptionsData: ptr::null_mut(),
        },
        late: clock::now().saturating_sub(order.at),
        reply: vec![0; reply_bytes.div_ceil(mem::size_of::<u64>())],
    });
    let data: *const c_void = waiting.data.as_ptr().cast();
    let length = waiting.data.len() as u16;
    let options = &raw const waiting.options;
    let reply: *mut c_void = waiting.reply.as_mut_ptr().cast();
    let reply_bytes = waiting.reply_bytes() as u32;
    shared.waiting.fetch_add(1, Ordering::Relaxed);
    let context = Box::into_raw(waiting);
    let file = shared.file.0;
    let null = ptr::null_mut();
    // SAFETY: data, options and reply are parts of the box, in these sizes. The box lives until `answered`, which the system calls when it
    // is done with them. The addresses outlive the call.
    let count = unsafe {
        match (order.from, order.to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let [from, to] = [from, to].map(|address| u32::from_ne_bytes(address.octets()));
                IcmpSendEcho2Ex(
                    file,
                    null,
                    Some(answered),
                    context.cast(),
                    from,
                    to,
                    data,
                    length,
                    options,
                    reply,
                    reply_bytes,
                    TIMEOUT_MS,
                )
            }
            _ => Icmp6SendEcho2(
                file,
                null,
                Some(answered),
                context.cast(),
                &raw const source,
                &raw const destination,
                data,
                length,
                options,
                reply,
                reply_bytes,
                TIMEOUT_MS,
            ),
        }
    };
    // SAFETY: the call takes nothing.
    let error = unsafe { GetLastError() };
    if count > 0 || error == ERROR_IO_PENDING {
        return Ok(());
    }
    shared.waiting.fetch_sub(1, Ordering::Relaxed);
    // SAFETY: the system did not take the request, so that nobody else has the box.
    drop(unsafe { Box::from_raw(context) });
    Err(io::Error::from_raw_os_error(if error == IP_PACKET_TOO_BIG { EMSGSIZE } else { error.cast_signed() }))
}

/// Called by the system in the thread, when a request was answered or given up.
unsafe extern "system" fn answered(context: *mut c_void, _: *mut IO_STATUS_BLOCK, _: u32) {
    let now = clock::unix_now();
    // SAFETY: the context is the box of `start`, and this is the one call with it.
    let mut waiting = unsafe { Box::from_raw(context.cast::<Waiting>()) };
    // The program counts from its order.
    let answer = waiting.answer(now.saturating_sub(waiting.late));
    lock(&waiting.shared.reported).extend(answer);
    waiting.shared.waiting.fetch_sub(1, Ordering::Relaxed);
}

impl Waiting {
    fn reply_bytes(&self) -> usize {
        mem::size_of_val(&*self.reply)
    }

    /// Reads the answer, once the system is done with it. Returns `None` if nobody answered.
    fn answer(&mut self, arrived_unix_ns: u64) -> Option<(EchoAnswer, Vec<u8>)> {
        let size = self.reply_bytes() as u32;
        let v6 = self.shared.v6;
        let reply: *mut c_void = self.reply.as_mut_ptr().cast();
        // SAFETY: the system is done with the buffer of this size, which the call reads and writes.
        let count = unsafe { if v6 { Icmp6ParseReplies(reply, size) } else { IcmpParseReplies(reply, size) } };
        if count == 0 {
            return None;
        }
        let (from, status, data, ttl) = if v6 { self.read_v6() } else { self.read_v4() };
        let kind = if status == IP_SUCCESS {
            EchoAnswerKind::Reply { from, length: data.len(), ttl, arrived_unix_ns }
        } else {
            EchoAnswerKind::Error(error(v6, status, from, self.local, arrived_unix_ns)?)
        };
        Some((EchoAnswer { number: self.number, kind }, data))
    }

    fn read_v4(&self) -> (IpAddr, u32, Vec<u8>, Option<u8>) {
        // SAFETY: the buffer is aligned and larger than the structure of integers and pointers, and was zeroes before the system wrote it.
        let reply = unsafe { *self.reply.as_ptr().cast::<ICMP_ECHO_REPLY>() };
        let from = Ipv4Addr::from(reply.Address.to_ne_bytes());
        let start = (reply.Data as usize).checked_sub(self.reply.as_ptr() as usize);
        let data = start.and_then(|start| self.bytes(start, reply.DataSize.into()));
        (from.into(), reply.Status, data.unwrap_or_default(), (reply.Status == IP_SUCCESS).then_some(reply.Options.Ttl))
    }

    fn read_v6(&self) -> (IpAddr, u32, Vec<u8>, Option<u8>) {
        // SAFETY: as in `read_v4`.
        let reply = unsafe { *self.reply.as_ptr().cast::<ICMPV6_ECHO_REPLY_LH>() };
        // The structure holds the words in network byte order.
        let words = reply.Address.sin6_addr;
        let from = Ipv6Addr::from(words.map(u16::from_be));
        let data = self.bytes(mem::size_of::<ICMPV6_ECHO_REPLY_LH>(), self.data.len());
        (from.into(), reply.Status, data.unwrap_or_default(), None)
    }

    /// Copies bytes of the reply. Returns `None` if they lie outside.
    fn bytes(&self, start: usize, length: usize) -> Option<Vec<u8>> {
        let end = start.checked_add(length).filter(|end| *end <= self.reply_bytes())?;
        let bytes = self.reply.iter().flat_map(|word| word.to_ne_bytes());
        Some(bytes.skip(start).take(end - start).collect())
    }
}

/// Converts a status. Returns `None` if it is no answer of the path.
fn error(v6: bool, status: u32, from: IpAddr, local: IpAddr, arrived_unix_ns: u64) -> Option<QueuedError> {
    let icmp = match (v6, status) {
        (false, IP_TTL_EXPIRED_TRANSIT) => [11, 0],
        (false, IP_TTL_EXPIRED_REASSEM) => [11, 1],
        (false, IP_DEST_NET_UNREACHABLE) => [3, 0],
        (false, IP_DEST_HOST_UNREACHABLE) => [3, 1],
        (false, IP_DEST_PROT_UNREACHABLE) => [3, 2],
        (false, IP_DEST_PORT_UNREACHABLE) => [3, 3],
        (false, IP_PACKET_TOO_BIG) => [3, 4],
        (true, IP_TTL_EXPIRED_TRANSIT) => [3, 0],
        (true, IP_TTL_EXPIRED_REASSEM) => [3, 1],
        (true, IP_DEST_NET_UNREACHABLE) => [1, 0],
        (true, IP_DEST_PROT_UNREACHABLE) => [1, 1],
        (true, IP_DEST_HOST_UNREACHABLE) => [1, 3],
        (true, IP_DEST_PORT_UNREACHABLE) => [1, 4],
        (true, IP_PACKET_TOO_BIG) => [2, 0],
        _ => return None,
    };
    let is_local = from.is_unspecified() || from == local;
    let from = if from.is_unspecified() { local } else { from };
    // A packet that is too big for the first link is news of the path as well.
    let origin = match (is_local && status != IP_PACKET_TOO_BIG, v6) {
        (true, _) => ErrorOrigin::Local,
        (false, false) => ErrorOrigin::Icmp,
        (false, true) => ErrorOrigin::Icmp6,
    };
    Some(QueuedError {
        origin,
        icmp,
        mtu: 0,
        from: Some(from),
        quoted: 0,
        extension: None,
        arrived_unix_ns: Some(arrived_unix_ns),
    })
}

/// Returns the address as the calls of IPv6 take it; an IPv4 address leaves it unspecified.
fn socket_address(address: IpAddr, scope: u32) -> SOCKADDR_IN6 {
    let octets = match address {
        IpAddr::V6(address) => address.octets(),
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
    };
    SOCKADDR_IN6 {
        sin6_family: AF_INET6,
        sin6_port: 0,
        sin6_flowinfo: 0,
        sin6_addr: IN6_ADDR { u: IN6_ADDR_0 { Byte: octets } },
        Anonymous: SOCKADDR_IN6_0 { sin6_scope_id: scope },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::wait_readable;

    fn answer(requests: &EchoRequests, into: &mut [u8]) -> EchoAnswer {
        assert!(wait_readable(&[requests.as_socket()], 30_000_000_000).expect("polls"), "no answer");
        requests.take(into).expect("an answer")
    }

    /// Wine 8.0 has no echo requests of IPv6.
    #[test]
    fn this_host_replies_with_the_data() {
        for address in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
            let requests = match EchoRequests::open(address.is_ipv6()) {
                Ok(requests) => requests,
                Err(error) if error.source.kind() == io::ErrorKind::Unsupported => continue,
                Err(error) => panic!("{error}"),
            };
            assert_eq!(requests.take(&mut []), None);
            let before = clock::unix_now();
            for (number, data) in [(7, &b"somebody"[..]), (8, &[9; 1_400])] {
                let request = EchoRequest { number, from: address, to: address, scope: 0, ttl: 1, data };
                requests.send(request).expect("sends");
                let mut into = [0; 2_000];
                let taken = answer(&requests, &mut into);
                let EchoAnswerKind::Reply { from, length, arrived_unix_ns, .. } = taken.kind else {
                    panic!("{taken:?}")
                };
                assert_eq!((taken.number, from, &into[..length]), (number, address, data));
                assert!(arrived_unix_ns.abs_diff(before) < 30_000_000_000);
            }
            assert!(!wait_readable(&[requests.as_socket()], 0).expect("polls"));
        }
    }

    #[test]
    fn many_requests_are_answered_each() {
        let address = IpAddr::from(Ipv4Addr::LOCALHOST);
        let requests = EchoRequests::open(false).expect("opens");
        for number in 0..100 {
            let request = EchoRequest { number, from: address, to: address, scope: 0, ttl: 64, data: &[1; 112] };
            requests.send(request).expect("sends");
        }
        let mut numbers: Vec<u32> = (0..100).map(|_| answer(&requests, &mut []).number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..100).collect::<Vec<u32>>());
        let request = EchoRequest { number: 0, from: address, to: address, scope: 0, ttl: 64, data: &[0; 66_000] };
        assert_eq!(requests.send(request).expect_err("too long").raw_os_error(), Some(EMSGSIZE));
    }

    #[test]
    fn status_is_that_of_an_icmp_message() {
        let [router, local] = [1, 2].map(|host| IpAddr::from([198, 18, 0, host]));
        let unspecified = IpAddr::from(Ipv4Addr::UNSPECIFIED);
        let convert =
            |status, from| error(false, status, from, local, 5).map(|error| (error.origin, error.icmp, error.from));
        let of_router = |icmp| Some((ErrorOrigin::Icmp, icmp, Some(router)));
        assert_eq!(convert(IP_TTL_EXPIRED_TRANSIT, router), of_router([11, 0]));
        assert_eq!(convert(IP_PACKET_TOO_BIG, router), of_router([3, 4]));
        assert_eq!(convert(IP_PACKET_TOO_BIG, unspecified), Some((ErrorOrigin::Icmp, [3, 4], Some(local))));
        assert_eq!(convert(IP_DEST_HOST_UNREACHABLE, local), Some((ErrorOrigin::Local, [3, 1], Some(local))));
        assert_eq!(convert(windows_sys::Win32::NetworkManagement::IpHelper::IP_REQ_TIMED_OUT, router), None);
    }
}
