//! Parsers of the tools' outputs. The receiver's count is used if the tool reports it.

use super::figure::{Figure, Unit};
use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Output of one run of a tool at both ends.
#[derive(Debug, Default)]
pub(crate) struct Written<'a> {
    pub(crate) client: &'a str,
    pub(crate) server: &'a str,
}

/// Unit of a work, and the size needed to convert to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkUnit {
    pub(crate) unit: Unit,
    /// Size of a datagram in bytes. `None` for TCP and transactions.
    pub(crate) datagram: Option<u32>,
}

impl WorkUnit {
    /// Converts a payload rate to the work's unit.
    fn rate(self, bits_per_second: f64) -> Result<f64> {
        match (self.unit, self.datagram) {
            (Unit::Payload, _) => Ok(bits_per_second),
            (Unit::Datagrams, Some(size)) => Ok(bits_per_second / 8.0 / f64::from(size)),
            _ => bail!("a payload rate says nothing in {}", self.unit.name()),
        }
    }
}

/// Reads the first result of linerate's record.
pub(crate) fn linerate(written: &Written<'_>, work: WorkUnit) -> Result<Figure> {
    let record: Value = serde_json::from_str(written.client).context("reading linerate's record as JSON")?;
    let cell = &record["results"][0];
    let path = match work.unit {
        Unit::Payload => "/received/payload_bps/median",
        Unit::Datagrams => "/received/packets_per_s/median",
        Unit::Transactions => "/transactions_per_s/median",
    };
    if let Some(flow) = cell.pointer("/flows/0/to_socket").and(cell.pointer("/flows/0")) {
        let value = cell.pointer("/main/median").and_then(Value::as_f64).context("the record lacks results[0]/main")?;
        return Ok(Figure { value, lost: share(flow.get("lost"), flow.get("sent")), p50_ns: None });
    }
    Ok(Figure {
        value: cell
            .pointer(path)
            .and_then(Value::as_f64)
            .with_context(|| format!("the record lacks results[0]{path}"))?,
        lost: share(cell.pointer("/loss/lost"), cell.pointer("/loss/of")),
        p50_ns: cell.pointer("/latency_ns/p50").and_then(Value::as_f64),
    })
}

fn share(part: Option<&Value>, of: Option<&Value>) -> Option<f64> {
    let of = of?.as_f64().filter(|&of| of > 0.0)?;
    Some(part?.as_f64()? / of)
}

/// Reads the output of iperf3 `-J`. Its datagram counts include the omitted start, so loss is computed from bytes.
pub(crate) fn iperf3(written: &Written<'_>, work: WorkUnit) -> Result<Figure> {
    let report: Value = serde_json::from_str(written.client).context("reading iperf3's report as JSON")?;
    if let Some(error) = report["error"].as_str() {
        bail!("iperf3 says: {error}");
    }
    let number = |path: &str| {
        report.pointer(path).and_then(Value::as_f64).with_context(|| format!("iperf3's report lacks {path}"))
    };
    let bytes = number("/end/sum_received/bytes")?;
    let value = work.rate(bytes * 8.0 / number("/end/sum_received/seconds")?)?;
    let lost = match work.datagram {
        Some(size) => Some((1.0 - bytes / f64::from(size) / number("/end/sum_sent/packets")?).max(0.0)),
        None => None,
    };
    Ok(Figure { value, lost, p50_ns: None })
}

/// Reads the output of iperf 2 `-y C` of the server, which has one line for each flow.
///
/// Columns: time, addresses and ports, id, interval, bytes, bit/s; UDP adds jitter, lost, of, percent, reordered.
pub(super) fn iperf(written: &Written<'_>, work: WorkUnit) -> Result<Figure> {
    let mut bits_per_second = 0.0;
    let mut lost = 0.0;
    let mut of = 0.0;
    let mut flows = 0;
    for line in written.server.lines() {
        let columns: Vec<&str> = line.split(',').collect();
        // A line of id -1 sums up the others.
        if columns.len() < 9 || columns[5].starts_with('-') {
            continue;
        }
        let number = |column: usize| {
            columns
                .get(column)
                .and_then(|text| text.parse::<f64>().ok())
                .with_context(|| format!("column {column} of {line:?}"))
        };
        bits_per_second += number(8)?;
        if work.datagram.is_some() {
            lost += number(10)?;
            of += number(11)?;
        }
        flows += 1;
    }
    if flows == 0 {
        bail!("iperf's server reported nothing: {:?}", written.server);
    }
    Ok(Figure { value: work.rate(bits_per_second)?, lost: (of > 0.0).then(|| lost / of), p50_ns: None })
}

