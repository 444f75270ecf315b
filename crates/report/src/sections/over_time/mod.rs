//! Charts over time: the course of each attempt at a trial, from what the hosts sampled.
//!
//! A step is the mean of its interval, or a level as it was read at its end. Each repeat has its own line. Spoilt attempts are drawn
//! beside those that count. Warm-up and drain are shaded, and no figure takes them in. A warm-up
//! longer than the window is drawn for as long as the window is: its end.

pub(crate) mod attempt;
pub(crate) mod chart;
mod copy_stages;
mod copy_timeline;
pub(crate) mod course;
mod evidence;
mod processors;
mod shares;
pub(crate) mod sparks;
pub(crate) mod time_axis;

pub(crate) use evidence::{EvidenceRun, evidence};

use crate::blocks::chart::Chart;
use crate::blocks::section::{Block, Section};
use crate::figures::{plain, rate};
use crate::language::Language;
use crate::subjects::live;
use crate::subjects::live::ValueKind;
use crate::{records, said};
use attempt::{Attempt, Sampled};
use chart::{Bound, Line, OverTime};
use course::Course;
use linerate_model::Text;
use linerate_model::text;
use linerate_model::{
    Direction, FrameStream, FramesTask, HostName, Measurement, Path, PortName, Record, SeriesQuantity as Quantity,
    StreamTask, Task, Transport,
};
use linerate_units::FrameRate;
use shares::Shares;
use time_axis::TimeAxis;

/// Cap on the results that are drawn: a page with more is slow to open.
const MOST: usize = 12;

/// Index of the load that is measured, and of the one that probes latency.
const MEASURED: u16 = 0;
const PROBE: u16 = 1;

/// The timeline of copies, then the charts over time of each result.
pub(crate) fn section(lang: Language, record: &Record) -> Option<Section> {
    let peak = record.curve().and_then(|(_, peak)| record.result(peak.result.as_deref()?));
    let results: Vec<&Measurement> = records::with_entries(record).chain(peak).collect();
    let charts =
        results.iter().take(MOST).enumerate().flat_map(|(group, result)| of_result(lang, record, result, group));
    let mut blocks: Vec<Block> = charts.map(Block::chart).collect();
    if !blocks.is_empty() && results.len() > MOST {
        let notice = said!(
            lang,
            "over-time-notice",
            "The first {shown} of {results} results are drawn over time.",
            shown = MOST,
            results = results.len()
        );
        blocks.insert(0, Block::Sentences(vec![notice]));
    }
    blocks.splice(0..0, copy_timeline::blocks(lang, record));
    Section::full("over-time", said!(lang, "section-over-time", "Over time"), blocks)
}

/// Returns the charts of a result: rate, losses or retransmits, times, and processors. All share one axis of time, and
/// `group` sets them apart from the charts of other results.
fn of_result(lang: Language, record: &Record, result: &Measurement, group: usize) -> Vec<Chart> {
    let attempts = attempt::of_trial(lang, record, &result.name);
    let Some(trial) = record.trials.iter().map(|attempt| &attempt.trial).find(|trial| trial.name == result.name) else {
        return Vec::new();
    };
    let of = LoadCharts { lang, result, attempts: &attempts, load: MEASURED };
    let lines: Vec<OverTime<'_>> = of.task(record, trial.task()).into_iter().map(OverTime::cut).collect();
    let stages = match trial.task() {
        Task::Copy(_) => copy_stages::shares(lang, &plain(&result.name), &attempts),
        _ => None,
    };
    let middle = evidence::middle_run(&lines).map(|line| line.attempt);
    let processors = of.processors(record, middle);
    let shares = stages.iter().chain(&processors).filter_map(Shares::extent);
    let has_window = lines.iter().any(|one| one.has_window);
    let Some(time) = TimeAxis::over(group, has_window, lines.iter().filter_map(OverTime::extent).chain(shares)) else {
        return Vec::new();
    };
    let mut charts: Vec<Chart> = lines.into_iter().filter_map(|one| one.chart(lang, &time)).collect();
    let place = charts.len().min(1);
    charts.splice(place..place, stages.and_then(|stages| stages.chart(lang, &time)));
    charts.extend(processors.and_then(|processors| processors.chart(lang, &time)));
    charts
}

