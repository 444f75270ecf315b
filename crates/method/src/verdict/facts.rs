//! What the rules weigh: the facts of a result and its trials, medians over the runs.

use super::calls::Calls;
use super::path_loss::{goes_by_loss, queued};
use crate::measure::main_figure;
use crate::statistics;
use crate::transfer::{Transfer, rate, transfers};
use linerate_model::{
    Arrivals, Ceiling, CoreUse, HostName, Limit, Measurement, Observation, Offered, PathLimit, TcpFlow, TcpSummary,
    ThreadUse, Transport, TrialResult, Workload, WorkloadKind,
};
use linerate_units::Nanos;
use std::collections::BTreeSet;

/// What a socket holds of payload where nothing is asked for: half of net.core.rmem_default, as its book-keeping takes about
/// as much again.
const USUAL_BUFFER: u64 = 106_496;
/// Linux waits no less for an acknowledgement, seconds (TCP_RTO_MIN; RFC 6298 section 2.4 would have it wait for 1 s).
const SHORTEST_TIMEOUT: f64 = 0.2;
/// A quota used up in most of its periods is what stops the threads.
pub(super) const THROTTLED: f64 = 0.5;

/// A thread with work for this share of the time hardly ever waited for anything else.
pub(super) const OCCUPIED: f64 = 0.9;
/// Below this it had time to spare in every stretch that matters.
pub(super) const NEARLY_OCCUPIED: f64 = 0.75;
/// With less than this to do it had time for everything, bursts and all; a host that is itself the limit is not busy all the time
/// either, for its ends wait for each other.
pub(super) const AMPLE: f64 = 0.6;
/// A core with less than this to do has room for a thread.
const SPARE: f64 = 0.5;
/// TCP held back by windows or buffers for more than this does not show what the path lets through.
pub(super) const HELD_BACK: f64 = 0.2;
/// Of a window that is full all the time nearly so much arrives each round trip; some of that is the time an acknowledgement takes.
const WINDOW_FULL: f64 = 0.9;
/// A window of which this share is under way, on average over the round trips, is full whenever it matters.
pub(super) const FILLED: f64 = 0.75;
/// A sender that has the processor sends, and does so in system calls: even through a device of the same host these take two fifths of its
/// time and more. With more soft interrupts than this it waits for what they do.
pub(super) const INTERRUPTED: f64 = 0.7;
/// What is kept from a core for this share of the time lets rings and buffers overflow, which hold some milliseconds.
const KEPT_WAITING: f64 = 0.25;

/// The facts of one result.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    /// What was done.
    pub(super) work: Work,
    /// Payload bit/s at the receivers; transactions per second otherwise.
    pub(super) reached: f64,
    /// What the path can carry, where its links' speeds are known.
    pub(super) line: Option<PathLimit>,
    /// Bytes of a UDP message.
    pub(super) message_bytes: u64,
    /// What the tester reached with the device bypassed, and whether the runs of both overlap.
    pub(super) ceiling: Option<(Ceiling, bool)>,
    /// That was the same measurement, without the device and nothing else.
    pub(super) bypassed: bool,
    /// The load asked for; none where it was as much as goes.
    pub(super) offer: Option<Offer>,
    /// The sending (asking) end.
    pub(super) sender: End,
    /// The receiving (answering) end.
    pub(super) receiver: End,
    /// TCP's own account; none for UDP.
    pub(super) tcp: Option<Tcp>,
    /// What became of UDP's datagrams; none for TCP and transactions.
    pub(super) udp: Option<Udp>,
    /// Transactions one after the other; none for streams and at a set rate.
    pub(super) closed_loop: Option<ClosedLoop>,
    /// Calls to a server; none for streams and transactions.
    pub(super) calls: Option<Calls>,
    /// Share of a host's time that the hypervisor took, the most of any.
    pub(super) steal: f64,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Tcp,
    Udp,
    Transact,
}

/// The load asked for and what came of it, as shares of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offer {
    /// Share of it that was sent.
    pub(super) sent: f64,
    /// Share of it that arrived.
    pub(super) arrived: f64,
}

