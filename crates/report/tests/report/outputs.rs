//! What every output must say, and must never say, of records as runs leave them.

use crate::sample;
use linerate_report::Language;

use linerate_model::{Caveat, CaveatKind, HostName, Plan, Record, Repeats};
use linerate_report::{Style, csv, html, json, markdown, text};

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
fn a_throughput_names_its_layer_its_limit_and_its_runs() {
    let record = sample::udp_sweep();
    let sentences = [
        "956 Mbit/s payload at the receiver (3 runs, 951 to 961 Mbit/s).",
        "This is 99.9 % of what the link can carry at MTU 1500.",
    ];
    assert!(markdown(Language::English, &record).contains(&sentences.join(" ")), "one after the other");
    for output in [plain(&record), markdown(Language::English, &record), html(Language::English, &record)] {
        for sentence in sentences {
            assert!(flowing(&output).contains(sentence), "{sentence}: {output}");
        }
    }
}

#[test]
fn the_testers_limit_is_not_called_the_devices() {
    let shown = flowing(&plain(&sample::udp_sweep()));
    assert!(
        shown.contains("This is 99.2 % of the tester limit (279 Mbit/s). The tester is the limit, not the device."),
        "{shown}"
    );
    assert!(shown.contains("This is 61.7 % of the tester limit (890 Mbit/s). 1.02 %"), "{shown}");
    assert!(shown.contains("(957 Mbit/s). The link is the limit."), "{shown}");
    assert!(shown.contains("Limited by the tester (high confidence)."), "{shown}");
}

#[test]
fn evidence_is_said_in_sentences() {
    let record = sample::udp_sweep();
    for output in [plain(&record), markdown(Language::English, &record)] {
        let said = "Limited by the wire (high confidence). The link of 1 Gbit/s was 99.8 % full.";
        assert!(flowing(&output).contains(said), "{output}");
    }
    assert!(flowing(&html(Language::English, &record)).contains("The link of 1 Gbit/s was 99.8 % full."));
}

#[test]
fn a_caveat_of_all_results_names_none() {
    let mut record = sample::udp_sweep();
    let everywhere = Caveat::new(CaveatKind::FewRuns, "two runs only");
    record.results.iter_mut().for_each(|result| result.caveats.push(everywhere.clone()));
    assert!(plain(&record).contains("! Two runs only.\n"), "{}", plain(&record));
}

