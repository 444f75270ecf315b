//! The path of a result as a picture: what each station did from the sending program to the receiving one, where datagrams were
//! lost, and which station limited the result.

use crate::blocks::chart::Chart;
use crate::blocks::drawing::{Drawing, HostOnPath, PathDrawing, Role, Station};
use crate::blocks::section::{Block, Section};
use crate::blocks::table::Table;
use crate::column;
use crate::figures::{counted_share, grouped, nanos, per_second, percent, plain, rate};
use crate::language::Language;
use crate::records::{self, tasks};
use crate::said;
use crate::subjects::device::cells;
use crate::subjects::{self, frames};
use crate::wording::{firmness, listed, sentence, verdict};
use linerate_model::Text;
use linerate_model::text;
use linerate_model::{
    CopyFigures, CopyStage, CopyTask, DevicePlan, Direction, HostName, Limit, LimitPlace, Measurement, Nic, PortName,
    Record, Task, TaskKind, Throughput, Verdict,
};
use linerate_units::Ratio;

/// Soft interrupts and stolen time below this share of a core are not worth a line.
const WORTH_TELLING: f64 = 0.01;

/// The path of the first result, or of what stands for the run: the peak of a curve, the first size of a device test.
pub(crate) fn section(lang: Language, record: &Record) -> Option<Section> {
    let charts = way(lang, record).map(|way| Block::chart(way.chart(lang)));
    Section::answer("path", said!(lang, "section-path", "Path"), charts.into_iter().collect())
}

/// Place on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spot {
    SenderProgram,
    SenderHost,
    SenderInterface,
    Between,
    ReceiverInterface,
    ReceiverHost,
    ReceiverProgram,
}

/// A station before it is drawn.
struct Stop {
    spot: Spot,
    name: String,
    facts: Vec<String>,
    /// Datagrams, or frames, lost here.
    lost: u64,
}

impl Stop {
    fn new(spot: Spot, name: String, facts: impl IntoIterator<Item = Option<String>>) -> Self {
        Self { spot, name, facts: facts.into_iter().flatten().collect(), lost: 0 }
    }

    fn losing(self, lost: u64) -> Self {
        Self { lost, ..self }
    }
}

/// A result with the stations of its path.
struct Way<'a> {
    /// The result.
    name: String,
    from: String,
    to: String,
    /// In the order in which data passes them; one of them is between the hosts.
    stops: Vec<Stop>,
    /// Number of datagrams, or frames, that the losses are part of.
    of: u64,
    verdict: &'a Verdict,
}

/// Returns the path that stands for a record, `None` if one picture cannot show it.
fn way(lang: Language, record: &Record) -> Option<Way<'_>> {
    if let Some((plan, found)) = record.device() {
        return of_throughput(lang, plan, found.throughput.first()?);
    }
    // A ladder is a picture of its path by itself.
    if record.ladder().is_some() {
        return None;
    }
    if let Some((_, found)) = record.curve() {
        let result = record.result(found.result.as_deref()?)?;
        let verdict = subjects::verdicts(lang, record).first().map_or(&result.verdict, |(_, verdict)| *verdict);
        return of_flows(lang, record, result, verdict);
    }
    let result = records::with_entries(record).next()?;
    match result.copy() {
        Some(found) => of_copy(lang, record, result, found),
        None if result.frames().is_empty() => of_flows(lang, record, result, &result.verdict),
        None => of_frames(lang, record, result),
    }
}

