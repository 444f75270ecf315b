//! What can be asked of an agent: one table, from which both the router and its OpenAPI description are made.

use crate::admission::admit_ports;
use crate::error_response::ErrorResponse;
use crate::grant::Grant;
use crate::openapi::describe;
use crate::origin::Origin;
use crate::pairing;
use crate::route::{Answer, Method, Route};
use crate::sessions::Opening;
use crate::shared::Shared;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::on;
use axum::{Extension, Json, Router};
use futures_util::{Stream, StreamExt as _};
use linerate_control::pairing::{Paired, PairingMessage, PairingProof};
use linerate_control::{
    ClockReading, Closed, ErrorKind, FENCE_HEADER, PROTOCOL, PROTOCOL_HEADER, REPEATED_HEADER, Resolve, is_neighbour,
    neighbours,
};
use linerate_model::{Assignment, Host, HostCounters, HostCounts, Mac, Order, PortInfo, SessionId, Stage};
use linerate_units::Nanos;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use std::future::ready;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The schema of `T`, as an element of a static table.
fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// All of it.
pub(crate) static ROUTES: [Route; 13] = [
    Route {
        method: Method::Post,
        path: "/v1/pair",
        summary: "Begin to pair: the message of SPAKE2 of a client that has the code which the agent shows; each is one of three guesses",
        versioned: true,
        admitted: false,
        body: Some(schema::<PairingMessage>),
        answer: Answer::Json(schema::<PairingMessage>),
        errors: &[],
        handler: |method| on(method, pair),
    },
    Route {
        method: Method::Post,
        path: "/v1/pair/confirm",
        summary: "End pairing: the client's proof, for the agent's own and its token",
        versioned: true,
        admitted: false,
        body: Some(schema::<PairingProof>),
        answer: Answer::Json(schema::<Paired>),
        errors: &[ErrorKind::Conflict],
        handler: |method| on(method, confirm),
    },
    Route {
        method: Method::Get,
        path: "/v1/host",
        summary: "What this host is and what it can do; the powers of the token are the capabilities `power-...`",
        versioned: true,
        admitted: true,
        body: None,
        answer: Answer::Json(schema::<Host>),
        errors: &[ErrorKind::Failed],
        handler: |method| on(method, host),
    },
    Route {
        method: Method::Get,
        path: "/v1/counters",
        summary: "What this host has counted since it was started: its cores' time and its interfaces",
        versioned: true,
        admitted: true,
        body: None,
        answer: Answer::Json(schema::<HostCounters>),
        errors: &[ErrorKind::Failed],
        handler: |method| on(method, counters),
    },
    Route {
        method: Method::Get,
        path: "/v1/clock",
        summary: "This host's monotonic clock, when the request arrived and when the answer left",
        versioned: true,
        admitted: true,
        body: None,
        answer: Answer::Json(schema::<ClockReading>),
        errors: &[],
        handler: |method| on(method, clock),
    },
    Route {
        method: Method::Post,
        path: "/v1/sessions",
        summary: "Open a session, this host's part in one load of a trial: its stages as server-sent events. Repeated with the \
                  header `linerate-repeated` and the same key, it goes on with the session. A session that nobody follows for 40 s is stopped",
        versioned: true,
        admitted: true,
        body: Some(schema::<Assignment>),
        answer: Answer::Events(schema::<Stage>),
        errors: &[ErrorKind::Limit, ErrorKind::Conflict, ErrorKind::Failed],
        handler: |method| on(method, open),
    },
    Route {
        method: Method::Post,
        path: "/v1/sessions/{id}/order",
        summary: "Order the next step: connect when it listens, start when it is ready, open its window when the load is \
                  steady, drain when all hosts have sent. A repeated order changes nothing",
        versioned: true,
        admitted: true,
        body: Some(schema::<Order>),
        answer: Answer::Nothing,
        errors: &[ErrorKind::Limit, ErrorKind::NotFound, ErrorKind::Conflict],
        handler: |method| on(method, order),
    },
    Route {
        method: Method::Get,
        path: "/v1/sessions/{id}/counts",
        summary: "What this host counted and saw in a session that is done",
        versioned: true,
        admitted: true,
        body: None,
        answer: Answer::Json(schema::<HostCounts>),
        errors: &[ErrorKind::NotFound, ErrorKind::Conflict, ErrorKind::Failed],
        handler: |method| on(method, counts),
    },
    Route {
        method: Method::Delete,
        path: "/v1/sessions/{id}",
        summary: "Stop a session at whatever stage, and wait until it has let go of everything; fine if there is none",
        versioned: true,
        admitted: true,
        body: None,
        answer: Answer::Json(schema::<Closed>),
        errors: &[],
        handler: |method| on(method, close),
    },
    Route {
        method: Method::Post,
        path: "/v1/ports",
        summary: "What is known of these interfaces, for tasks with raw frames",
        versioned: true,
        admitted: true,
        body: Some(schema::<Vec<String>>),
        answer: Answer::Json(schema::<Vec<PortInfo>>),
        errors: &[ErrorKind::Limit, ErrorKind::Failed],
        handler: |method| on(method, ports),
    },
    Route {
        method: Method::Post,
        path: "/v1/resolve",
        summary: "Ask a neighbour of an interface for its Ethernet address (ARP or neighbour discovery)",
        versioned: true,
        admitted: true,
        body: Some(schema::<Resolve>),
        answer: Answer::Json(schema::<Mac>),
        errors: &[ErrorKind::Limit, ErrorKind::Failed],
        handler: |method| on(method, resolve),
    },
    Route {
        method: Method::Get,
        path: "/v1/openapi.json",
        summary: "This description",
        versioned: false,
        admitted: true,
        body: None,
        answer: Answer::Json(|_| schemars::json_schema!({"type": "object"})),
        errors: &[],
        handler: |method| on(method, description),
    },
    Route {
        method: Method::Get,
        path: "/metrics",
        summary: "Counts since the agent started, for Prometheus",
        versioned: false,
        admitted: true,
        body: None,
        answer: Answer::Text,
        errors: &[],
        handler: |method| on(method, metrics),
    },
];

