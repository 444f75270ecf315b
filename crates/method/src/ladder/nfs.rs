//! What the layers of NFS have in common: large transfers of one kind, several in flight, over TCP, against the listener's own
//! server in memory. Their headers, about 130 bytes a call, are half a per cent of a transfer: within the error of a gap.

use super::{Facts, Figure, LadderRequest, efficiency};
use linerate_model::{FileSet, NfsMix, NfsTask, Task, Transport, tcp_packet};
use linerate_units::ByteCount;

/// What clients ask for at a time as a rule, and small enough that dozens cross a slow line in a window.
const TRANSFER: ByteCount = ByteCount::new(32 << 10);
/// With so many in flight neither end waits for the other: 256 KiB.
const OUTSTANDING: u16 = 8;
/// What is read and written again and again: a slow line brings it there within a second.
const FILES: FileSet = FileSet { files: 4, directories: 1, symlinks: 0, file_bytes: ByteCount::new(256 << 10) };
/// A thread this busy has no time for more.
const BUSY: f64 = 0.9;

/// The trial of the built-in mix `read` or `write`.
pub(super) fn trials(name: &str, mix: &str, request: &LadderRequest) -> Vec<(String, Task)> {
    let Ok(mix) = NfsMix::named(mix) else { return Vec::new() };
    let task = NfsTask {
        paths: request.paths(),
        net: request.net(Transport::Tcp, request.flows),
        files: FILES,
        transfer_bytes: TRANSFER,
        outstanding: OUTSTANDING,
        ..NfsTask::plain(Transport::Tcp, mix)
    };
    vec![(name.to_owned(), Task::Nfs(task))]
}

/// The figure of the result of that name. A request of one byte has no counterpart here.
pub(super) fn figure(name: &str, facts: &Facts<'_>) -> Result<Figure, String> {
    let (ip, mtu) = (facts.plan.ip, facts.plan.mtu);
    facts.streamed(name, "", |result| {
        let packet = result.tcp.as_ref().map_or(mtu, |tcp| tcp_packet(ip, tcp.mss).min(mtu));
        efficiency(Transport::Tcp, ip, TRANSFER.get(), packet)
    })
}

/// What to try.
pub(super) fn advice(name: &str, facts: &Facts<'_>) -> String {
    let Some(result) = facts.flows(name) else { return String::new() };
    let (asking, serving) = (result.cpu.sender.busiest_thread, result.cpu.receiver.busiest_thread);
    let (end, busy) = if asking >= serving { ("asking", asking) } else { ("serving", serving) };
    if busy >= BUSY {
        return format!(
            "the {end} thread was busy for {:.0} % of the time: larger transfers (`linerate nfs --transfer-size 256KiB`) or \
             --flows 4",
            busy * 100.0
        );
    }
    "each transfer waits for its reply: `linerate nfs --transfer-size 256KiB --outstanding 32` shows whether larger ones or more \
     in flight make up for it"
        .to_owned()
}
