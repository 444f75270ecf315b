//! The facts of a load of flows: streams, transactions and calls. Medians over the runs.

use super::backlog::OneWay;
use super::bus::BusUse;
use super::calls::Calls;
use super::course::{Course, GROWN, TcpCourse};
use super::end::{End, KEPT_WAITING, KernelThread, NEARLY_OCCUPIED, OCCUPIED};
use super::interface::{InterfaceFacts, lost_on_return};
use super::loss_pattern::LossPattern;
use super::pace::{Pace, returns_keep_a_rate};
use super::tcp::{HELD_BACK, Tcp, tcp};
use super::udp::{Udp, udp};
use super::vanished::Vanished;
use super::waits::Waits;
use super::window::WindowFacts;
use super::words::percent;
use super::{NOTABLE_LOSS, median};
use crate::outage;
use crate::terms;
use crate::transfer::{rate, transfers};
use crate::validity::few_round_trips;
use linerate_model::{
    Arrivals, Bypass, Host, HostName, Limit, LimitPlace, Measurement, Message, Offered, PathLimit, RateRange,
    Steadiness, Task, TaskKind, TesterLimit, Text, Transport, TrialResult, message,
};

/// A sender that has the processor sends, and does so in system calls: even through a device of the same host these take two fifths of its
/// time and more. With more soft interrupts than this it waits for what they do.
pub(crate) const INTERRUPTED: f64 = 0.7;
/// A result this close to the tester's limit does not show what the device can do. Where the runs scatter more than
/// this, their spread decides.
pub(crate) const AT_TESTER_LIMIT: f64 = 0.95;
/// With this share of the load delivered, a limit just below what was asked for would be a coincidence.
const NEARLY_MET: f64 = 0.95;
/// A larger share of lost acknowledgements, while little is lost on the way there, is a sign of a slow return path.
pub(crate) const RETURN_LOSS: f64 = 0.1;
/// A queue on the way back takes so long at the least, seconds: sampling and clocks are less exact than that.
const QUEUE_ON_RETURN: f64 = 0.005;
/// The same where the rate varies: between two samples bytes are taken to come evenly.
const QUEUE_ON_RETURN_VARYING: f64 = 0.05;
/// A queue that drains at so much of the line's speed drains at it.
const AT_LINE_SPEED: f64 = 0.9;
/// Lines whose shares differ by less than this are as full as each other.
const AS_FULL: f64 = 0.01;
/// A core this busy has hardly any time left.
const CORE_BUSY: f64 = 0.95;
/// A receive buffer that is full after less than this, in seconds, asks more of a program than any system promises it.
const SHORT_BUFFER: f64 = 0.000_2;

