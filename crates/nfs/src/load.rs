//! The load of an NFS session: its file set on the server, and the operations of each flow.

use crate::calls::{Handle, procedure};
use crate::identity::CallerIdentity;
use crate::session::Session;
use crate::work::{PendingCall, Work};
use crate::{mount, set};
use linerate_engine::{Schedule, Stop, bits_per_second};
use linerate_model::{FlowCounts, NfsOperation, NfsTask, OperationCounts, Preparation};
use linerate_oncrpc::client::{Caller, TICK_NS, Waiting};
use linerate_oncrpc::load::{Edges, Load, Tally};
use linerate_oncrpc::message::Credential;
use linerate_oncrpc::{Job, LoadContext, Opening, Outcome, RpcError, connect_flow};
use linerate_sys::clock;
use linerate_units::Nanos;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

/// Time that connecting for set-up calls may take, in addition to the calls themselves.
const CONNECT_NS: u64 = 5_000_000_000;

/// A server of others answers a null call within this.
const NULL_CALL: Nanos = Nanos::from_secs(5);
/// Time after the window in which replies are still taken: an overloaded server answers late.
const DRAIN_NS: u64 = 5_000_000_000;
/// Operations packed before replies are looked for again.
const BURST: usize = 32;
/// Time for the server to come back, so that the file set can be removed.
const RETURN_NS: u64 = 5_000_000_000;
/// Between two attempts to reach it.
const RETRY_NS: u64 = 250_000_000;
/// Export of linerate's own server.
const OWN_EXPORT: &str = "/";

/// NFS operations on one path.
#[derive(Debug)]
pub(crate) struct Operations {
    job: Job,
    spec: NfsTask,
    identity: CallerIdentity,
    /// Address of the NFS service.
    nfs: SocketAddr,
    mounting: SocketAddr,
    /// Root of the export; `None` if no operation works on files.
    export: Option<Handle>,
    /// The name of the file set's directory.
    name: String,
    /// Rate limit of set-up calls, in bit/s; `None` sets no limit.
    set_up_rate: Option<u64>,
    /// Work of each flow, taken by its thread.
    works: Mutex<Vec<Option<Work>>>,
}

impl Operations {
    /// Finds the server, mounts its export, and makes the file set unless stopped, no faster than the load will be if a
    /// limit of rate binds the session.
    pub(crate) fn open(job: &Job, spec: &NfsTask, opening: &Opening<'_>) -> Result<Self, RpcError> {
        let identity = match &spec.server {
            None => CallerIdentity::KeyHolder(opening.key),
            Some(server) => CallerIdentity::User(Credential::sys("linerate", server.uid, server.gid)),
        };
        let stop = opening.host.stop();
        let paced = opening.host.is_rate_limited();
        let dial = |server| connect_flow(job, server, stop).map(|(caller, _)| caller);
        let (nfs, mounting) = match &spec.server {
            Some(server) => mount::ports(server, spec.net.transport, &dial)?,
            None => (opening.server()?, opening.server()?),
        };
        let name = format!("linerate-{}-{}", job.id, opening.path);
        let works = (0..spec.net.flows).map(|flow| Some(Work::new(spec, flow, None))).collect();
        let mut operations = Self {
            job: job.clone(),
            spec: spec.clone(),
            identity,
            nfs,
            mounting,
            export: None,
            name,
            set_up_rate: spec.rate.filter(|_| paced).map(|rate| bits_per_second(rate.get(), spec.transfer_bytes.get())),
            works: Mutex::new(works),
        };
        if spec.mix.needs_files() {
            let mut caller = dial(mounting)?;
            let credential = operations.identity.credential(&mut caller)?;
            let handle = mount::mount(&mut caller, &credential, operations.export_name())?;
            operations.export = Some(handle);
            opening.host.preparing(Preparation::MakingFiles);
            operations.make(stop)?;
        }
        Ok(operations)
    }

    fn export_name(&self) -> &str {
        self.spec.server.as_ref().map_or(OWN_EXPORT, |server| &server.export)
    }

    /// Takes the mount out of the list that the server keeps. Nothing depends on it.
    fn unmount(&self) {
        if let Ok((mut caller, _)) = connect_flow(&self.job, self.mounting, &Arc::default())
            && let Ok(credential) = self.identity.credential(&mut caller)
        {
            let _ = mount::unmount(&mut caller, &credential, self.export_name());
        }
    }

