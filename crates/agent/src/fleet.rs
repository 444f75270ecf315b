//! The agent's API by the NATS of a fleet: the same routes, without a port of its own.

use crate::StartError;
use crate::connection_gate::PER_CREDENTIAL;
use crate::error_response::ErrorResponse;
use crate::grant::Grant;
use crate::origin::Origin;
use crate::routes::{is_for_strangers, router};
use crate::shared::Shared;
use axum::Router;
use axum::body::{Body, BodyDataStream};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use linerate_bus::{
    Arrival, Bus, Call, Head, InstanceNotice, Instances, Link, OtherInstance, Presence, Request, RequestQueue,
};
use linerate_control::{ErrorKind, PROTOCOL, PROTOCOL_HEADER};
use linerate_sys::clock;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tower_service::Service as _;

/// Interval of the agent's signs of life.
const PRESENCE: Duration = Duration::from_secs(10);

/// Time for the last sign of life.
const FAREWELL: Duration = Duration::from_millis(500);

/// An agent's membership in a fleet, which serves requests until it is dropped.
#[derive(Debug)]
pub(crate) struct FleetMembership {
    bus: Bus,
    service: JoinHandle<()>,
    presence: Presence,
}

impl FleetMembership {
    /// Serves the API to the fleet that `bus` connects to.
    ///
    /// # Errors
    /// Another process serves with the same credentials, or the connection is closed.
    pub(crate) async fn begin(bus: Bus, shared: Arc<Shared>) -> Result<Self, StartError> {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let instance = format!("{:016x}", rand::random::<u64>());
        let started = u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX);
        let mut instances = Instances::new(instance.clone(), shared.host.name.0.clone(), started);
        let other = instances.find_other(&bus).await?;
        if let Some(InstanceNotice { instance, host, .. }) = other {
            return Err(StartError::Cloned { agent: bus.credentials().name.to_string(), instance, host });
        }
        let queue = bus.requests().await?;
        instances.begin_to_serve();
        instances.announce(&bus).await?;
        let credentials = bus.credentials();
        let presence = Presence {
            name: credentials.name.clone(),
            instance,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            protocol: PROTOCOL,
            labels: credentials.labels.clone(),
            sessions: 0,
            leaving: false,
        };
        shared.sessions.report.line(&format!(
            "connected to the fleet {} at {} as {}",
            credentials.fleet,
            bus.servers(),
            credentials.name
        ));
        let service = FleetService {
            link: bus.link(),
            bus: bus.clone(),
            router: router(Arc::clone(&shared)),
            shared,
            instances,
            presence: presence.clone(),
        };
        Ok(Self { bus, service: tokio::spawn(service.run(queue)), presence })
    }

    /// Publishes that the agent ends, and serves no further request.
    pub(crate) async fn leave(&mut self) {
        let presence = Presence { leaving: true, ..self.presence.clone() };
        let farewell = async {
            publish(&self.bus, &presence).await;
            let _ = self.bus.client().flush().await;
        };
        if self.bus.is_up() {
            let _ = tokio::time::timeout(FAREWELL, farewell).await;
        }
        self.service.abort();
    }
}

impl Drop for FleetMembership {
    fn drop(&mut self) {
        self.service.abort();
    }
}

struct FleetService {
    bus: Bus,
    link: watch::Receiver<Link>,
    router: Router,
    shared: Arc<Shared>,
    instances: Instances,
    presence: Presence,
}

