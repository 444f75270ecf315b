//! What can be asked of an agent: one table, from which both the router and its OpenAPI description are made.

use crate::api_error::{ApiError, ErrorKind};
use crate::frame_half::HalfStage;
use crate::frames::Resolve;
use crate::serve::Shared;
use crate::{PROTOCOL, PROTOCOL_HEADER};
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Path, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use axum::{Json, Router};
use futures_util::{Stream, StreamExt as _};
use linerate_model::{
    Connect, CopyHalf, CopyHalfResult, CopyHalfStage, FrameHalf, FrameHalfResult, FrameTrial, FrameTrialResult,
    HalfResult, HalfSpec, Host, HostCounters, Mac, PortInfo, Prepared, Progress, TrialId,
};
use linerate_units::Nanos;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;
use tokio_stream::wrappers::WatchStream;

/// When a trial is to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Start {
    /// How long after the request arrives: long enough for it to reach all hosts of the trial.
    pub delay: Nanos,
}

/// One thing that can be asked.
pub(crate) struct Route {
    pub(crate) method: Method,
    /// With the parameters in braces, as axum and OpenAPI both write them.
    pub(crate) path: &'static str,
    pub(crate) summary: &'static str,
    /// Callers must name the protocol version they speak. What general tools read is open to all versions.
    pub(crate) versioned: bool,
    pub(crate) body: Option<SchemaOf>,
    pub(crate) answer: Answer,
    /// What may be answered instead, beyond what any route may.
    pub(crate) errors: &'static [ErrorKind],
    handler: fn(MethodFilter) -> MethodRouter<Arc<Shared>>,
}

/// The schema of a type.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// What a success looks like.
pub(crate) enum Answer {
    Json(SchemaOf),
    Events(SchemaOf),
    Text,
    Nothing,
}

#[derive(Clone, Copy)]
pub(crate) enum Method {
    Get,
    Post,
    Delete,
}

impl Method {
    fn filter(self) -> MethodFilter {
        match self {
            Self::Get => MethodFilter::GET,
            Self::Post => MethodFilter::POST,
            Self::Delete => MethodFilter::DELETE,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Delete => "delete",
        }
    }
}

