//! Charts over time, of series written by hand.

use crate::{copy, copy_timeline, frames, sample};
use linerate_method::with_load;
use linerate_model::{
    Caveat, CaveatKind, ClockOffset, Counts, Goal, HostName, LatencyBuckets, Message, Nic, Record, Series,
    SeriesQuantity as Quantity, SessionSeries, Standing, Task, Timing, Track, TransactTask, Transport, TrialResult,
};
use linerate_report::{Block, Chart, Language, Style, answer, document, html};
use linerate_testsuite::page_outline::wide;
use linerate_units::Nanos;

/// Length of an interval, and where the window opens and closes, milliseconds.
const INTERVAL: u64 = 100;
const WINDOW: u64 = 900;

/// A series of 12 intervals: 200 ms of warm-up, a window of 900 ms, and 100 ms after it.
fn series(tracks: &[(Quantity, &str, [u64; 12])]) -> Series {
    let track = |(quantity, subject, values): &(Quantity, &str, [u64; 12])| Track {
        quantity: *quantity,
        subject: (*subject).to_owned(),
        values: values.to_vec(),
    };
    Series {
        opened_ns: 5_000_000_000,
        window: Nanos::from_millis(WINDOW),
        from_us: -200_000,
        at_us: (0..12).map(|at| (at - 1) * INTERVAL as i64 * 1_000).collect(),
        tracks: tracks.iter().map(track).collect(),
        latency: Vec::new(),
    }
}

/// The same series of a load without a window, which begins at zero.
fn whole(series: Series) -> Series {
    let at_us = series.at_us.iter().map(|at| at + 200_000).collect();
    Series { from_us: 0, at_us, window: Nanos::from_millis(1_200), ..series }
}

/// Response times of each interval: nine at `p50`, one at `p99`, both in microseconds.
fn timed(mut series: Series, p50: [u64; 12], p99: u64) -> Series {
    let times = |p50: u64| {
        let mut counts = vec![0; LatencyBuckets::COUNT];
        counts[LatencyBuckets::bucket(p50 * 1_000)] += 9;
        counts[LatencyBuckets::bucket(p99 * 1_000)] += 1;
        LatencyBuckets::of(&counts)
    };
    series.latency = p50.map(times).into();
    series
}

fn session(load: u16, host: &str, series: Series) -> SessionSeries {
    SessionSeries { load, host: HostName::from(host), series }
}

/// An attempt at the first trial of the plan.
fn attempt(record: &Record, number: u32, standing: Standing, series: Vec<SessionSeries>) -> TrialResult {
    let trial = record.plan.cells()[0].clone();
    let counts = vec![Counts::Flows(Vec::new())];
    TrialResult { standing, counts, series, ..TrialResult::failed(trial, number, "") }
}

fn spoilt() -> Standing {
    Standing::Spoilt {
        reason: Caveat::new(
            CaveatKind::CpuStolen,
            Message::untranslated("the hypervisor took 7 % of host a's CPU time"),
        ),
    }
}

/// Bytes per interval of a rate in Mbit/s.
fn bytes(mbit_per_s: [u64; 12]) -> [u64; 12] {
    mbit_per_s.map(|rate| rate * 125 * INTERVAL)
}