/// The facts of one result.
#[derive(Debug, Clone)]
pub(crate) struct FlowFacts {
    /// What was done.
    pub(crate) work: Work,
    /// How well the window was observed.
    pub(crate) window: WindowFacts,
    /// Payload bit/s at the receivers; transactions per second otherwise.
    pub(crate) reached: f64,
    /// What the path can carry, where its links' speeds are known.
    pub(crate) line: Option<PathLimit>,
    /// Bytes of a UDP message or of a request.
    pub(crate) message_bytes: u64,
    /// Bytes of the answer to a request.
    pub(crate) response_bytes: u64,
    /// What the tester reached with the device bypassed, and whether the runs of both overlap.
    pub(crate) tester_limit: Option<(TesterLimit, bool)>,
    /// How that was measured.
    pub(crate) tester_alone: TesterAlone,
    /// The load asked for; none where it was as much as goes.
    pub(crate) offer: Option<Offer>,
    /// The sending (asking) end.
    pub(crate) sender: End,
    /// The receiving (answering) end.
    pub(crate) receiver: End,
    /// TCP's own account; none for UDP.
    pub(crate) tcp: Option<Tcp>,
    /// What became of UDP's datagrams; none for TCP and transactions.
    pub(crate) udp: Option<Udp>,
    /// Packets of a stream of which none arrived; `None` if any did.
    pub(crate) vanished: Option<Vanished>,
    /// Transactions one after the other; none for streams and at a set rate.
    pub(crate) closed_loop: Option<ClosedLoop>,
    /// Calls to a server; none for streams and transactions.
    pub(crate) calls: Option<Calls>,
    /// Share of the window in which the path carried nothing.
    pub(crate) outage: f64,
    /// How steady the result was within the window; none without a series.
    pub(crate) steadiness: Option<Steadiness>,
    /// How the load went within the window; none without a series.
    pub(crate) course: Option<Course>,
    /// The interface that the data left by.
    pub(crate) outbound: InterfaceFacts,
    /// The interface that they came by.
    pub(crate) inbound: InterfaceFacts,
    /// The fullest bus that is slower than its card's link, in the middle run.
    pub(crate) bus: Option<BusUse>,
    /// TCP: how long data and acknowledgements took; none where clocks or series do not tell.
    pub(crate) one_way: Option<OneWay>,
    /// TCP: share of the packets that the receiving host sent back and that did not reach the sending one.
    pub(crate) lost_on_return: f64,
    /// TCP: whether the packets that came back kept to a rate, as those of a slow return path do.
    pub(crate) returns_keep_a_rate: bool,
    /// What the interfaces' declared speed would allow at the most, where the result is more than that.
    pub(crate) declared_too_slow: Option<PathLimit>,
    /// Latency of requests; none for streams.
    pub(crate) waits: Option<Waits>,
    /// A volume was sent in few round trips: the slow start of its connections is a good part of the rate.
    pub(crate) is_brief_volume: bool,
    /// Both ends ran on one machine, so that each saw the processors of both.
    pub(crate) one_machine: bool,
    /// Share of a host's time that the hypervisor took, the most of any.
    pub(crate) steal: f64,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Tcp,
    Udp,
    Transact,
}

/// How the tester limit was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TesterAlone {
    /// The same measurement, without the device and nothing else.
    Cable,
    /// Each host against itself: the slower one counts, and no interface took part.
    Loopback,
    /// NFS, with a server of its own instead of the one under test.
    OwnServer,
}

/// The load asked for and what came of it, as shares of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offer {
    /// Share of it that was sent.
    pub(crate) sent: f64,
    /// Share of it that arrived.
    pub(crate) arrived: f64,
}

/// A line of declared speed in one direction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FullestLine<'a> {
    /// Share of the speed that frames took.
    pub(crate) share: f64,
    /// Place of the line as seen from the sending (asking) host.
    pub(crate) place: LimitPlace,
    /// The interface that counted the frames.
    pub(crate) interface: &'a InterfaceFacts,
    /// `sending` or `receiving`: the host of that interface.
    pub(crate) whose: &'static Text,
}

/// Transactions one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClosedLoop {
    /// How many were in flight at once.
    pub(crate) outstanding: f64,
    /// How long one took, on average, seconds.
    pub(crate) latency: f64,
}

impl Offer {
    /// Nearly all of the load asked for arrived.
    pub(crate) fn is_nearly_met(&self) -> bool {
        self.arrived >= NEARLY_MET
    }
}

