//! The server: who is let in, which page is whose, and its end.

use crate::connections::{Connection, Connections};
use crate::key::Key;
use crate::page::{self, STYLE_SHEET};
use crate::page_error::{MOST_FOLLOWERS, PageError};
use crate::shared::Shared;
use crate::{compare, events, list, record, trend};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum_server::Handle;
use hyper_util::rt::TokioTimer;
use linerate_report::{Language, said};
use linerate_store::Store;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// A browser that has connected must have asked something within this.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Answers under way get this long at the end.
const LAST_WORDS: Duration = Duration::from_millis(250);

const SCRIPT: &str = include_str!("../html/view.js");

/// The pages cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("cannot serve pages: {call}: {source}; try again, or another address with --listen")]
pub struct ViewError {
    call: &'static str,
    source: io::Error,
}

/// A running server. Dropping it stops it at once.
pub struct View {
    address: String,
    handle: Handle<SocketAddr>,
    server: JoinHandle<io::Result<()>>,
}

impl View {
    /// Serves the pages of `store` in a language until shut down.
    pub async fn start(listener: TcpListener, store: Store, key: Key, language: Language) -> Result<Self, ViewError> {
        let failed = |call| move |source| ViewError { call, source };
        listener.set_nonblocking(true).map_err(failed("fcntl(O_NONBLOCK)"))?;
        let local = listener.local_addr().map_err(failed("getsockname"))?;
        let address = format!("http://{local}/{}/", key.as_str());
        let followers = Arc::new(Semaphore::new(MOST_FOLLOWERS));
        let shared = Arc::new(Shared { store, key, language, followers });
        let handle = Handle::new();
        let mut server = axum_server::from_tcp(listener)
            .map_err(failed("epoll_ctl on the listener"))?
            .acceptor(Connections::default())
            .handle(handle.clone())
            .http1_only();
        server.http_builder().http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
        let server = tokio::spawn(server.serve(router(shared).into_make_service()));
        Ok(Self { address, handle, server })
    }

    /// The address of the list, which all other pages can be reached from. It holds the key.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Stops within a second; browsers that watch a run are let go.
    pub async fn shutdown(mut self) {
        self.handle.graceful_shutdown(Some(LAST_WORDS));
        let _ = tokio::time::timeout(LAST_WORDS * 2, &mut self.server).await;
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.handle.shutdown();
        self.server.abort();
    }
}

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/{key}/", get(list::page))
        .route("/{key}/record", get(record::page))
        .route("/{key}/events", get(events::stream))
        .route("/{key}/compare", get(compare::page))
        .route("/{key}/trend", get(trend::page))
        .route("/{key}/style.css", get(|| file("text/css; charset=utf-8", STYLE_SHEET.as_str())))
        .route("/{key}/view.js", get(|| file("text/javascript; charset=utf-8", SCRIPT)))
        .fallback(|| async { PageError::NoPage })
        .with_state(Arc::clone(&shared))
        .layer(from_fn_with_state(shared, admit))
}

async fn file(form: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, form)], text).into_response()
}

/// Lets a request pass whose path begins with the key, and tells others nothing else.
async fn admit(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let mut response = if shared.key.opens(request.uri().path()) {
        if let Some(connection) = request.extensions().get::<Arc<Connection>>() {
            connection.admit();
        }
        next.run(request).await
    } else {
        let said = said!(
            shared.language,
            "view-error-address",
            "The address is not whole: use the one that `linerate view` printed."
        );
        (StatusCode::FORBIDDEN, format!("{said}\n")).into_response()
    };
    if let Some(error) = response.extensions_mut().remove::<PageError>() {
        response = error.page(shared.language);
    }
    for (name, value) in [
        // The key is in the path: no page may tell others where its reader came from.
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-store"),
        // A report states its own policy besides; the stricter of the two holds.
        (header::CONTENT_SECURITY_POLICY, page::POLICY),
    ] {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}
