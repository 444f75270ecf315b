//! The layers of NFS, reads and writes: large transfers, several in flight, against the listener's own server in memory. Their headers, about 130 bytes a call, are half a per cent of a transfer: within the error of a gap.

use super::{Facts, Figure, LadderRequest, Layer, efficiency};
use crate::terms;
use linerate_model::{
    FileSet, LadderPlan, LayerName, Message, MessageValue, NfsMix, NfsTask, Task, Transport, message, tcp_packet,
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

/// Returns the name of the trial of a built-in mix.
fn name(over: Transport, mix: &str) -> String {
    match over {
        Transport::Tcp => format!("nfs tcp {mix}"),
        Transport::Udp => format!("nfs udp {mix}"),
    }
}

/// The layer of one built-in mix.
pub(super) struct NfsLayer {
    name: LayerName,
    mix: &'static str,
}

/// File data read from the server's memory.
pub(super) const READ: NfsLayer = NfsLayer { name: LayerName::NfsRead, mix: "read" };
/// File data written to the server's memory, committed now and then.
pub(super) const WRITE: NfsLayer = NfsLayer { name: LayerName::NfsWrite, mix: "write" };

impl Layer for NfsLayer {
    fn name(&self) -> LayerName {
        self.name
    }

    fn trials(&self, request: &LadderRequest) -> Vec<(String, Task)> {
        let over = request.calls_over;
        let name = name(over, self.mix);
        let Ok(mix) = NfsMix::named(self.mix) else { return Vec::new() };
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

    fn figure(&self, facts: &Facts<'_>) -> Result<Figure, Message> {
        let LadderPlan { ip, mtu, calls_over: over, .. } = *facts.plan;
        facts.streamed(&name(over, self.mix), "", |result| {
            let packet = result.tcp.as_ref().map_or(mtu, |tcp| tcp_packet(ip, tcp.mss).min(mtu));
            efficiency(over, ip, transfer(over).get(), packet)
        })
    }

    fn advice(&self, facts: &Facts<'_>) -> Option<Message> {
        let over = facts.plan.calls_over;
        let result = facts.flows(&name(over, self.mix))?;
        let options = match over {
            Transport::Tcp => "--transfer-size 256KiB",
            Transport::Udp => "--udp --transfer-size 32KiB",
        };
        let (asking, serving) = (result.cpu.sender.busiest_thread, result.cpu.receiver.busiest_thread);
        let (end, busy) = if asking >= serving { (terms::ASKING_END, asking) } else { (terms::SERVING_END, serving) };
        if busy >= BUSY {
            return Some(message!(
                "ladder-next-nfs-busy",
                "the {end} thread was busy for {busy} of the time: larger transfers (`linerate nfs {options}`) or \
                 --flows 4",
                end,
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
}