impl FlowFacts {
    /// The facts of `result`, which `runs` amount to.
    pub(crate) fn of(result: &Measurement, runs: &[&TrialResult], hosts: &[Host]) -> Self {
        let workload = runs.first().map(|run| run.trial.task());
        let flows = result.flows();
        let work = match (workload, flows.map(|flows| flows.transport)) {
            (Some(workload), _) if workload.is_requests() => Work::Transact,
            (_, Some(Transport::Tcp) | None) => Work::Tcp,
            (_, Some(Transport::Udp)) => Work::Udp,
        };
        let own = &result.main;
        let tcp = tcp(result, runs);
        let course = Course::of(runs, tcp.as_ref().map(Tcp::floor));
        let (line, declared_too_slow) = match result.limit().cloned() {
            Some(limit) if limit.is_declared_too_slow() => (None, Some(limit)),
            limit => (limit, None),
        };
        let overlap = |limit: &TesterLimit| own.runs > 1 && limit.reached.runs > 1 && own.high >= limit.reached.low;
        Self {
            work,
            window: WindowFacts::of(runs),
            reached: own.median,
            line,
            declared_too_slow,
            message_bytes: flows.map_or(0, |flows| flows.message_bytes),
            response_bytes: result.transact().map_or(0, |transact| transact.response_bytes),
            tester_limit: result.tester_limit.clone().map(|tester_limit| {
                let overlaps = overlap(&tester_limit);
                (tester_limit, overlaps)
            }),
            tester_alone: match (result.task(), result.tester_limit.as_ref().map(|limit| limit.bypass)) {
                (TaskKind::Nfs, _) => TesterAlone::OwnServer,
                (_, Some(Bypass::Loopback)) => TesterAlone::Loopback,
                _ => TesterAlone::Cable,
            },
            offer: offer(runs),
            sender: End::of(runs, true),
            receiver: End::of(runs, false),
            outage: median(runs.iter().map(|run| outage::share(run))),
            steadiness: steadiness(result, course.as_ref()),
            course,
            outbound: InterfaceFacts::of(runs, true, hosts),
            inbound: InterfaceFacts::of(runs, false, hosts),
            bus: bus(runs, hosts),
            one_way: OneWay::of(runs),
            lost_on_return: lost_on_return(runs),
            returns_keep_a_rate: returns_keep_a_rate(runs),
            waits: Waits::of(result, runs),
            is_brief_volume: runs.iter().any(|run| run.trial.volume().is_some() && few_round_trips(run).is_some()),
            one_machine: share_a_machine(runs, hosts),
            tcp,
            udp: (work == Work::Udp).then(|| udp(runs)),
            vanished: Vanished::of(runs, hosts),
            closed_loop: closed_loop(result, workload),
            calls: Calls::of(result, runs),
            steal: flows.map_or(0.0, |flows| flows.cpu.sender.steal.max(flows.cpu.receiver.steal)),
        }
    }

    /// Share of the datagrams sent that were lost behind the sender.
    pub(crate) fn lost_behind_sender(&self) -> f64 {
        self.udp.map_or(0.0, |udp| {
            let counted = udp.corrupted + udp.receiver_queue + udp.receiver_filter;
            udp.wire + counted + udp.refused_fragments + udp.socket_buffer
        })
    }

    /// Packets were lost behind the sender, more than by a stumble.
    pub(crate) fn loses(&self) -> bool {
        let retransmitted = self.tcp.as_ref().map_or(0.0, |tcp| tcp.retransmitted);
        self.lost_behind_sender().max(retransmitted) > NOTABLE_LOSS
    }

    /// The ends did more than the path let through, whatever the clocks of their threads show: those run on while soft interrupts run
    /// on top of a thread, others' as well.
    ///
    /// Of TCP a queue stood on the path, so that the sender was ahead of it, and no window was full, as a receiver's soon is that does not
    /// take what arrives. A UDP sender without a rate of its own makes system calls all the time, if it is not held up by soft interrupts: those
    /// of a queue that lets packets go, since sending itself brings few.
    pub(crate) fn outrun_the_path(&self) -> bool {
        let throttled = self.sender.is_throttled() || self.receiver.is_throttled();
        if throttled || self.late_kernel_thread().is_some() {
            return false;
        }
        match (self.work, &self.tcp) {
            (Work::Tcp, Some(tcp)) => {
                let held_back = tcp.window_limited + tcp.buffer_limited;
                tcp.queued() && held_back < HELD_BACK && self.receiver.busiest_core < OCCUPIED
            }
            (Work::Udp, _) => self.offer.is_none() && self.sender.interrupted >= INTERRUPTED,
            _ => false,
        }
    }

