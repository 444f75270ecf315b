//! Expectations (`--expect`): which of them a run meets, told first, and to a build server as it reads them.

use crate::exit::Failure;
use crate::options::{BuildReport, Results};
use crate::output::{print, say};
use linerate_method::{Expectation, Judgement, curve};
use linerate_model::{Goal, Record};
use std::fmt::Write as _;

/// Writes judgements into the file of a report; does nothing if the report has no file.
///
/// # Errors
/// The file cannot be written.
fn write(report: &BuildReport, judged: &[Judgement]) -> Result<(), Failure> {
    let BuildReport::JUnit(file) = report else { return Ok(()) };
    std::fs::write(file, junit(judged))
        .map_err(|error| Failure::measure(format!("cannot write {}: {error}", file.display())))
}

/// Returns whether a run measured anything at all.
pub(crate) fn has_counted(record: &Record) -> bool {
    record.trials.iter().any(|result| result.failure().is_none())
}

/// Writes JUnit's reports as they stand before anything is measured: all is missed. A run that is killed, or that reaches no host, must not
/// leave those of an earlier one.
///
/// # Errors
/// A report cannot be written.
pub(crate) fn begin(results: &Results) -> Result<(), Failure> {
    let missed: Vec<Judgement> =
        results.expect.iter().map(|expectation| expectation.missed("", "nothing was measured")).collect();
    results.report.iter().try_for_each(|report| write(report, &missed))
}

/// Tells how records stand to the expectations, before anything else is told of them. Those of a run that did not come to its end are
/// missed by the run as a whole.
///
/// # Errors
/// An expectation is missed, or a report cannot be written.
pub(crate) fn tell(records: &[Record], results: &Results, has_ended: bool) -> Result<(), Failure> {
    if !records.iter().any(has_counted) {
        return Ok(());
    }
    let mut judged: Vec<Judgement> = records.iter().flat_map(|record| judge(&results.expect, record)).collect();
    if !has_ended {
        let missed = |expectation: &Expectation| expectation.missed("", "the run did not come to its end");
        judged.extend(results.expect.iter().map(missed));
    }
    for judgement in &judged {
        let line = format!("{}  {}", if judgement.met { "pass" } else { "FAIL" }, judgement.text);
        if results.are_text() { print(&line) } else { say(&line) }
    }
    if !judged.is_empty() && results.are_text() {
        print("");
    }
    for report in &results.report {
        match report {
            BuildReport::JUnit(_) => write(report, &judged)?,
            BuildReport::GitHub => judged.iter().filter(|judgement| !judgement.met).for_each(|missed| {
                // Standard output may be a record.
                let line = format!("::error title=linerate --expect::{}", escaped_command(&missed.text));
                if results.are_text() { print(&line) } else { say(&line) }
            }),
        }
    }
    if judged.iter().all(|judgement| judgement.met) { Ok(()) } else { Err(Failure::Missed) }
}

/// Holds each expectation against the results that have its figure.
fn judge(expectations: &[Expectation], record: &Record) -> Vec<Judgement> {
    let mut judged = Vec::new();
    for expectation in expectations {
        if let Some((plan, found)) = record.device() {
            judged.extend(expectation.judge_device(plan, found));
        }
        let cells = record.plan.cells().iter().filter(|cell| expectation.applies_to(cell));
        // Of a curve it is the peak that counts.
        let names: Vec<&str> =
            cells.map(|cell| cell.name.as_str()).filter(|name| curve::stands(record, name)).collect();
        for result in record.results.iter().filter(|result| names.contains(&result.name.as_str())) {
            judged.push(match curve::firmness(record, &result.name).is_firm() {
                true => expectation.judge(result),
                false => expectation.judge_not_firm(result),
            });
        }
        // A ladder goes on after a layer that fails, and would end well without the figure.
        if matches!(record.plan.goal, Goal::Ladder(_)) {
            let missing = names.iter().filter(|name| record.result(name).is_none());
            judged.extend(missing.map(|name| expectation.missed(name, "it was not measured")));
        }
        if curve::lacks_peak(record) && record.plan.cells().iter().any(|cell| expectation.applies_to(cell)) {
            judged.push(expectation.missed("", "no load was held"));
        }
    }
    judged
}

/// The form that build servers read: `testsuite` with a `testcase` each, and a `failure` where one is missed. Names hold no figure, so
/// that one test keeps its name from run to run.
fn junit(judged: &[Judgement]) -> String {
    let failures = judged.iter().filter(|judgement| !judgement.met).count();
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(text, "<testsuite name=\"linerate\" tests=\"{}\" failures=\"{failures}\">", judged.len());
    for Judgement { result, expectation, met, text: said } in judged {
        let (class, name, said) = (escaped(result), escaped(expectation), escaped(said));
        let _ = match met {
            true => writeln!(text, "  <testcase classname=\"{class}\" name=\"{name}\"/>"),
            false => writeln!(
                text,
                "  <testcase classname=\"{class}\" name=\"{name}\"><failure message=\"{said}\"/></testcase>"
            ),
        };
    }
    text + "</testsuite>\n"
}

/// Text as the value of an XML attribute; what XML 1.0 has no character for is left out.
fn escaped(text: &str) -> String {
    let escape = |character: char| match character {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        '\t' | '\n' | '\r' => " ".to_owned(),
        '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => String::new(),
        other => other.to_string(),
    };
    text.chars().map(escape).collect()
}

/// Text as the message of a workflow command.
fn escaped_command(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judgement(result: &str, met: bool) -> Judgement {
        let (result, expectation) = (result.to_owned(), "loss<=0.1%".to_owned());
        let text = format!("{result}: 3.000 % {expectation}");
        Judgement { result, expectation, met, text }
    }

    #[test]
    fn junit_has_a_test_for_each_and_escapes_xml() {
        let text = junit(&[judgement("udp 64", true), judgement("a<b & \"c\"\u{1}", false)]);
        assert!(text.contains("tests=\"2\" failures=\"1\""), "{text}");
        assert!(text.contains("<testcase classname=\"udp 64\" name=\"loss&lt;=0.1%\"/>"), "{text}");
        let failed = "classname=\"a&lt;b &amp; &quot;c&quot;\" name=\"loss&lt;=0.1%\"><failure message=\"a&lt;b";
        assert!(text.contains(failed), "{text}");
    }

    #[test]
    fn a_message_for_github_is_one_line() {
        assert_eq!(escaped_command("3 %\nof 5"), "3 %25%0Aof 5");
    }

    #[test]
    fn reports_are_named_by_kind() {
        assert_eq!("junit=a.xml".parse(), Ok(BuildReport::JUnit("a.xml".into())));
        assert_eq!("github".parse(), Ok(BuildReport::GitHub));
        for text in ["junit", "junit=", "github=x", "xml"] {
            assert!(text.parse::<BuildReport>().expect_err(text).contains("junit=FILE"), "{text}");
        }
    }
}
