//! The server: who is let in, which page is whose, and its end.

use crate::connections::{Connection, Connections};
use crate::key::Key;
use crate::page::{self, STYLE_SHEET};
use crate::page_error::{MOST_FOLLOWERS, PageError};
use crate::shared::Shared;
use crate::trusted_proxy::{Refusal, Role, TrustedProxy};
use crate::{compare, delete, events, fleet, list, record, trend};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum_server::Handle;
use hyper_util::rt::TokioTimer;
use linerate_report::{Language, plain, said};
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
    /// Serves the pages of `store` in a language until shut down. Without a proxy, readers need the key.
    pub async fn start(
        listener: TcpListener,
        store: Store,
        key: Key,
        language: Language,
        proxy: Option<TrustedProxy>,
    ) -> Result<Self, ViewError> {
        let failed = |call| move |source| ViewError { call, source };
        listener.set_nonblocking(true).map_err(failed("fcntl(O_NONBLOCK)"))?;
        let local = listener.local_addr().map_err(failed("getsockname"))?;
        let address = format!("http://{local}/{}/", key.as_str());
        let followers = Arc::new(Semaphore::new(MOST_FOLLOWERS));
        let form_token = Key::generate();
        let shared = Arc::new(Shared { store, key, form_token, proxy, language, followers });
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
    let mut router = Router::new();
    // Users whom a proxy has logged in need no key.
    for root in ["/{key}/", "/"] {
        let path = |page: &str| format!("{root}{page}");
        router = router
            .route(&path(""), get(list::page))
            .route(&path("record"), get(record::page))
            .route(&path("delete"), get(delete::page).post(delete::delete))
            .route(&path("events"), get(events::stream))
            .route(&path("compare"), get(compare::page))
            .route(&path("trend"), get(trend::page))
            .route(&path("fleet"), get(fleet::matrix::page))
            .route(&path("fleet/pair"), get(fleet::pair::page))
            .route(&path("fleet/changes"), get(fleet::changes::page))
            .route(&path("fleet/sites"), get(fleet::sites::page))
            .route(&path("fleet/matrix.json"), get(fleet::matrix::json))
            .route(&path("fleet/pair.json"), get(fleet::pair::json))
            .route(&path("fleet/changes.json"), get(fleet::changes::json))
            .route(&path("style.css"), get(|| file("text/css; charset=utf-8", STYLE_SHEET.as_str())))
            .route(&path("view.js"), get(|| file("text/javascript; charset=utf-8", SCRIPT)));
    }
    router
        .fallback(|| async { PageError::NoPage })
        .with_state(Arc::clone(&shared))
        .layer(from_fn_with_state(shared, admit))
}

async fn file(form: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, form)], text).into_response()
}

/// Lets a request pass whose path begins with the key or whose user the proxy has logged in, and tells others nothing else.
async fn admit(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let root = if path.contains("/fleet/") { "../" } else { "./" };
    let mut response = match role(&shared, &request) {
        Ok(role) => {
            if let Some(connection) = request.extensions().get::<Arc<Connection>>() {
                connection.admit();
            }
            request.extensions_mut().insert(role);
            next.run(request).await
        }
        Err(reason) => (StatusCode::FORBIDDEN, format!("{reason}\n")).into_response(),
    };
    if let Some(error) = response.extensions_mut().remove::<PageError>() {
        let lang = shared.language;
        response = if path.ends_with(".json") { error.json(lang) } else { error.page(lang, root) };
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

/// Returns what a request may do.
///
/// # Errors
/// The reader is not let in, with the reason.
fn role(shared: &Shared, request: &Request) -> Result<Role, String> {
    let lang = shared.language;
    let peer = request.extensions().get::<Arc<Connection>>().map(|connection| connection.peer());
    if let (Some(proxy), Some(peer)) = (&shared.proxy, peer) {
        match proxy.role(peer, request.headers()) {
            Ok(Some(role)) => return Ok(role),
            Ok(None) => {}
            Err(refusal) => return Err(refused(lang, &refusal)),
        }
    }
    // The key lets its owner read; only a login shows who changes the store.
    if shared.key.opens(request.uri().path()) {
        return Ok(Role::Viewer);
    }
    Err(said!(lang, "view-error-address", "The address is not whole: use the one that `linerate view` printed."))
}

fn refused(lang: Language, refusal: &Refusal) -> String {
    match refusal {
        Refusal::Forged(peer) => said!(
            lang,
            "view-error-forged",
            "The login header came from {peer}, which is not the address of the trusted proxy: check --trusted-proxy.",
            peer = peer.to_string()
        ),
        Refusal::Malformed => said!(
            lang,
            "view-error-login",
            "The login header does not hold one user name: let the proxy replace the header of the browser."
        ),
        Refusal::NoRole(user) => said!(
            lang,
            "view-error-no-role",
            "The user {user} may not read here: name the user with --viewers or --operators.",
            user = plain(user)
        ),
    }
}