    /// The kernel's thread that receives, if it was too late. What waits and is not lost costs no rate; and a thread of the
    /// whole machine is only to blame for what this host is known to have dropped.
    pub(crate) fn late_kernel_thread(&self) -> Option<&KernelThread> {
        let end = &self.receiver;
        let thread = end.kernel.as_ref()?;
        let dropped = self.udp.map_or(end.dropped, |udp| udp.receiver_queue) > NOTABLE_LOSS;
        let lost = if thread.own { self.loses() } else { dropped };
        let late = thread.waited >= KEPT_WAITING || thread.occupied() >= NEARLY_OCCUPIED;
        (lost && late || thread.own && thread.occupied() >= OCCUPIED).then_some(thread)
    }

    /// What was seen at the hosts and has no part in any rule, in sentences: a core that others kept busy, other traffic, packets that
    /// the sending host itself dropped.
    pub(crate) fn unexplained(&self) -> Vec<Message> {
        let mut all = Vec::new();
        if self.declared_too_slow.is_some() {
            all.push(message!(
                "unexplained-declared-speed",
                "The declared speed of an interface is wrong, so a full line cannot be told from a shaper."
            ));
        }
        for (end, whose) in [(&self.sender, terms::SENDING), (&self.receiver, terms::RECEIVING)] {
            if end.unseen {
                all.push(message!(
                    "unexplained-no-agent",
                    "The {whose} host runs no agent: what limits it was not seen.",
                    whose
                ));
            }
            if end.busiest_core >= CORE_BUSY && end.occupied() < NEARLY_OCCUPIED {
                all.push(message!(
                    "unexplained-busy-core",
                    "A core of the {whose} host was busy for {busy} of the time, and the load's own threads for \
                     {own} only.",
                    whose,
                    busy = percent(end.busiest_core),
                    own = percent(end.occupied())
                ));
            }
        }
        all.extend(self.other_traffic());
        for (interface, whose) in [(&self.outbound, terms::SENDING), (&self.inbound, terms::RECEIVING)] {
            if interface.dropped > NOTABLE_LOSS {
                all.push(message!(
                    "unexplained-queue-dropped",
                    "The queue of interface {interface} of the {whose} host dropped {share} of its packets.",
                    interface = &interface.name,
                    whose,
                    share = percent(interface.dropped)
                ));
            }
        }
        all
    }

    /// Returns, in words, the share of other traffic on the interface that carried most of it. `None` if that is little.
    pub(crate) fn other_traffic(&self) -> Option<Message> {
        let ends = [(&self.outbound, terms::SENDING), (&self.inbound, terms::RECEIVING)];
        let shared = ends.into_iter().filter(|(interface, _)| interface.is_shared());
        let (interface, whose) = shared.max_by(|(one, _), (other, _)| one.others.total_cmp(&other.others))?;
        Some(message!(
            "unexplained-other-traffic",
            "Other traffic was {share} of what interface {interface} of the {whose} host carried.",
            interface = &interface.name,
            whose,
            share = percent(interface.others)
        ))
    }

    /// Returns whether the sending interface sent at its declared speed whenever packets stood in its queue: the line holds them
    /// back, and no shaper. Frames that are lost later fill it as well.
    pub(crate) fn queue_drains_at_line_speed(&self) -> bool {
        let outbound = &self.outbound;
        let carried = self.line.as_ref().map_or(0.0, |line| line.share).max(outbound.line_share.unwrap_or_default());
        outbound.is_shaped() && carried >= AT_LINE_SPEED * outbound.waiting
    }

