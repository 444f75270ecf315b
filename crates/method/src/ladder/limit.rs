//! The lowest layer: the calculated capacity of the line in full frames. It counts their UDP payload, so that a path that
//! loses nothing shows 100 % at raw frames and at UDP.

use super::{Facts, Figure, Layer, efficiency, line_payload};
use linerate_model::{Firmness, LayerName, Message, Summary, Transport, message};

pub(super) struct Limit;

impl Layer for Limit {
    fn name(&self) -> LayerName {
        LayerName::Limit
    }

    fn figure(&self, facts: &Facts<'_>) -> Result<Figure, Message> {
        let line = facts.line().ok_or_else(|| {
            message!(
                "ladder-no-link-speed",
                "no link speed is known on this path; tell the agents with --link-speed IF=RATE to see each \
                 layer's share of the line"
            )
        })?;
        let (ip, mtu) = (facts.plan.ip, facts.plan.mtu);
        let most = line_payload(line, ip, mtu);
        Ok(Figure {
            payload_bps: Summary { median: most, low: most, high: most, runs: 0, values: Vec::new(), interval: None },
            efficiency: efficiency(Transport::Udp, ip, ip.datagram_within(mtu), mtu),
            latency: None,
            verdict: None,
            results: Vec::new(),
            bears: true,
            firmness: Firmness::Firm,
        })
    }

    fn advice(&self, _facts: &Facts<'_>) -> Option<Message> {
        // Nothing is below the ground.
        None
    }
}
