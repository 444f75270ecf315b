//! Runs as they go on, as server-sent events: each part of a page that has changed, and the end.

use crate::page_error::PageError;
use crate::query::Fields;
use crate::shared::Shared;
use crate::watched::{Watched, WatchedList, WatchedRun};
use axum::extract::{RawQuery, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// Pause between two looks at a run: feeds and the store tell nobody by themselves. Nobody looks where nobody follows.
const RUN_PAUSE: Duration = Duration::from_millis(200);
/// The same of a list.
const LIST_PAUSE: Duration = Duration::from_secs(1);

/// A page that follows.
struct Follower<W> {
    shared: Arc<Shared>,
    /// None once its end was sent.
    watched: Option<W>,
    pause: Duration,
    /// The content of each part as it was sent last.
    sent: BTreeMap<&'static str, String>,
    /// Events that are not sent yet.
    due: VecDeque<Event>,
    _permit: OwnedSemaphorePermit,
}

/// Follows the run called `id`; without a name, all runs under way.
pub(crate) async fn stream(
    State(shared): State<Arc<Shared>>,
    RawQuery(query): RawQuery,
) -> Result<Response, PageError> {
    let name = Fields::read(query.as_deref()).one("id").to_owned();
    let permit = Arc::clone(&shared.followers).try_acquire_owned().map_err(|_| PageError::TooMany)?;
    if name.is_empty() {
        return Ok(followed(shared, WatchedList::default(), LIST_PAUSE, permit));
    }
    let lang = shared.language;
    let run = shared.ask(move |store| Ok(WatchedRun::open(store, &name, lang)?)).await?;
    Ok(followed(shared, run, RUN_PAUSE, permit))
}

fn followed(shared: Arc<Shared>, watched: impl Watched, pause: Duration, permit: OwnedSemaphorePermit) -> Response {
    let (sent, due) = (BTreeMap::new(), VecDeque::new());
    let follower = Follower { shared, watched: Some(watched), pause, sent, due, _permit: permit };
    // The stream is dropped when the browser goes away, and with it the follower.
    Sse::new(stream::unfold(follower, next)).keep_alive(KeepAlive::default()).into_response()
}

/// Waits for the next event; none after the end.
async fn next<W: Watched>(mut follower: Follower<W>) -> Option<(Result<Event, Infallible>, Follower<W>)> {
    loop {
        if let Some(event) = follower.due.pop_front() {
            return Some((Ok(event), follower));
        }
        let mut watched = follower.watched.take()?;
        if !follower.sent.is_empty() {
            tokio::time::sleep(follower.pause).await;
        }
        let lang = follower.shared.language;
        let looked = follower.shared.ask(move |store| {
            watched.look(store, lang)?;
            let parts = watched.parts(lang);
            Ok((watched, parts))
        });
        // A browser connects again after an error.
        let (watched, parts) = looked.await.ok()?;
        for (part, content) in parts {
            let content = content.into_string();
            if follower.sent.get(part) != Some(&content) {
                follower.due.push_back(event(part, &content));
                follower.sent.insert(part, content);
            }
        }
        if watched.is_under_way() {
            follower.watched = Some(watched);
        } else {
            follower.due.push_back(event("ended", if watched.is_kept() { "kept" } else { "nothing" }));
        }
    }
}

/// An event. Browsers ignore those without content.
fn event(name: &str, content: &str) -> Event {
    Event::default().event(name).data(if content.is_empty() { " " } else { content })
}