/// Samples of one load of a result's attempts.
#[derive(Clone, Copy)]
struct LoadCharts<'a> {
    lang: Language,
    result: &'a Measurement,
    attempts: &'a [Attempt<'a>],
    load: u16,
}

impl<'a> LoadCharts<'a> {
    /// Returns the charts of a task.
    fn task(self, record: &Record, task: &'a Task) -> Vec<OverTime<'a>> {
        match task {
            Task::Stream(task) => self.stream(task),
            Task::Frames(task) => self.frames(record, task),
            Task::Copy(_) => self.copy(),
            task => self.requests(task),
        }
    }

    /// Charts payload at the receivers, retransmits of TCP or loss of UDP, the round-trip time of TCP, and response
    /// times of the probe.
    fn stream(self, task: &'a StreamTask) -> Vec<OverTime<'a>> {
        let (clients, servers) = ends(&task.paths);
        let (senders, receivers) = match task.direction {
            Direction::Send => (clients, servers),
            Direction::Receive => (servers, clients),
            Direction::Both => ([&clients[..], &servers].concat(), [clients, servers].concat()),
        };
        let payload = self.sums(&receivers, |sampled| sampled.per_second(Quantity::ReceivedBytes).times(8.0));
        let mut charts = vec![OverTime {
            limit: self.link_limit(),
            ..self.of(text!("charts-axis-payload", "payload at the receiver"), ValueKind::BitsPerSecond, payload)
        }];
        match task.net.transport {
            Transport::Tcp => {
                let again = self.sums(&senders, |sampled| sampled.per_second(Quantity::Retransmits));
                charts.push(self.of(text!("over-time-retransmits", "retransmits"), ValueKind::PerSecond, again));
                charts.extend(self.round_trips(&senders));
            }
            Transport::Udp => charts.push(self.of(
                text!("over-time-loss", "datagrams lost"),
                ValueKind::Share,
                self.losses(&receivers),
            )),
        }
        charts.extend(
            Self { load: PROBE, ..self }
                .response_times(text!("over-time-beside", "response time of requests beside the stream")),
        );
        charts
    }

    /// Requests completed, requests sent again, and response times.
    fn requests(self, task: &'a Task) -> Vec<OverTime<'a>> {
        let (clients, _) = ends(task.paths());
        let transport = task.net().map(|net| net.transport);
        let counts = [Quantity::Operations, Quantity::Retransmits];
        let charts = live(task.kind()).charts(transport).iter().zip(counts).map(|(chart, quantity)| {
            let lines = self.sums(&clients, |sampled| sampled.per_second(quantity));
            self.of(chart.what, chart.kind, lines)
        });
        charts.chain(self.response_times(text!("over-time-response", "response time"))).collect()
    }

    /// Frames from port to port: those sent, and those received.
    fn frames(self, record: &Record, task: &'a FramesTask) -> Vec<OverTime<'a>> {
        let mut ways: Vec<(u16, u16)> = Vec::new();
        for way in task.streams.iter().map(|stream| (stream.from, stream.to)) {
            if !ways.contains(&way) {
                ways.push(way);
            }
        }
        let charts = ways.into_iter().filter_map(|(from, to)| {
            let port = |index: u16| task.ports.get(usize::from(index));
            let sender = port(from)?;
            let receiver = port(to)?;
            let count = |port: &'a PortName, quantity| {
                let hosts = [task.host(port)];
                self.sums(&hosts, |sampled| {
                    sampled.per_second_of(quantity, |subject| PortName::from(subject).interface == port.interface)
                })
            };
            let mut lines = count(receiver, Quantity::FramesReceived);
            lines.extend(count(sender, Quantity::FramesSent).into_iter().map(|line| Line { part: 1, ..line }));
            let streams = task.streams.iter().filter(|stream| (stream.from, stream.to) == (from, to));
            let name = plain(&self.result.name);
            let from = plain(&sender.to_string());
            let to = plain(&receiver.to_string());
            Some(OverTime {
                title: said!(
                    self.lang,
                    "over-time-title-frames",
                    "{name}: frames from {from} to {to} over time",
                    name = name,
                    from = from,
                    to = to
                ),
                limit: line_rate(self.lang, record, task.host(sender), sender, streams),
                parts: vec![
                    said!(self.lang, "over-time-received", "received"),
                    said!(self.lang, "over-time-sent", "sent"),
                ],
                ..self.of(text!("over-time-frames", "frames"), ValueKind::PerSecond, lines)
            })
        });
        charts.chain(self.response_times(text!("over-time-latency", "latency of frames"))).collect()
    }

    /// Bytes of files in place, retransmits and the round-trip time.
    fn copy(self) -> Vec<OverTime<'a>> {
        let with = |quantity| self.hosts(move |sampled| sampled.series.tracks_of(quantity).next().is_some());
        let receivers = with(Quantity::ReceivedBytes);
        let senders = with(Quantity::Retransmits);
        let bytes = self.sums(&receivers, |sampled| sampled.per_second(Quantity::ReceivedBytes));
        let again = self.sums(&senders, |sampled| sampled.per_second(Quantity::Retransmits));
        let charts = [
            self.of(text!("over-time-copied", "bytes of files in place"), ValueKind::BytesPerSecond, bytes),
            self.of(text!("over-time-retransmits", "retransmits"), ValueKind::PerSecond, again),
        ];
        charts.into_iter().chain(self.round_trips(&with(Quantity::Srtt))).collect()
    }

    /// A chart of these lines, called after what it shows.
    fn of(self, what: &'static Text, kind: ValueKind, lines: Vec<Line<'a>>) -> OverTime<'a> {
        let what = self.lang.text(what);
        OverTime {
            title: said!(
                self.lang,
                "over-time-title",
                "{name}: {what} over time",
                name = plain(&self.result.name),
                what = what
            ),
            what,
            kind,
            limit: None,
            parts: Vec::new(),
            has_window: self.attempts.iter().any(|attempt| attempt.has_window(self.load)),
            lines,
        }
    }

    /// Each attempt's sum over these hosts.
    fn sums(self, hosts: &[&HostName], of: impl Fn(Sampled<'a>) -> Course) -> Vec<Line<'a>> {
        let line = |attempt: &'a Attempt<'a>| {
            let sampled = attempt.sampled(self.load).filter(|sampled| hosts.contains(&sampled.host));
            let courses: Vec<Course> = sampled.map(&of).collect();
            Some(Line { attempt, part: 0, course: Course::sum(&courses)? })
        };
        self.attempts.iter().filter_map(line).collect()
    }

    /// Each attempt's share of datagrams that these receivers miss.
    fn losses(self, receivers: &[&HostName]) -> Vec<Line<'a>> {
        let lost = self.sums(receivers, |sampled| sampled.per_second(Quantity::Lost));
        let arrived = self.sums(receivers, |sampled| sampled.per_second(Quantity::ReceivedMessages));
        let share = |values: &[f64]| match values {
            [lost, arrived] if lost + arrived > 0.0 => Some(lost / (lost + arrived)),
            _ => None,
        };
        let line = |(lost, arrived): (Line<'a>, Line<'a>)| {
            let course = Course::combined(&[lost.course, arrived.course], share)?;
            Some(Line { course, ..arrived })
        };
        lost.into_iter().zip(arrived).filter_map(line).collect()
    }

    /// TCP's round-trip time, a chart for each of these hosts.
    fn round_trips(self, senders: &[&HostName]) -> Vec<OverTime<'a>> {
        let hosts =
            self.hosts(|sampled| senders.contains(&sampled.host) && sampled.series.track(Quantity::Srtt).is_some());
        let of = |host: &&'a HostName| {
            let line =
                |attempt| self.line_of(attempt, host, 0, |sampled| Some(sampled.level(Quantity::Srtt)?.times(1e3)));
            let lines = self.attempts.iter().filter_map(line).collect();
            self.of_host(
                &hosts,
                host,
                self.of(text!("over-time-srtt", "smoothed round-trip time"), ValueKind::Nanos, lines),
            )
        };
        hosts.iter().map(of).collect()
    }

