//! Results that both ends send each other after a test: the second JSON text.

use crate::cpu::CpuUse;
use linerate_units::Nanos;
use serde_json::{Value, json};
use std::fmt::Display;

/// Largest valid count: 72 petabytes take a day at 6 Tbit/s.
const MAX_COUNT: u64 = 1 << 56;
/// Longest valid time in seconds. iperf3 allows a day.
const MAX_S: f64 = 1e6;

/// Results of one flow at one end.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FlowResult {
    /// Id of the flow, see [`ids`].
    pub(crate) id: u64,
    /// Payload bytes sent or received, the warm-up left out.
    pub(crate) bytes: u64,
    /// TCP: segments that the end sent again. `None` if it does not count them.
    pub(crate) retransmits: Option<u64>,
    /// UDP: jitter as in RFC 3550.
    pub(crate) jitter: Nanos,
    /// UDP: datagrams missing at the end.
    pub(crate) lost: u64,
    /// UDP: datagrams of the warm-up among `lost`. `None` from versions that do not report them.
    pub(crate) lost_in_warmup: Option<u64>,
    /// UDP: datagrams of the warm-up among `datagrams`. `None` from versions that do not report them.
    pub(crate) datagrams_in_warmup: Option<u64>,
    /// UDP: datagrams sent, or the highest number that arrived, warm-up included.
    pub(crate) datagrams: u64,
    /// Duration of the transfer, without the warm-up.
    pub(crate) time: Nanos,
}

/// Results of a whole test at one end.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TestResults {
    /// CPU use of the process during the test.
    pub(crate) cpu: CpuUse,
    /// TCP: congestion control of the sockets.
    pub(crate) congestion: Option<String>,
    /// Whether the end counts retransmits.
    pub(crate) counts_retransmits: bool,
    pub(crate) flows: Vec<FlowResult>,
}

/// Returns the ids of `count` flows in their order of opening. iperf3 leaves out 2, and refuses results with other ids.
pub(crate) fn ids(count: usize) -> impl Iterator<Item = u64> {
    std::iter::once(1).chain(3..).take(count)
}

impl TestResults {
    /// Encodes the results as JSON.
    pub(crate) fn encode(&self) -> Value {
        let mut text = json!({
            "cpu_util_total": self.cpu.user + self.cpu.system,
            "cpu_util_user": self.cpu.user,
            "cpu_util_system": self.cpu.system,
            "sender_has_retransmits": i32::from(self.counts_retransmits),
            "streams": self.flows.iter().map(FlowResult::encode).collect::<Vec<_>>(),
        });
        if let Some(congestion) = &self.congestion {
            text["congestion_used"] = json!(congestion);
        }
        text
    }

    /// Reads the results of the other end for `count` flows, in their order.
    ///
    /// # Errors
    /// A value is missing or impossible. The message names it.
    pub(crate) fn decode(text: &Value, count: usize) -> Result<Self, String> {
        let streams = text.get("streams").and_then(Value::as_array).ok_or("its results name no `streams`")?;
        if streams.len() != count {
            return Err(format!("its results have {} streams, and there were {count}", streams.len()));
        }
        let mut flows = Vec::new();
        for id in ids(count) {
            let fields = streams.iter().find(|stream| stream.get("id").and_then(Value::as_u64) == Some(id));
            let fields = fields.ok_or_else(|| format!("its results have no stream {id}"))?;
            flows.push(FlowFields { id, fields }.result()?);
        }
        Ok(Self {
            cpu: CpuUse { user: percent(text, "cpu_util_user"), system: percent(text, "cpu_util_system") },
            congestion: text.get("congestion_used").and_then(Value::as_str).map(str::to_owned),
            counts_retransmits: text.get("sender_has_retransmits").and_then(Value::as_i64) == Some(1),
            flows,
        })
    }
}

/// Reads a percentage; zero if it is missing or invalid.
fn percent(text: &Value, name: &str) -> f64 {
    text.get(name).and_then(Value::as_f64).filter(|percent| *percent >= 0.0).unwrap_or(0.0)
}

impl FlowResult {
    fn encode(&self) -> Value {
        let mut text = json!({
            "id": self.id,
            "bytes": self.bytes,
            "retransmits": self.retransmits.map_or(json!(-1), |count| json!(count)),
            "jitter": self.jitter.as_secs_f64(),
            "errors": self.lost,
            "packets": self.datagrams,
            "start_time": 0,
            "end_time": self.time.as_secs_f64(),
        });
        if let Some(lost) = self.lost_in_warmup {
            text["omitted_errors"] = json!(lost);
        }
        if let Some(datagrams) = self.datagrams_in_warmup {
            text["omitted_packets"] = json!(datagrams);
        }
        text
    }
}

