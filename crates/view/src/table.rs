//! Records as a table: one row each, with the figures in columns.

use crate::page;
use crate::query::address;
use linerate_model::{Confidence, Headline, HeadlineVerdict, Limit};
use linerate_report::parts::figures::{MISSING, percent};
use linerate_report::parts::firmness;
use linerate_report::{Language, plain, said};
use linerate_store::{RunRow, State};
use maud::{Markup, html};
use std::fmt::Write as _;

/// Maximum number of host names in a row.
const MOST_HOSTS: usize = 4;
/// Distance between two bars of a sparkline, in units of its picture.
const STEP: usize = 10;
/// Height of a sparkline, in units of its picture.
const HEIGHT: f64 = 24.0;

/// A run, and what its row says about it.
pub(crate) struct Listed {
    pub(crate) run: RunRow,
    /// Runs of the same command before it, newest first.
    pub(crate) earlier: Vec<RunRow>,
    /// Host names of the record.
    pub(crate) hosts: Vec<String>,
}

/// Returns the table. `most_earlier` is the number of earlier runs that a sparkline has room for.
pub(crate) fn table(lang: Language, records: &[Listed], most_earlier: usize) -> Markup {
    html! {
        table.records-table aria-label=(said!(lang, "view-records", "Records")) {
            thead {
                tr {
                    th.tick scope="col" { span.unseen { (said!(lang, "view-column-compare", "Compare")) } }
                    th.when scope="col" { (said!(lang, "view-column-when", "When")) }
                    th.what scope="col" { (said!(lang, "view-column-what", "What")) }
                    th.figure scope="col" { (said!(lang, "view-column-figure", "Figure")) }
                    th.share scope="col" { (said!(lang, "view-column-share", "Of link")) }
                    th.limit scope="col" { (said!(lang, "view-limit", "Limit")) }
                    th.change scope="col" { (said!(lang, "view-column-change", "Change")) }
                    th.line scope="col" { (said!(lang, "view-column-runs", "Last runs")) }
                }
            }
            tbody { @for listed in records { (row(lang, listed, most_earlier)) } }
        }
    }
}

fn row(lang: Language, listed: &Listed, most_earlier: usize) -> Markup {
    let run = &listed.run;
    let id = plain(&run.id.0);
    html! {
        tr {
            td.tick { input type="checkbox" name="with" value=(run.id.0) aria-label=(said!(lang, "view-compare", "Compare {id}", id = id)); }
            td.when {
                time title=(page::moment(run.started_unix_ns)) { (page::minute(run.started_unix_ns)) }
                " " span.second title=(id) { (id) }
            }
            th.what scope="row" { (what(lang, listed)) }
            td.figure { (figure(lang, run)) }
            td.share { (share(run)) }
            td.limit { (limit(lang, run.verdict)) }
            td.change { (change(lang, run, listed.earlier.first())) }
            td.line { (sparkline(lang, listed, most_earlier)) }
        }
    }
}

/// Kind, result and hosts of a run, then its command.
fn what(lang: Language, listed: &Listed) -> Markup {
    let run = &listed.run;
    let command = page::command(&run.command);
    let kind = if run.kind.is_empty() { &run.id.0 } else { &run.kind };
    let hosts: Vec<String> = listed.hosts.iter().take(MOST_HOSTS).map(|host| plain(host)).collect();
    let more = listed.hosts.len() - hosts.len();
    html! {
        a.open href=(address("record", &[("id", &run.id.0)])) {
            b lang=[lang.foreign_tag()] { (plain(kind)) }
            @if let Some(headline) = &run.headline { " " (plain(&headline.result)) }
        }
        @if !hosts.is_empty() {
            " " span.hosts { (hosts.join(", ")) @if more > 0 { " +" (more) } }
        }
        @if run.results > 1 {
            " " span.count { (said!(lang, "view-results", if results == 1 { "1 result" } else { "{results} results" }, results = run.results)) }
        }
        " "
        code.second lang=[lang.foreign_tag()] title=(command) { (command) }
    }
}

/// The headline figure of a run. A run that is not finished has its state in the figure's place, and the figure so far below it.
fn figure(lang: Language, run: &RunRow) -> Markup {
    let figure = measured(run).map(linerate_report::headline);
    html! {
        @match state(lang, run.state) {
            Some(state) => {
                strong.state.running[run.state == State::Running] { (state) }
                @if let Some(figure) = figure { " " span.second { (figure) } }
            }
            None => {
                @match figure {
                    Some(figure) => strong { (figure) },
                    None => span.none { (said!(lang, "view-no-figure", "no figure")) },
                }
                @if run.trials > 0 {
                    " " span.second { (said!(lang, "view-trials", if trials == 1 { "1 trial" } else { "{trials} trials" }, trials = run.trials)) }
                }
            }
        }
    }
}

/// Returns the word for the state of a run that is not finished.
fn state(lang: Language, state: State) -> Option<String> {
    match state {
        State::Finished => None,
        State::Running => Some(said!(lang, "view-running", "running")),
        State::Interrupted => Some(said!(lang, "view-interrupted", "interrupted")),
        State::Failed => Some(said!(lang, "view-failed", "failed")),
        State::Killed => Some(said!(lang, "view-killed", "killed")),
    }
}