/// Reads the output of nuttcp `-fparse`. The receiver counted its megabytes (2^20 bytes).
pub(crate) fn nuttcp(written: &Written<'_>, work: WorkUnit) -> Result<Figure> {
    let field = |name: &str| {
        let words = written.client.split_whitespace();
        words.filter_map(|word| word.split_once('=')).find(|(key, _)| *key == name)?.1.parse::<f64>().ok()
    };
    let need = |name: &str| field(name).with_context(|| format!("nuttcp's report lacks {name}: {:?}", written.client));
    let value = work.rate(need("rate_Mbps")? * 1e6)?;
    let lost = match (field("drop"), field("pkt")) {
        (Some(drop), Some(sent)) if sent > 0.0 => Some(drop / sent),
        _ => None,
    };
    Ok(Figure { value, lost, p50_ns: None })
}

/// Reads the output of sockperf `ping-pong`, which reports half of the round-trip time.
pub(super) fn sockperf_ping_pong(written: &Written<'_>, _work: WorkUnit) -> Result<Figure> {
    let lacks = |what: &str| format!("sockperf's report lacks {what}: {:?}", written.client);
    let valid = written.client.lines().find(|line| line.contains("[Valid Duration]"));
    let valid = valid.with_context(|| lacks("[Valid Duration]"))?;
    let after = |text: &str, key: &str| number_after(text, key).with_context(|| lacks(key));
    let half_trip_us = after(written.client, "percentile 50.000 =")?;
    Ok(Figure {
        value: after(valid, "ReceivedMessages=")? / after(valid, "RunTime=")?,
        lost: None,
        p50_ns: Some(half_trip_us * 2.0 * 1e3),
    })
}

/// Reads the output of sockperf `throughput`. The client reports its messages and their time, the stopped server the
/// messages that arrived.
pub(super) fn sockperf_throughput(written: &Written<'_>, work: WorkUnit) -> Result<Figure> {
    let sent = number_after(written.client, "Total of ").context("sockperf's client does not say what it sent")?;
    let seconds =
        number_after(written.client, "messages sent in ").context("sockperf's client does not say how long")?;
    let arrived = number_after(written.server, "sockperf: Total ")
        .with_context(|| format!("sockperf's server does not say what arrived: {:?}", written.server))?;
    if work.unit != Unit::Datagrams {
        bail!("sockperf's throughput is in datagrams");
    }
    Ok(Figure { value: arrived / seconds, lost: Some((1.0 - arrived / sent).max(0.0)), p50_ns: None })
}

/// Reads the output of qperf `-v -uu`: bytes per second at the receiver, or one-way messages.
pub(super) fn qperf(written: &Written<'_>, work: WorkUnit) -> Result<Figure> {
    let field = |name: &str| {
        let lines = written.client.lines().filter_map(|line| line.split_once('='));
        let (_, value) = lines.into_iter().find(|(key, _)| key.trim() == name)?;
        value.split_whitespace().next()?.parse::<f64>().ok()
    };
    let need = |name: &str| field(name).with_context(|| format!("qperf's report lacks {name}: {:?}", written.client));
    if work.unit == Unit::Transactions {
        return Ok(Figure { value: need("msg_rate")? / 2.0, lost: None, p50_ns: None });
    }
    let received = field("recv_bw").map_or_else(|| need("bw"), Ok)?;
    let lost = match (field("send_bw"), field("recv_bw")) {
        (Some(sent), Some(received)) if sent > 0.0 => Some((1.0 - received / sent).max(0.0)),
        _ => None,
    };
    Ok(Figure { value: work.rate(received * 8.0)?, lost, p50_ns: None })
}