/// JSON fields of one flow.
struct FlowFields<'a> {
    id: u64,
    fields: &'a Value,
}

impl FlowFields<'_> {
    fn result(&self) -> Result<FlowResult, String> {
        let id = self.id;
        let time = nanos((self.seconds("end_time")? - self.seconds("start_time")?).max(0.0));
        let bytes = self.count("bytes")?;
        if bytes > 0 && time.is_zero() {
            return Err(format!("stream {id} of its results moved {bytes} bytes in no time, which cannot be"));
        }
        Ok(FlowResult {
            id,
            bytes,
            // An end that does not count them sends -1, or the same as an unsigned number.
            retransmits: self.count("retransmits").ok(),
            jitter: nanos(self.seconds("jitter")?),
            // A late datagram is subtracted again, even if it had not been counted as lost.
            lost: match self.fields.get("errors").and_then(Value::as_i64) {
                Some(..0) => 0,
                _ => self.count("errors")?,
            },
            lost_in_warmup: self.optional_count("omitted_errors"),
            datagrams_in_warmup: self.optional_count("omitted_packets"),
            datagrams: self.count("packets")?,
            time,
        })
    }

    fn count(&self, name: &str) -> Result<u64, String> {
        match (self.fields.get(name), self.optional_count(name)) {
            (_, Some(count)) => Ok(count),
            (None, None) => Err(self.missing(name)),
            (Some(value), None) => Err(self.impossible(value, name)),
        }
    }

    fn optional_count(&self, name: &str) -> Option<u64> {
        self.fields.get(name).and_then(Value::as_u64).filter(|count| *count <= MAX_COUNT)
    }

    fn seconds(&self, name: &str) -> Result<f64, String> {
        let value = self.fields.get(name).and_then(Value::as_f64).ok_or_else(|| self.missing(name))?;
        if (0.0..=MAX_S).contains(&value) { Ok(value) } else { Err(self.impossible(value, name)) }
    }

    fn missing(&self, name: &str) -> String {
        format!("stream {} of its results has no `{name}`", self.id)
    }

    fn impossible(&self, value: impl Display, name: &str) -> String {
        format!("stream {} of its results has {value} as `{name}`, which cannot be", self.id)
    }
}

fn nanos(seconds: f64) -> Nanos {
    Nanos::new((seconds * 1e9).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results of two UDP flows, captured from an iperf3 3.12 server.
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
    fn captured_results_are_read() {
        let results = TestResults::decode(&captured(), 2).expect("valid");
        assert!(!results.counts_retransmits && results.congestion.is_none());
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
        assert_eq!((results.flows[0].clone(), results.flows[1].id), (first, 3));
    }

    #[test]
    fn encoded_results_are_read_back() {
        let flow = FlowResult {
            bytes: 7,
            retransmits: Some(2),
            lost_in_warmup: Some(1),
            datagrams_in_warmup: Some(3),
            lost: 4,
            datagrams: 9,
            time: Nanos::from_secs(2),
            ..FlowResult::default()
        };
        let results = TestResults {
            cpu: CpuUse { user: 10.0, system: 20.0 },
            congestion: Some("cubic".to_owned()),
            counts_retransmits: true,
            flows: ids(3).map(|id| FlowResult { id, ..flow.clone() }).collect(),
        };
        assert_eq!(TestResults::decode(&results.encode(), 3), Ok(results));
        assert_eq!(ids(5).collect::<Vec<_>>(), [1, 3, 4, 5, 6]);
    }

    #[test]
    fn impossible_counts_are_refused() {
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
            let error = decode_with(name, value.clone()).expect_err(name);
            assert!(error.contains("stream 1"), "{name} {value}: {error}");
        }
        assert_eq!(decode_with("errors", json!(-2)).expect("late datagrams").flows[0].lost, 0);
        assert!(TestResults::decode(&captured(), 1).is_err_and(|error| error.contains("2 streams")));
        assert!(TestResults::decode(&json!({}), 0).is_err());
    }

    /// Reads the captured results with another value in the first flow.
    fn decode_with(name: &str, value: Value) -> Result<TestResults, String> {
        let mut text = captured();
        text["streams"][0][name] = value;
        TestResults::decode(&text, 2)
    }
}