/// One end of the transfers, its hosts together.
#[derive(Debug, Clone, Default)]
pub(super) struct End {
    /// Share of the window that its engine threads were on a core, on average of the threads.
    pub(super) busy: f64,
    /// Share in which they were ready and had none; zero where that is not counted.
    pub(super) waited: f64,
    /// Of what its threads' clocks show, the share at the least that was spent on soft interrupts: all that programs and system calls of
    /// its hosts took is less by so much.
    pub(super) interrupted: f64,
    /// The share at the most: all soft interrupts of its hosts, which may have run on top of other programs or on idle cores as well.
    pub(super) interruptible: f64,
    /// Of the periods of its CPU quota, the share in which that was used up, and the cores' worth it allows.
    pub(super) throttled: Option<(f64, f64)>,
    /// Share of the time that its host's busiest core was busy, whatever ran there.
    pub(super) busiest_core: f64,
    /// Cores of its host that had more time to spare than not, whatever ran there.
    pub(super) spare_cores: usize,
    /// The kernel's thread that had most to do with receiving.
    pub(super) kernel: Option<KernelThread>,
    /// Share of the packets that its host's NIC or input queue dropped on receipt.
    pub(super) dropped: f64,
}

/// A thread of the kernel that receives packets.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct KernelThread {
    pub(super) name: String,
    /// It receives for the interface of this end alone (`napi/`), and not for the whole machine (`ksoftirqd`).
    pub(super) own: bool,
    /// Share of the window that it was on a core.
    pub(super) busy: f64,
    /// Share in which it had packets and no core.
    pub(super) waited: f64,
}

impl KernelThread {
    fn occupied(&self) -> f64 {
        self.busy + self.waited
    }
}

/// TCP's own account.
#[derive(Debug, Clone, Default)]
pub(super) struct Tcp {
    pub(super) congestion: String,
    /// Segments resent, as a share of those sent.
    pub(super) resent: f64,
    /// Share of the time at the least that it waited for a retransmission timeout; zero where those are not counted.
    pub(super) stalled: f64,
    /// Smoothed round-trip time, seconds.
    pub(super) rtt: f64,
    /// The smallest seen, seconds.
    pub(super) min_rtt: f64,
    /// Share of the time with data to send in which the receiver's window held it back.
    pub(super) window_limited: f64,
    /// Share in which the send buffer did.
    pub(super) buffer_limited: f64,
    /// Payload of a segment, bits.
    pub(super) segment_bits: f64,
    /// Payload bit/s of one flow.
    pub(super) flow_bps: f64,
    /// The receiver's window, bytes.
    pub(super) peer_window: f64,
    /// The congestion window, bytes.
    pub(super) congestion_window: f64,
    /// The send buffer asked for, bytes; zero where the system chooses.
    pub(super) send_buffer: f64,
}

/// What became of UDP's datagrams, as shares of those sent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Udp {
    /// Lost between the two NICs.
    pub(super) wire: f64,
    /// Dropped by the receiver's NIC or input queue.
    pub(super) receiver_queue: f64,
    /// Dropped for want of room in the receiving socket.
    pub(super) socket_buffer: f64,
    /// How much of what arrives that socket holds, seconds.
    pub(super) buffer_time: f64,
}

/// Transactions one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClosedLoop {
    /// How many were under way at once.
    pub(super) outstanding: f64,
    /// How long one took, on average, seconds.
    pub(super) latency: f64,
}

impl Facts {
    /// The facts of `result`, which `runs` amount to.
    pub(crate) fn of(result: &Measurement, runs: &[&TrialResult]) -> Self {
        let workload = runs.first().map(|run| &run.spec.workload);
        let work = match (workload, result.transport) {
            (Some(workload), _) if workload.is_requests() => Work::Transact,
            (_, Transport::Tcp) => Work::Tcp,
            (_, Transport::Udp) => Work::Udp,
        };
        let own = main_figure(result);
        let overlap = |ceiling: &Ceiling| {
            own.is_some_and(|own| own.runs > 1 && ceiling.reached.runs > 1 && own.high >= ceiling.reached.low)
        };
        Self {
            work,
            reached: own.map_or(0.0, |own| own.median),
            line: result.limit.clone(),
            message_bytes: result.message_bytes,
            ceiling: result.ceiling.clone().map(|ceiling| {
                let overlaps = overlap(&ceiling);
                (ceiling, overlaps)
            }),
            // Of NFS the ceiling is what the tester itself can do, without any server but its own.
            bypassed: result.workload != WorkloadKind::Nfs,
            offer: offer(runs),
            sender: End::of(runs, true),
            receiver: End::of(runs, false),
            tcp: tcp(result, runs),
            udp: (work == Work::Udp).then(|| udp(runs)),
            closed_loop: closed_loop(result, workload),
            calls: Calls::of(result, runs),
            steal: result.cpu.sender.steal.max(result.cpu.receiver.steal),
        }
    }