/// Returns the headline figure of a run. `None` if it has none, or one that no measurement can have.
fn measured(run: &RunRow) -> Option<&Headline> {
    run.headline.as_ref().filter(|headline| headline.value.is_finite() && headline.value >= 0.0)
}

fn missing() -> Markup {
    html! { span.none { (MISSING) } }
}

/// The figure as a share of the link's speed, with a bar.
fn share(run: &RunRow) -> Markup {
    let share = measured(run).and_then(|headline| Some((headline.firmness, headline.link_share?)));
    let Some((text, share)) = share.and_then(|(firm, share)| Some((firmness::shown(percent(share)?, firm), share)))
    else {
        return missing();
    };
    html! {
        (text)
        span.meter aria-hidden="true" { i style={ "width:" (format!("{:.1}", (share * 100.0).min(100.0))) "%" } {} }
    }
}

/// What limited the figure, and the confidence in it in words and in dots.
fn limit(lang: Language, verdict: Option<HeadlineVerdict>) -> Markup {
    let Some(HeadlineVerdict { limit, confidence }) = verdict else { return missing() };
    let name = lang.text(limit.text());
    if limit == Limit::CannotTell {
        return html! { em.unclear { "? " (name) } };
    }
    let (dots, confidence) = match confidence {
        Confidence::Low => ("\u{25cf}\u{25cb}\u{25cb}", said!(lang, "verdicts-confidence-low", "low")),
        Confidence::Medium => ("\u{25cf}\u{25cf}\u{25cb}", said!(lang, "verdicts-confidence-medium", "medium")),
        Confidence::High => ("\u{25cf}\u{25cf}\u{25cf}", said!(lang, "verdicts-confidence-high", "high")),
    };
    html! {
        span.limit-name { (name) } " "
        span.second { span.dots aria-hidden="true" { (dots) } " " (confidence) }
    }
}

/// The change of the figure from that of the finished run before, as a link to the comparison. It is missing unless the run is
/// finished, and both figures are firm and of the same kind.
fn change(lang: Language, run: &RunRow, before: Option<&RunRow>) -> Markup {
    let known = || {
        let (before, figure) = (before?, measured(run)?);
        let headline = measured(before)?;
        let share = figure.change_from(headline).filter(|share| share.is_finite() && run.state == State::Finished)?;
        Some((before, figure, share, figure.has_changed_from(headline)))
    };
    let Some((before, figure, share, has_changed)) = known() else { return missing() };
    let tenths = (share * 1_000.0).round();
    let shown = if tenths == 0.0 { "0.0 %".to_owned() } else { format!("{:+.1} %", tenths / 10.0) };
    let (class, words) = if !has_changed {
        ("steady", said!(lang, "view-change", "{change} against the run before", change = shown))
    } else if (share > 0.0) == figure.quantity.more_is_better() {
        ("better", said!(lang, "view-change-better", "better: {change} against the run before", change = shown))
    } else {
        ("worse", said!(lang, "view-change-worse", "worse: {change} against the run before", change = shown))
    };
    let sign = match tenths {
        0.0 => "=",
        rise if rise > 0.0 => "\u{25b2}",
        _ => "\u{25bc}",
    };
    html! {
        a class=(class) href=(address("compare", &[("with", &before.id.0), ("with", &run.id.0)])) title=(words) {
            span.sign aria-hidden="true" { (sign) } " " (shown)
        }
    }
}

/// Bars of the figures of the runs before and of this one, the oldest first, as shares of the highest. It links to the trend.
fn sparkline(lang: Language, listed: &Listed, most_earlier: usize) -> Markup {
    let Some(newest) = measured(&listed.run) else { return missing() };
    let earlier = listed.earlier.iter().filter_map(measured).filter(|headline| headline.is_like(newest));
    let mut values: Vec<f64> = earlier.map(|headline| headline.value).collect();
    values.reverse();
    values.push(newest.value);
    let highest = values.iter().copied().fold(0.0, f64::max);
    if values.len() < 2 || highest == 0.0 {
        return missing();
    }
    // The newest bar is at the right end of each row.
    let first = (most_earlier + 1).saturating_sub(values.len());
    let bar = |path: &mut String, place: usize, value: f64| {
        let height = (value / highest * HEIGHT).max(1.0);
        let _ = write!(path, "M{} {HEIGHT}v-{height:.1}h7v{height:.1}z", (first + place) * STEP);
    };
    let (mut before, mut last) = (String::new(), String::new());
    for (place, value) in values.iter().enumerate() {
        bar(if place + 1 == values.len() { &mut last } else { &mut before }, place, *value);
    }
    let words = said!(
        lang,
        "view-runs-line",
        "{count} runs of this command, to {figure}",
        count = values.len(),
        figure = linerate_report::headline(newest)
    );
    html! {
        a.spark href=(address("trend", &[("id", &listed.run.id.0)])) title=(words) {
            svg viewBox={ "0 0 " ((most_earlier + 1) * STEP - 3) " " (HEIGHT) } role="img" aria-label=(words) {
                path.before d=(before) {}
                path.last d=(last) {}
            }
        }
    }
}
