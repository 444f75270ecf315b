//! What all pages look like: their frame and their style sheet.

use crate::query::address;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use linerate_model::typed;
use linerate_report::{Language, said};
use maud::{DOCTYPE, Markup, html};
use std::sync::LazyLock;

/// Pages may use what this server has and nothing from elsewhere. What a report has within it is inline.
pub(crate) const POLICY: &str = "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self' 'unsafe-inline'; \
                                 connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; \
                                 frame-ancestors 'none'";

/// The report's style sheet and what lists need besides.
pub(crate) static STYLE_SHEET: LazyLock<String> =
    LazyLock::new(|| [linerate_report::style_sheet(), include_str!("../html/view.css")].concat());

/// A page of its own.
pub(crate) struct Page<'a> {
    pub(crate) lang: Language,
    pub(crate) title: &'a str,
    /// A link back to the list; none on the list itself.
    pub(crate) back: bool,
    /// Loads itself anew now and then where no script does it.
    pub(crate) refresh: bool,
    /// Address of the list from here: `./`, or `../` one level below.
    pub(crate) root: &'static str,
    /// Whether it links to the pages of the fleet.
    pub(crate) fleet: bool,
    /// Whether it needs room for many columns.
    pub(crate) wide: bool,
    /// Whether the reader can change the store here.
    pub(crate) changes_store: bool,
    pub(crate) main: Markup,
}

impl<'a> Page<'a> {
    /// A page that links to the list and only reads.
    pub(crate) fn new(lang: Language, title: &'a str, main: Markup) -> Self {
        Self {
            lang,
            title,
            back: true,
            refresh: false,
            root: "./",
            fleet: false,
            wide: false,
            changes_store: false,
            main,
        }
    }

    /// As an answer.
    pub(crate) fn answer(self, status: StatusCode) -> Response {
        (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], self.render().into_string()).into_response()
    }

    fn links(&self) -> Markup {
        let lang = self.lang;
        html! {
            @if self.back || self.fleet {
                nav.links {
                    @if self.back { a href=(self.root) { (said!(lang, "view-all-records", "All records")) } }
                    @if self.fleet {
                        " " a href={ (self.root) "fleet" } { (said!(lang, "view-fleet-matrix", "Matrix")) }
                        " " a href={ (self.root) "fleet/changes" } { (said!(lang, "view-fleet-changes", "Changes")) }
                        " " a href={ (self.root) "fleet/sites" } { (said!(lang, "view-fleet-sites", "Sites")) }
                    }
                }
            }
        }
    }

    fn render(self) -> Markup {
        html! {
            (DOCTYPE)
            html lang=(self.lang.tag()) {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    @if self.refresh { noscript { meta http-equiv="refresh" content="3"; } }
                    title { "linerate: " (self.title) }
                    link rel="icon" href="data:,";
                    link rel="stylesheet" href={ (self.root) "style.css" };
                    script src={ (self.root) "view.js" } defer {}
                }
                // The list needs room for its columns.
                body.list[!self.back].wide[self.wide] {
                    header {
                        p.brand { "linerate" }
                        (self.links())
                        h1 { (self.title) }
                    }
                    main { (self.main) }
                    footer {
                        p {
                            @if self.changes_store { (said!(self.lang, "view-footer-changes", "Times are UTC. Nothing is fetched from elsewhere.")) }
                            @else { (said!(self.lang, "view-footer", "Times are UTC. Nothing is fetched from elsewhere, and nothing here changes the store.")) }
                        }
                    }
                }
            }
        }
    }
}

/// When, to the second, as it sorts: `2026-11-21 09:30:05`.
pub(crate) fn moment(unix_ns: u64) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(unix_ns))
        .map_or_else(|_| String::from("\u{2013}"), |time| time.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// When, to the minute: `2026-11-21 09:30`.
pub(crate) fn minute(unix_ns: u64) -> String {
    let mut moment = moment(unix_ns);
    // Without the seconds.
    if let Some((minute, _)) = moment.rsplit_once(':') {
        moment.truncate(minute.len());
    }
    moment
}

/// A command as it was typed, the program's folder left out.
pub(crate) fn command(words: &[String]) -> String {
    linerate_report::plain(&typed(words).collect::<Vec<_>>().join(" "))
}

/// A link to the record of that id: the command that made it, which is English in every language.
pub(crate) fn record_link(lang: Language, id: &str, words: &[String]) -> Markup {
    html! { a href=(address("record", &[("id", id)])) lang=[lang.foreign_tag()] { (command(words)) } }
}

/// The same for a shell, which takes each word as it is.
pub(crate) fn shell_command(words: &[String]) -> String {
    linerate_report::plain(&linerate_model::shell_command(words))
}