/// The description of the API for other programs.
pub fn openapi() -> serde_json::Value {
    describe(&ROUTES)
}

/// Bytes of the longest body that is read of callers without a token.
const STRANGERS_BODY: usize = 1 << 10;

/// Whether a request for `path` needs no token.
pub(crate) fn is_for_strangers(path: &str) -> bool {
    ROUTES.iter().any(|route| !route.admitted && route.path == path)
}

/// Bytes of the longest body that is read of a request for `path`.
fn longest_body(path: &str, shared: &Shared) -> usize {
    if is_for_strangers(path) { STRANGERS_BODY } else { shared.limits.max_body }
}

/// The table as a router.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    let router = ROUTES.iter().fold(Router::new(), |router, route| {
        let longest = DefaultBodyLimit::max(longest_body(route.path, &shared));
        let method = (route.handler)(route.method.filter()).layer(longest);
        router.route(
            route.path,
            if route.versioned { method.route_layer(from_fn(neighbouring_protocol)) } else { method },
        )
    });
    router
        .fallback(|| ready(ErrorResponse::new(ErrorKind::NotFound, "no such route; GET /v1/openapi.json lists them")))
        .method_not_allowed_fallback(|| {
            ready(ErrorResponse::new(
                ErrorKind::Method,
                "this route has other methods; GET /v1/openapi.json lists them",
            ))
        })
        .with_state(shared)
}

/// Lets a request pass that speaks this version of the protocol or a neighbour of it.
async fn neighbouring_protocol(request: Request, next: Next) -> Response {
    let theirs = request.headers().get(PROTOCOL_HEADER).map(|value| String::from_utf8_lossy(value.as_bytes()));
    if theirs.as_deref().and_then(|theirs| theirs.parse().ok()).is_some_and(is_neighbour) {
        return next.run(request).await;
    }
    let theirs = theirs.map_or("none".to_owned(), |theirs| theirs.chars().take(20).collect());
    let error = ErrorResponse::new(
        ErrorKind::Protocol,
        format!(
            "the agent (linerate {}) speaks protocol {PROTOCOL} and works with {} to {}, the request speaks protocol {theirs}; install \
             the same version of linerate on both hosts",
            env!("CARGO_PKG_VERSION"),
            neighbours().0,
            neighbours().1
        ),
    );
    error.into_response()
}

/// A JSON body, refused with the place and the problem if it is not one.
struct Body<T>(T);

impl<T: DeserializeOwned> FromRequest<Arc<Shared>> for Body<T> {
    type Rejection = ErrorResponse;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<Self, ErrorResponse> {
        let longest = shared.timeouts.body;
        let most = longest_body(request.uri().path(), shared);
        let Ok(read) = tokio::time::timeout(longest, Bytes::from_request(request, shared)).await else {
            let message = format!("the body of the request did not come within {}", Nanos::from(longest));
            return Err(ErrorResponse::new(ErrorKind::BadRequest, message));
        };
        let bytes = read.map_err(|rejection| match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => ErrorResponse::new(
                ErrorKind::TooLarge,
                format!("the body is longer than the {most} bytes this agent takes"),
            ),
            _ => ErrorResponse::new(ErrorKind::BadRequest, rejection.body_text()),
        })?;
        let Json(value) = Json::from_bytes(&bytes)
            .map_err(|rejection| ErrorResponse::new(ErrorKind::BadRequest, rejection.body_text()))?;
        Ok(Self(value))
    }
}

/// What the credential allows is told among what can be done here.
async fn host(
    State(shared): State<Arc<Shared>>,
    Extension(grant): Extension<Grant>,
) -> Result<Json<Host>, ErrorResponse> {
    let described = tokio::task::spawn_blocking(move || linerate_observe::host(&shared.host)).await;
    match described {
        Ok(Ok(mut host)) => {
            host.capabilities.extend(grant.capabilities());
            Ok(Json(host))
        }
        Ok(Err(error)) => Err(ErrorResponse::new(ErrorKind::Failed, format!("this host cannot be described: {error}"))),
        Err(error) => Err(ErrorResponse::new(ErrorKind::Failed, format!("describing this host: {error}"))),
    }
}

