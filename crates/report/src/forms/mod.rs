//! Forms of a document: terminal text, Markdown, HTML, pictures, and the record itself as CSV and JSON.

pub(crate) mod csv;
pub(crate) mod html;
pub(crate) mod json;
pub(crate) mod markdown;
pub(crate) mod markup;
pub(crate) mod page;
pub(crate) mod page_shell;
pub(crate) mod picture;
pub(crate) mod svg;
pub(crate) mod text;