    /// Makes the file set and the names that flows begin with; what was made is removed again if that fails.
    fn make(&mut self, stop: &Arc<Stop>) -> Result<(), RpcError> {
        match self.set_up(stop) {
            Ok(works) => {
                self.works = Mutex::new(works.into_iter().map(Some).collect());
                Ok(())
            }
            Err(error) => match self.finish() {
                Ok(()) => Err(error),
                Err(remains) => Err(RpcError::Remains { remains: remains.to_string(), source: Box::new(error) }),
            },
        }
    }

    fn set_up(&self, stop: &Arc<Stop>) -> Result<Vec<Work>, RpcError> {
        let export = self.export.as_ref().expect("it was mounted");
        self.session(stop, |session| {
            let write_maximum = mount::limits(session, export, &self.spec)?;
            let set = Arc::new(set::create(session, export, &self.name, &self.spec, write_maximum)?);
            (0..self.spec.net.flows)
                .map(|flow| {
                    let mut work = Work::new(&self.spec, flow, Some(Arc::clone(&set)));
                    work.stock(session, self.spec.outstanding)?;
                    Ok(work)
                })
                .collect()
        })
    }

    /// Connects for calls that set up or tidy up.
    fn session<T>(
        &self,
        stop: &Arc<Stop>,
        calls: impl FnOnce(&mut Session<'_>) -> Result<T, RpcError>,
    ) -> Result<T, RpcError> {
        let (mut caller, _) = connect_flow(&self.job, self.nfs, stop)?;
        let credential = self.identity.credential(&mut caller)?;
        calls(&mut Session {
            caller: &mut caller,
            credential: &credential,
            transport: self.spec.net.transport,
            deadline: clock::now() + CONNECT_NS + self.spec.files.set_up_timeout().get(),
            rate: self.set_up_rate,
            stop: stop.flag(),
        })
    }
}

impl Load for Operations {
    fn server(&self) -> SocketAddr {
        self.nfs
    }

    fn greet(&self, caller: &mut Caller) -> Result<Credential, RpcError> {
        let credential = self.identity.credential(caller)?;
        if self.spec.server.is_some() {
            caller.ask("a null call", procedure(NfsOperation::Null), &credential, &[], NULL_CALL)?;
        }
        Ok(credential)
    }

    fn run(&self, context: &LoadContext, index: usize, caller: &mut Caller) -> Result<Outcome, RpcError> {
        let number = usize::from(context.flows[index].number);
        let work = self.works.lock().expect("no holder panics")[number].take();
        let mut operating = RunningFlow::new(self, context, index, work.expect("each flow runs once"));
        match operating.run(caller) {
            Err(RpcError::Stopped) => return Err(RpcError::Stopped),
            Err(error) => {
                let path = context.flows[index].path;
                let when = context.timeline.describe(clock::now());
                operating.broken = Some(format!("path {path}: {error}, {when}"));
            }
            Ok(()) => {}
        }
        operating.finish(caller)
    }

    fn finish(&self) -> Result<(), RpcError> {
        let Some(export) = &self.export else { return Ok(()) };
        // Linerate's own server does not come back.
        let until = clock::now() + if self.spec.server.is_some() { RETURN_NS } else { 0 };
        loop {
            // Whoever stops the session wants this done all the same.
            let removed = self.session(&Arc::default(), |session| set::remove(session, export, &self.name));
            let error = match removed {
                Ok(()) => {
                    self.unmount();
                    return Ok(());
                }
                Err(error) => error,
            };
            let away = matches!(error, RpcError::NoAnswer { .. } | RpcError::Gone { .. });
            if !away || clock::now() > until {
                let name = &self.name;
                let export = self.export_name();
                let server = self.nfs.ip();
                let remains = format!("the directory `{name}` in {export} of {server} is still there: remove it");
                return Err(RpcError::Remains { remains, source: Box::new(error) });
            }
            clock::sleep_until(clock::now() + RETRY_NS);
        }
    }
}

/// State of a running flow.
struct RunningFlow<'a> {
    load: &'a Operations,
    context: &'a LoadContext,
    credential: &'a Credential,
    schedule: Option<Schedule>,
    work: Work,
    tally: Tally<'a>,
    operations: BTreeMap<NfsOperation, OperationCounts>,
    edges: Edges<'a>,
    /// Operations under way, and when each was made or due.
    under_way: Waiting<(u64, PendingCall)>,
    /// Why the flow ended before its time.
    broken: Option<String>,
}

impl<'a> RunningFlow<'a> {
    fn new(load: &'a Operations, context: &'a LoadContext, index: usize, work: Work) -> Self {
        let spec = &load.spec;
        let flow = &context.flows[index];
        let schedule = |rate| {
            Schedule::new(rate, spec.arrivals, context.first_due(rate), (flow.number, spec.net.flows), work.arrivals())
        };
        Self {
            load,
            context,
            credential: &flow.credential,
            schedule: spec.rate.map(schedule),
            work,
            tally: Tally::new(context, index),
            operations: BTreeMap::new(),
            edges: Edges::new(context, index),
            under_way: Waiting::default(),
            broken: None,
        }
    }

