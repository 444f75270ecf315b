//! The frame of every page: head, header, footer, and the data it holds for download.

use crate::language::Language;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The style sheet of all pages.
pub(crate) const STYLE: &str = concat!(include_str!("../../html/style.css"), include_str!("../../html/drawing.css"));
/// The part of it for drawings.
pub(crate) const DRAWING_STYLE: &str = include_str!("../../html/drawing.css");
const SCRIPT: &str = include_str!("../../html/chart.js");
/// Script that pages with charts over time have in addition.
const SCRIPT_OVER_TIME: &str = include_str!("../../html/time.js");
/// A page may use what it carries and fetch nothing.
const POLICY: &str = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      base-uri 'none'; form-action 'none'";

/// A link to another page, where there are several.
#[derive(Debug, Clone, Copy)]
pub struct Link<'a> {
    /// Text of the link.
    pub text: &'a str,
    /// Address it leads to.
    pub address: &'a str,
}

/// A page that needs nothing but itself: no other file, no network, and hardly its script.
pub struct PageShell<'a> {
    pub lang: Language,
    pub title: &'a str,
    pub links: &'a [Link<'a>],
    /// Text below the title.
    pub about: Option<Markup>,
    pub main: Markup,
    pub footer: Markup,
    /// Downloads that need no script.
    pub downloads: Option<Markup>,
    pub carried: Carried<'a>,
}

/// Data in a page that its script offers as a file.
pub struct Carried<'a> {
    /// The file's name without its ending; of a record it is in the JSON.
    pub name: Option<&'a str>,
    /// Text of the link to it.
    pub label: &'a str,
    pub data: Data,
}

/// The file's content.
pub enum Data {
    Json(String),
    Csv(String),
}

impl PageShell<'_> {
    /// The whole page.
    pub fn page(self) -> String {
        let has_charts_over_time = self.main.0.contains("data-time=");
        let page = html! {
            (DOCTYPE)
            html lang=(self.lang.tag()) {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="referrer" content="no-referrer";
                    title { "linerate: " (self.title) }
                    link rel="icon" href="data:,";
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    header {
                        p.brand { "linerate" }
                        @if !self.links.is_empty() {
                            nav.links { @for link in self.links { a href=(link.address) { (link.text) } " " } }
                        }
                        h1 { (self.title) }
                        @if let Some(about) = self.about { p.when { (about) } }
                    }
                    main { (self.main) }
                    footer {
                        @if let Some(downloads) = self.downloads { p { (downloads) } }
                        p #download.script {}
                        p { (self.footer) }
                    }
                    (self.carried.element())
                    script {
                        (PreEscaped(SCRIPT))
                        // After the other, which widens what can be pointed at.
                        @if has_charts_over_time { (PreEscaped(SCRIPT_OVER_TIME)) }
                    }
                }
            }
        };
        page.into_string()
    }
}

impl Carried<'_> {
    fn element(&self) -> Markup {
        html! {
            @match &self.data {
                Data::Json(json) => script #record type="application/json" data-name=[self.name] data-label=(self.label) {
                    (PreEscaped(embedded(json)))
                },
                Data::Csv(csv) => pre #record hidden data-type="text/csv" data-name=[self.name] data-label=(self.label) { (csv) },
            }
        }
    }
}

/// JSON for a script element: nothing in it can end the element.
fn embedded(json: &str) -> String {
    json.trim_end().replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}
