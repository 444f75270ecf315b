//! Parameters that a client requests of a server: the first JSON text of a test.

use crate::job::Job;
use linerate_model::{Direction, Offered, Transport};
use serde_json::{Value, json};

/// Version of the protocol. Servers only print it.
const VERSION: &str = "3.12";

/// Returns the parameters of the test of `job`, with the token of a login.
pub(crate) fn parameters(job: &Job, token: Option<String>) -> Value {
    let task = &job.task;
    let net = &task.net;
    let socket = &net.socket;
    // In a test that ends by bytes, the server gets no time. If it sends, it does not get the bytes either: it would
    // stop after them, and bytes that are lost, or sent before this end counts, would never arrive.
    let volume = task.whole_volume().filter(|_| task.direction == Direction::Send);
    let flow_rate =
        task.offered.map_or(0, |offered| bits_per_s(offered, task.message_bytes.get()).div_ceil(net.flows.into()));
    let transport = match net.transport {
        Transport::Tcp => "tcp",
        Transport::Udp => "udp",
    };
    let mut parameters = json!({
        (transport): true,
        "omit": job.omit_s,
        "time": if volume.is_some() { 0 } else { job.time_s() },
        "num": volume.map_or(0, |volume| volume.get()),
        "blockcount": 0,
        "parallel": net.flows,
        "len": task.message_bytes.get(),
        "bandwidth": flow_rate,
        "pacing_timer": 1_000,
        "client_version": VERSION,
    });
    match task.direction {
        Direction::Send => (),
        Direction::Receive => parameters["reverse"] = json!(true),
        Direction::Both => parameters["bidirectional"] = json!(true),
    }
    if let Some(window) = window(job) {
        parameters["window"] = json!(window);
    }
    if let Some(mss) = socket.mss {
        parameters["MSS"] = json!(mss);
    }
    if let Some(congestion) = &socket.congestion {
        parameters["congestion"] = json!(congestion);
    }
    if let Some(dscp) = socket.dscp {
        // The upper six bits of the old type of service: RFC 2474 section 3.
        parameters["TOS"] = json!(u32::from(dscp) << 2);
    }
    if let Some(core) = server_core(job) {
        parameters["server_affinity"] = json!(core);
    }
    if net.transport == Transport::Udp {
        // Numbers of 32 bits wrap within hours.
        parameters["udp_counters_64bit"] = json!(1);
    }
    if job.server.report {
        parameters["get_server_output"] = json!(1);
    }
    if let Some(token) = token {
        parameters["authtoken"] = json!(token);
    }
    parameters
}

fn bits_per_s(offered: Offered, message_bytes: u64) -> u64 {
    match offered {
        Offered::PayloadBps(rate) => rate.get(),
        Offered::MessagesPerS(rate) => rate.get().saturating_mul(message_bytes).saturating_mul(8),
    }
}

/// Returns the size of the server's socket buffers, one number for both directions.
fn window(job: &Job) -> Option<u64> {
    let socket = &job.task.net.socket;
    let buffer = match job.task.direction {
        Direction::Send => socket.receive_buffer,
        Direction::Receive => socket.send_buffer,
        Direction::Both => socket.receive_buffer.max(socket.send_buffer),
    };
    buffer.map(|buffer| buffer.get())
}

/// Returns the core that the server's process is pinned to. It accepts one core for all its threads.
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
    fn plain_test_has_few_parameters() {
        let plain = job(stream(Transport::Tcp), 1, 3_000).expect("valid");
        let text = parameters(&plain, None);
        let expected = json!({
            "tcp": true, "omit": 1, "time": 3, "num": 0, "blockcount": 0, "parallel": 1, "len": 131_072, "bandwidth": 0,
            "pacing_timer": 1_000, "client_version": "3.12",
        });
        assert_eq!(text, expected);
        assert_eq!(parameters(&plain, Some("dG9rZW4=".to_owned()))["authtoken"], "dG9rZW4=");
    }

    #[test]
    fn volume_in_bytes_replaces_the_time() {
        let volume = Some(ByteCount::new(1_473));
        for (transport, bytes) in [(Transport::Tcp, 1_473), (Transport::Udp, 2_944)] {
            let text = parameters(&job(StreamTask { volume, ..stream(transport) }, 0, 3_000).expect("valid"), None);
            assert_eq!((&text["time"], &text["num"], &text["blockcount"]), (&json!(0), &json!(bytes), &json!(0)));
        }
    }

    #[test]
    fn server_that_sends_gets_a_time_instead_of_a_volume() {
        let volume = Some(ByteCount::new(1_000_000));
        for direction in [Direction::Receive, Direction::Both] {
            let task = StreamTask { volume, direction, ..stream(Transport::Tcp) };
            let text = parameters(&job(task, 1, 3_000).expect("valid"), None);
            assert_eq!((&text["time"], &text["num"]), (&json!(3), &json!(0)), "{direction:?}");
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
        let [send, receive, both] = [Direction::Send, Direction::Receive, Direction::Both].map(|direction| {
            parameters(&job(StreamTask { direction, ..task.clone() }, 0, 1_500).expect("valid"), None)
        });
        for (name, value) in [
            ("reverse", json!(true)),
            ("parallel", json!(4)),
            ("bandwidth", json!(2_500_000)),
            ("MSS", json!(1_400)),
            ("congestion", json!("bbr")),
            ("TOS", json!(32)),
            // The server sends, so its send buffer counts.
            ("window", json!(200_000)),
            // In whole seconds.
            ("time", json!(2)),
            ("omit", json!(0)),
            ("server_affinity", json!(3)),
        ] {
            assert_eq!(receive[name], value, "{name}");
        }
        assert_eq!(send.get("server_affinity"), None, "the client is pinned");
        assert_eq!((send.get("window"), send.get("reverse")), (Some(&json!(100_000)), None));
        assert_eq!(both.get("bidirectional"), Some(&json!(true)));
        let udp = parameters(&job(stream(Transport::Udp), 0, 1_000).expect("valid"), None);
        assert_eq!((udp.get("udp"), udp.get("udp_counters_64bit")), (Some(&json!(true)), Some(&json!(1))));
    }
}