/// A path of streams or requests, from the host that sends or asks.
fn of_flows<'a>(lang: Language, record: &Record, result: &'a Measurement, verdict: &'a Verdict) -> Option<Way<'a>> {
    let own = tasks::trials(record).into_iter().find(|trial| trial.name == result.name);
    // The loads of a curve are trials of its cell.
    let task = own.or(record.curve().map(|(plan, _)| &plan.cell))?.task();
    // Its figures are those of both directions together.
    if matches!(task, Task::Stream(stream) if stream.direction == Direction::Both) {
        return None;
    }
    let clients = once(task.paths().iter().map(|path| &path.client));
    let servers = once(task.paths().iter().map(|path| path.server.name()));
    let receives = matches!(task, Task::Stream(stream) if stream.direction == Direction::Receive);
    let (senders, receivers) = if receives { (servers, clients) } else { (clients, servers) };
    let places = result.loss().map(|loss| loss.places).unwrap_or_default();
    let thread = |share: f64| {
        let text = |share| said!(lang, "path-busiest-thread", "thread {share} of a core", share = share);
        percent(share).filter(|_| share > 0.0).map(text)
    };
    let softirq = |share: f64| {
        let text = |share| said!(lang, "path-soft-interrupts", "softirq {share} of a core", share = share);
        percent(share).filter(|_| share >= WORTH_TELLING).map(text)
    };
    let cpu = &result.flows()?.cpu;
    let sender = &cpu.sender;
    let receiver = &cpu.receiver;
    let sent = result.sent().and_then(|sent| rate(sent.payload_bps.median, "bit/s"));
    let asked = result.requests().map(|requests| &requests.transactions_per_s).and_then(|done| per_second(done.median));
    let received = result.received().filter(|_| result.task() == TaskKind::Stream);
    let received = received.and_then(|received| rate(received.payload_bps.median, "bit/s"));
    let waited = result
        .latency()
        .map(|took| said!(lang, "path-latency", "p50 {p50}, p99 {p99}", p50 = nanos(took.p50), p99 = nanos(took.p99)));
    let served =
        result.service().map(|took| said!(lang, "path-service", "p50 in the server {p50}", p50 = nanos(took.p50)));
    let interface = |spot, hosts: &[&HostName], sends| interface(lang, record, &result.name, spot, hosts, sends);
    let program = || said!(lang, "path-program", "program");
    let kernel = || said!(lang, "path-kernel", "kernel");
    let stops = vec![
        Stop::new(
            Spot::SenderProgram,
            program(),
            [
                sent.map(|rate| said!(lang, "path-sends", "sent {rate}", rate = rate)),
                asked.map(|rate| said!(lang, "path-asks", "{rate} requests/s", rate = rate)),
                waited,
                thread(sender.busiest_thread),
            ],
        )
        .losing(places.not_sent),
        Stop::new(Spot::SenderHost, kernel(), [softirq(sender.busiest_core_softirq)]),
        interface(Spot::SenderInterface, &senders, true).losing(places.sender_filter + places.sender_queue),
        between(lang, result).losing(places.unaccounted + places.corrupted),
        interface(Spot::ReceiverInterface, &receivers, false).losing(places.receiver_queue + places.receiver_filter),
        Stop::new(Spot::ReceiverHost, kernel(), [softirq(receiver.busiest_core_softirq)]).losing(places.reassembly),
        Stop::new(
            Spot::ReceiverProgram,
            program(),
            [
                received.map(|rate| said!(lang, "path-receives", "received {rate}", rate = rate)),
                served,
                thread(receiver.busiest_thread),
            ],
        )
        .losing(places.socket_buffer),
    ];
    Some(Way {
        name: plain(&result.name),
        from: named(lang, &senders),
        to: named(lang, &receivers),
        stops,
        of: result.loss().map_or(0, |loss| loss.of),
        verdict,
    })
}

/// Returns what lies between the hosts, from what they saw of it.
fn between(lang: Language, result: &Measurement) -> Stop {
    let line = result.limit().and_then(|limit| {
        let share = percent(limit.share)?;
        let most = rate(limit.payload_bps.get() as f64, "bit/s")?;
        Some([
            said!(lang, "path-line", "link {line}", line = limit.line_bps),
            said!(lang, "path-line-carries", "carries {most}", most = most),
            said!(lang, "path-line-used", "{share} of that used", share = share),
        ])
    });
    let tcp = result.tcp();
    let again = tcp.filter(|tcp| tcp.segments > 0).and_then(|tcp| {
        let share = counted_share(Ratio::new(tcp.retransmits.min(tcp.segments), tcp.segments))?;
        Some(if tcp.retransmits == 0 {
            said!(lang, "path-no-retransmits", "nothing sent again")
        } else {
            said!(
                lang,
                "path-retransmits",
                if retransmits == 1 { "1 segment sent again ({share})" } else { "{retransmits} sent again ({share})" },
                retransmits = tcp.retransmits,
                share = share
            )
        })
    });
    let times = tcp.filter(|tcp| tcp.rtt_ns > 0);
    let times = times.map(|tcp| {
        said!(
            lang,
            "path-round-trip",
            "round trip {least} to {loaded}",
            least = nanos(tcp.min_rtt_ns),
            loaded = nanos(tcp.rtt_ns)
        )
    });
    let unplaced = result.loss().map_or(0, |loss| loss.lost.saturating_sub(loss.places.sum()));
    let unplaced = (unplaced > 0)
        .then(|| said!(lang, "path-lost-somewhere", "{lost} lost, place unknown", lost = grouped(unplaced)));
    let hops = result.ways().iter().find(|way| way.under_load).map(|way| {
        said!(lang, "path-hops", if hops == 1 { "1 hop" } else { "{hops} hops" }, hops = way.hops.len() as u64)
    });
    let section = result.verdict.section.as_ref().map(|section| {
        let after = u64::from(section.after.ttl);
        let before = u64::from(section.before.ttl);
        said!(lang, "path-section", "hop {after} to hop {before}", after = after, before = before)
    });
    let facts = line.into_iter().flatten().map(Some).chain([hops, section, times, again, unplaced]);
    Stop::new(Spot::Between, said!(lang, "path-between", "path"), facts)
}

