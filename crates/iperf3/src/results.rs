//! What both ends tell each other after a test: the second JSON text.

use crate::cpu::CpuUse;
use linerate_units::Nanos;
use serde_json::{Map, Value, json};

/// No test moves so much: 72 petabytes take a day at 6 Tbit/s.
const MOST: u64 = 1 << 56;
/// No test lasts so long, seconds: iperf3 allows a day.
const MOST_S: f64 = 1e6;

/// What an end tells of one flow.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FlowResult {
    /// Its id, see [`ids`].
    pub(crate) id: u64,
    /// Payload bytes sent or received, the warm-up left out.
    pub(crate) bytes: u64,
    /// TCP: segments that the end sent again; none where it does not know.
    pub(crate) retransmits: Option<u64>,
    /// UDP: as in RFC 3550.
    pub(crate) jitter: Nanos,
    /// UDP: datagrams missing at the end.
    pub(crate) lost: u64,
    /// UDP: of them, those of the warm-up; none from versions that do not tell them apart.
    pub(crate) lost_in_warmup: Option<u64>,
    /// UDP: datagrams of the warm-up among `datagrams`; none from versions that do not tell them apart.
    pub(crate) datagrams_in_warmup: Option<u64>,
    /// UDP: datagrams sent, or the highest number that arrived, warm-up included.
    pub(crate) datagrams: u64,
    /// The time that the bytes took, the warm-up left out.
    pub(crate) time: Nanos,
}

/// What an end tells of a whole test.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TestResults {
    /// Of the process, while the test lasted.
    pub(crate) cpu: CpuUse,
    /// TCP: the congestion control of its sockets.
    pub(crate) congestion: Option<String>,
    /// Whether it counts what it sends again.
    pub(crate) counts_retransmits: bool,
    /// Each flow.
    pub(crate) flows: Vec<FlowResult>,
}

/// The ids of `count` flows in the order in which they were opened. iperf3 leaves out 2, and refuses results with other ids.
pub(crate) fn ids(count: usize) -> impl Iterator<Item = u64> {
    std::iter::once(1).chain(3..).take(count)
}

impl TestResults {
    /// The text in which it is told.
    pub(crate) fn encode(&self) -> Value {
        let flow = |flow: &FlowResult| {
            let mut told = Map::new();
            let mut tell = |name: &str, value: Value| told.insert(name.to_owned(), value);
            tell("id", json!(flow.id));
            tell("bytes", json!(flow.bytes));
            tell("retransmits", flow.retransmits.map_or(json!(-1), |count| json!(count)));
            tell("jitter", json!(flow.jitter.as_secs_f64()));
            tell("errors", json!(flow.lost));
            tell("packets", json!(flow.datagrams));
            if let Some(lost) = flow.lost_in_warmup {
                tell("omitted_errors", json!(lost));
            }
            if let Some(datagrams) = flow.datagrams_in_warmup {
                tell("omitted_packets", json!(datagrams));
            }
            tell("start_time", json!(0));
            tell("end_time", json!(flow.time.as_secs_f64()));
            Value::Object(told)
        };
        let mut told = json!({
            "cpu_util_total": self.cpu.user + self.cpu.system,
            "cpu_util_user": self.cpu.user,
            "cpu_util_system": self.cpu.system,
            "sender_has_retransmits": i32::from(self.counts_retransmits),
            "streams": self.flows.iter().map(flow).collect::<Vec<_>>(),
        });
        if let Some(congestion) = &self.congestion {
            told["congestion_used"] = json!(congestion);
        }
        told
    }

    /// Reads what the other end told of `count` flows, in their order.
    ///
    /// # Errors
    /// Something is missing, or cannot have been counted. The message says what.
    pub(crate) fn decode(told: &Value, count: usize) -> Result<Self, String> {
        let flows = told.get("streams").and_then(Value::as_array).ok_or("its results name no `streams`")?;
        if flows.len() != count {
            return Err(format!("its results have {} streams, and there were {count}", flows.len()));
        }
        let of_id = |id: u64| {
            let flow = flows.iter().find(|flow| flow.get("id").and_then(Value::as_u64) == Some(id));
            flow.ok_or_else(|| format!("its results have no stream {id}")).and_then(|flow| read_flow(id, flow))
        };
        let percent = |name: &str| told.get(name).and_then(Value::as_f64).filter(|share| *share >= 0.0).unwrap_or(0.0);
        Ok(Self {
            cpu: CpuUse { user: percent("cpu_util_user"), system: percent("cpu_util_system") },
            congestion: told.get("congestion_used").and_then(Value::as_str).map(str::to_owned),
            counts_retransmits: told.get("sender_has_retransmits").and_then(Value::as_i64) == Some(1),
            flows: ids(count).map(of_id).collect::<Result<_, _>>()?,
        })
    }
}