    fn run(&mut self, caller: &mut Caller) -> Result<(), RpcError> {
        let context = self.context;
        if !context.stop.sleep_until(context.timeline.start()) {
            return Err(RpcError::Stopped);
        }
        self.under_way = Waiting::starting_at(caller.next_xid());
        let maximum = usize::from(self.load.spec.outstanding);
        loop {
            if context.stop.is_set() {
                return Err(RpcError::Stopped);
            }
            let now = clock::now();
            self.edges.sample(caller, now)?;
            let close = context.timeline.close();
            let asks = self.schedule.as_ref().map_or(now < close, |schedule| schedule.goes_on(now, close));
            if let Some(schedule) = self.schedule.as_ref().filter(|_| asks) {
                self.tally.on_schedule(schedule, now);
            }
            if !asks && (caller.outstanding() == 0 || now > close + DRAIN_NS) {
                return Ok(());
            }
            let queued = if asks { self.ask(caller, maximum) } else { 0 };
            let wait_ns = match &self.schedule {
                // More is due already.
                _ if queued == BURST => 0,
                Some(schedule) if asks && caller.outstanding() < maximum => schedule.due().saturating_sub(clock::now()),
                _ => TICK_NS,
            };
            self.take(caller, wait_ns)?;
        }
    }

    /// Queues the operations that are due and have a slot, a burst of them at the most. The others' time runs on in the
    /// schedule.
    fn ask(&mut self, caller: &mut Caller, most: usize) -> usize {
        for queued in 0..BURST {
            if caller.outstanding() >= most {
                return queued;
            }
            let close = self.context.timeline.close();
            let now = clock::now();
            let since = match &mut self.schedule {
                Some(schedule) if schedule.due() <= now && schedule.goes_on(now, close) => {
                    let due = schedule.due();
                    schedule.advance();
                    due
                }
                None if now < close => now,
                _ => return queued,
            };
            let (pending, to, arguments) = self.work.next();
            caller.call(to, self.credential, arguments);
            self.under_way.add((since, pending));
        }
        BURST
    }

    fn take(&mut self, caller: &mut Caller, wait_ns: u64) -> Result<(), RpcError> {
        let Self { work, tally, operations, under_way, .. } = self;
        let server = self.load.nfs;
        let again = caller.retransmitted() > 0;
        let mut arrived = None;
        let mut failure = None;
        caller.poll(Nanos::new(wait_ns.min(TICK_NS)), &mut |xid, reply| {
            let Some((since, pending)) = under_way.take(xid) else { return };
            // All that are handed out together were there together: what is done with one delays no other.
            let now = *arrived.get_or_insert_with(clock::now);
            let operation = pending.operation;
            let counts = operations.entry(operation).or_default();
            match work.digest(pending, reply, server, again) {
                Ok(digest) => match digest.failed {
                    None => {
                        let (timed, counted) = tally.answered(since, now, digest.written, digest.read);
                        if counted {
                            counts.completed += 1;
                            counts.bytes += digest.read + digest.written;
                        }
                        if timed {
                            counts.latency.record(now.saturating_sub(since));
                        }
                        // Wrong data count whenever they were read.
                        counts.corrupt_bytes += digest.corrupt;
                    }
                    Some(why) => {
                        if tally.failed(since) {
                            *counts.errors.entry(why.into_owned()).or_default() += 1;
                        }
                    }
                },
                Err(error) => {
                    tally.failed(since);
                    failure.get_or_insert(error);
                }
            }
        })?;
        failure.map_or(Ok(()), Err)
    }

    fn finish(mut self, caller: &Caller) -> Result<Outcome, RpcError> {
        for (since, pending) in self.under_way.drain() {
            if self.tally.failed(since) {
                let counts = self.operations.entry(pending.operation).or_default();
                *counts.errors.entry("no reply".to_owned()).or_default() += 1;
            }
            self.work.unanswered(pending);
        }
        self.tally.not_sent(self.schedule.as_ref());
        let (tcp, retransmitted) = self.edges.finish(caller)?;
        let Tally { mut transactions, sent_bytes, received_bytes, .. } = self.tally;
        transactions.retransmitted = retransmitted;
        Ok(Outcome {
            flow: FlowCounts { sent_bytes, received_bytes, tcp },
            transactions: Some(transactions),
            operations: self.operations,
            broken: self.broken,
            ..Outcome::default()
        })
    }
}