impl FleetService {
    /// Serves requests until the connection is closed for good, or another process with the same credentials prevails.
    async fn run(mut self, mut queue: RequestQueue) {
        let mut tick = tokio::time::interval(PRESENCE);
        loop {
            tokio::select! {
                arrival = queue.next() => match arrival {
                    Some(Arrival::Call(call)) => self.serve(call),
                    Some(Arrival::Instance(notice)) => {
                        if self.gives_way_to(&notice).await {
                            return;
                        }
                    }
                    None => return,
                },
                _ = tick.tick() => self.show_presence().await,
                changed = self.link.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    self.report_link().await;
                }
            }
        }
    }

    /// Answers a request in a task of its own.
    fn serve(&self, call: Box<Call>) {
        let received_ns = clock::now();
        let origin = Origin { peer: None, zone: None, received_ns };
        let router = self.router.clone();
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            let request = call.request.clone();
            let in_progress = call.in_progress;
            call.answer(async move {
                let response = match request {
                    _ if in_progress > PER_CREDENTIAL => too_many(),
                    Ok(request) => answer(request, origin, router, &shared).await,
                    Err(error) => ErrorResponse::new(ErrorKind::BadRequest, error.to_string()).into_response(),
                };
                split(response)
            })
            .await;
        });
    }

    /// Weighs the notice of a process with the same credentials. Returns whether this one leaves the fleet.
    async fn gives_way_to(&self, notice: &InstanceNotice) -> bool {
        match self.instances.weigh(notice) {
            OtherInstance::Own => false,
            OtherInstance::GivesWay => {
                let _ = self.instances.announce(&self.bus).await;
                false
            }
            OtherInstance::Prevails => {
                self.shared.sessions.report.line(&format!(
                    "an older process on {} serves the fleet with the credentials of {} too, so this one leaves the fleet; enrol \
                     one of the two hosts again",
                    notice.host,
                    self.bus.credentials().name
                ));
                true
            }
        }
    }

    async fn report_link(&mut self) {
        let link = *self.link.borrow_and_update();
        let fleet = &self.bus.credentials().fleet;
        match link {
            Link::Down => self.shared.sessions.report.line(&format!(
                "lost the connection to the fleet {fleet}; sessions that nobody leads stop within {} s; it connects again by itself",
                self.shared.timeouts.unfollowed.as_secs()
            )),
            Link::Up => {
                self.shared.sessions.report.line(&format!("connected to the fleet {fleet} again"));
                // Another process may have come while this one was away.
                let _ = self.instances.announce(&self.bus).await;
                self.show_presence().await;
            }
        }
    }

    /// Publishes a sign of life. While the connection is down there is none: it would arrive late.
    async fn show_presence(&self) {
        if self.bus.is_up() {
            let sessions = u32::try_from(self.shared.sessions.count_under_way()).unwrap_or(u32::MAX);
            publish(&self.bus, &Presence { sessions, ..self.presence.clone() }).await;
        }
    }
}

async fn publish(bus: &Bus, presence: &Presence) {
    let subject = bus.subjects().from_agent(&presence.name, "presence");
    let text = serde_json::to_vec(presence).expect("presence has text keys only");
    // A missing sign of life is followed by another.
    let _ = bus.client().publish(subject, text.into()).await;
}

/// Answers a request by the routes of the API. The permissions of NATS decide who may send one, so it has the rights of
/// the agent's owner.
async fn answer(request: Request, origin: Origin, mut router: Router, shared: &Shared) -> Response {
    let path = request.path.split('?').next().unwrap_or_default();
    if is_for_strangers(path) {
        return ErrorResponse::new(ErrorKind::NotFound, "members of a fleet do not pair").into_response();
    }
    let mut headers = HeaderMap::new();
    for (name, value) in &request.headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            headers.append(name, value);
        }
    }
    let built = axum::http::Request::builder().method(request.method.as_str()).uri(&request.path);
    let mut request = match built.body(Body::from(request.body)) {
        Ok(request) => request,
        Err(error) => return ErrorResponse::new(ErrorKind::BadRequest, error.to_string()).into_response(),
    };
    *request.headers_mut() = headers;
    request.extensions_mut().insert(origin);
    request.extensions_mut().insert(Grant::of_owner(&shared.limits));
    match router.call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

fn too_many() -> Response {
    let message = format!(
        "{PER_CREDENTIAL} requests of the fleet are in progress, which is the most; end programs that follow sessions here"
    );
    ErrorResponse::new(ErrorKind::Limit, message).into_response()
}

/// Divides an answer into its head and its body.
fn split(response: Response) -> (Head, BodyDataStream) {
    let (parts, body) = response.into_parts();
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let mut headers: Vec<(String, String)> =
        parts.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
    headers.push((PROTOCOL_HEADER.to_owned(), PROTOCOL.to_string()));
    (Head { status: parts.status.as_u16(), headers }, body.into_data_stream())
}