fn read_flow(id: u64, flow: &Value) -> Result<FlowResult, String> {
    let count = |name: &str| match flow.get(name) {
        None => Err(format!("stream {id} of its results has no `{name}`")),
        Some(value) => match value.as_u64().filter(|count| *count <= MOST) {
            Some(count) => Ok(count),
            None => Err(format!("stream {id} of its results has {value} as `{name}`, which cannot be")),
        },
    };
    let seconds = |name: &str| {
        let value = flow.get(name).and_then(Value::as_f64);
        let value = value.ok_or_else(|| format!("stream {id} of its results has no `{name}`"))?;
        match (0.0..=MOST_S).contains(&value) {
            true => Ok(value),
            false => Err(format!("stream {id} of its results has {value} as `{name}`, which cannot be")),
        }
    };
    let nanos = |seconds: f64| Nanos::new((seconds * 1e9).round() as u64);
    let time = nanos((seconds("end_time")? - seconds("start_time")?).max(0.0));
    let bytes = count("bytes")?;
    if bytes > 0 && time.is_zero() {
        return Err(format!("stream {id} of its results moved {bytes} bytes in no time, which cannot be"));
    }
    Ok(FlowResult {
        id,
        bytes,
        // Where it does not know, it tells -1, or the same as an unsigned number.
        retransmits: count("retransmits").ok(),
        jitter: nanos(seconds("jitter")?),
        // A datagram that comes late after all is taken off again, also where it had not been counted.
        lost: match flow.get("errors").and_then(Value::as_i64) {
            Some(..0) => 0,
            _ => count("errors")?,
        },
        lost_in_warmup: flow.get("omitted_errors").and_then(Value::as_u64).filter(|count| *count <= MOST),
        datagrams_in_warmup: flow.get("omitted_packets").and_then(Value::as_u64).filter(|count| *count <= MOST),
        datagrams: count("packets")?,
        time,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a server of iperf3 3.12 told of two flows of UDP, as it was captured.
    const CAPTURED: &str = r#"{"cpu_util_total":0.248,"cpu_util_user":0,"cpu_util_system":0.248,
        "sender_has_retransmits":18446744073709551615,"streams":[
        {"id":1,"bytes":124000,"retransmits":18446744073709551615,"jitter":2.01051765217919e-05,"errors":3,"packets":250,
         "start_time":0,"end_time":1.003889},
        {"id":3,"bytes":124000,"retransmits":18446744073709551615,"jitter":1.7e-05,"errors":0,"packets":250,
         "start_time":0,"end_time":1.003892}]}"#;

    fn captured() -> Value {
        serde_json::from_str(CAPTURED).expect("JSON")
    }

    #[test]
    fn what_iperf3_tells_is_read() {
        let told = TestResults::decode(&captured(), 2).expect("valid");
        assert!(!told.counts_retransmits && told.congestion.is_none());
        let first = FlowResult {
            id: 1,
            bytes: 124_000,
            retransmits: None,
            jitter: Nanos::new(20_105),
            lost: 3,
            lost_in_warmup: None,
            datagrams_in_warmup: None,
            datagrams: 250,
            time: Nanos::new(1_003_889_000),
        };
        assert_eq!((told.flows[0].clone(), told.flows[1].id), (first, 3));
    }

    #[test]
    fn what_is_told_is_read_again() {
        let flow = |id| FlowResult {
            id,
            bytes: 7,
            retransmits: Some(2),
            lost_in_warmup: Some(1),
            datagrams_in_warmup: Some(3),
            lost: 4,
            datagrams: 9,
            time: Nanos::from_secs(2),
            ..FlowResult::default()
        };
        let told = TestResults {
            cpu: CpuUse { user: 10.0, system: 20.0 },
            congestion: Some("cubic".to_owned()),
            counts_retransmits: true,
            flows: ids(3).map(flow).collect(),
        };
        assert_eq!(TestResults::decode(&told.encode(), 3), Ok(told));
        assert_eq!(ids(5).collect::<Vec<_>>(), [1, 3, 4, 5, 6]);
    }

    #[test]
    fn counts_that_cannot_be_are_refused() {
        let with = |name: &str, value: Value| {
            let mut told = captured();
            told["streams"][0][name] = value;
            TestResults::decode(&told, 2)
        };
        for (name, value) in [
            ("bytes", json!(-5)),
            ("bytes", json!(1e30)),
            ("bytes", json!("7")),
            ("bytes", json!(u64::MAX)),
            ("packets", json!(-1)),
            ("errors", json!(2.5)),
            ("jitter", json!(-0.1)),
            ("end_time", json!(1e300)),
            ("end_time", json!(0)),
            ("id", json!(2)),
        ] {
            let error = with(name, value.clone()).expect_err(name);
            assert!(error.contains("stream 1"), "{name} {value}: {error}");
        }
        assert_eq!(with("errors", json!(-2)).expect("late datagrams").flows[0].lost, 0);
        assert!(TestResults::decode(&captured(), 1).is_err_and(|error| error.contains("2 streams")));
        assert!(TestResults::decode(&json!({}), 0).is_err());
    }
}
