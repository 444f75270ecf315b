//! The picture of a path: its stations, the limit and the losses at their places, in every form.

use crate::{copy, device, frames, ladder, nfs, recorded, sample};
use linerate_model::{Confidence, Limit, LimitPlace, Record, Verdict};
use linerate_report::{Language, Style, html, markdown, text};

/// The path's line of text.
fn line(record: &Record) -> String {
    let style = Style { width: 200, ..Style::default() };
    let shown = text(record, &style);
    let line = shown.lines().find(|line| line.contains(" > ")).unwrap_or_default();
    line.trim().to_owned()
}

/// The path's wide drawing.
fn drawn(record: &Record) -> String {
    let page = html(Language::English, record);
    let drawn = page.split("<svg class=\"path-picture\"").nth(1).expect("a picture of the path");
    drawn.split("</svg>").next().expect("it ends").to_owned()
}

/// The stations of these classes, by their labels.
fn stations<'a>(drawn: &'a str, class: &str) -> Vec<&'a str> {
    let group = format!("<g class=\"{class}\">");
    let each = drawn.split(group.as_str()).skip(1);
    each.filter_map(|rest| rest.split("data-label=\"").nth(1)?.split('"').next()).collect()
}

fn judged(limit: Limit, place: Option<LimitPlace>) -> Record {
    let mut record = sample::udp_sweep();
    for result in &mut record.results {
        result.verdict = Verdict { place, ..Verdict::new(limit, Confidence::High, vec![]) };
    }
    record
}

#[test]
fn the_limit_is_marked_at_its_place() {
    for (limit, place, expected) in [
        (Limit::OfferedLoad, None, vec!["a, program"]),
        (Limit::Wire, None, vec!["path"]),
        (Limit::SenderCpu, None, vec!["a, kernel"]),
        (Limit::ReceiverCpu, None, vec!["b, kernel"]),
        (Limit::ReceiverBuffer, None, vec!["b, program"]),
        (Limit::PathLoss, None, vec!["path"]),
        (Limit::Shaper, Some(LimitPlace::SenderQueue), vec!["a, eth0"]),
        (Limit::SoftirqCpu, Some(LimitPlace::ReceiverHost), vec!["b, kernel"]),
        (Limit::Tester, None, vec!["a, kernel", "b, kernel"]),
        (Limit::Latency, None, vec![]),
        (Limit::CannotTell, None, vec![]),
    ] {
        let drawn = drawn(&judged(limit, place));
        let marked = stations(&drawn, "station limits");
        let names: Vec<&str> = marked.iter().filter_map(|label| label.split(':').next()).collect();
        assert_eq!(names, expected, "{limit}: {drawn}");
        assert!(marked.iter().all(|label| label.ends_with(&format!("limit: {limit}"))), "{marked:?}");
    }
}

#[test]
fn limits_between_which_it_is_open_are_marked_otherwise() {
    let mut record = judged(Limit::CannotTell, None);
    record.results[0].verdict.also = vec![Limit::PathLoss, Limit::OfferedLoad];
    let drawn = drawn(&record);
    assert!(stations(&drawn, "station limits").is_empty(), "{drawn}");
    let marked = stations(&drawn, "station may-limit");
    assert!(marked.len() == 2 && marked.iter().all(|label| label.contains("possible: ")), "{marked:?}");
}

/// The sample lost datagrams in every place: each count stands at the station where it was lost.
#[test]
fn datagrams_are_lost_where_they_were_lost() {
    let record = sample::lossy();
    let loss = record.flows().next().expect("a stream").loss().copied().expect("a loss");
    let drawn = drawn(&record);
    let places = loss.places;
    let of = |name: &str, lost: u64| {
        let label = format!("data-label=\"{name}");
        let label = drawn.split(&label).nth(1).and_then(|rest| rest.split('"').next()).expect("a station");
        let told = format!("{} lost (", linerate_units::grouped(lost));
        assert_eq!(label.contains(&told), lost > 0, "{name}: {told}: {label}");
    };
    of("a, program", places.not_sent);
    of("a, eth0", places.sender_queue + places.sender_filter);
    of("path", places.unaccounted + places.corrupted);
    of("b, eth0", places.receiver_queue + places.receiver_filter);
    of("b, kernel", places.reassembly);
    of("b, program", places.socket_buffer);
    assert!(loss.places.sum() > 0);
}

