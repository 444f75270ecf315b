//! `GET /metrics`, and `GET /healthz` for probes.

use super::exposition::{CONTENT_TYPE, text};
use super::registry::Metrics;
use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use std::sync::Arc;

/// Serves `GET /metrics` in the text format of Prometheus, and `GET /healthz`, which answers as long as the process serves.
pub fn router(metrics: Arc<Metrics>) -> Router {
    Router::new().route("/metrics", get(page)).route("/healthz", get(|| async { "ok\n" })).with_state(metrics)
}

async fn page(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], text(&metrics))
}