    /// Share of the datagrams sent that were lost behind the sender.
    pub(super) fn lost_behind_sender(&self) -> f64 {
        self.udp.map_or(0.0, |udp| udp.wire + udp.receiver_queue + udp.socket_buffer)
    }

    /// Packets were lost behind the sender, more than by a stumble.
    pub(super) fn loses(&self) -> bool {
        let resent = self.tcp.as_ref().map_or(0.0, |tcp| tcp.resent);
        self.lost_behind_sender().max(resent) > super::path_loss::NOTABLE
    }

    /// The ends did more than the path let through, whatever the clocks of their threads show: those run on while soft interrupts run
    /// on top of a thread, others' as well.
    ///
    /// Of TCP a queue stood on the path, so that the sender was ahead of it, and no window was full, as a receiver's soon is that does not
    /// take what arrives. A UDP sender without a rate of its own makes system calls all the time, if it is not held up by soft interrupts: those
    /// of a queue that lets packets go, since sending itself brings few.
    pub(super) fn outrun_the_path(&self) -> bool {
        let throttled = self.sender.is_throttled() || self.receiver.is_throttled();
        if throttled || self.late_kernel_thread().is_some() {
            return false;
        }
        match (self.work, &self.tcp) {
            (Work::Tcp, Some(tcp)) => {
                let held_back = tcp.window_limited + tcp.buffer_limited;
                queued(tcp) && held_back < HELD_BACK && self.receiver.busiest_core < OCCUPIED
            }
            (Work::Udp, _) => self.offer.is_none() && self.sender.interrupted >= INTERRUPTED,
            _ => false,
        }
    }

    /// The kernel's thread that receives, if it was too late. What waits and is not lost costs no rate; and a thread of the
    /// whole machine is only to blame for what this host is known to have dropped.
    pub(super) fn late_kernel_thread(&self) -> Option<&KernelThread> {
        let end = &self.receiver;
        let thread = end.kernel.as_ref()?;
        let dropped = self.udp.map_or(end.dropped, |udp| udp.receiver_queue) > super::path_loss::NOTABLE;
        let lost = if thread.own { self.loses() } else { dropped };
        let late = thread.waited >= KEPT_WAITING || thread.occupied() >= NEARLY_OCCUPIED;
        (lost && late || thread.own && thread.occupied() >= OCCUPIED).then_some(thread)
    }

    /// Cores with time to spare at the end whose processor is the limit; none where a quota is what stops its threads, which
    /// leaves cores idle for nobody.
    pub(crate) fn spare_cores_at(&self, limit: Limit) -> Option<usize> {
        let end = if limit == Limit::SenderCpu { &self.sender } else { &self.receiver };
        (!end.is_throttled()).then_some(end.spare_cores)
    }

    /// Both hosts had time to spare even if the hypervisor took all that it took from their threads: however that time fell, on
    /// average it held nothing back.
    pub(super) fn idle_despite_steal(&self) -> bool {
        let ends = [&self.sender, &self.receiver];
        ends.iter().all(|end| end.occupied() + self.steal < NEARLY_OCCUPIED && !end.is_throttled())
    }

    /// The result in words.
    pub(super) fn reached_in_words(&self) -> String {
        match self.work {
            Work::Transact => format!("{:.0} transactions/s", self.reached),
            Work::Tcp | Work::Udp => bits(self.reached),
        }
    }
}

impl End {
    fn of(runs: &[&TrialResult], sends: bool) -> Self {
        let ends: Vec<Self> = runs.iter().map(|run| Self::of_run(run, sends)).collect();
        let middle = |of: fn(&Self) -> f64| median(ends.iter().map(of));
        Self {
            busy: middle(|end| end.busy),
            waited: middle(|end| end.waited),
            interrupted: middle(|end| end.interrupted),
            interruptible: middle(|end| end.interruptible),
            throttled: ends.iter().filter_map(|end| end.throttled).max_by(|l, r| l.0.total_cmp(&r.0)),
            busiest_core: middle(|end| end.busiest_core),
            spare_cores: ends.iter().map(|end| end.spare_cores).min().unwrap_or(0),
            kernel: foremost(ends.iter().filter_map(|end| end.kernel.clone())),
            dropped: middle(|end| end.dropped),
        }
    }

