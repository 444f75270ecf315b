//! What every output must say, and must never say, of records as runs leave them.

use crate::sample;
use crate::snapshots::fields;
use linerate_report::Language;

use linerate_model::{
    Caveat, CaveatKind, Confidence, Detail, HostName, Limit, Message, Plan, Record, Repeats, Verdict,
};
use linerate_report::{Style, answer, csv, html, json, markdown, text};

fn plain(record: &Record) -> String {
    text(record, &Style::default())
}

/// A text with all white space as single spaces, so that sentences are found across line ends.
fn flowing(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The page without its style, its scripts and the record in it.
fn visible(page: &str) -> String {
    let mut left = page;
    let mut seen = String::new();
    while let Some(start) = ["<style", "<script"].iter().filter_map(|tag| left.find(tag)).min() {
        seen.push_str(&left[..start]);
        let end = ["</style>", "</script>"].iter().filter_map(|tag| left[start..].find(tag)).min().expect("it ends");
        left = &left[start + end..];
    }
    seen + left
}

#[test]
fn a_caveat_of_all_results_names_none() {
    let mut record = sample::udp_sweep();
    let everywhere = Caveat::new(CaveatKind::FewRuns, Message::untranslated("two runs only"));
    record.results.iter_mut().for_each(|result| result.caveats.push(everywhere.clone()));
    assert!(plain(&record).contains("! Two runs only.\n"), "{}", plain(&record));
}

#[test]
fn both_directions_have_one_verdict() {
    let said = |change: &dyn Fn(&mut Record)| {
        let mut record = sample::tcp_directions();
        let both = record.results.pop().map(|result| result.name);
        assert_eq!((both.as_deref(), record.results.len()), (Some("tcp both"), 2));
        for (result, confidence) in record.results.iter_mut().zip([Confidence::High, Confidence::Medium]) {
            result.verdict = Verdict::new(Limit::Wire, confidence, vec![]);
        }
        change(&mut record);
        flowing(&answer(&record, &Style::default()))
    };
    let same = said(&|_| ());
    assert!(same.contains("Both directions: limited by the wire (medium confidence)."), "{same}");
    let differ = said(&|record| record.results[1].verdict.limit = Limit::ReceiverCpu);
    let sentence =
        "Sent: limited by the wire (high confidence). Received: limited by the receiver's CPU (medium confidence).";
    assert!(differ.contains(sentence), "{differ}");
    let one = said(&|record| drop(record.results.pop()));
    assert!(!one.contains("Both directions") && !one.contains("Received: "), "{one}");
}

#[test]
fn a_loss_no_place_explains_is_said_to_be_unexplained() {
    let mut record = sample::lossy();
    sample::figures(&mut record.results[1]).loss.as_mut().expect("a loss").lost += 100;
    assert!(
        flowing(&plain(&record)).contains("5,012 unaccounted for (on a wire, in a device, or where the kernel does not count) and 100 in a place that could not be told")
    );
}

/// A percentage of many thousands says less than the delay, and one below zero nothing.
#[test]
fn an_extreme_buffer_delay_is_not_said() {
    let shown = flowing(&plain(&sample::loaded_latency()));
    assert!(shown.contains("The stream added") && !shown.contains("Buffer delay"), "{shown}");
}

#[test]
fn no_limit_is_drawn_where_none_is_known() {
    let record = sample::unknown_link();
    assert!(!plain(&record).contains("can carry") && !html(Language::English, &record).contains("class=\"limit\""));
    assert!(html(Language::English, &sample::udp_sweep()).contains("class=\"limit\""));
}

#[test]
fn more_than_the_limit_is_called_out() {
    let mut record = sample::tcp_directions();
    sample::flow(&mut record.results[0]).limit.as_mut().expect("a limit").share = 1.7;
    assert!(
        flowing(&plain(&record))
            .contains("This is more than the 941 Mbit/s that a link of 1 Gbit/s can carry at MTU 1500.")
    );
}

#[test]
fn the_interval_asked_for_is_given() {
    let mut record = sample::tcp_directions();
    let repeats = Repeats::Until { confidence_percent: 95.0, within: 0.025, at_least: 3, at_most: 20 };
    record.plan = Plan::sweep(record.plan.cells().to_vec(), repeats);
    assert!(
        flowing(&plain(&record)).contains("3 runs, 936 to 945 Mbit/s; mean 936 to 945 Mbit/s with 95 % confidence")
    );
    assert!(markdown(Language::English, &record).contains("within 2.5 % either side, at least 3 and at most 20 times"));
}

#[test]
fn nothing_absurd_is_ever_shown() {
    for (name, record) in sample::all() {
        let outputs = [
            plain(&record),
            markdown(Language::English, &record),
            csv(&record),
            visible(&html(Language::English, &record)),
        ];
        for output in outputs {
            let absurd = |word: &&str| matches!(word.to_lowercase().as_str(), "nan" | "inf" | "infinity" | "null");
            let found = output.split(|c: char| !c.is_alphanumeric()).find(absurd);
            assert_eq!(found, None, "{name}: {output}");
        }
    }
    assert!(plain(&sample::absurd()).contains('\u{2013}'), "a missing figure is shown as missing");
}

#[test]
fn an_empty_record_says_so_everywhere() {
    let record = sample::record(&["a"], "b", vec![]);
    assert!(plain(&record).contains("Nothing was measured."));
    assert!(html(Language::English, &record).contains("Nothing was measured."));
    assert!(markdown(Language::English, &record).contains("Nothing was measured."));
    assert_eq!(csv(&record).lines().count(), 1);
}

#[test]
fn text_keeps_to_its_width() {
    for (name, mut record) in sample::all() {
        if let Some(first) = record.results.first_mut() {
            first.name =
                "a-name-without-any-place-to-break-it-that-is-longer-than-a-narrow-terminal-is-wide".to_owned();
        }
        for width in [40, 60, 80, 120, 200] {
            let shown = text(&record, &Style { width, ..Style::default() });
            let longest = shown.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(longest <= width, "{name} at {width}: {longest}\n{shown}");
        }
    }
}

#[test]
fn a_wider_terminal_gets_more_columns() {
    let head = |width| {
        let shown = text(&sample::udp_sweep(), &Style { width, ..Style::default() });
        shown.lines().find(|line| line.starts_with("stream")).expect("a table").to_owned()
    };
    assert!(!head(48).contains("packets/s") && head(48).contains("payload"), "{}", head(48));
    assert!(head(120).contains("CPU"), "{}", head(120));
}

#[test]
fn colours_and_unicode_only_where_wanted() {
    for (name, record) in sample::all() {
        let coloured = text(&record, &Style { colour: true, ..Style::default() });
        assert!(coloured.contains("\u{1b}[1m"), "{name}");
        let mut stripped = coloured;
        for code in ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[33m", "\u{1b}[36m"] {
            stripped = stripped.replace(code, "");
        }
        assert_eq!(stripped, plain(&record), "{name}: colours change nothing else");
        assert!(text(&record, &Style { unicode: false, ..Style::default() }).is_ascii(), "{name}");
    }
}

#[test]
fn the_answer_tells_both_directions_apart() {
    let mut record = sample::tcp_directions();
    record.results.drain(..2);
    sample::flow(&mut record.results[0]).shares = [("a", "b", 9.41e8), ("b", "a", 6.2e8)]
        .map(|(from, to, rate)| linerate_model::Share {
            from: from.to_owned(),
            to: to.to_owned(),
            main: sample::summary(rate, 0.01),
            loss: None,
        })
        .to_vec();
    let shown = answer(&record, &Style { width: 200, ..Style::default() });
    assert!(shown.contains("a to b: 941 Mbit/s. b to a: 620 Mbit/s."), "{shown}");
}

/// A record whose names are attacks on each output.
fn hostile() -> Record {
    let attack = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u{1b}[2J\u{202e}|`*_\"'&";
    let mut record = sample::many_sources();
    record.results.extend(sample::demonstration().results);
    for (index, result) in record.results.iter_mut().enumerate() {
        result.name = format!("=cmd {attack}{index}");
        for caveat in &mut result.caveats {
            caveat.text = Message::untranslated(attack);
        }
        result.verdict.evidence = vec![Message::untranslated(attack)];
        let flow = sample::flow(result);
        for share in &mut flow.shares {
            share.from = attack.to_owned();
        }
        if let Some(tcp) = &mut flow.tcp {
            tcp.congestion = attack.to_owned();
        }
        if let Detail::Stream(stream) = &mut result.detail {
            stream.received.io_method = attack.to_owned();
        }
    }
    for host in &mut record.hosts {
        host.name = HostName(attack.to_owned());
        host.cpu_model = attack.to_owned();
        host.nics[0].driver = attack.to_owned();
    }
    let mut cells = record.plan.cells().to_vec();
    for cell in &mut cells {
        cell.task_mut().paths_mut().expect("paths")[0].client = HostName(attack.to_owned());
    }
    record.plan = Plan::sweep(cells, Repeats::Times(3));
    record.command = vec![attack.to_owned()];
    record.id.0 = attack.to_owned();
    record.version = attack.to_owned();
    record
}

#[test]
fn names_cannot_break_out_of_any_output() {
    let record = hostile();
    let page = html(Language::English, &record);
    assert_eq!(page.matches("<script").count(), 2, "our script and the record, no other");
    assert_eq!(page.matches("</script").count(), 2);
    assert!(!page.contains("<img"), "no element from a name");
    assert!(!page.contains('\u{1b}') && !visible(&page).contains('\u{202e}'));
    let shown = plain(&record);
    assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'));
    let marked = markdown(Language::English, &record);
    assert!(!marked.contains('<') && !marked.contains('\u{1b}'));
    let pipes = |line: &str| line.replace("\\|", "").matches('|').count();
    for table in marked.split("\n\n").filter(|block| block.starts_with("| ")) {
        let counts: Vec<usize> = table.lines().map(pipes).collect();
        assert!(counts.windows(2).all(|pair| pair[0] == pair[1]), "{table}");
    }
    assert!(csv(&record).contains("'=cmd"), "no cell is a formula");
}

#[test]
fn the_page_fetches_nothing() {
    for (name, record) in sample::all() {
        let page = html(Language::English, &record);
        let outside = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!outside.contains("http://") && !outside.contains("https://"), "{name}");
        assert!(!page.contains("@import") && !page.contains("url("), "{name}");
        assert!(page.contains("default-src 'none'"), "{name}");
    }
}

#[test]
fn every_chart_has_its_table_and_every_point_its_words() {
    let expected = [
        ("udp_sweep", 4),
        ("tcp_directions", 3),
        ("transactions", 3),
        ("loaded_latency", 5),
        ("many_sources", 4),
        ("lossy", 4),
        ("demonstration", 6),
    ];
    for (name, charts) in expected {
        let (_, record) = sample::all().into_iter().find(|(other, _)| *other == name).expect("a sample");
        let page = html(Language::English, &record);
        let figures: Vec<&str> =
            page.split("<figure>").skip(1).map(|rest| rest.split("</figure>").next().expect("it ends")).collect();
        assert_eq!(figures.len(), charts, "{name}");
        for figure in figures {
            assert!(figure.contains("<svg") && figure.contains("<table>"), "{name}: {figure}");
            let points = figure.matches("class=\"point\"").count();
            assert!(points > 0, "{name}: {figure}");
            assert_eq!(points, figure.matches("<title>").count(), "{name}");
            let drawings = figure.matches("<svg").count();
            assert_eq!(points, figure.matches("aria-label=").count() - drawings - 1, "{name}: but for chart and table");
        }
    }
}

#[test]
fn the_record_in_the_page_and_the_json_is_the_record() {
    for (name, record) in
        sample::all().into_iter().filter(|(name, _)| *name != "absurd").chain([("hostile", hostile())])
    {
        let text = json(&record);
        assert!(text.ends_with("}\n") && text.lines().count() == 1, "{name}");
        assert!(serde_json::from_str::<Record>(&text).expect("it reads") == record, "{name}");
        let page = html(Language::English, &record);
        let start = page.find("<script id=\"record\" type=\"application/json\"").expect("it is there");
        let inside = &page[start..][page[start..].find('>').expect("it opens") + 1..];
        let inside = &inside[..inside.find("</script>").expect("it ends")];
        assert!(serde_json::from_str::<Record>(inside).expect("it reads") == record, "{name}");
    }
}

#[test]
fn csv_has_one_row_a_result_and_stable_names() {
    for (name, record) in sample::all() {
        let text = csv(&record);
        let mut lines = text.split_terminator("\r\n").map(fields);
        let head = lines.next().expect("a header");
        let snake = |title: &String| title.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        assert!(head.iter().all(snake), "{head:?}");
        let rows: Vec<_> = lines.collect();
        assert_eq!(rows.len(), record.results.len(), "{name}");
        assert!(rows.iter().all(|row| row.len() == head.len()), "{name}");
        let at = |title: &str| head.iter().position(|other| other == title).expect(title);
        for (row, result) in rows.iter().zip(record.flows()) {
            assert_eq!(row[at("message_bytes")], result.flows().expect("flows").message_bytes.to_string());
            assert_eq!(row[at("lost_datagrams")], result.loss().map_or(String::new(), |loss| loss.lost.to_string()));
            let median = result.received().map(|r| r.payload_bps.median).filter(|median| median.is_finite());
            assert_eq!(row[at("received_payload_bps_median")].parse().ok(), median, "{name}");
        }
    }
}
