//! What the layers of NFS have in common: large transfers of one kind, several in flight, against the listener's own
//! server in memory. Their headers, about 130 bytes a call, are half a per cent of a transfer: within the error of a gap.

use super::{Facts, Figure, LadderRequest, efficiency};
use linerate_model::{
    FileSet, LadderPlan, Message, MessageValue, NfsMix, NfsTask, Task, Transport, message, tcp_packet,
};
use linerate_units::ByteCount;

/// What clients ask for at a time as a rule, and small enough that dozens cross a slow line in a window.
const TRANSFER: ByteCount = ByteCount::new(32 << 10);
/// The same over UDP, where a transfer is one datagram in fragments, and one that is lost loses all of it.
const TRANSFER_UDP: ByteCount = ByteCount::new(8 << 10);
/// With so many in flight neither end waits for the other: 256 KiB over TCP, 64 KiB over UDP.
const OUTSTANDING: u16 = 8;
/// What is read and written again and again: a slow line brings it there within a second.
const FILES: FileSet = FileSet { files: 4, directories: 1, symlinks: 0, file_bytes: ByteCount::new(256 << 10) };
/// A thread this busy has no time for more.
const BUSY: f64 = 0.9;

fn transfer(over: Transport) -> ByteCount {
    match over {
        Transport::Tcp => TRANSFER,
        Transport::Udp => TRANSFER_UDP,
    }
}

/// The name of the trial of the built-in mix `read` or `write`.
fn name(over: Transport, mix: &str) -> String {
    match over {
        Transport::Tcp => format!("nfs tcp {mix}"),
        Transport::Udp => format!("nfs udp {mix}"),
    }
}

/// The trial of the built-in mix `read` or `write`.
pub(super) fn trials(mix: &str, request: &LadderRequest) -> Vec<(String, Task)> {
    let over = request.calls_over;
    let name = name(over, mix);
    let Ok(mix) = NfsMix::named(mix) else { return Vec::new() };
    let task = NfsTask {
        paths: request.paths(),
        net: request.net(over, request.flows),
        files: FILES,
        transfer_bytes: transfer(over),
        outstanding: OUTSTANDING,
        ..NfsTask::plain(over, mix)
    };
    vec![(name, Task::Nfs(task))]
}

/// The figure of the result of that mix. A request of one byte has no counterpart here.
pub(super) fn figure(mix: &str, facts: &Facts<'_>) -> Result<Figure, Message> {
    let LadderPlan { ip, mtu, calls_over: over, .. } = *facts.plan;
    facts.streamed(&name(over, mix), "", |result| {
        let packet = result.tcp.as_ref().map_or(mtu, |tcp| tcp_packet(ip, tcp.mss).min(mtu));
        efficiency(over, ip, transfer(over).get(), packet)
    })
}

/// What to try.
pub(super) fn advice(mix: &str, facts: &Facts<'_>) -> Option<Message> {
    let over = facts.plan.calls_over;
    let result = facts.flows(&name(over, mix))?;
    let options = match over {
        Transport::Tcp => "--transfer-size 256KiB",
        Transport::Udp => "--udp --transfer-size 32KiB",
    };
    let (asking, serving) = (result.cpu.sender.busiest_thread, result.cpu.receiver.busiest_thread);
    let (end, busy) = if asking >= serving { ("asking", asking) } else { ("serving", serving) };
    if busy >= BUSY {
        return Some(message!(
            "ladder-next-nfs-busy",
            "the {end} thread was busy for {busy} of the time: larger transfers (`linerate nfs {options}`) or \
             --flows 4",
            end = MessageValue::term("ladder-end", end),
            busy = MessageValue::percent(busy, 0),
            options
        ));
    }
    Some(message!(
        "ladder-next-nfs",
        "each transfer waits for its reply: `linerate nfs {options} --outstanding 32` shows whether larger ones \
         or more in flight make up for it",
        options = options
    ))
}
