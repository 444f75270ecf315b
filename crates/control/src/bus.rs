//! Requests to an agent by the NATS of its fleet.

use crate::dial::Route;
use crate::transport::{Answer, Ask, Transport, TransportError};
use crate::wire_times::WireTimes;
use crate::{FENCE_HEADER, PROTOCOL, PROTOCOL_HEADER, REPEATED_HEADER};
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, TryStreamExt as _};
use linerate_bus::{AgentName, Bus, Request};

/// Transport by NATS to one agent. NATS connects again by itself.
#[derive(Debug)]
pub(crate) struct BusTransport {
    bus: Bus,
    agent: AgentName,
    /// Fence of the scheduler that sends the requests. `None` for a person's requests.
    fence: Option<u64>,
}

impl BusTransport {
    pub(crate) fn new(bus: Bus, agent: AgentName, fence: Option<u64>) -> Self {
        Self { bus, agent, fence }
    }

    fn request(&self, ask: &Ask) -> Request {
        let mut headers = vec![(PROTOCOL_HEADER.to_owned(), PROTOCOL.to_string())];
        if ask.is_repeated {
            headers.push((REPEATED_HEADER.to_owned(), "1".to_owned()));
        }
        if let Some(fence) = self.fence {
            headers.push((FENCE_HEADER.to_owned(), fence.to_string()));
        }
        if ask.body.is_some() {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        Request {
            method: ask.method.to_string(),
            path: ask.encoded_path(),
            headers,
            body: ask.body.clone().unwrap_or_default(),
        }
    }
}

impl Transport for BusTransport {
    fn send<'a>(&'a self, ask: &'a Ask) -> BoxFuture<'a, Result<Answer, TransportError>> {
        Box::pin(async move {
            let response = self.bus.call(&self.agent, self.request(ask)).await?;
            Ok(Answer {
                status: response.head.status,
                protocol: response.head.header(PROTOCOL_HEADER).map(str::to_owned),
                times: WireTimes::at(response.sent_ns, response.body.received_ns()),
                pieces: response.body.map_err(TransportError::from).boxed(),
            })
        })
    }

    fn renew(&self) {}

    fn route(&self) -> Option<Route> {
        None
    }
}