/// TCP on a link of 100 Mbit/s that dips twice: two runs, and a spoilt attempt between them.
pub(crate) fn stream() -> Record {
    let mut result = sample::stream("tcp", Transport::Tcp, 131_072, 0.0941);
    let limit = sample::flow(&mut result).limit.as_mut().expect("a limit");
    limit.line_bps = linerate_units::BitRate::per_second(100_000_000);
    limit.payload_bps = linerate_units::BitRate::per_second(94_149_280);
    limit.share = 0.94;
    let mut record = sample::record(&["a"], "b", vec![result]);
    let run = |rate: [u64; 12], again: [u64; 12], srtt: [u64; 12]| {
        let sender = series(&[
            (Quantity::SentBytes, "", bytes(rate)),
            (Quantity::Retransmits, "", again),
            (Quantity::Srtt, "", srtt),
        ]);
        vec![session(0, "a", sender), session(0, "b", series(&[(Quantity::ReceivedBytes, "", bytes(rate))]))]
    };
    let srtt = |at: u64| [400, at, at, at + 200, at * 2, at, at, at + 100, at, at, at + 50, at];
    let none = [0; 12];
    record.trials = vec![
        attempt(
            &record,
            0,
            Standing::Counted,
            run([40, 80, 94, 94, 60, 94, 94, 94, 93, 94, 94, 20], [0, 0, 0, 0, 12, 0, 0, 0, 0, 1, 0, 0], srtt(2_100)),
        ),
        attempt(&record, 0, spoilt(), run([30, 60, 70, 40, 20, 35, 50, 55, 30, 20, 44, 10], none, srtt(3_500))),
        attempt(
            &record,
            1,
            Standing::Counted,
            run([50, 90, 94, 93, 94, 94, 94, 94, 75, 94, 94, 30], [0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0], srtt(2_000)),
        ),
    ];
    record
}

/// The same with the time of cores: two on host a, of which one takes soft interrupts, and more than are kept on host b.
pub(crate) fn processors() -> Record {
    let mut record = stream();
    let name = |record: &mut Record, index: usize, name: &str, cores| {
        let host = record.hosts.get_mut(index).expect("a host");
        (host.name, host.cores) = (HostName::from(name), cores);
    };
    name(&mut record, 0, "a", 2);
    name(&mut record, 1, "b", 16);
    for (number, attempt) in record.trials.iter_mut().enumerate() {
        for session in &mut attempt.series {
            let track = |quantity, subject: &str, micros| Track {
                quantity,
                subject: subject.to_owned(),
                values: vec![micros; 12],
            };
            session.series.tracks.extend(match session.host.0.as_str() {
                "a" => vec![
                    track(Quantity::CoreUser, "0", 10_000),
                    track(Quantity::CoreSystem, "0", 60_000 + 10_000 * number as u64),
                    track(Quantity::CoreSystem, "1", 20_000),
                    track(Quantity::CoreSoftirq, "1", 50_000),
                ],
                _ => vec![track(Quantity::CoreSystem, "7", 80_000), track(Quantity::CoreSteal, "7", 8_000)],
            });
        }
    }
    record
}

/// UDP that loses some datagrams, with requests beside it.
pub(crate) fn lossy() -> Record {
    let mut record = sample::record(&["a"], "b", vec![sample::stream("udp 1472", Transport::Udp, 1472, 0.1)]);
    let receiver = series(&[
        (Quantity::ReceivedBytes, "", bytes([95; 12])),
        (Quantity::ReceivedMessages, "", [800, 800, 800, 800, 720, 0, 800, 800, 800, 800, 800, 800]),
        (Quantity::Lost, "", [0, 0, 0, 0, 80, 0, 0, 0, 200, 0, 0, 0]),
    ]);
    let probes = timed(series(&[]), [90, 95, 90, 900, 1_900, 2_000, 2_100, 1_000, 90, 95, 90, 90], 5_000);
    let Goal::Sweep(plan) = &mut record.plan.goal else { panic!("a sweep") };
    let trial = plan.cells.remove(0);
    plan.cells.push(with_load(trial, Task::Transact(TransactTask::plain(Transport::Tcp))));
    let series = vec![session(0, "b", receiver), session(1, "a", probes)];
    record.trials = vec![attempt(&record, 0, Standing::Counted, series)];
    record
}

/// Requests with a pause.
pub(crate) fn requests() -> Record {
    let mut record = sample::record(&["a"], "b", vec![sample::transact("tcp 1/1", Transport::Tcp, 27_000)]);
    let run = |rate: u64| {
        let done = [rate, rate, rate, rate, rate / 4, rate / 2, rate, rate, rate, rate, rate, rate];
        let client = series(&[(Quantity::Operations, "", done)]);
        let slow = [27, 27, 27, 27, 110, 55, 27, 27, 28, 27, 27, 27];
        vec![session(0, "a", timed(client, slow, 90)), session(0, "b", series(&[(Quantity::Operations, "", done)]))]
    };
    record.trials = [3_500, 3_600].map(|rate| attempt(&record, 0, Standing::Counted, run(rate))).into();
    record
}

