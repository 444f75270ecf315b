//! A thing that can be asked of an agent.

use crate::shared::Shared;
use axum::routing::{MethodFilter, MethodRouter};
use linerate_control::ErrorKind;
use schemars::{Schema, SchemaGenerator};
use std::sync::Arc;

/// Request that the API accepts.
pub(crate) struct Route {
    pub(crate) method: Method,
    /// With the parameters in braces, as axum and OpenAPI both write them.
    pub(crate) path: &'static str,
    pub(crate) summary: &'static str,
    /// Callers must name the protocol version they speak. What general tools read is open to all versions.
    pub(crate) versioned: bool,
    /// Callers must show a token.
    pub(crate) admitted: bool,
    pub(crate) body: Option<SchemaOf>,
    pub(crate) answer: Answer,
    /// Errors beyond those that any route may answer.
    pub(crate) errors: &'static [ErrorKind],
    pub(crate) handler: fn(MethodFilter) -> MethodRouter<Arc<Shared>>,
}

/// The schema of a type.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// Form of a successful answer.
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
    pub(crate) fn filter(self) -> MethodFilter {
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
