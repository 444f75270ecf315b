//! A run as it goes on: an event for each trial kept, and one for its end.

use crate::page_error::PageError;
use crate::query::Fields;
use crate::serve::Shared;
use axum::extract::{RawQuery, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use linerate_store::{RunRow, State as RunState};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// The store is asked so often: it tells nobody by itself, and a question costs it next to nothing.
const PAUSE: Duration = Duration::from_millis(500);

/// A browser that follows a record.
struct Follower {
    shared: Arc<Shared>,
    name: String,
    /// As the browser knows it; none once it knows the end.
    known: Option<RunRow>,
}

pub(crate) async fn stream(
    State(shared): State<Arc<Shared>>,
    RawQuery(query): RawQuery,
) -> Result<Response, PageError> {
    let name = Fields::read(query.as_deref()).one("id").to_owned();
    let asked = name.clone();
    let known = shared.ask(move |store| Ok(store.row(&asked)?)).await?;
    let follower = Follower { shared, name, known: Some(known) };
    Ok(Sse::new(stream::unfold(follower, next)).keep_alive(KeepAlive::default()).into_response())
}

/// Waits for the next change: `changed`, or at last `ended`, which is also said of a record that is gone.
async fn next(mut follower: Follower) -> Option<(Result<Event, Infallible>, Follower)> {
    let known = follower.known.take()?;
    loop {
        let ended = known.state != RunState::Running;
        let now = if ended { None } else { follower.look().await };
        let Some(now) = now.filter(|now| now.state == RunState::Running) else {
            return Some((Ok(Event::default().data("ended")), follower));
        };
        if now != known {
            follower.known = Some(now);
            return Some((Ok(Event::default().data("changed")), follower));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

impl Follower {
    /// The record as the store has it now; none if it was deleted.
    async fn look(&self) -> Option<RunRow> {
        let name = self.name.clone();
        self.shared.ask(move |store| Ok(store.row(&name)?)).await.ok()
    }
}