/// A copy whose destinations write in bursts.
pub(crate) fn copied() -> Record {
    let mut record = copy::record();
    let work = |subject: &'static str, values| (Quantity::StageTime, subject, values);
    let run = |shift: u64| {
        let rate = [0, 60, 90, 90, 88 - shift, 20, 91, 90, 90, 30 + shift, 90, 40];
        let source = series(&[
            work(
                "read",
                [80_000, 60_000, 50_000, 40_000, 50_000, 50_000, 40_000, 50_000, 60_000, 50_000, 40_000, 20_000],
            ),
            work(
                "send",
                [10_000, 90_000, 140_000, 150_000, 150_000, 190_000, 140_000, 150_000, 150_000, 180_000, 90_000, 1_000],
            ),
        ]);
        let destination = series(&[
            (Quantity::ReceivedBytes, "", rate.map(|rate| rate * 100_000)),
            work("write", [0, 10_000, 20_000, 20_000, 20_000, 90_000, 20_000, 20_000, 20_000, 90_000, 30_000, 30_000]),
            work("sync", [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 60_000, 99_000]),
        ]);
        vec![
            session(0, "a", whole(source)),
            session(0, "b", whole(destination.clone())),
            session(0, "=c", whole(destination)),
        ]
    };
    record.trials = [0, 12].map(|shift| attempt(&record, 0, Standing::Counted, run(shift))).into();
    record
}

/// Frames both ways between two ports; one way loses some.
pub(crate) fn forwarded() -> Record {
    let mut record = frames::record();
    let port = Nic { name: "p0".to_owned(), ..record.hosts[0].nics[0].clone() };
    record.hosts[0].nics.push(port);
    let sent = [2_000; 12];
    let ports = series(&[
        (Quantity::FramesSent, "p0", sent),
        (Quantity::FramesSent, "p1", sent),
        (
            Quantity::FramesReceived,
            "p0",
            [2_000, 2_000, 2_000, 1_990, 2_000, 1_700, 1_800, 2_000, 2_000, 2_000, 2_000, 2_000],
        ),
        (Quantity::FramesReceived, "p1", sent),
    ]);
    record.trials = vec![attempt(&record, 0, Standing::Counted, vec![session(0, "tester", whole(ports))])];
    record
}

