//! A chart as an SVG file of its own, for documents and slides: its legend drawn in, light colours, no style sheet but its own.

use crate::blocks::chart::Chart;
use crate::blocks::drawing::Key;
use crate::blocks::section::Block;
use crate::document::document;
use crate::forms::page_shell::{DRAWING_STYLE, STYLE};
use crate::language::Language;
use crate::records::Records;
use crate::wording::wrap::wrapped;
use maud::{Markup, PreEscaped, html};
use std::sync::LazyLock;

/// Width of a chart, and height of a line of its title or legend, pixels.
const WIDTH: u32 = 720;
const LINE: u32 = 20;
/// Space around all.
const MARGIN: u32 = 16;
/// Columns of text in a line of the title and of the legend.
const HEADING_COLUMNS: usize = 72;
const LEGEND_COLUMNS: usize = 92;

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

/// Returns the height of a drawing at its full width.
fn height_of(drawing: &Markup) -> u32 {
    let view_box = drawing.0.split("viewBox=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    view_box.split(' ').nth(3).and_then(|height| height.parse::<f64>().ok()).map_or(0, |height| height.ceil() as u32)
}

/// Returns the file.
pub(crate) fn svg(chart: &Chart) -> String {
    let title = wrapped(&chart.title, HEADING_COLUMNS);
    let mut markup = Vec::new();
    let mut top = MARGIN;
    for line in &title {
        markup.push(html! { text.heading x=(MARGIN) y=(top + 12) { (line) } });
        top += LINE;
    }
    for (class, meaning) in &chart.legend {
        markup.push(key(class, chart.drawing.key(class), top));
        for line in wrapped(meaning, LEGEND_COLUMNS) {
            markup.push(html! { text.name x=(MARGIN + 40) y=(top + 13) { (line) } });
            top += LINE;
        }
    }
    let drawing = chart.drawn();
    let drawn = height_of(&drawing);
    let width = WIDTH + 2 * MARGIN;
    let height = top + LINE + drawn + MARGIN;
    let picture = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) {
            title { (chart.title) }
            style { (PreEscaped(FILE_STYLE.as_str())) }
            rect width="100%" height="100%" fill="#ffffff" {}
            @for part in markup { (part) }
            svg x=(MARGIN) y=(top + LINE / 2) width=(WIDTH) height=(drawn) { (drawing) }
        }
    };
    picture.into_string()
}

/// Draws the sign of a class in a legend.
fn key(class: &str, key: Key, y: u32) -> Markup {
    html! {
        // Outside the drawing these have no colour of their own.
        g class=(match class { "pale" => "limit pale", "heat" => "s0", _ => class }) {
            @match key {
                Key::Line(shape) => line class=(shape) x1=(MARGIN) x2=(MARGIN + 30) y1=(y + 9) y2=(y + 9) {},
                Key::Area => rect.bar x=(MARGIN + 6) y=(y + 4) width="18" height="11" rx="2" {},
            }
        }
    }
}

/// Style sheet of every file.
static FILE_STYLE: LazyLock<String> = LazyLock::new(style);