async fn pair(
    State(shared): State<Arc<Shared>>,
    Extension(origin): Extension<Origin>,
    Body(message): Body<PairingMessage>,
) -> Result<Json<PairingMessage>, ErrorResponse> {
    let pairing = shared.pairing.as_ref().ok_or_else(pairing::none)?;
    Ok(Json(pairing.begin(&message, peer(origin)?, Instant::now())?))
}

async fn confirm(
    State(shared): State<Arc<Shared>>,
    Extension(origin): Extension<Origin>,
    Body(proof): Body<PairingProof>,
) -> Result<Json<Paired>, ErrorResponse> {
    let pairing = shared.pairing.as_ref().ok_or_else(pairing::none)?;
    Ok(Json(pairing.confirm(&proof, peer(origin)?, Instant::now())?))
}

/// Returns the host at the other end of the request's connection.
fn peer(origin: Origin) -> Result<IpAddr, ErrorResponse> {
    origin.peer.ok_or_else(|| ErrorResponse::new(ErrorKind::NotFound, "members of a fleet do not pair"))
}

/// Reads the fence of the scheduler that sends a request. Returns `None` for a request of no scheduler.
fn fence(headers: &HeaderMap) -> Result<Option<u64>, ErrorResponse> {
    let Some(value) = headers.get(FENCE_HEADER) else { return Ok(None) };
    let fence = value.to_str().ok().and_then(|text| text.parse().ok());
    let error = || ErrorResponse::new(ErrorKind::BadRequest, format!("the header {FENCE_HEADER} is no number"));
    fence.map(Some).ok_or_else(error)
}

async fn counters() -> Result<Json<HostCounters>, ErrorResponse> {
    match tokio::task::spawn_blocking(linerate_observe::counters).await {
        Ok(Ok(counters)) => Ok(Json(counters)),
        Ok(Err(error)) => Err(ErrorResponse::new(ErrorKind::Failed, error.to_string())),
        Err(error) => Err(ErrorResponse::new(ErrorKind::Failed, format!("reading this host's counters: {error}"))),
    }
}

/// Runs on the event loop, so that no other thread has to be woken between the two times.
async fn clock(Extension(origin): Extension<Origin>) -> Json<ClockReading> {
    Json(ClockReading { receive_ns: origin.received_ns, transmit_ns: linerate_sys::clock::now() })
}

async fn open(
    State(shared): State<Arc<Shared>>,
    Extension(grant): Extension<Grant>,
    Extension(origin): Extension<Origin>,
    headers: HeaderMap,
    Body(assignment): Body<Assignment>,
) -> Result<Sse<impl Stream<Item = Result<Event, axum::Error>>>, ErrorResponse> {
    let opening =
        Opening { peer: origin.peer, is_repeated: headers.contains_key(REPEATED_HEADER), fence: fence(&headers)? };
    let stages = shared.sessions.open(assignment, &grant, opening).await?;
    let events = stages.map(|stage| Event::default().json_data(stage));
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(5))))
}

async fn order(
    State(shared): State<Arc<Shared>>,
    Extension(grant): Extension<Grant>,
    Extension(origin): Extension<Origin>,
    Path(id): Path<String>,
    Body(order): Body<Order>,
) -> Result<StatusCode, ErrorResponse> {
    shared.sessions.order(&SessionId(id), order, &grant, origin)?;
    Ok(StatusCode::NO_CONTENT)
}

async fn counts(
    State(shared): State<Arc<Shared>>,
    Extension(grant): Extension<Grant>,
    Path(id): Path<String>,
) -> Result<Json<HostCounts>, ErrorResponse> {
    Ok(Json(shared.sessions.counts(&SessionId(id), &grant)?))
}

async fn close(
    State(shared): State<Arc<Shared>>,
    Extension(grant): Extension<Grant>,
    Path(id): Path<String>,
) -> Json<Closed> {
    Json(shared.sessions.close(&SessionId(id), &grant).await)
}

async fn ports(
    State(shared): State<Arc<Shared>>,
    Extension(grant): Extension<Grant>,
    Body(interfaces): Body<Vec<String>>,
) -> Result<Json<Vec<PortInfo>>, ErrorResponse> {
    admit_ports(&shared.limits, &grant, interfaces.iter())?;
    Ok(Json(crate::ports::ports(interfaces).await?))
}

async fn resolve(
    State(shared): State<Arc<Shared>>,
    Extension(grant): Extension<Grant>,
    Body(ask): Body<Resolve>,
) -> Result<Json<Mac>, ErrorResponse> {
    admit_ports(&shared.limits, &grant, std::iter::once(&ask.interface))?;
    Ok(Json(crate::ports::resolve(ask).await?))
}

async fn description() -> Json<serde_json::Value> {
    Json(openapi())
}

async fn metrics(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    let page = shared.sessions.metrics.page(shared.sessions.count_under_way());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page)
}
