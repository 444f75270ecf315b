//! Figures of a run in the words of a list.

use crate::figures::percent;
use crate::language::Language;
use crate::said;
use crate::wording::{firmness, sparkline};
use linerate_model::{Confidence, Headline, HeadlineVerdict, MeasureUnit};
use linerate_units::{BitRate, Nanos, OpRate, grouped};

/// Returns the figure that stands for a run, with its unit: `941 Mbit/s`. It is in parentheses if it is not firm.
pub fn headline(headline: &Headline) -> String {
    let whole = headline.value.round() as u64;
    let figure = match headline.unit {
        MeasureUnit::BitsPerS => BitRate::per_second(whole).to_string(),
        MeasureUnit::PerS => OpRate::per_second(whole).to_string(),
        MeasureUnit::Nanos | MeasureUnit::NanosHeld => Nanos::new(whole).to_string(),
        MeasureUnit::Times => format!("{:.2} x", headline.value),
        MeasureUnit::Share => format!("{:.3} %", headline.value * 100.0),
        MeasureUnit::Count => grouped(whole),
    };
    firmness::shown(figure, headline.firmness)
}

/// Returns the figure's share of the link's, `94.1 % of link`; `None` if no link speed is known.
pub fn headline_share(lang: Language, headline: &Headline) -> Option<String> {
    let share = percent(headline.link_share?)?;
    Some(said!(lang, "view-of-link", "{share} of link", share = firmness::shown(share, headline.firmness)))
}

/// Returns a mark for each figure of the same kind as the last, shares of the highest: `▃▄█`. None of fewer than two.
pub fn sparkline(headlines: &[&Headline]) -> Option<String> {
    let last = headlines.last()?;
    let values: Vec<f64> = headlines.iter().filter(|one| one.is_like(last)).map(|one| one.value).collect();
    let highest = values.iter().copied().filter(|value| value.is_finite()).fold(0.0, f64::max);
    let shares: Vec<Option<f64>> =
        values.iter().map(|value| Some(value / highest).filter(|share| share.is_finite())).collect();
    (values.len() > 1 && highest > 0.0).then(|| sparkline::sparkline(&shares))
}

/// Returns what limited that figure, with the confidence: `wire (high)`.
pub fn headline_limit(lang: Language, verdict: HeadlineVerdict) -> String {
    let confidence = match verdict.confidence {
        Confidence::Low => said!(lang, "verdicts-confidence-low", "low"),
        Confidence::Medium => said!(lang, "verdicts-confidence-medium", "medium"),
        Confidence::High => said!(lang, "verdicts-confidence-high", "high"),
    };
    format!("{} ({confidence})", lang.text(verdict.limit.text()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{Firmness, Limit, Quantity};

    #[test]
    fn a_figure_has_its_unit_and_a_limit_its_confidence() {
        let of = |quantity: Quantity, value| {
            let firmness = if value > 0.0 { Firmness::Firm } else { Firmness::NotFirm { offered: None } };
            let result = "x".to_owned();
            let unit = quantity.unit();
            headline(&Headline { result, quantity, value, unit, firmness, range: None, link_share: None })
        };
        assert_eq!(of(Quantity::PayloadBps, 941e6), "941 Mbit/s");
        assert_eq!(of(Quantity::LossRatio, 0.0125), "1.250 %");
        assert_eq!(of(Quantity::LossRatio, 0.0), "(0.000 %)", "not firm");
        let share = |link_share, firmness| {
            let quantity = Quantity::PayloadBps;
            let unit = MeasureUnit::BitsPerS;
            let headline =
                Headline { result: "x".to_owned(), quantity, value: 1.0, unit, firmness, range: None, link_share };
            headline_share(Language::English, &headline)
        };
        assert_eq!(share(Some(0.941), Firmness::Firm).as_deref(), Some("94.1 % of link"));
        assert_eq!(share(Some(0.5), Firmness::NotFirm { offered: None }).as_deref(), Some("(50.0 %) of link"));
        assert_eq!((share(None, Firmness::Firm), share(Some(f64::NAN), Firmness::Firm)), (None, None));
        let run = |result: &str, value| Headline {
            result: result.to_owned(),
            quantity: Quantity::PayloadBps,
            value,
            unit: MeasureUnit::BitsPerS,
            firmness: Firmness::Firm,
            range: None,
            link_share: None,
        };
        let runs = [run("tcp", 1e6), run("udp", 9e6), run("tcp", 4e6), run("tcp", 8e6)];
        let line = |runs: &[Headline]| sparkline(&runs.iter().collect::<Vec<_>>());
        assert_eq!(line(&runs).as_deref(), Some("\u{2582}\u{2585}\u{2588}"), "udp is another figure");
        assert_eq!((line(&runs[..2]), line(&[])), (None, None));
        let verdict = HeadlineVerdict { limit: Limit::Wire, confidence: Confidence::High };
        assert_eq!(headline_limit(Language::English, verdict), "wire (high)");
    }
}