/// Returns a copy's path from storage to storage, `None` within one host.
fn of_copy<'a>(lang: Language, record: &Record, result: &'a Measurement, found: &CopyFigures) -> Option<Way<'a>> {
    let CopyTask { sources, destinations, .. } = tasks::copy(record, &result.name)?;
    if sources.is_empty() || destinations.is_empty() {
        return None;
    }
    let busiest = |stages: &[CopyStage]| {
        let shares = stages.iter().filter_map(|stage| Some((stage, found.stages.get(stage)?.busy)));
        let (stage, busy) = shares.max_by(|one, other| one.1.total_cmp(&other.1))?;
        Some(said!(
            lang,
            "path-stage",
            "{stage} {busy} of the time",
            stage = lang.text(stage.text()),
            busy = percent(busy)?
        ))
    };
    let (senders, receivers): (Vec<_>, Vec<_>) = (once(sources.iter()), once(destinations.iter()));
    let interface = |spot, hosts: &[&HostName], sends| interface(lang, record, &result.name, spot, hosts, sends);
    let storage = || said!(lang, "path-storage", "storage");
    let program = || said!(lang, "path-program", "program");
    let stops = vec![
        Stop::new(Spot::SenderProgram, storage(), [busiest(&[CopyStage::List, CopyStage::Open, CopyStage::Read])]),
        Stop::new(Spot::SenderHost, program(), [busiest(&[CopyStage::Hash, CopyStage::Send])]),
        interface(Spot::SenderInterface, &senders, true),
        Stop::new(Spot::Between, said!(lang, "path-between", "path"), [rate(found.bytes_per_s * 8.0, "bit/s")]),
        interface(Spot::ReceiverInterface, &receivers, false),
        Stop::new(Spot::ReceiverHost, program(), [busiest(&[CopyStage::Receive, CopyStage::Verify])]),
        Stop::new(Spot::ReceiverProgram, storage(), [busiest(&[CopyStage::Create, CopyStage::Write, CopyStage::Sync])]),
    ];
    Some(Way {
        name: plain(&result.name),
        from: named(lang, &senders),
        to: named(lang, &receivers),
        stops,
        of: 0,
        verdict: &result.verdict,
    })
}

/// The way of the first flow of raw frames.
fn of_frames<'a>(lang: Language, record: &Record, result: &'a Measurement) -> Option<Way<'a>> {
    let flow = result.frames().first()?;
    let home = tasks::frames(record).next().map(|task| &task.home)?;
    let at_port = flow.to_socket.map_or(flow.received, |to_socket| to_socket.at_port);
    let count = |text: &Text, frames: u64| Some(said!(lang, text, frames = frames));
    let stops = vec![
        Stop::new(
            Spot::SenderProgram,
            said!(lang, "path-program", "program"),
            [count(text!("path-frames-due", "{frames} frames due"), flow.intended)],
        )
        .losing(flow.intended.saturating_sub(flow.sent)),
        Stop::new(
            Spot::SenderInterface,
            plain(&flow.from),
            [count(text!("path-frames-sent", "{frames} frames sent"), flow.sent)],
        ),
        Stop::new(Spot::Between, said!(lang, "path-device-or-path", "device or path"), [])
            .losing(flow.sent.saturating_sub(at_port)),
        Stop::new(
            Spot::ReceiverInterface,
            plain(&flow.to),
            [count(text!("path-frames-received", "{frames} frames received"), at_port)],
        ),
        Stop::new(
            Spot::ReceiverProgram,
            said!(lang, "path-program", "program"),
            [flow.latency_ns.as_ref().map(|took| {
                said!(lang, "path-latency", "p50 {p50}, p99 {p99}", p50 = nanos(took.p50), p99 = nanos(took.p99))
            })],
        )
        .losing(at_port.saturating_sub(flow.received)),
    ];
    Some(Way {
        name: frames::named(lang, flow),
        from: host_of(&flow.from, home),
        to: host_of(&flow.to, home),
        stops,
        of: flow.intended.max(flow.sent),
        verdict: flow.verdict.as_ref().unwrap_or(&result.verdict),
    })
}