/// The schema of `T`, as an element of a static table.
fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// All of it.
pub(crate) static ROUTES: [Route; 19] = [
    Route {
        method: Method::Get,
        path: "/v1/host",
        summary: "What this host is and what it can do",
        versioned: true,
        body: None,
        answer: Answer::Json(schema::<Host>),
        errors: &[ErrorKind::TrialFailed],
        handler: |method| on(method, host),
    },
    Route {
        method: Method::Get,
        path: "/v1/counters",
        summary: "What this host has counted since it was started: its cores' time and its interfaces",
        versioned: true,
        body: None,
        answer: Answer::Json(schema::<HostCounters>),
        errors: &[ErrorKind::TrialFailed],
        handler: |method| on(method, counters),
    },
    Route {
        method: Method::Post,
        path: "/v1/trials",
        summary: "Prepare this host's half of a trial: its listeners bind",
        versioned: true,
        body: Some(schema::<HalfSpec>),
        answer: Answer::Json(schema::<Prepared>),
        errors: &[ErrorKind::Limit, ErrorKind::Conflict, ErrorKind::TrialFailed, ErrorKind::Aborted],
        handler: |method| on(method, prepare),
    },
    Route {
        method: Method::Post,
        path: "/v1/trials/{id}/connect",
        summary: "Connect the half's openers to their listeners",
        versioned: true,
        body: Some(schema::<Connect>),
        answer: Answer::Nothing,
        errors: &[ErrorKind::NotFound, ErrorKind::Conflict, ErrorKind::TrialFailed, ErrorKind::Aborted],
        handler: |method| on(method, connect),
    },
    Route {
        method: Method::Post,
        path: "/v1/trials/{id}/start",
        summary: "Start the half a little later",
        versioned: true,
        body: Some(schema::<Start>),
        answer: Answer::Nothing,
        errors: &[ErrorKind::NotFound, ErrorKind::Conflict, ErrorKind::TrialFailed, ErrorKind::Aborted],
        handler: |method| on(method, start),
    },
    Route {
        method: Method::Get,
        path: "/v1/trials/{id}/events",
        summary: "Progress as server-sent events, about five a second; the last one has `done` set",
        versioned: true,
        body: None,
        answer: Answer::Events(schema::<Progress>),
        errors: &[ErrorKind::NotFound],
        handler: |method| on(method, events),
    },
    Route {
        method: Method::Post,
        path: "/v1/trials/{id}/finish",
        summary: "Wait until the half is done, and fetch its result; it can be fetched once",
        versioned: true,
        body: None,
        answer: Answer::Json(schema::<HalfResult>),
        errors: &[ErrorKind::NotFound, ErrorKind::Conflict, ErrorKind::TrialFailed, ErrorKind::Aborted],
        handler: |method| on(method, finish),
    },
    Route {
        method: Method::Delete,
        path: "/v1/trials/{id}",
        summary: "End the trial in whatever state, and free its ports; fine if there is no such trial",
        versioned: true,
        body: None,
        answer: Answer::Nothing,
        errors: &[],
        handler: |method| on(method, abort),
    },
    Route {
        method: Method::Post,
        path: "/v1/ports",
        summary: "What is known of these interfaces, for trials with raw frames",
        versioned: true,
        body: Some(schema::<Vec<String>>),
        answer: Answer::Json(schema::<Vec<PortInfo>>),
        errors: &[ErrorKind::Limit, ErrorKind::TrialFailed],
        handler: |method| on(method, ports),
    },
    Route {
        method: Method::Post,
        path: "/v1/resolve",
        summary: "Ask a neighbour of an interface for its Ethernet address (ARP or neighbour discovery)",
        versioned: true,
        body: Some(schema::<Resolve>),
        answer: Answer::Json(schema::<Mac>),
        errors: &[ErrorKind::Limit, ErrorKind::TrialFailed],
        handler: |method| on(method, resolve),
    },
    Route {
        method: Method::Post,
        path: "/v1/frames",
        summary: "Run a trial with raw frames and answer with its result; closing the connection ends it",
        versioned: true,
        body: Some(schema::<FrameTrial>),
        answer: Answer::Json(schema::<FrameTrialResult>),
        errors: &[ErrorKind::Limit, ErrorKind::Conflict, ErrorKind::TrialFailed],
        handler: |method| on(method, frames),
    },
    Route {
        method: Method::Post,
        path: "/v1/frames/halves",
        summary: "Take part in a trial with raw frames between ports of several hosts: how far this host's half is as \
                  server-sent events; closing the connection ends it",
        versioned: true,
        body: Some(schema::<FrameHalf>),
        answer: Answer::Events(schema::<HalfStage>),
        errors: &[ErrorKind::Limit, ErrorKind::Conflict],
        handler: |method| on(method, frame_half),
    },
    Route {
        method: Method::Post,
        path: "/v1/frames/halves/{tag}/start",
        summary: "Send a little later: the ports of all hosts count",
        versioned: true,
        body: Some(schema::<Start>),
        answer: Answer::Nothing,
        errors: &[ErrorKind::NotFound, ErrorKind::Conflict],
        handler: |method| on(method, start_half),
    },
    Route {
        method: Method::Post,
        path: "/v1/frames/halves/{tag}/finish",
        summary: "Wait for stragglers and fetch what was counted: all hosts have sent",
        versioned: true,
        body: None,
        answer: Answer::Json(schema::<FrameHalfResult>),
        errors: &[ErrorKind::NotFound, ErrorKind::Conflict, ErrorKind::TrialFailed],
        handler: |method| on(method, finish_half),
    },
    Route {
        method: Method::Post,
        path: "/v1/copies",
        summary: "Take part in a copy of a folder tree: how far this host's part is as server-sent events; closing the \
                  connection ends it",
        versioned: true,
        body: Some(schema::<CopyHalf>),
        answer: Answer::Events(schema::<CopyHalfStage>),
        errors: &[ErrorKind::Limit, ErrorKind::Conflict],
        handler: |method| on(method, copy),
    },
    Route {
        method: Method::Post,
        path: "/v1/copies/{id}/start",
        summary: "Copy a little later: all hosts are ready",
        versioned: true,
        body: Some(schema::<Start>),
        answer: Answer::Nothing,
        errors: &[ErrorKind::NotFound, ErrorKind::Conflict],
        handler: |method| on(method, start_copy),
    },
    Route {
        method: Method::Post,
        path: "/v1/copies/{id}/finish",
        summary: "Fetch what this host counted of a copy that is done; it can be fetched once",
        versioned: true,
        body: None,
        answer: Answer::Json(schema::<CopyHalfResult>),
        errors: &[ErrorKind::NotFound, ErrorKind::Conflict],
        handler: |method| on(method, finish_copy),
    },
    Route {
        method: Method::Get,
        path: "/v1/openapi.json",
        summary: "This description",
        versioned: false,
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
        body: None,
        answer: Answer::Text,
        errors: &[],
        handler: |method| on(method, metrics),
    },
];