    fn of_run(run: &TrialResult, sends: bool) -> Self {
        let all = transfers(run);
        let end = |transfer: &Transfer<'_>| if sends { transfer.from.clone() } else { transfer.to.clone() };
        let names: BTreeSet<HostName> = all.iter().map(end).collect();
        let hosts: Vec<&Observation> = names.iter().filter_map(|host| run.hosts.get(host)).collect();
        let share = |time: u64, host: &Observation| time as f64 / host.window.get().max(1) as f64;
        let threads: Vec<(&Observation, &ThreadUse)> = hosts
            .iter()
            .flat_map(|host| host.threads.iter().filter(|thread| thread.sends == sends).map(|thread| (*host, thread)))
            .collect();
        let average = |of: fn(&ThreadUse) -> u64| {
            threads.iter().map(|(host, thread)| share(of(thread), host)).sum::<f64>() / threads.len().max(1) as f64
        };
        let clocks: u64 = threads.iter().map(|(_, thread)| thread.cpu.get()).sum();
        let sum =
            |of: fn(&CoreUse) -> Nanos| hosts.iter().flat_map(|host| &host.cores).map(|core| of(core).get()).sum();
        let (programs, interrupts): (u64, u64) =
            (sum(|core| core.user + core.system), sum(|core| core.irq + core.softirq));
        let throttled = hosts.iter().filter_map(|host| host.quota).filter(|quota| quota.periods > 0);
        let dropped = |transfer: &Transfer<'_>| {
            let host = run.hosts.get(transfer.to)?;
            let interface = host.interfaces.iter().find(|i| Some(&i.name) == transfer.receiver.interface.as_ref())?;
            let lost = interface.rx_dropped + interface.rx_errors;
            Some(lost as f64 / (interface.rx_packets + lost).max(1) as f64)
        };
        let cores = || hosts.iter().flat_map(|host| host.cores.iter().map(|core| core.busy_share()));
        let interfaces: BTreeSet<&String> =
            all.iter().filter_map(|t| if sends { t.sender } else { t.receiver }.interface.as_ref()).collect();
        // Another interface's thread has no part in this.
        let receives = |name: &str| match name.strip_prefix("napi/").and_then(|name| name.rsplit_once('-')) {
            Some((interface, _)) => interfaces.iter().any(|own| *own == interface),
            None => true,
        };
        let kernel = hosts.iter().flat_map(|host| host.kernel_threads.iter().map(move |thread| (host, thread)));
        let kernel = kernel.filter(|(_, thread)| receives(&thread.name)).map(|(host, thread)| KernelThread {
            name: thread.name.clone(),
            own: thread.name.starts_with("napi/"),
            busy: share(thread.cpu.get(), host),
            waited: share(thread.waited.get(), host),
        });
        Self {
            busy: average(|thread| thread.cpu.get()),
            waited: average(|thread| thread.waited.map_or(0, |waited| waited.get())),
            interrupted: clocks.saturating_sub(programs) as f64 / clocks.max(1) as f64,
            interruptible: (interrupts as f64 / clocks.max(1) as f64).min(1.0),
            throttled: throttled
                .map(|quota| (quota.throttled as f64 / quota.periods as f64, quota.cores))
                .max_by(|l, r| l.0.total_cmp(&r.0)),
            kernel: foremost(kernel),
            busiest_core: cores().fold(0.0, f64::max),
            spare_cores: cores().filter(|busy| *busy < SPARE).count(),
            dropped: if sends { 0.0 } else { all.iter().filter_map(dropped).fold(0.0, f64::max) },
        }
    }

    /// Share of the window in which its threads had work: on a core, or waiting for one.
    pub(super) fn occupied(&self) -> f64 {
        (self.busy + self.waited).min(1.0)
    }

    /// The same end where each of its turns waits for the other's: what it waits for a core is part of the time that a
    /// request takes, and no sign that it has more to do than it can.
    pub(super) fn in_turn(&self) -> Self {
        Self { waited: 0.0, ..self.clone() }
    }

    /// Its threads were ready and kept from a core.
    pub(super) fn is_kept_waiting(&self) -> bool {
        self.waited >= KEPT_WAITING
    }

    /// A CPU quota stops its threads.
    pub(super) fn is_throttled(&self) -> bool {
        self.throttled.is_some_and(|(share, _)| share >= THROTTLED)
    }
}

