//! Requests of Prometheus remote write 1.0: protocol buffers, compressed by Snappy.
//! <https://prometheus.io/docs/specs/prw/remote_write_spec/>

use super::family::Family;
use super::registry::{Metrics, SampleSink};

/// Name of the label with the name of the metric.
const NAME_LABEL: &str = "__name__";

/// Most series of a request, as Prometheus sends by default.
const MAX_SERIES: usize = 2_000;

/// A request body and the number of samples in it.
#[derive(Debug, PartialEq)]
pub(super) struct WriteRequest {
    pub(super) body: Vec<u8>,
    pub(super) samples: usize,
}

/// Encodes every series at `unix_ms`, with `labels` added to each, as requests of at most 2,000 series.
///
/// A label of the series takes precedence over one of `labels` with the same name.
///
/// # Errors
/// The compressor refuses the data, which it does above 4 GiB.
pub(super) fn requests(
    metrics: &Metrics,
    labels: &[(String, String)],
    unix_ms: i64,
) -> Result<Vec<WriteRequest>, snap::Error> {
    let mut encoder = Encoder { common: labels, unix_ms, family: "", messages: vec![Vec::new()], last_samples: 0 };
    metrics.visit(&mut encoder);
    let full = encoder.messages.len() - 1;
    let mut requests = Vec::new();
    for (index, message) in encoder.messages.iter().enumerate() {
        let samples = if index == full { encoder.last_samples } else { MAX_SERIES };
        if samples > 0 {
            let body = snap::raw::Encoder::new().compress_vec(message)?;
            requests.push(WriteRequest { body, samples });
        }
    }
    Ok(requests)
}

struct Encoder<'a> {
    common: &'a [(String, String)],
    unix_ms: i64,
    family: &'static str,
    messages: Vec<Vec<u8>>,
    /// Samples of the last message.
    last_samples: usize,
}

impl SampleSink for Encoder<'_> {
    fn family(&mut self, family: Family) {
        self.family = family.name();
    }

    fn sample(&mut self, labels: &[(&'static str, &str)], value: f64) {
        let common = self.common.iter().map(|(label, value)| (label.as_str(), value.as_str()));
        let mut all: Vec<(&str, &str)> =
            common.filter(|(label, _)| labels.iter().all(|(other, _)| other != label)).collect();
        all.extend(labels);
        all.push((NAME_LABEL, self.family));
        // The receiver may refuse labels out of order.
        all.sort_unstable_by_key(|(label, _)| *label);

        let mut series = Vec::new();
        for (label, value) in all {
            let mut message = Vec::new();
            push_bytes(&mut message, 1, label.as_bytes());
            push_bytes(&mut message, 2, value.as_bytes());
            push_bytes(&mut series, 1, &message);
        }
        let mut sample = Vec::new();
        push_tag(&mut sample, 1, WireType::Fixed64);
        sample.extend(value.to_le_bytes());
        push_tag(&mut sample, 2, WireType::Varint);
        push_varint(&mut sample, self.unix_ms.cast_unsigned());
        push_bytes(&mut series, 2, &sample);

        if self.last_samples == MAX_SERIES {
            self.messages.push(Vec::new());
            self.last_samples = 0;
        }
        if let Some(message) = self.messages.last_mut() {
            push_bytes(message, 1, &series);
            self.last_samples += 1;
        }
    }
}

/// Wire types of protocol buffers.
#[derive(Clone, Copy)]
enum WireType {
    Varint = 0,
    Fixed64 = 1,
    LengthDelimited = 2,
}

fn push_tag(message: &mut Vec<u8>, field: u64, wire_type: WireType) {
    push_varint(message, field << 3 | wire_type as u64);
}

fn push_bytes(message: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    push_tag(message, field, WireType::LengthDelimited);
    push_varint(message, bytes.len() as u64);
    message.extend_from_slice(bytes);
}

fn push_varint(message: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        message.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    message.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::registry::tests::stream;

    /// Message of the protobuf documentation: field 1 is 150, field 2 is "testing".
    #[test]
    fn encoding_is_that_of_protocol_buffers() {
        let mut message = Vec::new();
        push_tag(&mut message, 1, WireType::Varint);
        push_varint(&mut message, 150);
        push_bytes(&mut message, 2, b"testing");
        assert_eq!(message, [0x08, 0x96, 0x01, 0x12, 0x07, b't', b'e', b's', b't', b'i', b'n', b'g']);
    }

    #[test]
    fn series_are_split_into_requests() {
        let metrics = Metrics::default();
        for number in 0..700 {
            metrics.record_pair(stream("a", &format!("host-{number}"), 1, 1e9));
        }
        let requests = requests(&metrics, &[], 1).expect("requests");
        let samples: Vec<usize> = requests.iter().map(|request| request.samples).collect();
        // Five metrics of each pair, and `linerate_pairs`, build_info and three counters.
        assert_eq!(samples, [2_000, 1_505]);
    }

    #[test]
    fn labels_are_sorted_and_those_of_the_series_prevail() {
        let metrics = Metrics::default();
        metrics.record_pair(stream("a", "b", 1, 1e9));
        let common = [("to".to_owned(), "lost".to_owned()), ("fleet".to_owned(), "lab".to_owned())];
        let requests = requests(&metrics, &common, 1).expect("requests");
        let message = snap::raw::Decoder::new().decompress_vec(&requests[0].body).expect("Snappy");
        let mut expected = Vec::new();
        let name = "linerate_pair_throughput_bits_per_second";
        for (label, value) in [("__name__", name), ("fleet", "lab"), ("from", "a"), ("test", "stream"), ("to", "b")] {
            let mut pair = Vec::new();
            push_bytes(&mut pair, 1, label.as_bytes());
            push_bytes(&mut pair, 2, value.as_bytes());
            push_bytes(&mut expected, 1, &pair);
        }
        assert!(message.windows(expected.len()).any(|window| window == expected));
    }
}
