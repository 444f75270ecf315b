//! State that all requests share.

use crate::key::Key;
use crate::page_error::PageError;
use crate::trusted_proxy::TrustedProxy;
use linerate_model::Record;
use linerate_report::Language;
use linerate_store::{Store, StoreError};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// What all pages share.
pub(crate) struct Shared {
    pub(crate) store: Store,
    pub(crate) key: Key,
    /// Proves that a form comes from a page of this server.
    pub(crate) form_token: Key,
    pub(crate) proxy: Option<TrustedProxy>,
    pub(crate) language: Language,
    /// A permit for each page that follows runs.
    pub(crate) followers: Arc<Semaphore>,
}

impl Shared {
    /// Asks the store something, on a thread that may wait for it.
    pub(crate) async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        ask: impl FnOnce(&Store) -> Result<T, PageError> + Send + 'static,
    ) -> Result<T, PageError> {
        let shared = Arc::clone(self);
        let asked = tokio::task::spawn_blocking(move || ask(&shared.store)).await;
        asked.unwrap_or(Err(PageError::Broken))
    }
}

/// The record called `name`, with what follows from its trials.
pub(crate) fn load(store: &Store, name: &str) -> Result<Record, StoreError> {
    let mut record = store.load(name)?;
    linerate_method::replay(&mut record);
    Ok(record)
}