/// The interface's own thread before one of the machine, then the one with most to do.
fn foremost(threads: impl Iterator<Item = KernelThread>) -> Option<KernelThread> {
    threads.max_by(|l, r| l.own.cmp(&r.own).then(l.occupied().total_cmp(&r.occupied())))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    statistics::median(values.collect()).unwrap_or(0.0)
}

/// The load asked for, the middle of the runs, of the transfer that fell shortest.
fn offer(runs: &[&TrialResult]) -> Option<Offer> {
    let offers: Vec<Offer> = runs.iter().filter_map(|run| offer_of(run)).collect();
    (!offers.is_empty()).then(|| Offer {
        sent: median(offers.iter().map(|offer| offer.sent)),
        arrived: median(offers.iter().map(|offer| offer.arrived)),
    })
}

fn offer_of(run: &TrialResult) -> Option<Offer> {
    let offers = transfers(run).into_iter().filter_map(|transfer| match &run.spec.workload {
        Workload::Stream(stream) => {
            let (sent, got) = (transfer.sender.sent.as_ref()?, transfer.receiver.received.as_ref()?);
            let (asked, sent, got) = match stream.offered? {
                Offered::PayloadBps(asked) => (
                    asked.get() as f64,
                    rate(sent.payload_bytes * 8, sent.window.get()),
                    rate(got.payload_bytes * 8, got.window.get()),
                ),
                Offered::MessagesPerS(asked) => {
                    (asked.get() as f64, rate(sent.messages, sent.window.get()), rate(got.messages, got.window.get()))
                }
            };
            Some(Offer { sent: sent / asked, arrived: got / asked })
        }
        requests => {
            let rate_asked = requests.requests_per_s()?.get() as f64;
            let done = transfer.sender.transactions.as_ref()?;
            // Of random arrivals so many count as came due: each was timed, failed, or was never sent.
            let due = done.latency.count() + done.failed + done.not_sent;
            let asked = match requests.arrivals()? {
                Arrivals::Even => rate_asked,
                Arrivals::Poisson => rate(due, done.window.get()),
            };
            // At a set rate those are timed that were due within the window, whenever they were answered.
            let (answered, second) = (done.latency.count(), |count| rate(count, done.window.get()) / asked);
            Some(Offer { sent: second(answered + done.failed), arrived: second(answered) })
        }
    });
    offers.min_by(|left, right| left.arrived.total_cmp(&right.arrived))
}

fn tcp(result: &Measurement, runs: &[&TrialResult]) -> Option<Tcp> {
    let account = result.tcp.as_ref()?;
    let flows: Vec<&TcpFlow> = runs
        .iter()
        .flat_map(|run| transfers(run))
        .flat_map(|transfer| transfer.sender.flows.iter().filter_map(|flow| flow.tcp.as_ref()))
        .collect();
    let each = flows.len() as f64 / runs.len().max(1) as f64;
    let windows = |run: &&TrialResult| {
        let all = transfers(run);
        all.iter()
            .map(|t| t.sender.flows.len() as u64 * t.sender.sent.as_ref().map_or(0, |s| s.window.get()))
            .sum::<u64>()
    };
    let time = runs.iter().map(windows).sum::<u64>() as f64 / 1e9;
    let reached = result.received.as_ref().map_or(0.0, |received| received.payload_bps.median);
    let asked = runs.iter().find_map(|run| match &run.spec.workload {
        Workload::Stream(stream) => stream.socket.send_buffer,
        _ => None,
    });
    let tcp = Tcp::of(account, &flows, time, reached / each.max(1.0));
    Some(Tcp { send_buffer: asked.map_or(0.0, |bytes| bytes.get() as f64), ..tcp })
}

impl Tcp {
    /// A window of data a round trip is what the receiver allows (RFC 9293 section 3.8), and so much came, of the shortest round trips
    /// even: no path and no host gives more. TCP's own count of the time that the window held it back does not tell: BBR sends at
    /// the rate that came through before, a window each round trip, and meets the window's end by chance.
    pub(super) fn fills_window(&self) -> bool {
        self.peer_window > 0.0 && self.flow_bps * self.min_rtt / 8.0 >= WINDOW_FULL * self.peer_window
    }

    /// Bytes under way, on average.
    pub(super) fn flight(&self) -> f64 {
        self.flow_bps * self.rtt / 8.0
    }

