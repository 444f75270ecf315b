//! UDP: sockets at both ends, each datagram a packet of its own. Segmentation offload is off: joined datagrams would skip
//! the work for each packet that this rung is to show.

use super::{Asked, Facts, Figure, Layer, efficiency, largest_datagram};
use linerate_model::{IpVersion, LossPlaces, RungName, SocketOptions, StreamSpec, TransactSpec, Transport, Workload};
use linerate_units::ByteCount;

const TRANSACTIONS: &str = "udp transactions";
/// Loss below this share does not account for a gap that is worth naming.
const LOSS_WORTH_NAMING: f64 = 0.01;

pub(super) struct Udp;

impl Layer for Udp {
    fn name(&self) -> RungName {
        RungName::Udp
    }

    fn trials(&self, asked: &Asked) -> Vec<(String, Workload)> {
        let Asked { ip, mtu, flows, .. } = *asked;
        // What only TCP knows is for the other rung.
        let socket = SocketOptions { congestion: None, mss: None, ..asked.socket.clone() };
        let message = ByteCount::new(largest_datagram(ip, mtu));
        let plain = StreamSpec::plain(Transport::Udp, message);
        let stream = StreamSpec { ip, flows, offload: false, socket: socket.clone(), ..plain };
        let transact = TransactSpec { ip, socket, ..TransactSpec::plain(Transport::Udp) };
        vec![(stream_name(ip, mtu), Workload::Stream(stream)), (TRANSACTIONS.to_owned(), Workload::Transact(transact))]
    }

    fn figure(&self, facts: &Facts<'_>) -> Result<Figure, String> {
        let (ip, mtu) = (facts.plan.ip, facts.plan.mtu);
        facts.streamed(&stream_name(ip, mtu), TRANSACTIONS, |result| {
            efficiency(Transport::Udp, ip, result.message_bytes, mtu)
        })
    }

    fn advice(&self, facts: &Facts<'_>) -> String {
        let result = facts.result(&stream_name(facts.plan.ip, facts.plan.mtu));
        let loss =
            result.and_then(|result| result.loss).filter(|loss| loss.lost as f64 > loss.of as f64 * LOSS_WORTH_NAMING);
        let LossPlaces { socket_buffer, receiver_queue, wire, .. } = loss.map(|loss| loss.places).unwrap_or_default();
        let text = match [socket_buffer, receiver_queue, wire].into_iter().max() {
            None | Some(0) => {
                "the sending socket does not keep up with the work for each packet: try --flows 4, a larger MTU, or let the \
                 kernel cut datagrams (`linerate stream --udp` does, where it can)"
            }
            Some(most) if most == socket_buffer => {
                "datagrams are lost in the receiver's socket buffer: try --receive-buffer 8M, --flows 4, or other cores for \
                 the receiving threads (--cpus-receiver)"
            }
            Some(most) if most == receiver_queue => {
                "datagrams are lost in the receiver's NIC or kernel queue: spread them over its cores (--flows 4 with several \
                 receive queues), or raise its ring and net.core.netdev_max_backlog"
            }
            Some(_) => {
                "datagrams are lost on the way: find the rate that passes whole with `linerate stream --udp --rate`, and test \
                 the device on the path with `linerate device throughput`"
            }
        };
        text.to_owned()
    }
}

/// As `linerate stream` calls such a cell.
pub(super) fn stream_name(ip: IpVersion, mtu: u32) -> String {
    format!("udp {}", largest_datagram(ip, mtu))
}