/// The table as a router.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    let router = ROUTES.iter().fold(Router::new(), |router, route| {
        let method = (route.handler)(route.method.filter());
        router.route(route.path, if route.versioned { method.route_layer(from_fn(same_protocol)) } else { method })
    });
    router
        .fallback(|| ready(ApiError::new(ErrorKind::NotFound, "no such route; GET /v1/openapi.json lists them")))
        .method_not_allowed_fallback(|| {
            ready(ApiError::new(ErrorKind::Method, "this route has other methods; GET /v1/openapi.json lists them"))
        })
        .layer(DefaultBodyLimit::max(shared.limits.max_body))
        .with_state(shared)
}

/// Lets a request pass that speaks this version of the protocol.
async fn same_protocol(request: Request, next: Next) -> Response {
    let theirs = request.headers().get(PROTOCOL_HEADER).map(|value| String::from_utf8_lossy(value.as_bytes()));
    if theirs.as_deref() == Some(PROTOCOL.to_string().as_str()) {
        return next.run(request).await;
    }
    let theirs = theirs.map_or("none".to_owned(), |theirs| theirs.chars().take(20).collect());
    let error = ApiError::new(
        ErrorKind::Protocol,
        format!(
            "the agent (linerate {}) speaks protocol {PROTOCOL}, the request {theirs}; install the same version of \
             linerate on both hosts",
            env!("CARGO_PKG_VERSION")
        ),
    );
    error.into_response()
}

/// A JSON body, refused with the place and the problem if it is not one.
struct Body<T>(T);

impl<T: DeserializeOwned> FromRequest<Arc<Shared>> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<Self, ApiError> {
        let bytes = Bytes::from_request(request, shared).await.map_err(|rejection| match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => ApiError::new(
                ErrorKind::TooLarge,
                format!("the body is longer than the {} bytes this agent takes", shared.limits.max_body),
            ),
            _ => ApiError::new(ErrorKind::BadRequest, rejection.body_text()),
        })?;
        let Json(value) = Json::from_bytes(&bytes)
            .map_err(|rejection| ApiError::new(ErrorKind::BadRequest, rejection.body_text()))?;
        Ok(Self(value))
    }
}

async fn host(State(shared): State<Arc<Shared>>) -> Result<Json<Host>, ApiError> {
    let described = tokio::task::spawn_blocking(move || linerate_observe::host(&shared.host)).await;
    match described {
        Ok(Ok(host)) => Ok(Json(host)),
        Ok(Err(error)) => Err(ApiError::new(ErrorKind::TrialFailed, format!("this host cannot be described: {error}"))),
        Err(error) => Err(ApiError::new(ErrorKind::TrialFailed, format!("describing this host: {error}"))),
    }
}

async fn counters() -> Result<Json<HostCounters>, ApiError> {
    match tokio::task::spawn_blocking(linerate_observe::counters).await {
        Ok(Ok(counters)) => Ok(Json(counters)),
        Ok(Err(error)) => Err(ApiError::new(ErrorKind::TrialFailed, error.to_string())),
        Err(error) => Err(ApiError::new(ErrorKind::TrialFailed, format!("reading this host's counters: {error}"))),
    }
}