    /// What the send buffer holds was under way, of the shortest round trips even, while a congestion control that goes by loss would
    /// have let more go and saw none. Of a buffer asked for Linux makes twice that, book-keeping included (socket(7)). TCP's own count
    /// goes only while nothing at all waits to be sent, which a buffer that fills again in time prevents.
    pub(super) fn fills_send_buffer(&self) -> bool {
        let full = self.send_buffer > 0.0 && self.flow_bps * self.min_rtt / 8.0 >= self.send_buffer;
        full && goes_by_loss(self) && self.resent <= 0.0 && self.flight() <= FILLED * self.congestion_window
    }

    /// What `account` of `flows` says, which had `time` seconds together and brought `flow_bps` each.
    pub(super) fn of(account: &TcpSummary, flows: &[&TcpFlow], time: f64, flow_bps: f64) -> Self {
        let timeouts = account.timeouts as f64 * SHORTEST_TIMEOUT;
        Self {
            congestion: account.congestion.clone(),
            resent: account.retransmits as f64 / account.segments.max(1) as f64,
            stalled: if time > 0.0 { (timeouts / time).min(1.0) } else { 0.0 },
            rtt: account.rtt_ns as f64 / 1e9,
            min_rtt: account.min_rtt_ns as f64 / 1e9,
            window_limited: account.receive_window_limited,
            buffer_limited: account.send_buffer_limited,
            segment_bits: f64::from(account.mss) * 8.0,
            flow_bps,
            peer_window: median(flows.iter().map(|flow| f64::from(flow.peer_window))),
            congestion_window: median(flows.iter().map(|flow| f64::from(flow.congestion_window) * f64::from(flow.mss))),
            send_buffer: 0.0,
        }
    }
}

fn udp(runs: &[&TrialResult]) -> Udp {
    let places: Vec<Udp> = runs
        .iter()
        .map(|run| {
            let all = transfers(run);
            let losses = || all.iter().filter_map(|transfer| transfer.loss);
            let sent = losses().map(|loss| loss.of - loss.places.not_sent - loss.places.sender_queue).sum::<u64>();
            let share = |count: u64| count as f64 / sent.max(1) as f64;
            let held = match &run.spec.workload {
                Workload::Stream(stream) => stream.socket.receive_buffer.map_or(USUAL_BUFFER, |bytes| bytes.get()),
                _ => USUAL_BUFFER,
            };
            let came = |transfer: &Transfer<'_>| {
                let received = transfer.receiver.received.as_ref()?;
                let sockets = transfer.receiver.flows.len().max(1) as u64;
                let dropped = transfer.loss.map_or(0, |loss| loss.places.socket_buffer);
                let bytes = received.payload_bytes + dropped * received.payload_bytes / received.messages.max(1);
                Some(rate(bytes, received.window.get()) / sockets as f64)
            };
            let fastest = all.iter().filter_map(came).fold(0.0, f64::max);
            Udp {
                buffer_time: held as f64 / fastest.max(1.0),
                wire: share(losses().map(|loss| loss.places.wire).sum()),
                receiver_queue: share(losses().map(|loss| loss.places.receiver_queue).sum()),
                socket_buffer: share(losses().map(|loss| loss.places.socket_buffer).sum()),
            }
        })
        .collect();
    Udp {
        buffer_time: median(places.iter().map(|udp| udp.buffer_time)),
        wire: median(places.iter().map(|udp| udp.wire)),
        receiver_queue: median(places.iter().map(|udp| udp.receiver_queue)),
        socket_buffer: median(places.iter().map(|udp| udp.socket_buffer)),
    }
}

fn closed_loop(result: &Measurement, workload: Option<&Workload>) -> Option<ClosedLoop> {
    let closed = workload.is_some_and(|workload| workload.is_requests() && workload.requests_per_s().is_none());
    let (latency, rate) = (result.latency_ns.as_ref()?, result.transactions_per_s.as_ref()?);
    let latency = latency.mean / 1e9;
    closed.then_some(ClosedLoop { outstanding: rate.median * latency, latency })
}

/// A rate for people.
pub(crate) fn bits(bps: f64) -> String {
    linerate_units::BitRate::per_second(bps.max(0.0) as u64).to_string()
}

/// A time for people.
pub(super) fn time(seconds: f64) -> String {
    linerate_units::Nanos::new((seconds.max(0.0) * 1e9) as u64).to_string()
}

/// A share for people, with as many digits as it takes.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        0.0 => String::from("0 %"),
        ..0.1 => format!("{percent:.3} %"),
        ..1.0 => format!("{percent:.2} %"),
        ..10.0 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}