/// Returns the host of a port, which is `home` if the port names none.
fn host_of(port: &str, home: &HostName) -> String {
    plain(&PortName::from(port).host.as_ref().unwrap_or(home).0)
}

/// The way through a device of the first direction of a size.
fn of_throughput<'a>(lang: Language, plan: &DevicePlan, cell: &'a Throughput) -> Option<Way<'a>> {
    let planned = plan.directions.first()?;
    let port = |index: u16| plan.ports.get(usize::from(index)).map(ToString::to_string);
    let counted = cell.directions.first();
    let from = counted.map(|way| way.from.clone()).or_else(|| port(planned.from))?;
    let to = counted.map(|way| way.to.clone()).or_else(|| port(planned.to))?;
    let without_loss = per_second(cell.frames_per_s).map(|rate| {
        said!(lang, "path-device-passes", "no loss at {rate} frames/s", rate = firmness::shown(rate, cell.firmness))
    });
    let loses = cell
        .lost_at_frames_per_s
        .and_then(per_second)
        .map(|rate| said!(lang, "path-device-loses", "loses from {rate} frames/s", rate = rate));
    let share = cell
        .line_share
        .and_then(percent)
        .map(|share| said!(lang, "path-device-share", "{share} of the line", share = share));
    let tester = cell.tester_limit.as_ref().and_then(|limit| per_second(limit.frames_per_s));
    let stops = vec![
        Stop::new(
            Spot::SenderProgram,
            said!(lang, "path-tester", "tester"),
            [tester.map(|rate| said!(lang, "path-tester-limit", "alone {rate} frames/s", rate = rate))],
        ),
        Stop::new(
            Spot::SenderInterface,
            plain(&from),
            [counted.map(|way| said!(lang, "path-frames-sent", "{frames} frames sent", frames = way.sent))],
        ),
        Stop::new(Spot::Between, said!(lang, "path-device", "device"), [without_loss, share, loses])
            .losing(counted.map_or(0, |way| way.sent.saturating_sub(way.received))),
        Stop::new(
            Spot::ReceiverInterface,
            plain(&to),
            [counted.map(|way| said!(lang, "path-frames-received", "{frames} frames received", frames = way.received))],
        ),
        Stop::new(Spot::ReceiverProgram, said!(lang, "path-tester", "tester"), []),
    ];
    Some(Way {
        name: said!(lang, "overview-frames", "{bytes}-byte frames", bytes = cells::named(cell)),
        from: plain(&plan.host.0),
        to: plain(&plan.host.0),
        stops,
        of: counted.map_or(0, |way| way.sent),
        verdict: &cell.verdict,
    })
}

/// Each host once, in the order of its first place.
fn once<'a>(hosts: impl Iterator<Item = &'a HostName>) -> Vec<&'a HostName> {
    let mut each: Vec<&HostName> = Vec::new();
    hosts.for_each(|host| {
        if !each.contains(&host) {
            each.push(host);
        }
    });
    each
}

fn named(lang: Language, hosts: &[&HostName]) -> String {
    listed(lang, &hosts.iter().map(|host| plain(&host.0)).collect::<Vec<_>>())
}