/// Reads netperf's omni output of `KEY=value` lines (`-k`).
pub(super) fn netperf(written: &Written<'_>, work: WorkUnit) -> Result<Figure> {
    let field = |name: &str| {
        let lines = written.client.lines().filter_map(|line| line.split_once('='));
        lines.into_iter().find(|(key, _)| *key == name)?.1.trim().parse::<f64>().ok()
    };
    let need = |name: &str| field(name).with_context(|| format!("netperf's report lacks {name}: {:?}", written.client));
    if work.unit == Unit::Transactions {
        return Ok(Figure {
            value: need("TRANSACTION_RATE")?,
            lost: None,
            p50_ns: field("P50_LATENCY").map(|microseconds| microseconds * 1e3),
        });
    }
    let received = need("REMOTE_BYTES_RECVD")?;
    let lost = match work.datagram {
        Some(_) => Some((1.0 - received / need("LOCAL_BYTES_SENT")?).max(0.0)),
        None => None,
    };
    Ok(Figure { value: work.rate(received * 8.0 / need("ELAPSED_TIME")?)?, lost, p50_ns: None })
}

/// Returns the number that follows `key`.
fn number_after(text: &str, key: &str) -> Option<f64> {
    let (_, rest) = text.split_once(key)?;
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    //! The texts in `captured` were written by the tools themselves over a veth pair: iperf3 3.12 and 3.21 (intervals
    //! left out), iperf 2.1.8, nuttcp 6.1.2, sockperf 3.7, qperf 0.4.11, netperf 2.7.1.

    use super::*;

    const TCP: WorkUnit = WorkUnit { unit: Unit::Payload, datagram: None };
    const TRANSACT: WorkUnit = WorkUnit { unit: Unit::Transactions, datagram: None };

    fn datagrams(unit: Unit, size: u32) -> WorkUnit {
        WorkUnit { unit, datagram: Some(size) }
    }

    fn client(text: &str) -> Written<'_> {
        Written { client: text, server: "" }
    }

    fn server(text: &str) -> Written<'_> {
        Written { client: "", server: text }
    }

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() <= expected.abs() * 1e-4, "{value} is not {expected}");
    }

    #[test]
    fn reads_linerate() {
        let stream = r#"{"results":[{"received":{"payload_bps":{"median":7e10},"packets_per_s":{"median":3e6}},
            "loss":{"lost":5,"of":1000},"transactions_per_s":null,"latency_ns":null}]}"#;
        let figure = linerate(&client(stream), TCP).unwrap();
        assert_eq!(figure, Figure { value: 7e10, lost: Some(0.005), p50_ns: None });
        assert_eq!(linerate(&client(stream), datagrams(Unit::Datagrams, 64)).unwrap().value, 3e6);
        let transact =
            r#"{"results":[{"transactions_per_s":{"median":70000.5},"latency_ns":{"p50":13000},"loss":null}]}"#;
        let figure = linerate(&client(transact), TRANSACT).unwrap();
        assert_eq!(figure, Figure { value: 70000.5, lost: None, p50_ns: Some(13000.0) });
        let frames =
            r#"{"results":[{"main":{"median":9e5},"flows":[{"sent":1000,"lost":20,"to_socket":{"at_port":990}}]}]}"#;
        let figure = linerate(&client(frames), datagrams(Unit::Datagrams, 64)).unwrap();
        assert_eq!(figure, Figure { value: 9e5, lost: Some(0.02), p50_ns: None });
        let error = linerate(&client(transact), TCP).unwrap_err().to_string();
        assert!(error.contains("payload_bps"), "{error}");
        assert!(linerate(&client("no host"), TCP).is_err());
    }

    #[test]
    fn reads_iperf3() {
        let figure = iperf3(&client(include_str!("captured/iperf3-tcp-2-flows.json")), TCP).unwrap();
        near(figure.value, 31_365_320_059.0);
        assert_eq!(figure.lost, None);
        // 34,217,728 bytes are 534,652 datagrams in 2.000044 s, of 536,060 sent.
        let udp = client(include_str!("captured/iperf3-udp-64.json"));
        let figure = iperf3(&udp, datagrams(Unit::Datagrams, 64)).unwrap();
        near(figure.value, 534_652.0 / 2.000044);
        near(figure.lost.unwrap(), 1408.0 / 536_060.0);
        // iperf3 counts 4,256,055 as lost, the omitted second among them; 2,146,905 of 6,419,250 arrived.
        let gsro = client(include_str!("captured/iperf3-gsro-1448.json"));
        let figure = iperf3(&gsro, datagrams(Unit::Payload, 1448)).unwrap();
        near(figure.value, 12_513_540_130.0);
        near(figure.lost.unwrap(), 1.0 - 2_146_905.0 / 6_419_250.0);
        let error = iperf3(&client(r#"{"error":"unable to connect"}"#), TCP).unwrap_err().to_string();
        assert!(error.contains("unable to connect"), "{error}");
    }

    #[test]
    fn reads_iperf() {
        let figure = iperf(&server(include_str!("captured/iperf-tcp-2-flows.csv")), TCP).unwrap();
        near(figure.value, 5_886_393_127.0 + 5_956_964_075.0);
        let udp = server(include_str!("captured/iperf-udp-1448.csv"));
        let figure = iperf(&udp, datagrams(Unit::Payload, 1448)).unwrap();
        near(figure.value, 2_704_676_155.0);
        near(figure.lost.unwrap(), 8763.0 / 475_728.0);
        assert!(iperf(&server("connect failed: Connection refused\n"), TCP).is_err());
    }

    #[test]
    fn reads_nuttcp() {
        let figure = nuttcp(&client(include_str!("captured/nuttcp-tcp.txt")), TCP).unwrap();
        near(figure.value, 17_001_478_000.0);
        assert_eq!(figure.lost, None);
        let udp = client(include_str!("captured/nuttcp-udp-64.txt"));
        let figure = nuttcp(&udp, datagrams(Unit::Datagrams, 64)).unwrap();
        near(figure.value, 123.7187e6 / 512.0);
        near(figure.lost.unwrap(), 4666.0 / 487_943.0);
        assert!(nuttcp(&client("nuttcp: connect: Connection refused"), TCP).is_err());
    }

    #[test]
    fn reads_sockperf() {
        let figure = sockperf_ping_pong(&client(include_str!("captured/sockperf-ping-pong.txt")), TRANSACT).unwrap();
        near(figure.value, 29_394.0 / 1.55);
        near(figure.p50_ns.unwrap(), 52_406.0);
        let written = Written {
            client: include_str!("captured/sockperf-throughput.client.txt"),
            server: include_str!("captured/sockperf-throughput.server.txt"),
        };
        let figure = sockperf_throughput(&written, datagrams(Unit::Datagrams, 64)).unwrap();
        near(figure.value, 460_372.0 / 2.0);
        near(figure.lost.unwrap(), 1.0 - 460_372.0 / 464_627.0);
        let silent = Written { server: "", ..written };
        assert!(sockperf_throughput(&silent, datagrams(Unit::Datagrams, 64)).is_err());
    }

    #[test]
    fn reads_qperf() {
        let figure = qperf(&client(include_str!("captured/qperf-tcp_bw.txt")), TCP).unwrap();
        near(figure.value, 2_149_777_408.0 * 8.0);
        let udp = client(include_str!("captured/qperf-udp_bw-64.txt"));
        let figure = qperf(&udp, datagrams(Unit::Datagrams, 64)).unwrap();
        near(figure.value, 15_963_200.0 / 64.0);
        near(figure.lost.unwrap(), 1.0 - 15_963_200.0 / 16_134_656.0);
        let figure = qperf(&client(include_str!("captured/qperf-udp_lat.txt")), TRANSACT).unwrap();
        near(figure.value, 31_279.0 / 2.0);
        assert!(qperf(&client("b: failed to connect"), TCP).is_err());
    }

    #[test]
    fn reads_netperf() {
        let figure = netperf(&client(include_str!("captured/netperf-tcp.txt")), TCP).unwrap();
        assert_eq!(figure, Figure { value: 3_186_622_464.0 * 8.0 / 2.0, lost: None, p50_ns: None });
        let udp = client(include_str!("captured/netperf-udp-64.txt"));
        let figure = netperf(&udp, datagrams(Unit::Datagrams, 64)).unwrap();
        near(figure.value, 19_003_264.0 / 64.0 / 2.0);
        near(figure.lost.unwrap(), 1.0 - 19_003_264.0 / 22_653_632.0);
        let figure = netperf(&client(include_str!("captured/netperf-tcp-rr.txt")), TRANSACT).unwrap();
        assert_eq!(figure, Figure { value: 13_602.185, lost: None, p50_ns: Some(39_000.0) });
        assert!(netperf(&client("establish control: are you sure there is a netserver"), TCP).is_err());
    }
}