    /// p50 and p99 of response times, a chart for each host that took them.
    fn response_times(self, what: &'static Text) -> Vec<OverTime<'a>> {
        let hosts = self.hosts(|sampled| !sampled.series.latency.is_empty());
        let of = |host: &&'a HostName| {
            let lines = self.attempts.iter().flat_map(|attempt| {
                [0.5, 0.99].into_iter().enumerate().filter_map(move |(part, share)| {
                    self.line_of(attempt, host, part, |sampled| sampled.quantile(share))
                })
            });
            let chart = self.of(what, ValueKind::Nanos, lines.collect());
            self.of_host(&hosts, host, OverTime { parts: vec!["p50".to_owned(), "p99".to_owned()], ..chart })
        };
        hosts.iter().map(of).collect()
    }

    fn line_of(
        self,
        attempt: &'a Attempt<'a>,
        host: &HostName,
        part: usize,
        of: impl Fn(Sampled<'a>) -> Option<Course>,
    ) -> Option<Line<'a>> {
        let course = attempt.sampled(self.load).find(|sampled| sampled.host == host).and_then(of)?;
        Some(Line { attempt, part, course })
    }

    /// The chart of one host; where others have one too, its title names the host.
    fn of_host(self, hosts: &[&HostName], host: &HostName, chart: OverTime<'a>) -> OverTime<'a> {
        if hosts.len() < 2 {
            return chart;
        }
        OverTime {
            title: said!(
                self.lang,
                "over-time-on-host",
                "{title}, host {host}",
                title = chart.title,
                host = plain(&host.0)
            ),
            ..chart
        }
    }

    /// The hosts that sampled something of this kind in any attempt, in the order of the sessions.
    fn hosts(self, is_meant: impl Fn(&Sampled<'a>) -> bool) -> Vec<&'a HostName> {
        let sampled = self.attempts.iter().flat_map(|attempt| attempt.sampled(self.load));
        once(sampled.filter(is_meant).map(|sampled| sampled.host))
    }

    /// Returns what the link can carry at the stream's message size.
    fn link_limit(self) -> Option<Bound> {
        let limit = self.result.limit()?;
        let value = limit.payload_bps.get() as f64;
        let label = said!(
            self.lang,
            "charts-point-link-limit",
            "{name}: a link of {line_bps} can carry {most} payload",
            name = plain(&self.result.name),
            line_bps = limit.line_bps,
            most = rate(value, "bit/s")?
        );
        Some(Bound {
            value,
            meaning: said!(self.lang, "charts-legend-link-limit", "what the link can carry at this message size"),
            label,
        })
    }
}

/// Clients and servers of paths, each host once.
fn ends(paths: &[Path]) -> (Vec<&HostName>, Vec<&HostName>) {
    (once(paths.iter().map(|path| &path.client)), once(paths.iter().filter_map(|path| path.server.agent())))
}

/// Each host once, in the order of its first place.
fn once<'a>(hosts: impl Iterator<Item = &'a HostName>) -> Vec<&'a HostName> {
    let mut each: Vec<&HostName> = Vec::new();
    for host in hosts {
        if !each.contains(&host) {
            each.push(host);
        }
    }
    each
}

/// Returns the highest frame rate of a port's line, `None` if its speed is unknown or frames of several sizes are sent.
fn line_rate<'a>(
    lang: Language,
    record: &Record,
    host: &HostName,
    port: &PortName,
    mut streams: impl Iterator<Item = &'a FrameStream>,
) -> Option<Bound> {
    let first = streams.next()?;
    if first.form.mix.is_some() || streams.any(|other| other.form.mix.is_some() || other.size != first.size) {
        return None;
    }
    let nics = record.hosts.iter().filter(|known| known.name == *host).flat_map(|known| &known.nics);
    let line = nics.filter(|nic| nic.name == port.interface).find_map(|nic| nic.speed)?;
    let line_rate: FrameRate = first.size.line_rate(line);
    let label = said!(
        lang,
        "over-time-line",
        "a line of {line} carries {frames} frames of {bytes} bytes a second",
        line = line,
        frames = line_rate.get(),
        bytes = u64::from(first.size.get())
    );
    Some(Bound {
        value: line_rate.get() as f64,
        meaning: said!(lang, "device-charts-legend-line", "what the line carries"),
        label,
    })
}
