//! Outline of a page: the text that its reader sees, with one element per line. Styles, scripts, the shapes of charts,
//! and the drawings for narrow screens, which repeat the wide ones, are omitted.

/// Elements that start a line.
const BLOCKS: [&str; 13] =
    ["title", "h1", "h2", "h3", "p", "li", "dt", "dd", "caption", "tr", "figcaption", "summary", "svg"];
/// Elements with content that is not shown, or with the record.
const HIDDEN: [&str; 3] = ["style", "script", "pre"];

/// Returns the page's text. Each line starts with the name of its element. Cells of a table row and labels of a chart
/// share a line.
pub fn outline(page: &str) -> String {
    let mut lines = Lines::default();
    let mut points: Option<Vec<String>> = None;
    let page = wide(page);
    let mut rest = &page[..];
    while let Some((text, tag)) = rest.split_once('<') {
        lines.text.push_str(text);
        let (tag, after) = tag.split_once('>').expect("a tag ends");
        let name = tag.trim_start_matches('/').split(' ').next().unwrap_or_default();
        rest = after;
        match (name, tag.starts_with('/')) {
            (hidden, false) if HIDDEN.contains(&hidden) => {
                rest = rest.split_once(&format!("</{hidden}>")).expect("the element ends").1;
            }
            // The title of a shape in a chart is its tooltip.
            ("title", false) if points.is_some() => {
                let (title, after) = rest.split_once("</title>").expect("the title ends");
                points.iter_mut().for_each(|points| points.push(title.to_owned()));
                rest = after;
            }
            ("svg", false) => {
                lines.begin(name);
                points = Some(Vec::new());
            }
            ("svg", true) => {
                lines.end();
                points.take().into_iter().flatten().for_each(|point| lines.push("point", &point));
            }
            (block, false) if BLOCKS.contains(&block) => lines.begin(block),
            (block, true) if BLOCKS.contains(&block) => lines.end(),
            ("th" | "td" | "text", false) => lines.cell(),
            ("span", _) => lines.text.push(' '),
            _ => (),
        }
    }
    lines.end();
    lines.all.join("\n")
}

/// Returns the page without the drawings for narrow screens.
pub fn wide(page: &str) -> String {
    let mut parts = page.split("<div class=\"drawing narrow\">");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |whole, part| whole + part.split_once("</div>").expect("the drawing ends").1)
}

/// Lines under construction.
#[derive(Default)]
struct Lines {
    all: Vec<String>,
    element: String,
    text: String,
}

impl Lines {
    fn begin(&mut self, element: &str) {
        self.end();
        element.clone_into(&mut self.element);
    }

    /// Ends the line, if there is one.
    fn end(&mut self) {
        let text = std::mem::take(&mut self.text);
        let element = std::mem::take(&mut self.element);
        self.push(&element, &text);
    }

    fn cell(&mut self) {
        if !self.text.trim().is_empty() {
            self.text.push_str(" | ");
        }
    }

    fn push(&mut self, element: &str, text: &str) {
        let text =
            text.split(|c: char| c.is_whitespace()).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
        if !text.is_empty() {
            self.all.push(format!("{element:<8}{text}"));
        }
    }
}

#[test]
fn outline_has_the_visible_text() {
    let page = "<html><head><title>A page</title><style>p { }</style></head><body><p>One <b>two</b> &amp; three</p>\
        <table><tr><th>name</th><td>1</td></tr></table>\
        <div class=\"drawing narrow\"><svg><text>phone</text></svg></div>\
        <svg><text>axis</text><g><title>64 B</title><rect/></g><text>0</text></svg><script>let x;</script></body></html>";
    let lines = ["title   A page", "p       One two & three", "tr      name | 1", "svg     axis | 0", "point   64 B"];
    assert_eq!(outline(page), lines.join("\n"));
}
