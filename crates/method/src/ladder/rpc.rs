//! RPC: calls that write units of data, each answered, over one TCP connection. What it loses to TCP is the calls' own: their
//! headers, and the processor time of a call and its reply.

use super::{Facts, Figure, LadderRequest, Layer, efficiency};
use linerate_model::{LayerName, RpcCall, RpcTask, Task, Transport, tcp_packet};
use linerate_units::ByteCount;

const WRITES: &str = "rpc tcp write 8192";
const NULLS: &str = "rpc tcp null";
/// The largest unit that most RPC programs use, and small enough that hundreds cross a slow line in a window.
const UNIT: ByteCount = ByteCount::new(8 << 10);
/// With so many in flight neither end waits for the other: 128 KiB, what TCP has in flight over a short path.
const OUTSTANDING: u16 = 16;
/// A thread this busy has no time for more calls.
const BUSY: f64 = 0.9;

pub(super) struct Rpc;

impl Layer for Rpc {
    fn name(&self) -> LayerName {
        LayerName::Rpc
    }

    fn trials(&self, request: &LadderRequest) -> Vec<(String, Task)> {
        let calls = |call, unit, flows| RpcTask {
            paths: request.paths(),
            net: request.net(Transport::Tcp, flows),
            ..RpcTask::plain(Transport::Tcp, call, unit)
        };
        let writes = RpcTask { outstanding: OUTSTANDING, ..calls(RpcCall::Write, UNIT, request.flows) };
        vec![
            (WRITES.to_owned(), Task::Rpc(writes)),
            (NULLS.to_owned(), Task::Rpc(calls(RpcCall::Null, ByteCount::new(0), 1))),
        ]
    }

    fn figure(&self, facts: &Facts<'_>) -> Result<Figure, String> {
        let (ip, mtu) = (facts.plan.ip, facts.plan.mtu);
        facts.streamed(WRITES, NULLS, |result| {
            let packet = result.tcp.as_ref().map_or(mtu, |tcp| tcp_packet(ip, tcp.mss).min(mtu));
            let message = RpcTask::plain(Transport::Tcp, RpcCall::Write, UNIT).message_bytes();
            let unit = UNIT.get() as f64 / message as f64;
            efficiency(Transport::Tcp, ip, message, packet) * unit
        })
    }

    fn advice(&self, facts: &Facts<'_>) -> String {
        let Some(result) = facts.flows(WRITES) else { return String::new() };
        let (calling, serving) = (result.cpu.sender.busiest_thread, result.cpu.receiver.busiest_thread);
        let (end, busy) = if calling >= serving { ("calling", calling) } else { ("serving", serving) };
        if busy >= BUSY {
            return format!(
                "the {end} thread was busy for {:.0} % of the time: larger calls (`linerate rpc --tcp --sizes 64K,1M`) or \
                 --flows 4",
                busy * 100.0
            );
        }
        "each call waits for its reply: `linerate rpc --tcp --sizes 8K,64K --outstanding 64` shows whether more calls in flight \
         or larger ones make up for it"
            .to_owned()
    }
}