/// All of them, by name.
pub(crate) fn all() -> [(&'static str, Record); 6] {
    [
        ("over-time-stream", stream()),
        ("over-time-loss", lossy()),
        ("over-time-requests", requests()),
        ("over-time-copy", copied()),
        ("copy-timeline", copy_timeline::record()),
        ("over-time-frames", forwarded()),
    ]
}

/// The charts over time of a record.
fn charts(record: &Record) -> Vec<Chart> {
    let sections = document(Language::English, std::slice::from_ref(record)).sections;
    let blocks = sections.into_iter().filter(|section| section.id == "over-time").flat_map(|section| section.blocks);
    blocks
        .filter_map(|block| match block {
            Block::Chart(chart) => Some(*chart),
            _ => None,
        })
        .collect()
}

/// The rows of the chart of that title, cells joined.
fn rows(record: &Record, title: &str) -> Vec<String> {
    let charts = charts(record);
    let chart = charts
        .iter()
        .find(|chart| chart.title == title)
        .unwrap_or_else(|| panic!("{title}: {:?}", charts.iter().map(|chart| &chart.title).collect::<Vec<_>>()));
    let cells = |row: &Vec<Option<String>>| -> Vec<String> {
        row.iter().map(|cell| cell.clone().unwrap_or_else(|| "-".to_owned())).collect()
    };
    chart.table.rows.iter().map(|row| cells(row).join(" | ")).collect()
}

fn titles(record: &Record) -> Vec<String> {
    charts(record).into_iter().map(|chart| chart.title).collect()
}

#[test]
fn a_tcp_stream_has_rate_retransmits_and_round_trip_time() {
    let record = stream();
    let named = |what: &str| format!("tcp: {what} over time");
    let expected = ["payload at the receiver", "retransmits", "smoothed round-trip time"].map(named);
    assert_eq!(titles(&record), expected);
    // The window has nine of the twelve intervals; neither the slow start before it nor the drain counts.
    let reason = "run 2, attempt 1, spoilt: the hypervisor took 7 % of host a's CPU time";
    let rate = [
        "run 1 | 60.0 Mbit/s | 94.0 Mbit/s | 94.0 Mbit/s | 9",
        &format!("{reason} | 20.0 Mbit/s | 40.0 Mbit/s | 70.0 Mbit/s | 9"),
        "run 2 | 75.0 Mbit/s | 94.0 Mbit/s | 94.0 Mbit/s | 9",
    ];
    assert_eq!(rows(&record, &expected[0]), rate);
    assert_eq!(rows(&record, &expected[1])[0], "run 1 | 0/s | 0/s | 120/s | 9");
    assert_eq!(rows(&record, &expected[2])[0], "run 1 | 2.1 ms | 2.1 ms | 4.2 ms | 9");
}

/// Of two cores in an interval of 100 ms: 10 ms in user space, 80 in the kernel, 50 in soft interrupts.
#[test]
fn each_hosts_cpu_time_is_told_by_kind() {
    let record = processors();
    let title = "tcp: CPU time of each host by kind";
    assert_eq!(titles(&record).last().map(String::as_str), Some(title));
    let reason = "run 2, attempt 1, spoilt: the hypervisor took 7 % of host a's CPU time";
    let expected = [
        "a, run 1 | 5.0 % | 40.0 % | 25.0 % | 0 % | 30.0 %",
        &format!("a, {reason} | 5.0 % | 45.0 % | 25.0 % | 0 % | 25.0 %"),
        "a, run 2 | 5.0 % | 50.0 % | 25.0 % | 0 % | 20.0 %",
        "b, run 1 | 0 % | 5.0 % | 0 % | 0.5 % | 94.5 %",
        &format!("b, {reason} | 0 % | 5.0 % | 0 % | 0.5 % | 94.5 %"),
        "b, run 2 | 0 % | 5.0 % | 0 % | 0.5 % | 94.5 %",
    ];
    assert_eq!(rows(&record, title), expected);
    let chart = charts(&record).pop().expect("the chart");
    let rest = "idle, other, or of cores beside the 8 busiest, which alone are kept";
    assert_eq!(chart.legend.last(), Some(&("rest", rest.to_owned())), "host b has more cores than are kept");
    let page = wide(&html(Language::English, &record));
    let figure = figures(&page).pop().expect("the chart");
    assert_eq!(figure.matches("class=\"area\"").count(), 10, "five kinds of one run on each of two hosts");
    assert!(figure.contains("a, run 1, soft interrupts: 25.0 % of the time of all cores"), "{figure}");
    assert!(wide(&html(Language::Japanese, &record)).contains("各ホストの種類別 CPU 時間"));
}

/// One moment stands at one place in all charts of a result, though one host began to sample later; another result has its own.
#[test]
fn charts_of_a_result_share_their_axis_of_time() {
    let mut record = processors();
    for attempt in &mut record.trials {
        let late = &mut attempt.series[1].series;
        late.from_us += 150_000;
        late.at_us.remove(0);
        for track in &mut late.tracks {
            track.values.remove(0);
        }
    }
    let page = wide(&html(Language::English, &record));
    let axes = |page: &str| -> Vec<String> {
        let figures = figures(page);
        figures
            .iter()
            .map(|figure| {
                figure.split("data-time=\"").nth(1).expect("an axis").split('"').next().expect("its end").to_owned()
            })
            .collect()
    };
    let all = axes(&page);
    assert!(all.len() == 4 && all.iter().all(|axis| *axis == all[0]), "{all:?}");
    assert!(all[0].starts_with("0 -0.2 1 "), "from the first sample of any host to the last: {all:?}");
    let ticks =
        |figure: &str| figure.split("class=\"seconds\"").nth(1).expect("ticks").split("</g>").next().map(str::to_owned);
    let drawn = figures(&page);
    let places = |figure: &&str| -> Vec<String> {
        let ticks = ticks(figure).expect("ticks");
        ticks
            .split("text class=\"tick\" x=\"")
            .skip(1)
            .map(|tick| tick.split('"').next().expect("a place").to_owned())
            .collect()
    };
    assert!(places(&drawn[0]).len() > 4 && drawn.iter().all(|figure| places(figure) == places(&drawn[0])));
}

#[test]
fn the_rate_over_time_stands_right_after_the_path() {
    let document = document(Language::English, &[stream()]);
    let order: Vec<&str> = document.sections.iter().map(|section| section.id).take(4).collect();
    assert_eq!(order, ["results", "caveats", "path", "over-time"]);
}

/// The charts over time of a page.
fn figures(page: &str) -> Vec<&str> {
    let section = page.split("id=\"over-time\"").nth(1).expect("the section");
    let section = section.split("</section>").next().expect("its end");
    section.split("<figure>").skip(1).map(|figure| figure.split("</figure>").next().expect("its end")).collect()
}

#[test]
fn every_repeat_is_drawn_and_spoilt_ones_look_otherwise() {
    let page = wide(&html(Language::English, &stream()));
    let figure = figures(&page)[0];
    for class in ["s0", "s1", "spoilt"] {
        assert_eq!(figure.matches(&format!("<g class=\"{class}\">")).count(), 1, "{class}: {figure}");
    }
    for said in [
        "run 1: median 94.0 Mbit/s, lowest 60.0 Mbit/s, highest 94.0 Mbit/s",
        "a link of 100 Mbit/s can carry 94.1 Mbit/s payload",
        "payload at the receiver, Mbit/s, every 100 ms",
        "seconds from the opening of the window",
        "outside the measured window, excluded from results",
    ] {
        assert!(figure.contains(said), "{said}: {figure}");
    }
    // Warm-up and drain are shaded, both edges are marked.
    assert_eq!(figure.split("class=\"outside\"").nth(2).expect("after the legend").matches("<rect").count(), 2);
    assert_eq!(figure.matches("class=\"edge\"").count(), 2);
}

#[test]
fn loss_is_a_share_of_each_interval_and_probes_have_their_times() {
    let record = lossy();
    let expected = ["payload at the receiver", "datagrams lost", "response time of requests beside the stream"];
    assert_eq!(titles(&record), expected.map(|what| format!("udp 1472: {what} over time")));
    // In one interval nothing came and nothing was missed: it has no share.
    assert_eq!(rows(&record, "udp 1472: datagrams lost over time"), ["run 1 | 0 % | 0 % | 20.0 % | 8"]);
    let times = rows(&record, "udp 1472: response time of requests beside the stream over time");
    assert!(times[0].starts_with("run 1, p50 | ") && times[1].starts_with("run 1, p99 | "), "{times:?}");
}

/// The server counts the same transactions: they are not counted twice.
#[test]
fn requests_are_those_of_the_clients() {
    let record = requests();
    let rate = rows(&record, "tcp 1/1: transactions over time");
    assert_eq!(rate[0], "run 1 | 8,750/s | 35,000/s | 35,000/s | 9");
    let times = rows(&record, "tcp 1/1: response time over time");
    assert_eq!(times.len(), 4);
    assert!(times[0].starts_with("run 1, p50 | 26.6 us | 26.6 us | 106 us | 9"), "{times:?}");
}

#[test]
fn a_copy_shows_bytes_and_where_its_stages_spent_their_time() {
    let record = copied();
    let expected = ["copy: bytes of files in place over time", "copy: each stage's share of the time of all stages"];
    assert_eq!(titles(&record), expected);
    assert_eq!(rows(&record, expected[0])[0], "run 1 | 0 B/s | 178 MB/s | 182 MB/s | 12");
    // The shares of read, send, write and sync come to one.
    assert_eq!(rows(&record, expected[1])[0], "run 1 | 19.1 % | 46.6 % | 24.0 % | 10.3 %");
}

#[test]
fn frames_are_drawn_for_each_direction() {
    let record = forwarded();
    assert_eq!(titles(&record), ["64: frames from p0 to p1 over time", "64: frames from p1 to p0 over time"]);
    let lost = rows(&record, "64: frames from p1 to p0 over time");
    let expected =
        ["run 1, received | 17,000/s | 20,000/s | 20,000/s | 12", "run 1, sent | 20,000/s | 20,000/s | 20,000/s | 12"];
    assert_eq!(lost, expected);
    // Only the speed of the first port is known, and its line carries far more.
    let line = "what the line carries: 1,488,095/s, above the chart";
    let known = charts(&record).into_iter().map(|chart| chart.legend.iter().any(|(_, meaning)| meaning == line));
    assert_eq!(known.collect::<Vec<_>>(), [true, false]);
}

/// The dips are seen on the terminal, for each run that counts, in as much width as there is.
#[test]
fn the_answer_shows_each_run_over_time_in_a_line() {
    let shown = |record: &Record, width: usize, unicode: bool| {
        let text = answer(record, &Style { width, colour: false, unicode, language: Language::English });
        let mut lines = text.lines().filter(|line| line.contains("over time, each run"));
        let line = lines.next().map(str::to_owned);
        assert!(lines.next().is_none() && line.as_ref().is_none_or(|line| line.chars().count() <= width), "{text}");
        line
    };
    let mut record = stream();
    let line = shown(&record, 80, true).expect("a line");
    let parts: Vec<&str> = line.split("  ").collect();
    let [name, first, second, scale] = parts[..] else { panic!("{line}") };
    assert_eq!((name, scale), ("tcp over time, each run", "0 to 94.0 Mbit/s"));
    assert!(first.contains(['\u{2585}', '\u{2586}']) && second.contains('\u{2587}'), "60 of 94, and 75 of 94: {line}");
    assert!(shown(&record, 132, true).expect("a line").chars().count() > line.chars().count(), "more width shows more");
    assert!(shown(&record, 80, false).expect("a line").is_ascii());
    record.trials = vec![record.trials[0].clone(); 20];
    assert!(shown(&record, 80, true).expect("a line").contains("\u{2026}  0 to 94.0 Mbit/s"), "the first of many");
    record.trials.iter_mut().for_each(|attempt| attempt.series.clear());
    assert_eq!(shown(&record, 80, true), None);
}

#[test]
fn without_samples_and_times_there_is_no_chart_over_time() {
    for (name, mut record) in all() {
        for attempt in &mut record.trials {
            (attempt.series, attempt.span) = (Vec::new(), None);
        }
        assert_eq!(titles(&record), Vec::<String>::new(), "{name}");
    }
}

/// More runs than colours share one, and the legend names them once.
#[test]
fn many_runs_are_one_bundle() {
    let mut record = stream();
    let run = record.trials[0].clone();
    record.trials = vec![run; 20];
    let legend: Vec<String> = charts(&record)[0].legend.iter().map(|(_, meaning)| meaning.clone()).collect();
    assert_eq!(legend[0], "runs 1 to 20");
    assert!(legend.iter().skip(1).all(|meaning| !meaning.starts_with("run")), "{legend:?}");
}

#[test]
fn a_limit_far_above_is_named_and_not_drawn() {
    let mut record = stream();
    let limit = sample::flow(&mut record.results[0]).limit.as_mut().expect("a limit");
    limit.payload_bps = linerate_units::BitRate::per_second(9_400_000_000);
    let legend = charts(&record).swap_remove(0).legend;
    let expected = "what the link can carry at this message size: 9.40 Gbit/s, above the chart";
    assert!(legend.contains(&("limit", expected.to_owned())), "{legend:?}");
    let page = html(Language::English, &record);
    let figure = page.split("<figure>").nth(1).expect("the first chart");
    assert!(!figure.split("</figure>").next().expect("its end").contains("class=\"line\""), "{figure}");
}

/// A chart of 1,200 points a run stays small: steps that nobody could tell apart are merged.
#[test]
fn a_chart_of_many_points_stays_small() {
    let mut record = stream();
    for session in record.trials.iter_mut().flat_map(|attempt| &mut attempt.series) {
        let series = &mut session.series;
        series.at_us = (0..1_200).map(|at| (at - 19) * 10_000).collect();
        series.window = Nanos::from_millis(11_800);
        for track in &mut series.tracks {
            let first = track.values.clone();
            track.values = (0..1_200).map(|at: usize| first[at % 12] + (at % 7) as u64).collect();
        }
    }
    let without = Record { trials: Vec::new(), ..record.clone() };
    let figures = |record: &Record| -> usize {
        html(Language::English, record)
            .split("<figure>")
            .skip(1)
            .map(|rest| rest.split("</figure>").next().map_or(0, str::len))
            .sum()
    };
    let added = figures(&record) - figures(&without);
    // Three runs on three charts.
    assert!((20_000..9 * 10_000).contains(&added), "{added} bytes");
    let rows = rows(&record, "tcp: payload at the receiver over time");
    assert!(rows[0].ends_with(" | 295"), "{rows:?}");
}

/// What is measured has at least half of the chart, however long the warm-up was.
#[test]
fn a_long_warm_up_does_not_squeeze_the_window() {
    let mut record = stream();
    for session in record.trials.iter_mut().flat_map(|attempt| &mut attempt.series) {
        session.series.from_us = -10_000_000;
    }
    let page = html(Language::English, &record);
    let figure = figures(&page)[0];
    let shade =
        figure.split("<g class=\"outside\"><rect").nth(1).expect("a shade").split("</g>").next().expect("its end");
    let width = shade.split(" width=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a width");
    assert!((250.0..310.0).contains(&width.parse::<f64>().expect("a number")), "{shade}");
}

/// The window of the requests opens later than the stream's, by another clock: both are on one axis.
#[test]
fn the_series_of_two_hosts_are_on_one_axis() {
    let mut record = lossy();
    let clock = |offset_ns| ClockOffset { offset_ns, uncertainty: Nanos::new(20_000), exchanges: 32 };
    let attempt = &mut record.trials[0];
    attempt.clocks = [(HostName::from("a"), clock(7_000_000_000)), (HostName::from("b"), clock(0))].into();
    attempt.series[1].series.opened_ns += 7_000_000_000 + 50_000_000;
    let page = html(Language::English, &record);
    let page = wide(&page);
    let begins = |chart: usize| {
        let figure = figures(&page)[chart];
        figure
            .split("<path class=\"run\" d=\"M")
            .nth(1)
            .and_then(|path| path.split(' ').next())
            .expect("a line")
            .to_owned()
    };
    // From -0.2 to 1.05 s, the requests from -0.15 s.
    assert_eq!([0, 1, 2].map(begins), ["84", "84", "108.7"]);
}

/// A load without a window has no edges and no shade.
#[test]
fn what_has_no_window_is_measured_from_its_start() {
    let record = copied();
    assert_eq!(record.trials[0].trial.load().timing, Timing::UntilDone);
    let page = html(Language::English, &record);
    let figures = page.split("id=\"over-time\"").nth(1).expect("the section");
    let figures = figures.split("</section>").next().expect("its end");
    assert!(figures.contains("seconds from the start") && !figures.contains("class=\"edge\""), "{figures}");
}
