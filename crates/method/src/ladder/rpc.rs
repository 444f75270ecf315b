//! RPC: calls that write units of data, each answered, over one TCP connection. What it loses to TCP is the calls' own: their
//! headers, and the processor time of a call and its reply.

use super::{Asked, Facts, Figure, Layer, efficiency};
use linerate_model::{RpcCall, RpcSpec, RungName, Transport, Workload, tcp_packet};
use linerate_units::ByteCount;

const WRITES: &str = "rpc tcp write 8192";
const NULLS: &str = "rpc tcp null";
/// The largest unit that most RPC programs use, and small enough that hundreds cross a slow line in a window.
const UNIT: ByteCount = ByteCount::new(8 << 10);
/// With so many under way neither end waits for the other: 128 KiB, what TCP has under way over a short path.
const OUTSTANDING: u16 = 16;
/// A thread this busy has no time for more calls.
const BUSY: f64 = 0.9;

pub(super) struct Rpc;

impl Layer for Rpc {
    fn name(&self) -> RungName {
        RungName::Rpc
    }

    fn trials(&self, asked: &Asked) -> Vec<(String, Workload)> {
        let Asked { ip, flows, socket, .. } = asked.clone();
        let calls = |call, unit| RpcSpec { ip, socket: socket.clone(), ..RpcSpec::plain(Transport::Tcp, call, unit) };
        let writes = RpcSpec { flows, outstanding: OUTSTANDING, ..calls(RpcCall::Write, UNIT) };
        vec![
            (WRITES.to_owned(), Workload::Rpc(writes)),
            (NULLS.to_owned(), Workload::Rpc(calls(RpcCall::Null, ByteCount::new(0)))),
        ]
    }

    fn figure(&self, facts: &Facts<'_>) -> Result<Figure, String> {
        let (ip, mtu) = (facts.plan.ip, facts.plan.mtu);
        facts.streamed(WRITES, NULLS, |result| {
            let packet = result.tcp.as_ref().map_or(mtu, |tcp| tcp_packet(ip, tcp.mss).min(mtu));
            let message = RpcSpec::plain(Transport::Tcp, RpcCall::Write, UNIT).message_bytes();
            let unit = UNIT.get() as f64 / message as f64;
            efficiency(Transport::Tcp, ip, message, packet) * unit
        })
    }

    fn advice(&self, facts: &Facts<'_>) -> String {
        let Some(result) = facts.result(WRITES) else { return String::new() };
        let (calling, serving) = (result.cpu.sender.busiest_thread, result.cpu.receiver.busiest_thread);
        let (end, busy) = if calling >= serving { ("calling", calling) } else { ("serving", serving) };
        if busy >= BUSY {
            return format!(
                "the {end} thread was busy for {:.0} % of the time: larger calls (`linerate rpc --tcp --sizes 64K,1M`) or \
                 --flows 4",
                busy * 100.0
            );
        }
        "each call waits for its reply: `linerate rpc --tcp --sizes 8K,64K --outstanding 64` tells if more calls under way \
         or larger ones make up for it"
            .to_owned()
    }
}
