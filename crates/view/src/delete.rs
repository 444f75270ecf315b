//! Deleting a record, for operators.

use crate::page::{self, Page};
use crate::page_error::PageError;
use crate::query::Fields;
use crate::shared::Shared;
use crate::trusted_proxy::Role;
use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use linerate_report::{plain, said};
use linerate_store::StoreError;
use maud::html;
use std::sync::Arc;

/// Asks whether to delete a record.
pub(crate) async fn page(
    State(shared): State<Arc<Shared>>,
    Extension(role): Extension<Role>,
    RawQuery(query): RawQuery,
) -> Result<Response, PageError> {
    require_operator(role)?;
    let name = Fields::read(query.as_deref()).one("id").to_owned();
    let lang = shared.language;
    let token = shared.form_token.clone();
    shared
        .ask(move |store| {
            let run = store.row(&name)?;
            let main = html! {
                p.command { code lang=[lang.foreign_tag()] { (page::shell_command(&run.command)) } }
                p { (said!(lang, "view-delete-about", "Record {id}, begun {moment}, and its figures in the matrix are removed from the store. This cannot be undone.",
                    id = plain(&run.id.0), moment = page::moment(run.started_unix_ns))) }
                form action="delete" method="post" {
                    input type="hidden" name="id" value=(run.id.0);
                    input type="hidden" name="token" value=(token.as_str());
                    button { (said!(lang, "view-delete", "Delete")) }
                }
            };
            let title = said!(lang, "view-delete-record", "Delete a record");
            Ok(Page { changes_store: true, ..Page::new(lang, &title, main) }.answer(StatusCode::OK))
        })
        .await
}

/// Deletes the record that the form names, and goes back to the list.
pub(crate) async fn delete(
    State(shared): State<Arc<Shared>>,
    Extension(role): Extension<Role>,
    body: String,
) -> Result<Response, PageError> {
    require_operator(role)?;
    let fields = Fields::read(Some(&body));
    // A page of another site can send this form with the operator's login, but cannot read the token.
    if !shared.form_token.equals(fields.one("token")) {
        return Err(PageError::FormExpired);
    }
    let name = fields.one("id").to_owned();
    shared
        .ask(move |store| match store.delete(&name) {
            Ok(_) => Ok((StatusCode::SEE_OTHER, [(header::LOCATION, "./")]).into_response()),
            Err(StoreError::Running { id, .. }) => Err(PageError::RecordRunning(id.0)),
            Err(error) => Err(error.into()),
        })
        .await
}

fn require_operator(role: Role) -> Result<(), PageError> {
    if role == Role::Operator { Ok(()) } else { Err(PageError::NotOperator) }
}
