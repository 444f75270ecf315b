//! The text exposition format of Prometheus.
//! <https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format>

use super::family::Family;
use super::registry::{Metrics, SampleSink};
use std::fmt::Write as _;

/// Content type of the format.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Returns all metrics that have series, as text.
pub(super) fn text(metrics: &Metrics) -> String {
    let mut page = Page { text: String::new(), family: None, named: false };
    metrics.visit(&mut page);
    page.text
}

struct Page {
    text: String,
    family: Option<Family>,
    /// Whether the family's head was written.
    named: bool,
}

impl SampleSink for Page {
    fn family(&mut self, family: Family) {
        self.family = Some(family);
        self.named = false;
    }

    fn sample(&mut self, labels: &[(&'static str, &str)], value: f64) {
        let Some(family) = self.family else {
            return;
        };
        let name = family.name();
        if !self.named {
            self.named = true;
            let _ = writeln!(self.text, "# HELP {name} {}\n# TYPE {name} {}", family.help(), family.kind().name());
        }
        self.text.push_str(name);
        for (index, (label, value)) in labels.iter().enumerate() {
            self.text.push(if index == 0 { '{' } else { ',' });
            self.text.push_str(label);
            self.text.push_str("=\"");
            push_escaped(&mut self.text, value);
            self.text.push('"');
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = match value {
            f64::INFINITY => writeln!(self.text, " +Inf"),
            f64::NEG_INFINITY => writeln!(self.text, " -Inf"),
            value => writeln!(self.text, " {value}"),
        };
    }
}

/// Adds a label's value. Backslash, quotation mark and line feed are escaped.
fn push_escaped(text: &mut String, value: &str) {
    for character in value.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::registry::tests::stream;
    use proptest::prelude::*;

    #[test]
    fn families_without_series_are_left_out() {
        let text = text(&Metrics::default());
        assert!(text.starts_with("# HELP linerate_build_info "), "{text}");
        assert!(!text.contains("linerate_pair_throughput"), "{text}");
        assert!(
            text.contains("\n# TYPE linerate_scheduler_plans_total counter\nlinerate_scheduler_plans_total 0\n"),
            "{text}"
        );
    }

    proptest! {
        #[test]
        fn any_host_name_stays_on_its_line(name in "\\PC*|[\\n\"\\\\{}= ]*") {
            let metrics = Metrics::default();
            metrics.record_pair(stream(&name, "b", 1, 1.0));
            let text = text(&metrics);
            let start = "linerate_pair_throughput_bits_per_second{from=\"";
            let line = text.lines().find(|line| line.starts_with(start)).expect("a line of the pair");
            prop_assert!(line.ends_with("\",to=\"b\",test=\"stream\"} 1"), "{}", line);
            let value = &line[start.len()..line.len() - "\",to=\"b\",test=\"stream\"} 1".len()];
            let mut read = String::new();
            let mut characters = value.chars();
            while let Some(character) = characters.next() {
                match character {
                    '\\' => read.push(if characters.as_str().starts_with('n') { '\n' } else { characters.as_str().chars().next().unwrap() }),
                    other => { prop_assert!(other != '"'); read.push(other); continue; }
                }
                characters.next();
            }
            prop_assert_eq!(read, name);
        }
    }
}