async fn prepare(State(shared): State<Arc<Shared>>, Body(spec): Body<HalfSpec>) -> Result<Json<Prepared>, ApiError> {
    shared.trials.prepare(spec).await.map(Json)
}

async fn connect(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    Body(connect): Body<Connect>,
) -> Result<StatusCode, ApiError> {
    shared.trials.connect(&TrialId(id), connect).await.map(|()| StatusCode::NO_CONTENT)
}

async fn start(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    Body(start): Body<Start>,
) -> Result<StatusCode, ApiError> {
    shared.trials.start(&TrialId(id), start.delay).await.map(|()| StatusCode::NO_CONTENT)
}

async fn events(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
) -> Result<Sse<impl Stream<Item = Result<Event, axum::Error>>>, ApiError> {
    let progress = WatchStream::new(shared.trials.progress(&TrialId(id))?);
    let until_done = progress.scan(false, |ended, progress| {
        let next = (!*ended).then_some(progress);
        *ended = next.as_ref().is_some_and(|progress| progress.done);
        ready(next)
    });
    let events = until_done.map(|progress| Event::default().json_data(progress));
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(5))))
}

async fn finish(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Result<Json<HalfResult>, ApiError> {
    shared.trials.finish(&TrialId(id)).await.map(Json)
}

async fn abort(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> StatusCode {
    shared.trials.abort(&TrialId(id)).await;
    StatusCode::NO_CONTENT
}

async fn ports(
    State(shared): State<Arc<Shared>>,
    Body(interfaces): Body<Vec<String>>,
) -> Result<Json<Vec<PortInfo>>, ApiError> {
    crate::frames::ports(&shared, interfaces).await.map(Json)
}

async fn resolve(State(shared): State<Arc<Shared>>, Body(ask): Body<Resolve>) -> Result<Json<Mac>, ApiError> {
    crate::frames::resolve(&shared, ask).await.map(Json)
}

async fn frames(
    State(shared): State<Arc<Shared>>,
    Body(trial): Body<FrameTrial>,
) -> Result<Json<FrameTrialResult>, ApiError> {
    crate::frames::run(&shared, trial).await.map(Json)
}

async fn frame_half(
    State(shared): State<Arc<Shared>>,
    Body(half): Body<FrameHalf>,
) -> Result<Sse<impl Stream<Item = Result<Event, axum::Error>>>, ApiError> {
    let events = crate::frame_half::run(&shared, half)?.map(|stage| Event::default().json_data(stage));
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(5))))
}

async fn start_half(
    State(shared): State<Arc<Shared>>,
    Path(tag): Path<String>,
    Body(start): Body<Start>,
) -> Result<StatusCode, ApiError> {
    shared.frames.half(&tag)?.start_after(start.delay).map(|()| StatusCode::NO_CONTENT)
}

async fn finish_half(
    State(shared): State<Arc<Shared>>,
    Path(tag): Path<String>,
) -> Result<Json<FrameHalfResult>, ApiError> {
    shared.frames.half(&tag)?.finish().await.map(Json)
}

async fn copy(
    State(shared): State<Arc<Shared>>,
    Body(half): Body<CopyHalf>,
) -> Result<Sse<impl Stream<Item = Result<Event, axum::Error>>>, ApiError> {
    let events = crate::copy::run(&shared, half)?.map(|stage| Event::default().json_data(stage));
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(5))))
}

async fn start_copy(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    Body(start): Body<Start>,
) -> Result<StatusCode, ApiError> {
    shared.copies.find(&TrialId(id))?.start_after(start.delay).map(|()| StatusCode::NO_CONTENT)
}

async fn finish_copy(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
) -> Result<Json<CopyHalfResult>, ApiError> {
    shared.copies.find(&TrialId(id))?.finish().map(Json)
}

async fn description() -> Json<serde_json::Value> {
    Json(crate::openapi())
}

async fn metrics(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    let page = shared.trials.metrics.page(shared.trials.running());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page)
}
