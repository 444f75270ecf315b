//! Answers ARP, neighbour discovery and echo requests while a trial runs, for the addresses behind its ports that the
//! kernel does not have.
//!
//! Each port has a thread, on a packet socket that receives only such requests. Frames with VLAN tags are ignored.

use crate::FrameError;
use crate::linux::headers::find_signature;
use crate::linux::neighbours::{Hosts, Link};
use crate::linux::plan::Plan;
use linerate_model::SimulatedHosts;
use linerate_sys::netlink::Route;
use linerate_sys::packet::{ALL_PROTOCOLS, Incoming, PacketSocket};
use linerate_sys::thread::{SELF, go_first};
use linerate_sys::{Error, clock};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Requests received at once.
const BATCH: usize = 64;
/// Longest request that is read completely, bytes.
const LONGEST: usize = 9_216;
/// Requested receive buffer, bytes. A router may ask for thousands of hosts at once.
const BUFFER: i32 = 8 << 20;
/// Longest time until the end is noticed, milliseconds.
const LOOK: u16 = 20;

/// Answering threads, until this is dropped.
#[derive(Debug)]
pub(crate) struct Answering {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Answering {
    /// Opens the sockets and starts to answer.
    pub(crate) fn begin(plan: &Plan, simulated: &[SimulatedHosts]) -> Result<Self, FrameError> {
        let mut answering = Self { over: Arc::default(), threads: Vec::new() };
        for (port, link) in links(plan, simulated)?.into_iter().enumerate() {
            if link.0.is_empty() {
                continue;
            }
            let interface = &plan.ports[port];
            let socket = PacketSocket::open(interface.link, Some(ALL_PROTOCOLS))?;
            socket.hear_questions_only()?;
            socket.stamp_and_hold(BUFFER)?;
            let over = Arc::clone(&answering.over);
            let tag = plan.tag;
            let work = move || answer(&socket, &link, tag, &over);
            let thread = thread::Builder::new().name(format!("answer {port}")).spawn(work);
            answering
                .threads
                .push(thread.map_err(|error| Error::new("pthread_create", "a thread that answers", error))?);
        }
        Ok(answering)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A panic shows as missing answers, and so as missing frames.
            let _ = thread.join();
        }
    }
}

/// Returns the hosts behind each port: simulated hosts, and ends of streams for which the kernel does not answer.
fn links(plan: &Plan, simulated: &[SimulatedHosts]) -> Result<Vec<Link>, Error> {
    let kernel_addresses: BTreeSet<(u32, IpAddr)> =
        Route::open()?.addresses()?.into_iter().map(|address| (address.link, address.address)).collect();
    let mut links = vec![Link::default(); plan.ports.len()];
    for hosts in simulated {
        let Some(port) = plan.ports.iter().position(|port| port.number == hosts.port) else { continue };
        links[port].0.push(Hosts::of(hosts, plan.ports[port].mac));
    }
    for stream in &plan.streams {
        let headers = &stream.wish.headers;
        let sender = stream.from.map(|port| (port, headers.source, headers.source_mac));
        // A stream back to its own port is addressed to the device itself.
        let receiver = stream.to.filter(|to| stream.from != Some(*to));
        let receiver = receiver.map(|port| (port, headers.destination, plan.ports[port].mac));
        for (port, address, mac) in sender.into_iter().chain(receiver) {
            let host = Hosts::one(address, mac);
            let is_kernel_address = kernel_addresses.contains(&(plan.ports[port].link, address));
            if headers.vlans.is_empty() && !is_kernel_address && !links[port].0.contains(&host) {
                links[port].0.push(host);
            }
        }
    }
    Ok(links)
}

fn answer(socket: &PacketSocket, link: &Link, tag: u16, over: &AtomicBool) {
    // A device that waits for an answer may drop frames meanwhile. Without the privilege, other programs may delay the
    // thread.
    let _ = go_first(SELF);
    let mut incoming = Incoming::with_room(BATCH, LONGEST);
    while !over.load(Ordering::Relaxed) {
        // Requests are repeated, so an error only costs time.
        if !socket.wait(LOOK) || incoming.take(socket).is_err() {
            clock::sleep_until(clock::now() + 100_000);
            continue;
        }
        for (frame, _) in incoming.frames() {
            // A trial's own echo requests are counted where they arrive.
            if find_signature(frame).is_some_and(|signature| signature.tag == tag) {
                continue;
            }
            if let Some(answer) = link.answer(frame) {
                let _ = socket.send(&answer);
            }
        }
    }
}