/// The interface that carried most of a result's data at an end, with what is known of it; of several hosts no single one.
fn interface(lang: Language, record: &Record, result: &str, spot: Spot, hosts: &[&HostName], sends: bool) -> Stop {
    let [host] = hosts else { return Stop::new(spot, said!(lang, "path-interfaces", "interfaces"), []) };
    let host_of_record = record.hosts.iter().find(|known| known.name == **host);
    let nics = || host_of_record.into_iter().flat_map(|known| &known.nics);
    let own = interface_of_flows(record, result, host).or_else(|| {
        let of_data = |nic: &&Nic| {
            host_of_record.is_some_and(|host| host.data_addresses.iter().any(|a| nic.addresses.contains(a)))
        };
        nics().find(of_data).map(|nic| &nic.name)
    });
    let name = own.or_else(|| busiest_interface(record, result, host, sends));
    let nic: Option<&Nic> = match name {
        Some(name) => nics().find(|nic| nic.name == *name),
        None => nics().find(|nic| nic.up).filter(|_| nics().filter(|nic| nic.up).count() == 1),
    };
    let name = name.or(nic.map(|nic| &nic.name));
    let name = name.map_or_else(|| said!(lang, "path-interface", "interface"), |name| plain(name));
    let speed = nic.and_then(|nic| {
        let speed = nic.speed?.to_string();
        Some(if nic.is_half_duplex() {
            said!(lang, "nic-half-duplex", "{speed}, half duplex", speed = speed)
        } else {
            speed
        })
    });
    let mtu = nic.map(|nic| said!(lang, "path-mtu", "MTU {mtu}", mtu = nic.mtu.to_string()));
    let facts: Vec<String> = speed.into_iter().chain(mtu).collect();
    Stop::new(spot, name, [Some(facts.join(", ")).filter(|facts| !facts.is_empty())])
}

/// Name of the interface that the ends of the flows on `host` counted as theirs.
fn interface_of_flows<'a>(record: &'a Record, result: &str, host: &HostName) -> Option<&'a String> {
    let attempts = record.counted().filter(|attempt| attempt.trial.name == result);
    for attempt in attempts {
        for (path, counts) in attempt.trial.paths().iter().zip(attempt.paths()) {
            let ends = [(&path.client, &counts.client), (path.server.name(), &counts.server)];
            let own = ends.into_iter().find(|(name, end)| *name == host && end.interface.is_some());
            if let Some((_, end)) = own {
                return end.interface.as_ref();
            }
        }
    }
    None
}

/// Returns the interface that carried the most bytes in the direction of the data, for records that name no interface.
fn busiest_interface<'a>(record: &'a Record, result: &str, host: &HostName, sends: bool) -> Option<&'a String> {
    let attempts = record.counted().filter(|attempt| attempt.trial.name == result);
    let interfaces = attempts.filter_map(|attempt| attempt.hosts.get(host)).flat_map(|host| &host.interfaces);
    let busiest = interfaces.max_by_key(|counters| if sends { counters.tx_bytes } else { counters.rx_bytes })?;
    Some(&busiest.name)
}

/// Returns the places of a limit; empty if it has none or its place is unknown.
fn spots(limit: Limit, place: Option<LimitPlace>) -> &'static [Spot] {
    match (limit, place.or_else(|| limit.usual_place())) {
        (Limit::StorageRead, _) => &[Spot::SenderProgram],
        (Limit::StorageWrite, _) => &[Spot::ReceiverProgram],
        (Limit::Tester, _) => &[Spot::SenderHost, Spot::ReceiverHost],
        (Limit::OfferedLoad, None) => &[Spot::SenderProgram],
        (Limit::Wire, None) => &[Spot::Between],
        (_, Some(LimitPlace::SenderApplication)) => &[Spot::SenderProgram],
        (_, Some(LimitPlace::SenderHost)) => &[Spot::SenderHost],
        (_, Some(LimitPlace::SenderQueue)) => &[Spot::SenderInterface],
        (_, Some(LimitPlace::ForwardPath | LimitPlace::ReturnPath | LimitPlace::Device)) => &[Spot::Between],
        (_, Some(LimitPlace::ReceiverHost)) => &[Spot::ReceiverHost],
        (_, Some(LimitPlace::ReceiverApplication | LimitPlace::Server)) => &[Spot::ReceiverProgram],
        (_, Some(LimitPlace::Storage) | None) => &[],
    }
}