#[test]
fn a_path_is_a_line_of_text_where_nothing_is_drawn() {
    let record = judged(Limit::Wire, None);
    assert_eq!(line(&record), "a > eth0 > path [limit: wire] > eth0 > b");
    let marked = markdown(Language::English, &record);
    assert!(
        marked.contains("\n## Path\n") && marked.contains("eth0 &lt; path")
            || marked.contains("path \\[limit: wire\\]")
    );
    let ascii = text(&record, &Style { unicode: false, ..Style::default() });
    assert!(ascii.contains("a > eth0 > path [limit: wire] > eth0 > b"), "{ascii}");
}

#[test]
fn devices_copies_and_servers_have_their_paths() {
    let device = line(&recorded::record("device-throughput"));
    assert!(device.starts_with("tester > p0 > device [limit: device] > p1 > tester"), "{device}");
    assert!(line(&frames::record()).contains(" > device or path"), "{}", line(&frames::record()));
    assert!(drawn(&copy::record()).contains("storage"), "a copy begins and ends at storage");
    assert!(line(&nfs::record()).contains(" > path"), "{}", line(&nfs::record()));
    assert_eq!(line(&ladder::record()), "", "a ladder is a picture of its path by itself");
    assert!(line(&device::record()).contains("device"), "{}", line(&device::record()));
}

/// Both drawings say in words what they show, and every station can be reached.
#[test]
fn a_path_can_be_read_out() {
    for lang in Language::ALL {
        let page = html(lang, &judged(Limit::Wire, None));
        let drawings: Vec<&str> = page.split("<svg class=\"path-picture\"").skip(1).collect();
        assert_eq!(drawings.len(), 2, "one for wide and one for narrow screens");
        for drawing in drawings {
            let drawing = drawing.split("</svg>").next().expect("it ends");
            assert!(drawing.contains("aria-label=\"") && drawing.contains("<desc>"), "{drawing}");
            assert_eq!(drawing.matches("class=\"point\" role=\"img\"").count(), 7, "{drawing}");
        }
    }
}

#[test]
fn a_path_of_long_names_stays_in_its_boxes() {
    let mut record = judged(Limit::Wire, None);
    let long = "w".repeat(255);
    record.hosts.iter_mut().flat_map(|host| &mut host.nics).for_each(|nic| nic.name = long.clone());
    let drawn = drawn(&record);
    let texts = drawn.split("<text").skip(1).filter_map(|rest| rest.split_once('>')?.1.split("</text>").next());
    for text in texts {
        assert!(text.chars().count() <= 32, "{text}");
    }
}

/// What is left after each part of the path is what was left before it, less what the part lost.
#[test]
fn losses_are_a_waterfall_from_what_was_offered_to_what_was_received() {
    let mut record = sample::lossy();
    record.results.truncate(1);
    let loss = record.flows().next().expect("a stream").loss().copied().expect("a loss");
    let places = loss.places;
    let page = html(Language::English, &record);
    let chart = page.split("<h3>Where datagrams were lost: udp 64</h3>").nth(1).expect("the chart");
    let chart = chart.split("</figure>").next().expect("its end");
    let mut left = loss.of;
    for (name, lost) in [
        ("offered", 0),
        ("sent", places.not_sent),
        ("left the sender", places.sender_filter + places.sender_queue),
        ("reached the receiver", places.unaccounted + places.corrupted),
        ("passed its kernel", places.receiver_queue + places.receiver_filter + places.reassembly),
        ("read by the program", places.socket_buffer),
    ] {
        left -= lost;
        let grouped = linerate_units::grouped;
        let label = format!("data-label=\"{name}: {} of {} datagrams\"", grouped(left), grouped(loss.of));
        assert!(chart.contains(&label), "{label}: {chart}");
        let gone = format!("data-label=\"{name}: {} datagrams lost before (", grouped(lost));
        assert_eq!(chart.contains(&gone), lost > 0, "{gone}: {chart}");
    }
    assert_eq!(left, loss.of - loss.lost, "what is left at the end was received");
}