    /// Returns the direction in which a line of declared speed was fullest, by the counters of the interfaces. `None` if no speed is
    /// declared.
    pub(crate) fn fullest_line(&self) -> Option<FullestLine<'_>> {
        let (sends, answers) = (&self.outbound, &self.inbound);
        let lines = [
            (sends.line_share, LimitPlace::SenderQueue, sends, terms::SENDING),
            (answers.line_share, LimitPlace::ForwardPath, answers, terms::RECEIVING),
            (answers.return_share, LimitPlace::ReturnPath, answers, terms::RECEIVING),
            (sends.return_share, LimitPlace::ReturnPath, sends, terms::SENDING),
        ];
        let known = lines.into_iter().filter_map(|(share, place, interface, whose)| {
            Some(FullestLine { share: share?, place, interface, whose })
        });
        // Of lines as full as each other the first one that packets meet.
        known.reduce(|first, next| if next.share > first.share + AS_FULL { next } else { first })
    }

    /// TCP still grew to its rate, without a loss and without a queue, which it would have met at the path's limit.
    pub(crate) fn is_starting_up(&self) -> bool {
        let unhindered = self.tcp.as_ref().is_some_and(|tcp| tcp.retransmitted <= NOTABLE_LOSS && !tcp.queued());
        let grows = |course: &Course| {
            course.rises || course.growth >= GROWN && course.tcp.as_ref().is_some_and(|tcp| tcp.window_rises)
        };
        unhindered && self.course.as_ref().is_some_and(grows)
    }

    /// Whether acknowledgements were lost by chance. Each confirms all data before it, so the next makes up for the lost one.
    pub(crate) fn loses_acknowledgements_by_chance(&self) -> bool {
        self.lost_on_return >= RETURN_LOSS && !self.returns_keep_a_rate
    }

    /// A queue stands on the way back, and none on the way there: how long both take, seconds. `None` if acknowledgements are lost by
    /// chance, because a round trip then includes the wait for the next one.
    pub(crate) fn queues_on_return(&self) -> Option<(f64, f64)> {
        if self.loses_acknowledgements_by_chance() {
            return None;
        }
        let (OneWay { there, back }, tcp) = (self.one_way?, self.tcp.as_ref()?);
        let usual = tcp.min_rtt / 2.0;
        let (longer_there, longer_back) = ((there - usual).max(0.0), back - usual);
        let least = match self.steadiness {
            Some(Steadiness::Varying { .. }) => QUEUE_ON_RETURN_VARYING,
            _ => QUEUE_ON_RETURN,
        };
        (longer_back >= least && longer_back >= 2.0 * longer_there).then_some((there, back))
    }

    /// How losses fell on the window; none where there were too few to tell.
    pub(crate) fn loss_pattern(&self) -> Option<LossPattern> {
        self.course.as_ref()?.losses
    }

    /// Returns the pace of TCP if the path sets it: the path is full, and what is lost overflows its queue. An interface that others
    /// share keeps a rate for other reasons.
    pub(crate) fn pace_of_path(&self) -> Option<&Pace> {
        let pace = self.course.as_ref()?.pace.as_ref().filter(|pace| pace.is_the_paths())?;
        let lost_enough = self.tcp.as_ref().is_some_and(|tcp| tcp.goes_by_loss() && !tcp.lost_few());
        (lost_enough && !self.inbound.is_shared()).then_some(pace)
    }

    /// What the series say of TCP's senders; none without series.
    pub(crate) fn tcp_course(&self) -> Option<&TcpCourse> {
        self.course.as_ref()?.tcp.as_ref()
    }

    /// A queue stood on the path of TCP: when the window closed, throughout, or whenever the rate was low.
    pub(crate) fn queue_on_path(&self) -> bool {
        let seen = |course: &TcpCourse| course.queue_stands() || course.queue_comes_with_a_lower_rate();
        self.tcp.as_ref().is_some_and(Tcp::queued) || self.tcp_course().is_some_and(seen)
    }

    /// More bytes of requests waited in the send buffer than TCP may have in flight, and neither the receiver's window nor the buffer held
    /// it back: the path takes them more slowly than they come.
    pub(crate) fn requests_wait_to_be_sent(&self) -> bool {
        let (Some(tcp), Some(course)) = (&self.tcp, self.tcp_course()) else { return false };
        let held_back = tcp.window_limited + tcp.buffer_limited >= HELD_BACK;
        self.work == Work::Transact
            && !held_back
            && tcp.congestion_window > 0.0
            && course.unsent >= tcp.congestion_window
    }

    /// The threads that read had no time, or were kept from their core for longer than any buffer could be asked to hold.
    pub(crate) fn reader_is_late(&self) -> bool {
        let end = &self.receiver;
        let kept = end.is_kept_waiting() && self.udp.is_some_and(|udp| udp.buffer_time >= SHORT_BUFFER);
        end.occupied() >= NEARLY_OCCUPIED || kept || end.is_throttled()
    }

    /// Cores with time to spare at the end whose processor is the limit; none where a quota is what stops its threads, which
    /// leaves cores idle for nobody.
    pub(crate) fn spare_cores_at(&self, limit: Limit) -> Option<usize> {
        let end = if limit == Limit::SenderCpu { &self.sender } else { &self.receiver };
        (!end.is_throttled()).then_some(end.spare_cores)
    }

    /// Both hosts had time to spare even if the hypervisor took all that it took from their threads: however that time fell, on
    /// average it held nothing back.
    pub(crate) fn idle_despite_steal(&self) -> bool {
        let ends = [&self.sender, &self.receiver];
        ends.iter().all(|end| end.occupied() + self.steal < NEARLY_OCCUPIED && !end.is_throttled())
    }
}

