//! Figures that are not firm: how they are written, and what is said of them before any table.

use crate::figures::percent;
use crate::language::Language;
use crate::said;
use crate::wording::listed;
use linerate_model::{Firmness, Known};

/// A figure in its own cell: in parentheses if it is not firm.
pub fn shown(figure: String, firmness: Firmness) -> String {
    if firmness.is_firm() { figure } else { format!("({figure})") }
}

/// A figure in its own cell, of which a lower bound says that it is one: a rate that is not firm (`is_rate`).
pub fn bounded(lang: Language, figure: String, firmness: Firmness, is_rate: bool) -> String {
    match firmness.known(is_rate) {
        Known::AtLeast => said!(lang, "firmness-at-least", "at least {figure}, not firm", figure = figure),
        Known::Value | Known::Nothing => shown(figure, firmness),
    }
}

/// Returns a figure in a sentence or next to a point: `(60.7 k/s, not firm)`.
pub fn told(lang: Language, figure: String, firmness: Firmness) -> String {
    if firmness.is_firm() { figure } else { said!(lang, "firmness-figure", "({figure}, not firm)", figure = figure) }
}

/// Returns the share of its load that the tester offered in the trial that was to decide, `None` for a firm figure.
pub(crate) fn offered(firmness: Firmness) -> Option<String> {
    firmness.offered().and_then(percent)
}

/// Says which of these figures are not firm, and why. Each has its name.
pub(crate) fn sentences(lang: Language, figures: &[(String, Firmness)]) -> Vec<String> {
    let named = |which: fn(Option<f64>) -> bool| {
        let open = figures.iter().filter(move |(_, firmness)| !firmness.is_firm() && which(firmness.offered()));
        open.map(|(name, _)| name.clone()).collect::<Vec<_>>()
    };
    let short = named(|offered| offered.is_some());
    let shares = figures.iter().filter_map(|(_, firmness)| firmness.offered());
    let least = shares.reduce(f64::min).and_then(percent);
    let limited = named(|offered| offered.is_none());
    let short = least.filter(|_| !short.is_empty()).map(|least| {
        said!(
            lang,
            "firmness-short",
            "NOT FIRM: {names}. In the trials that were to decide the tester offered only a part of the load, {least} \
             at the least. A rate or number in parentheses is a lower bound; other figures in parentheses are those of \
             the lower load.",
            names = listed(lang, &short),
            least = least
        )
    });
    let limited = (!limited.is_empty()).then(|| said!(lang, "firmness-tester-limit", "NOT FIRM: {names}. The tester's own limit kept it from offering more. Figures in parentheses are lower bounds.", names = listed(lang, &limited)));
    short.into_iter().chain(limited).collect()
}

/// Returns the CSV cells for whether a figure is firm, and for the share of its load that was offered.
pub(crate) fn csv(firmness: Firmness) -> [(&'static str, String); 2] {
    let offered = firmness.offered().map(|share| share.to_string()).unwrap_or_default();
    [("firm", firmness.is_firm().to_string()), ("offered_share", offered)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Firmness = Firmness::NotFirm { offered: Some(0.6) };

    #[test]
    fn a_figure_that_is_not_firm_says_so_where_it_stands() {
        assert_eq!((shown("9".into(), Firmness::Firm), shown("9".into(), SHORT)), ("9".into(), "(9)".into()));
        assert_eq!(told(Language::English, "9".into(), SHORT), "(9, not firm)");
        assert_eq!((offered(SHORT).as_deref(), offered(Firmness::Firm)), (Some("60.0 %"), None));
    }

    #[test]
    fn figures_are_named_with_the_least_that_was_offered() {
        let of = |name: &str, firmness| (name.to_owned(), firmness);
        let limited = Firmness::NotFirm { offered: None };
        let almost = Firmness::NotFirm { offered: Some(0.9) };
        let all = [of("64", SHORT), of("128", Firmness::Firm), of("256", almost), of("512", limited)];
        let said = sentences(Language::English, &all);
        assert!(said[0].starts_with("NOT FIRM: 64 and 256.") && said[0].contains("60.0 %"), "{said:?}");
        assert!(said[1].starts_with("NOT FIRM: 512."), "{said:?}");
        assert_eq!(sentences(Language::English, &all[1..2]), Vec::<String>::new());
    }
}