/// Returns the style sheet: the rules of drawings with their light colours written out, as most programs that read SVG know no
/// variables.
fn style() -> String {
    let rules = rules(DRAWING_STYLE);
    let colours: Vec<(&str, &str)> = rules
        .iter()
        .filter_map(|(selector, body)| {
            Some((selector.strip_prefix('.')?, body.strip_prefix("--colour: var(--")?.strip_suffix(");")?))
        })
        .collect();
    let mut style =
        String::from("text{font:12.5px sans-serif}svg .heading{font-size:15px;font-weight:bold;fill:var(--ink)}");
    for (selector, body) in &rules {
        if !is_static(selector) || body.starts_with("--") {
            continue;
        }
        for selector in selector.split(',').map(str::trim) {
            if !body.contains("var(--colour)") {
                style.push_str(&format!("{selector}{{{body}}}"));
                continue;
            }
            let classes: Vec<&str> = selector.split([' ', '.']).collect();
            let of_selector = colours.iter().find(|(class, _)| classes.contains(class));
            if let Some((_, colour)) = of_selector {
                style.push_str(&format!("{selector}{{{}}}", body.replace("--colour", &format!("--{colour}"))));
                continue;
            }
            // The element takes the colour of the group that it is in.
            let element = selector.strip_prefix("svg ").unwrap_or(selector);
            for (class, colour) in &colours {
                let body = body.replace("--colour", &format!("--{colour}"));
                style.push_str(&format!("svg .{class} {element}{{{body}}}"));
            }
        }
    }
    let mut parts = style.split("var(--");
    let mut written = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(')').unwrap_or((part, ""));
        written.push_str(colour(name));
        written.push_str(rest);
    }
    written.replace("transparent", "none")
}

/// Splits a style sheet without nested rules into selectors and bodies.
fn rules(sheet: &str) -> Vec<(&str, &str)> {
    let rules = sheet.split_once("*/").map_or(sheet, |(_, rules)| rules);
    rules
        .split('}')
        .filter_map(|rule| rule.split_once('{'))
        .map(|(selector, body)| (selector.trim(), body.trim()))
        .collect()
}

/// Returns whether a rule applies without a pointer, a keyboard and the page's script.
fn is_static(selector: &str) -> bool {
    ![":hover", ":focus-visible", "svg.zoomed", "svg[", ".cursor", ".moment", ".chosen"]
        .iter()
        .any(|part| selector.contains(part))
}

/// Returns a colour of the page in light.
fn colour(name: &str) -> &'static str {
    // Light is stated first.
    let at = STYLE.split_once(&format!("--{name}:")).and_then(|(_, rest)| rest.split_once(';'));
    at.map(|(value, _)| value.trim()).expect("the style sheet has this colour")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::axis::Axis;
    use crate::blocks::drawing::Drawing;
    use crate::blocks::table::Table;

    #[test]
    fn every_class_has_its_colour_and_lines_of_one_colour_differ_by_dashes() {
        let style = style();
        assert!(!style.contains("var("), "{style}");
        for rule in [
            "svg .s0 .line{fill: none; stroke: #0072b2;",
            "svg .s7 .bar{fill: #7a6a53;",
            "svg .dash1 .line{stroke-dasharray: 9 4;}",
            "svg .dash2 .line{stroke-dasharray: 2 4;}",
            "svg .limit .mark{fill: #ffffff; stroke: #6b7280;",
            "svg .failed .bar{fill: #ffffff; stroke: #9a4a00;",
            "svg .tile{fill: #0072b2;",
        ] {
            assert!(style.contains(rule), "{rule} in {style}");
        }
        assert!(!style.contains(":hover") && !style.contains(".zoomed"), "{style}");
    }

    #[test]
    fn long_titles_and_legends_are_wrapped() {
        let words = "throughput of every device at every size ".repeat(6);
        let chart = Chart {
            title: words.clone(),
            legend: vec![("s0 dash1", words.clone())],
            drawing: Drawing::Lines {
                x: Axis::share(Language::English, "x", 1.0),
                y: Axis::share(Language::English, "y", 1.0),
                series: Vec::new(),
            },
            table: Table { caption: String::new(), columns: Vec::new(), rows: Vec::new() },
        };
        let drawn = svg(&chart);
        let headings = drawn.matches("class=\"heading\"").count();
        let names = drawn.matches("class=\"name\"").count();
        assert!(headings >= 3 && names >= 3, "{drawn}");
        let shown: String =
            drawn.split("class=\"heading\"").skip(1).filter_map(|text| text.split(['>', '<']).nth(1)).collect();
        assert_eq!(shown.replace(' ', ""), words.replace(' ', ""), "nothing is cut");
    }
}
