//! What a client asks of a server: the first JSON text of a test.

use crate::job::Job;
use linerate_model::{Direction, Offered, Transport};
use serde_json::{Map, Value, json};

/// The version of iperf3 whose protocol is spoken. Servers only print it.
const VERSION: &str = "3.12";

/// The parameters of the test that `job` asks for, with the token of a login.
pub(crate) fn parameters(job: &Job, token: Option<String>) -> Value {
    let task = &job.task;
    let (net, socket) = (&task.net, &task.net.socket);
    let mut asked = Map::new();
    let mut ask = |name: &str, value: Value| asked.insert(name.to_owned(), value);
    match net.transport {
        Transport::Tcp => ask("tcp", json!(true)),
        Transport::Udp => ask("udp", json!(true)),
    };
    ask("omit", json!(job.omit_s));
    // Of a test that ends by bytes, the server is told no time. Where it sends, it is not told the bytes: it would stop after so many, and
    // those that are lost, or sent before this end counts, would never come.
    let sends = task.direction != Direction::Send;
    let volume = task.whole_volume().filter(|_| !sends);
    ask("time", json!(if volume.is_some() { 0 } else { job.time_s() }));
    ask("num", json!(volume.map_or(0, |volume| volume.get())));
    ask("blockcount", json!(0));
    ask("parallel", json!(net.flows));
    match task.direction {
        Direction::Send => None,
        Direction::Receive => ask("reverse", json!(true)),
        Direction::Both => ask("bidirectional", json!(true)),
    };
    ask("len", json!(task.message_bytes.get()));
    // Of each flow.
    let each =
        task.offered.map_or(0, |offered| bits_per_s(offered, task.message_bytes.get()).div_ceil(net.flows.into()));
    ask("bandwidth", json!(each));
    ask("pacing_timer", json!(1_000));
    if let Some(window) = window(job) {
        ask("window", json!(window));
    }
    if let Some(mss) = socket.mss {
        ask("MSS", json!(mss));
    }
    if let Some(congestion) = &socket.congestion {
        ask("congestion", json!(congestion));
    }
    if let Some(dscp) = socket.dscp {
        // The upper six bits of the old type of service: RFC 2474 section 3.
        ask("TOS", json!(u32::from(dscp) << 2));
    }
    if let Some(core) = server_core(job) {
        ask("server_affinity", json!(core));
    }
    if net.transport == Transport::Udp {
        // Numbers of 32 bits wrap within hours.
        ask("udp_counters_64bit", json!(1));
    }
    if job.server.report {
        ask("get_server_output", json!(1));
    }
    if let Some(token) = token {
        ask("authtoken", json!(token));
    }
    ask("client_version", json!(VERSION));
    Value::Object(asked)
}

fn bits_per_s(offered: Offered, message_bytes: u64) -> u64 {
    match offered {
        Offered::PayloadBps(rate) => rate.get(),
        Offered::MessagesPerS(rate) => rate.get().saturating_mul(message_bytes).saturating_mul(8),
    }
}

/// Bytes of the server's socket buffers, one number for both: of what it does.
fn window(job: &Job) -> Option<u64> {
    let socket = &job.task.net.socket;
    let buffer = match job.task.direction {
        Direction::Send => socket.receive_buffer,
        Direction::Receive => socket.send_buffer,
        Direction::Both => socket.receive_buffer.max(socket.send_buffer),
    };
    buffer.map(|buffer| buffer.get())
}

/// The core that the server's process is pinned to. It has one thread for each flow, or one for all, and takes one core.
fn server_core(job: &Job) -> Option<u32> {
    let socket = &job.task.net.socket;
    let cores = match job.task.direction {
        Direction::Send => &socket.receiver_cpus,
        Direction::Receive => &socket.sender_cpus,
        Direction::Both => return None,
    };
    cores.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::tests::{job, stream};
    use linerate_model::{Net, SocketOptions, StreamTask};
    use linerate_units::{BitRate, ByteCount};

    #[test]
    fn a_plain_test_asks_for_little() {
        let plain = job(stream(Transport::Tcp), 1, 3_000).expect("valid");
        let asked = parameters(&plain, None);
        let expected = json!({
            "tcp": true, "omit": 1, "time": 3, "num": 0, "blockcount": 0, "parallel": 1, "len": 131_072, "bandwidth": 0,
            "pacing_timer": 1_000, "client_version": "3.12",
        });
        assert_eq!(asked, expected);
        assert_eq!(parameters(&plain, Some("dG9rZW4=".to_owned()))["authtoken"], "dG9rZW4=");
    }

    #[test]
    fn a_volume_is_asked_for_in_bytes_and_takes_the_place_of_the_time() {
        let volume = Some(ByteCount::new(1_473));
        for (transport, bytes) in [(Transport::Tcp, 1_473), (Transport::Udp, 2_944)] {
            let asked = parameters(&job(StreamTask { volume, ..stream(transport) }, 0, 3_000).expect("valid"), None);
            assert_eq!((&asked["time"], &asked["num"], &asked["blockcount"]), (&json!(0), &json!(bytes), &json!(0)));
        }
    }

    #[test]
    fn a_server_that_sends_a_volume_sends_until_it_is_told_to_end() {
        let volume = Some(ByteCount::new(1_000_000));
        for direction in [Direction::Receive, Direction::Both] {
            let task = StreamTask { volume, direction, ..stream(Transport::Tcp) };
            let asked = parameters(&job(task, 1, 3_000).expect("valid"), None);
            assert_eq!((&asked["time"], &asked["num"]), (&json!(3), &json!(0)), "{direction:?}");
        }
    }

    #[test]
    fn every_option_has_iperf3s_name() {
        let socket = SocketOptions {
            congestion: Some("bbr".to_owned()),
            dscp: Some(8),
            mss: Some(1_400),
            send_buffer: Some(ByteCount::new(200_000)),
            receive_buffer: Some(ByteCount::new(100_000)),
            sender_cpus: vec![3],
            ..SocketOptions::default()
        };
        let plain = stream(Transport::Tcp);
        let task = StreamTask {
            net: Net { flows: 4, socket, ..plain.net },
            offered: Some(Offered::PayloadBps(BitRate::per_second(10_000_000))),
            ..plain
        };
        let asked =
            |direction| parameters(&job(StreamTask { direction, ..task.clone() }, 0, 1_500).expect("valid"), None);
        let receive = asked(Direction::Receive);
        let of = |name: &str| receive.get(name).cloned().unwrap_or_default();
        assert_eq!((of("reverse"), of("parallel"), of("bandwidth")), (json!(true), json!(4), json!(2_500_000)));
        assert_eq!((of("MSS"), of("congestion"), of("TOS")), (json!(1_400), json!("bbr"), json!(32)));
        // The server sends: its send buffer counts. Time is told in whole seconds.
        assert_eq!((of("window"), of("time"), of("omit")), (json!(200_000), json!(2), json!(0)));
        assert_eq!(of("server_affinity"), json!(3));
        let send = asked(Direction::Send);
        assert_eq!(send.get("server_affinity"), None, "the client is pinned");
        assert_eq!((send.get("window"), send.get("reverse")), (Some(&json!(100_000)), None));
        assert_eq!(asked(Direction::Both).get("bidirectional"), Some(&json!(true)));
        let udp = parameters(&job(stream(Transport::Udp), 0, 1_000).expect("valid"), None);
        assert_eq!((udp.get("udp"), udp.get("udp_counters_64bit")), (Some(&json!(true)), Some(&json!(1))));
    }
}