impl Way<'_> {
    fn chart(self, lang: Language) -> Chart {
        let title = said!(lang, "path-title", "Path of {name}", name = self.name);
        let statement = sentence(&verdict::statement(lang, self.verdict));
        let stations = |is_ours: fn(&Stop) -> bool| -> Vec<Station> {
            self.stops.iter().filter(|stop| is_ours(stop)).map(|stop| self.station(lang, stop)).collect()
        };
        let of_sender =
            |stop: &Stop| matches!(stop.spot, Spot::SenderProgram | Spot::SenderHost | Spot::SenderInterface);
        let of_receiver =
            |stop: &Stop| matches!(stop.spot, Spot::ReceiverProgram | Spot::ReceiverHost | Spot::ReceiverInterface);
        let mut between = stations(|stop| stop.spot == Spot::Between);
        let mut drawing = PathDrawing {
            description: String::new(),
            sender: HostOnPath { name: self.from.clone(), stations: stations(of_sender) },
            between: between.remove(0),
            receiver: HostOnPath { name: self.to.clone(), stations: stations(of_receiver) },
        };
        // Names of hosts keep their letters as they are.
        let sentences = drawing.stations().map(|(_, station)| format!("{}.", station.label));
        drawing.description = std::iter::once(statement).chain(sentences).collect::<Vec<_>>().join(" ");
        let table = table(&title, &drawing);
        Chart { title, legend: Vec::new(), drawing: Drawing::Path(drawing), table }
    }

    fn station(&self, lang: Language, stop: &Stop) -> Station {
        let share = counted_share(Ratio::new(stop.lost, self.of));
        let lost = share.filter(|_| stop.lost > 0);
        let lost = lost
            .map(|share| said!(lang, "path-lost", "{lost} lost ({share})", lost = grouped(stop.lost), share = share));
        let role = self.role(lang, stop.spot);
        let host = match stop.spot {
            Spot::Between => None,
            Spot::SenderProgram | Spot::SenderHost | Spot::SenderInterface => Some(&self.from),
            Spot::ReceiverProgram | Spot::ReceiverHost | Spot::ReceiverInterface => Some(&self.to),
        };
        let name = host.map_or_else(|| stop.name.clone(), |host| format!("{host}, {}", stop.name));
        let did = stop.facts.iter().chain(&lost).map(String::as_str).chain(role.told());
        let did = did.collect::<Vec<_>>().join("; ");
        Station {
            label: if did.is_empty() { name } else { format!("{name}: {did}") },
            name: stop.name.clone(),
            facts: stop.facts.clone(),
            lost,
            role,
            is_named: matches!(stop.spot, Spot::SenderInterface | Spot::Between | Spot::ReceiverInterface),
        }
    }

    /// Whether the limit, or one of those that were reached as well, is at this station.
    fn role(&self, lang: Language, spot: Spot) -> Role {
        let limit = self.verdict.limit;
        if self.are_at(limit, self.verdict.place, spot) {
            return Role::Limits(said!(lang, "path-limit", "limit: {limit}", limit = lang.text(limit.text())));
        }
        let Some(other) = self.verdict.also.iter().find(|other| self.are_at(**other, None, spot)) else {
            return Role::None;
        };
        let named = lang.text(other.text());
        Role::MayLimit(match limit {
            Limit::CannotTell => said!(lang, "path-limit-possible", "possible: {limit}", limit = named),
            _ => said!(lang, "path-limit-also", "also reached: {limit}", limit = named),
        })
    }

    /// Whether a limit is at this station. Where a host is drawn as its program alone, that stands for its kernel.
    fn are_at(&self, limit: Limit, place: Option<LimitPlace>, spot: Spot) -> bool {
        let has = |spot| self.stops.iter().any(|stop| stop.spot == spot);
        spots(limit, place).iter().any(|limiting| match limiting {
            Spot::SenderHost if !has(Spot::SenderHost) => spot == Spot::SenderProgram,
            Spot::ReceiverHost if !has(Spot::ReceiverHost) => spot == Spot::ReceiverProgram,
            limiting => *limiting == spot,
        })
    }
}

/// Returns the path in rows.
fn table(caption: &str, drawing: &PathDrawing) -> Table {
    let row = |(host, station): (Option<&str>, &Station)| {
        let did = station.facts.join("; ");
        vec![
            Some(host.map_or_else(|| station.name.clone(), |host| format!("{host}, {}", station.name))),
            Some(did).filter(|did| !did.is_empty()),
            station.lost.clone(),
            station.role.told().map(str::to_owned),
        ]
    };
    Table {
        caption: caption.to_owned(),
        columns: vec![
            column!("column-station", "station", "where on the path, in the order in which data passes").of_words(),
            column!("column-station-did", "what it did", "what was counted there").of_words(),
            column!("column-station-lost", "lost here", "datagrams, or frames, that were lost there").of_words(),
            column!("column-station-limit", "limit", "whether it limited the result").of_words(),
        ],
        rows: drawing.stations().map(row).collect(),
    }
}