#[test]
fn losses_keep_their_counts_and_name_their_places() {
    let shown = flowing(&plain(&sample::udp_sweep()));
    assert!(shown.contains("1.02 % of 254,311 datagrams lost, all of them on the wire or in a device."), "{shown}");
    assert!(shown.contains("None of 487,158 datagrams was lost."), "{shown}");
    let shown = flowing(&plain(&sample::lossy()));
    for part in [
        "11.6 % of 500,000 datagrams lost: 1,200 never sent",
        "20,000 in the sender's queue or NIC, 5,000 on the wire or in a device, 900 in the receiver's NIC or kernel queue",
        "and 31,000 in the receiver's socket buffer.",
        "3 came more than once and 41 came after one sent later",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn a_loss_no_place_explains_is_said_to_be_unexplained() {
    let mut record = sample::lossy();
    sample::figures(&mut record.results[1]).loss.as_mut().expect("a loss").lost += 100;
    assert!(
        flowing(&plain(&record)).contains("5,012 on the wire or in a device and 100 in a place that could not be told")
    );
}

#[test]
fn latency_is_said_in_words() {
    let record = sample::transactions();
    let latency = record.results[0].flows().and_then(|figures| figures.latency_ns.as_ref()).expect("timed");
    let said =
        format!("p50 {}, p99 {}", linerate_units::Nanos::new(latency.p50), linerate_units::Nanos::new(latency.p99));
    for output in [plain(&record), markdown(Language::English, &record), html(Language::English, &record)] {
        assert!(flowing(&output).contains(&said), "{said}: {output}");
    }
}

#[test]
fn latency_under_load_is_said_with_its_grade_and_what_got_no_answer() {
    let record = sample::loaded_latency();
    for output in [plain(&record), markdown(Language::English, &record), html(Language::English, &record)] {
        let shown = flowing(&output);
        for part in [
            "took 187 ms at p50, against 393 us on the idle path. The stream added 186 ms (3 runs, 183 to 190 ms): grade C (60 to 200 ms).",
            "Round trips a minute: 312 under load, 148,200 idle.",
            "12 of 254,311 requests under load got no answer, and 0 of 254,311 on the idle path. Each counts as 1 s or more.",
            "The stream added -59 us (3 runs, -61.9 to -56 us)",
            "grade A+ (below 5 ms)",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        // A percentage of that size says less than the delay, and one below zero nothing.
        assert!(!shown.contains("Buffer delay: 47,400") && !shown.contains("Buffer delay: -"), "{shown}");
    }
    let method = "A+ below 5 ms, A 5 to 30 ms, B 30 to 60 ms, C 60 to 200 ms, D 200 to 400 ms, F 400 ms or more";
    assert!(
        flowing(&html(Language::English, &record)).contains(method)
            && flowing(&markdown(Language::English, &record)).contains(method)
    );
    assert!(html(Language::English, &record).contains("data-label=\"beside the stream: p50 187 ms of 254,311 timed\""));
}

#[test]
fn cost_is_said_for_both_ends_with_the_io_method() {
    let shown = flowing(&plain(&sample::tcp_directions()));
    assert!(shown.contains("CPU time per byte: sender 0.11 ns (sendfile), receiver 0.087 ns (recv). Busiest core of sender and receiver: 91 and 54 %."), "{shown}");
}

#[test]
fn an_unknown_link_gives_no_share_but_a_reason() {
    let record = sample::unknown_link();
    let shown = flowing(&plain(&record));
    assert!(shown.contains("847 Mbit/s payload at the receiver (3 runs"), "{shown}");
    assert!(!shown.contains("can carry"), "{shown}");
    assert!(shown.contains("name it with --link-speed"), "{shown}");
    assert!(!html(Language::English, &record).contains("class=\"limit\""), "no limit is drawn where none is known");
}

#[test]
fn more_than_the_limit_is_called_out() {
    let mut record = sample::tcp_directions();
    sample::figures(&mut record.results[0]).limit.as_mut().expect("a limit").share = 1.7;
    assert!(
        flowing(&plain(&record))
            .contains("This is more than the 941 Mbit/s that a link of 1 Gbit/s can carry at MTU 1500.")
    );
}

#[test]
fn several_sources_have_one_total_and_each_its_share() {
    let record = sample::many_sources();
    for output in [plain(&record), markdown(Language::English, &record), html(Language::English, &record)] {
        for part in [
            "a, b and c to receiver",
            "941 Mbit/s payload at the receivers, all paths together",
            "tcp, each path on its own",
            "470 Mbit/s",
            "282 Mbit/s",
            "188 Mbit/s",
        ] {
            assert!(flowing(&output).contains(part), "{part}: {output}");
        }
    }
}

#[test]
fn the_same_caveat_is_printed_once_with_the_names() {
    let shown = plain(&sample::udp_sweep());
    assert_eq!(shown.matches("The runs differ by more than 5 %").count(), 1);
    assert!(shown.contains("! udp 64 and udp 512: The runs differ"), "{shown}");
    assert!(shown.contains("! Both hosts are this machine"), "{shown}");
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
    assert!(head(120).contains("busiest core"), "{}", head(120));
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

/// A record whose names are attacks on each output.
fn hostile() -> Record {
    let attack = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u{1b}[2J\u{202e}|`*_\"'&";
    let mut record = sample::many_sources();
    record.results.extend(sample::demonstration().results);
    for (index, result) in record.results.iter_mut().enumerate() {
        result.name = format!("=cmd {attack}{index}");
        for caveat in &mut result.caveats {
            caveat.text = attack.to_owned();
        }
        result.verdict.evidence = vec![attack.to_owned()];
        let figures = sample::figures(result);
        for share in &mut figures.shares {
            share.from = attack.to_owned();
        }
        if let Some(received) = &mut figures.received {
            received.io_method = attack.to_owned();
        }
        if let Some(tcp) = &mut figures.tcp {
            tcp.congestion = attack.to_owned();
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
        ("udp_sweep", 3),
        ("tcp_directions", 2),
        ("transactions", 2),
        ("loaded_latency", 4),
        ("many_sources", 3),
        ("lossy", 3),
        ("demonstration", 5),
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
            assert_eq!(points, figure.matches("aria-label=").count() - 2, "{name}: but for the chart and the table");
        }
    }
}

#[test]
fn a_sweep_is_drawn_against_the_limits_of_link_and_tester() {
    let page = html(Language::English, &sample::udp_sweep());
    for label in [
        "64 B messages: a link of 1 Gbit/s can carry 492 Mbit/s payload",
        "64 B messages: the tester reaches 279 Mbit/s without the device",
        "udp 64: 277 Mbit/s payload at the receiver (3 runs, 275 to 278 Mbit/s), 56.2 % of what the link can carry",
    ] {
        assert!(page.contains(&format!("data-label=\"{label}\"")), "{label}");
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

/// The fields of one CSV line, quotes undone.
fn fields(line: &str) -> Vec<String> {
    let (mut all, mut field, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    all.push(field);
    all
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
        for (row, (_, result)) in rows.iter().zip(record.flows()) {
            assert_eq!(row[at("message_bytes")], result.message_bytes.to_string());
            assert_eq!(row[at("lost_datagrams")], result.loss.map_or(String::new(), |loss| loss.lost.to_string()));
            let median = result.received.as_ref().map(|r| r.payload_bps.median).filter(|median| median.is_finite());
            assert_eq!(row[at("received_payload_bps_median")].parse().ok(), median, "{name}");
        }
    }
}