/// How steady the result was: how far its rate ranged, or whether it still rose.
fn steadiness(result: &Measurement, course: Option<&Course>) -> Option<Steadiness> {
    let course = course?;
    let range = result.received().and_then(|received| received.within);
    Some(match range {
        Some(RateRange { p5_bps, p95_bps }) if !course.rises => Steadiness::Varying { p5_bps, p95_bps },
        _ => course.steadiness(),
    })
}

/// Whether the two ends of a transfer ran on one machine.
fn share_a_machine(runs: &[&TrialResult], hosts: &[Host]) -> bool {
    let machine = |name: &HostName| hosts.iter().find(|host| host.name == *name).map(|host| &host.boot_id);
    let mut all = runs.iter().flat_map(|run| transfers(run));
    all.any(|one| machine(one.from).zip(machine(one.to)).is_some_and(|(from, to)| from == to))
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
    let offers = transfers(run).into_iter().filter_map(|transfer| match run.trial.task() {
        Task::Stream(stream) => {
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

/// The fullest bus of each run, and of these the middle one.
fn bus(runs: &[&TrialResult], hosts: &[Host]) -> Option<BusUse> {
    let of_run = |run: &&TrialResult| {
        let of_end = |name: &HostName, sends: bool| {
            let (host, seen) = (hosts.iter().find(|host| host.name == *name)?, run.hosts.get(name)?);
            BusUse::of(host, seen, sends, seen.window.as_secs_f64())
        };
        let all = transfers(run);
        let ends = all.iter().flat_map(|one| [of_end(one.from, true), of_end(one.to, false)]);
        ends.flatten().max_by(|l, r| l.share.total_cmp(&r.share))
    };
    let mut each: Vec<BusUse> = runs.iter().filter_map(of_run).collect();
    each.sort_by(|l, r| l.share.total_cmp(&r.share));
    (!each.is_empty()).then(|| each.swap_remove(each.len() / 2))
}

fn closed_loop(result: &Measurement, workload: Option<&Task>) -> Option<ClosedLoop> {
    let closed = workload.is_some_and(|workload| workload.is_requests() && workload.requests_per_s().is_none());
    let latency = result.latency()?.mean / 1e9;
    let rate = &result.requests()?.transactions_per_s;
    closed.then_some(ClosedLoop { outstanding: rate.median * latency, latency })
}
