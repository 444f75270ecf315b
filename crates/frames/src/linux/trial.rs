//! A trial from its beginning to its end, by XDP or by packet sockets.

use super::sockets::Sockets;
use super::{learning, packet, xdp};
use crate::FrameError;
use crate::linux::answering::Answering;
use crate::linux::attempt::{Attempt, Counts};
use crate::linux::carrier::Carrier;
use crate::linux::plan::Plan;
use crate::linux::progress::Progress;
use linerate_engine::Conductor;
use linerate_model::{Caveat, CaveatKind, FrameEngine, FrameReceiver, FramesTask, message};
use linerate_sys::interface::Link;
use linerate_sys::netlink::Route;
use linerate_sys::packet::PacketSocket;
use std::sync::Arc;

/// Runs this host's part of a trial to its end: attaches the receivers, sends learning frames, waits for the start,
/// sends, waits for the other hosts and for stragglers, reads, detaches.
///
/// # Errors
/// The trial cannot be run, a port lost its link, or the session was stopped.
pub(crate) fn run(plan: &Plan, task: &FramesTask, host: &dyn Conductor) -> Result<Counts, FrameError> {
    // Frames may be addressed to other hosts than the ports, which receive them while these sockets are open. Closing a
    // socket takes the kernel 15 ms, so each port has only one.
    let mut sockets = Vec::with_capacity(plan.ports.len());
    for port in &plan.ports {
        let socket = PacketSocket::open(port.link, None)?;
        socket.hear_all()?;
        sockets.push(socket);
    }
    learning::send(plan, &sockets)?;
    let _answering = Answering::begin(plan, &task.hosts)?;
    let carrier = Carrier::of(plan)?;
    let attempt = Attempt {
        plan,
        progress: Arc::new(Progress::of(plan.ports.iter().map(|port| port.interface.clone()))),
        host,
        carrier: &carrier,
        settle: task.settle.get(),
    };
    let unsigned = plan.streams.iter().any(|stream| stream.signature_at.is_none());
    let before = if unsigned { Route::open()?.links()? } else { Vec::new() };
    let counts = match plan.receiver {
        FrameReceiver::Port => by_engine(task.engine, &attempt),
        FrameReceiver::Socket => Sockets::open(plan)?.count(plan, || by_engine(task.engine, &attempt)),
    };
    if let Some(interface) = carrier.lost() {
        return Err(FrameError::WentDown { interface });
    }
    let mut counts = counts?;
    if unsigned {
        count_by_ports(plan, &before, &mut counts)?;
    }
    Ok(counts)
}

/// Runs the trial by the requested engine.
fn by_engine(engine: FrameEngine, attempt: &Attempt<'_>) -> Result<Counts, FrameError> {
    match engine {
        FrameEngine::Xdp => xdp::run(attempt),
        FrameEngine::PacketSocket => packet::run(attempt),
        FrameEngine::Auto => match xdp::possible_for(attempt.plan).and_then(|()| xdp::run(attempt)) {
            Err(error) if falls_back(&error) => {
                let mut counts = packet::run(attempt)?;
                let text = message!(
                    "caveat-packet-sockets",
                    "packet sockets were used instead of XDP ({error}): they send and receive far fewer frames a \
                     second; compare with a trial port to port before blaming the device",
                    error = error.to_string()
                );
                counts.caveats.push(Caveat::new(CaveatKind::Fallback, text));
                Ok(counts)
            }
            counts => counts,
        },
    }
}

/// Counts the arrivals of frames without a signature: everything that their port received since `before`. The trial
/// sends no other frames there.
fn count_by_ports(plan: &Plan, before: &[Link], counts: &mut Counts) -> Result<(), FrameError> {
    let after = Route::open()?.links()?;
    for (stream, part) in plan.streams.iter().zip(&mut counts.streams).filter(|(s, _)| s.signature_at.is_none()) {
        let (Some(to), Some(result)) = (stream.to, &mut part.arrived) else { continue };
        let port = &plan.ports[to];
        let Some(then) = before.iter().find(|link| link.index == port.link) else { continue };
        let Some(now) = after.iter().find(|link| link.index == port.link) else { continue };
        result.received = now.counters.rx_packets.saturating_sub(then.counters.rx_packets);
        // Some drivers do not count the Ethernet header in their bytes.
        result.bytes = stream.wish.bytes(result.received);
        result.by_port_counters = true;
        let text = message!(
            "caveat-port-counters-only",
            "the frames to port {port} carry no signature: what its own counter rose by is all that is known, \
             other traffic included; duplicates, order, flooding and latency are not known",
            port = &port.interface
        );
        counts.caveats.push(Caveat::new(CaveatKind::PortCountersOnly, text));
    }
    Ok(())
}

/// Returns whether packet sockets may succeed after this error of XDP.
fn falls_back(error: &FrameError) -> bool {
    matches!(
        error,
        FrameError::NoXdp(_)
            | FrameError::TooLargeForXdp(_)
            | FrameError::FillingsDiffer
            | FrameError::NoBadFcsByXdp
            | FrameError::PortTaken { .. }
            | FrameError::NotTaken(_)
    )
}
