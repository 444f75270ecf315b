//! UDP: sockets at both ends, each datagram a packet of its own. Segmentation offload is off: joined datagrams would skip
//! the work for each packet that this layer is to show.

use super::{Facts, Figure, LadderRequest, Layer, efficiency};
use linerate_model::{
    IpVersion, LayerName, LossPlaces, Measurement, Message, StreamTask, Task, TransactTask, Transport, message,
};
use linerate_units::ByteCount;

const TRANSACTIONS: &str = "udp transactions";
/// Loss below this share does not account for a gap that is worth naming.
const LOSS_WORTH_NAMING: f64 = 0.01;

pub(super) struct Udp;

impl Layer for Udp {
    fn name(&self) -> LayerName {
        LayerName::Udp
    }

    fn trials(&self, request: &LadderRequest) -> Vec<(String, Task)> {
        let LadderRequest { ip, mtu, flows, .. } = *request;
        let net = |flows| request.net(Transport::Udp, flows);
        let plain = StreamTask::plain(Transport::Udp, ByteCount::new(ip.datagram_within(mtu)));
        let stream = StreamTask { paths: request.paths(), net: net(flows), offload: false, ..plain };
        let transact = TransactTask { paths: request.paths(), net: net(1), ..TransactTask::plain(Transport::Udp) };
        vec![(stream_name(ip, mtu), Task::Stream(stream)), (TRANSACTIONS.to_owned(), Task::Transact(transact))]
    }

    fn figure(&self, facts: &Facts<'_>) -> Result<Figure, Message> {
        let (ip, mtu) = (facts.plan.ip, facts.plan.mtu);
        facts.streamed(&stream_name(ip, mtu), TRANSACTIONS, |result| {
            efficiency(Transport::Udp, ip, result.message_bytes, mtu)
        })
    }

    fn advice(&self, facts: &Facts<'_>) -> Option<Message> {
        let result = facts.result(&stream_name(facts.plan.ip, facts.plan.mtu));
        let loss =
            result.and_then(Measurement::loss).filter(|loss| loss.lost as f64 > loss.of as f64 * LOSS_WORTH_NAMING);
        let LossPlaces { socket_buffer, receiver_queue, unaccounted, .. } =
            loss.map(|loss| loss.places).unwrap_or_default();
        let text = match [socket_buffer, receiver_queue, unaccounted].into_iter().max() {
            None | Some(0) => {
                message!(
                    "ladder-next-udp",
                    "the sending socket does not keep up with the work for each packet: try --flows 4, a larger \
                     MTU, or let the kernel cut datagrams (`linerate stream --udp` does, where it can)"
                )
            }
            Some(most) if most == socket_buffer => {
                message!(
                    "ladder-next-socket-buffer",
                    "datagrams are lost in the receiver's socket buffer: try --receive-buffer 8M, --flows 4, or \
                     other cores for the receiving threads (--cpus-receiver)"
                )
            }
            Some(most) if most == receiver_queue => {
                message!(
                    "ladder-next-receiver-queue",
                    "datagrams are lost in the receiver's NIC or kernel queue: spread them over its cores \
                     (--flows 4 with several receive queues), or raise its ring and net.core.netdev_max_backlog"
                )
            }
            Some(_) => {
                message!(
                    "ladder-next-udp-loss",
                    "datagrams are lost on the way: find the rate that passes whole with `linerate stream --udp \
                     --rate`, and test the device on the path with `linerate device throughput`"
                )
            }
        };
        Some(text)
    }
}

/// As `linerate stream` calls such a cell.
pub(super) fn stream_name(ip: IpVersion, mtu: u32) -> String {
    format!("udp {}", ip.datagram_within(mtu))
}
