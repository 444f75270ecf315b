//! A chart as an SVG file of its own, for documents and slides: its legend drawn in, light colours, no style sheet but its own.

use crate::blocks::chart::{Chart, SERIES};
use crate::blocks::section::Block;
use crate::document::document;
use crate::forms::page_shell::STYLE;
use crate::language::Language;
use crate::records::Records;
use maud::{Markup, PreEscaped, html};

/// Width of a chart, and height of a line of its title or legend, pixels.
const WIDTH: u32 = 720;
const LINE: u32 = 20;
/// Space around all.
const MARGIN: u32 = 16;

/// A chart as a file of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Name of the file without an ending: `1-throughput-of-streams`.
    pub name: String,
    /// The drawing, an SVG file that needs nothing else.
    pub svg: String,
}

/// The charts of records, as their page shows them.
pub fn pictures<'a>(lang: Language, records: impl Into<Records<'a>>) -> Vec<Picture> {
    let blocks = document(lang, records.into().0).sections.into_iter().flat_map(|section| section.blocks);
    numbered(blocks.filter_map(|block| match block {
        Block::Chart(chart) => Some(*chart),
        _ => None,
    }))
}

/// Draws each chart as a file, named by its number and the words of its title.
pub fn numbered(charts: impl Iterator<Item = Chart>) -> Vec<Picture> {
    let picture = |(index, chart): (usize, Chart)| {
        let letters: String = chart.title.chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
        let words = letters.split_whitespace().take(MOST_WORDS).collect::<Vec<_>>().join("-").to_lowercase();
        Picture { name: format!("{}-{words}", index + 1), svg: svg(&chart) }
    };
    charts.enumerate().map(picture).collect()
}

/// Words of a file's name.
const MOST_WORDS: usize = 8;

/// The height that a drawing asks for at its full width.
fn height_of(drawing: &Markup) -> u32 {
    let view_box = drawing.0.split("viewBox=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    view_box.split(' ').nth(3).and_then(|height| height.parse::<f64>().ok()).map_or(0, |height| height.ceil() as u32)
}

/// The file.
pub(crate) fn svg(chart: &Chart) -> String {
    let top = MARGIN + LINE + LINE * chart.legend.len() as u32;
    let drawing = chart.drawn();
    let drawn = height_of(&drawing);
    let width = WIDTH + 2 * MARGIN;
    let height = top + LINE + drawn + MARGIN;
    let picture = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) {
            title { (chart.title) }
            style { (PreEscaped(style())) }
            rect width="100%" height="100%" fill="#ffffff" {}
            text.heading x=(MARGIN) y=(MARGIN + 12) { (chart.title) }
            @for (index, (class, meaning)) in chart.legend.iter().enumerate() {
                (key(class, chart.drawing.key(class), meaning, MARGIN + LINE * (index as u32 + 1)))
            }
            svg x=(MARGIN) y=(top + LINE / 2) width=(WIDTH) height=(drawn) { (drawing) }
        }
    };
    picture.into_string()
}

/// A colour, as lines of that shape have it, and what it means.
fn key(class: &str, shape: &str, meaning: &str, y: u32) -> Markup {
    html! {
        g class=(class) { line class=(shape) x1=(MARGIN) x2=(MARGIN + 30) y1=(y + 9) y2=(y + 9) {} }
        text.name x=(MARGIN + 40) y=(y + 13) { (meaning) }
    }
}

/// The colours of the page in light, written out: most programs that read SVG know no variables.
fn style() -> String {
    let mut style = format!(
        "text{{font:12.5px sans-serif;fill:{soft}}}.heading{{font-size:15px;font-weight:bold;fill:{ink}}}.name{{fill:{ink}}}\
         .grid{{stroke:{grid}}}.axis,.notch{{stroke:{limit}}}.line{{fill:none;stroke-width:2.25}}.hit{{fill:none}}\
         .whisker{{fill:none;stroke:{ink};stroke-width:1.25}}.figure,.group{{fill:{ink}}}.group{{font-weight:bold}}\
         .median{{stroke:{ink};stroke-width:2.5}}.tile{{fill:{s0};stroke:#ffffff}}\
         .run,.reach{{fill:none}}.run{{stroke-width:1.5}}.edge{{stroke:{soft}}}\
         .frame{{fill:none;stroke:{limit}}}.box{{fill:{panel};stroke:{rule}}}.flow{{fill:none;stroke:{limit};stroke-width:2}}\
         .limits .box{{stroke:{warn};stroke-width:2.5}}.may-limit .box{{stroke:{warn};stroke-dasharray:5 3}}\
         .lost,.limiting{{fill:{warn};font-weight:bold}}.inside{{fill:#ffffff}}.sign{{fill:{ink}}}\
         .end{{stroke:{ink};stroke-width:2.25}}.cross{{fill:none;stroke:{warn};stroke-width:2}}",
        soft = colour("soft"),
        ink = colour("ink"),
        grid = colour("grid"),
        limit = colour("limit"),
        s0 = colour("s0"),
        panel = colour("panel"),
        rule = colour("rule"),
        warn = colour("warn"),
    );
    let others = [
        ("limit", "limit"),
        ("tester", "tester"),
        ("widest", "warn"),
        ("heat", "s0"),
        ("spoilt", "soft"),
        ("failed", "warn"),
        ("around", "limit"),
        ("outside", "limit"),
        ("outage", "warn"),
        ("pale", "limit"),
        ("solid", "ink"),
    ];
    // What is pale has the colour of its run.
    for (class, named) in others.into_iter().chain(SERIES.map(|class| (class, class))) {
        let colour = colour(named);
        style.push_str(&format!(
            ".{class} .line,.{class} .run{{stroke:{colour}}}\
             .{class} .mark,.{class} .bar,.{class} .area{{fill:{colour};stroke:#ffffff}}"
        ));
    }
    style.push_str(&format!(
        ".pale .run{{stroke-width:5;stroke-opacity:.3}}.spoilt .run{{stroke-dasharray:2 3}}\
         .outside .run{{stroke-width:8;stroke-opacity:.3}}.outside rect{{fill:{limit};fill-opacity:.14}}\
         .outage rect{{fill:{warn};fill-opacity:.18}}",
        limit = colour("limit"),
        warn = colour("warn"),
    ));
    style.push_str(&format!(
        ".failed .bar,.spoilt .bar{{fill:#ffffff;stroke-width:1.5}}.failed .bar{{stroke:{warn}}}\
         .spoilt .bar{{stroke:{soft};stroke-dasharray:3 2}}.around .line{{stroke-width:1.25}}",
        warn = colour("warn"),
        soft = colour("soft"),
    ));
    style.push_str(".limit .line{stroke-dasharray:6 5}.tester .line{stroke-dasharray:1 5}");
    // Lines differ by their dashes too, as on the page.
    style.extend(STYLE.lines().filter(|line| line.starts_with("svg .s") && line.contains("dasharray")));
    style
}

/// A colour of the page's style sheet, where it stands first: in light.
fn colour(name: &str) -> &'static str {
    let at = STYLE.split_once(&format!("--{name}:")).and_then(|(_, rest)| rest.split_once(';'));
    at.map(|(value, _)| value.trim()).expect("the style sheet has this colour")
}
