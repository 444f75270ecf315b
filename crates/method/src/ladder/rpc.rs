//! RPC: calls that write units of data, each answered, over one TCP connection or UDP socket. What it loses to the layer below is the
//! calls' own: their headers, and the processor time of a call and its reply; over UDP also that of fragments.

use super::{Facts, Figure, LadderRequest, Layer, efficiency};
use crate::terms;
use linerate_model::{
    LadderPlan, LayerName, Message, MessageValue, RpcCall, RpcTask, Task, Transport, message, tcp_packet,
};
use linerate_units::ByteCount;

/// The largest unit that most RPC programs use, and small enough that hundreds cross a slow line in a window.
const UNIT: ByteCount = ByteCount::new(8 << 10);
/// With so many in flight neither end waits for the other: 128 KiB, what TCP has in flight over a short path.
const OUTSTANDING: u16 = 16;
/// A thread this busy has no time for more calls.
const BUSY: f64 = 0.9;

pub(super) struct Rpc;

/// The names of the trials that write, and of those that do nothing.
fn names(over: Transport) -> [&'static str; 2] {
    match over {
        Transport::Tcp => ["rpc tcp write 8192", "rpc tcp null"],
        Transport::Udp => ["rpc udp write 8192", "rpc udp null"],
    }
}

impl Layer for Rpc {
    fn name(&self) -> LayerName {
        LayerName::Rpc
    }

    fn trials(&self, request: &LadderRequest) -> Vec<(String, Task)> {
        let over = request.calls_over;
        let calls = |call, unit, flows| RpcTask {
            paths: request.paths(),
            net: request.net(over, flows),
            ..RpcTask::plain(over, call, unit)
        };
        let [writing, null] = names(over);
        let writes = RpcTask { outstanding: OUTSTANDING, ..calls(RpcCall::Write, UNIT, request.flows) };
        vec![
            (writing.to_owned(), Task::Rpc(writes)),
            (null.to_owned(), Task::Rpc(calls(RpcCall::Null, ByteCount::new(0), 1))),
        ]
    }

    fn figure(&self, facts: &Facts<'_>) -> Result<Figure, Message> {
        let LadderPlan { ip, mtu, calls_over: over, .. } = *facts.plan;
        let [writing, null] = names(over);
        facts.streamed(writing, null, |result| {
            let packet = result.tcp.as_ref().map_or(mtu, |tcp| tcp_packet(ip, tcp.mss).min(mtu));
            let message = RpcTask::plain(over, RpcCall::Write, UNIT).message_bytes();
            let unit = UNIT.get() as f64 / message as f64;
            efficiency(over, ip, message, packet) * unit
        })
    }

    fn advice(&self, facts: &Facts<'_>) -> Option<Message> {
        let over = facts.plan.calls_over;
        let [writing, _] = names(over);
        let result = facts.flows(writing)?;
        let (option, larger) = match over {
            Transport::Tcp => ("--tcp", "64K,1M"),
            Transport::Udp => ("--udp", "32K,60K"),
        };
        let (calling, serving) = (result.cpu.sender.busiest_thread, result.cpu.receiver.busiest_thread);
        let (end, busy) =
            if calling >= serving { (terms::CALLING_END, calling) } else { (terms::SERVING_END, serving) };
        if busy >= BUSY {
            return Some(message!(
                "ladder-next-rpc-busy",
                "the {end} thread was busy for {busy} of the time: larger calls (`linerate rpc {option} --sizes \
                 {larger}`) or --flows 4",
                end,
                busy = MessageValue::percent(busy, 0),
                option,
                larger
            ));
        }
        Some(message!(
            "ladder-next-rpc",
            "each call waits for its reply: `linerate rpc {option} --sizes {larger} --outstanding 64` shows \
             whether more calls in flight or larger ones make up for it",
            option = option,
            larger = larger
        ))
    }
}
