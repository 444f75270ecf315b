//! Which orders begin.

use super::membership::{HostChange, Hosts, hash, mix};
use super::mesh_clock::MeshClock;
use super::mesh_state::{MeshState, rounds_a_period};
use super::order::{
    EndedOrder, FleetHost, LastRun, MissReason, Missed, Moment, Order, OrderId, Outcome, Resource, Way,
};
use super::resources::Resources;
use super::rounds::Rounds;
use super::slot::{PairOfMesh, Slot};
use super::spending::Spending;
use super::waiting::{Candidate, Obstacle, Waiting};
use super::warning::PlanWarning;
use crate::file::{Class, Estimate, FleetFile, Flow, Hours};
use linerate_model::HostName;
use linerate_units::{ByteCount, Nanos};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Part of a cycle by which the next one is shifted after slots were missed for the budget: the golden ratio, in thousandths.
/// Multiples of it fall evenly on the cycle, so that in the long run each pair has its turn before the budget is spent.
const SHIFT_PER_MILLE: u64 = 618;
/// Time after which an order that has begun is overdue, in estimates, and the seconds added to it.
const OVERDUE: (u64, u64) = (3, 60);

/// Pairs that precede others because their slot was missed before, at most.
const MAX_MISSED_BEFORE: usize = 1_000_000;

/// Decides which trials of a fleet begin.
///
/// Rounds of a mesh are due at even intervals. A round is computed when it is due, so that the cost grows with the pairs that are due.
/// Waiting trials are ordered by those that were missed before, then by due time. A trial that has waited for half of its slip reserves
/// its resources, so that no younger one takes them.
#[derive(Debug)]
pub struct Planner {
    file: FleetFile,
    hosts: Hosts,
    meshes: Vec<MeshState>,
    resources: Resources,
    /// Resource of each host, by the host's number.
    host_resources: Vec<u32>,
    /// Resources of each declared link: out, in.
    link_resources: Vec<[u32; 2]>,
    spending: Spending,
    /// Unix time of the newest run of a pair, as long as it decides on a slot.
    last_runs: HashMap<PairOfMesh, u64>,
    /// Size of `last_runs` at which old entries are removed.
    last_runs_limit: usize,
    restored_bytes: Vec<(usize, u32, u32, u64, u64)>,
    /// Slots before the end of their random slip, by due time.
    future: BTreeMap<(u64, u64), Slot>,
    waiting: Waiting,
    /// Pairs that are waiting, in the future, or outstanding.
    queued: HashSet<PairOfMesh>,
    /// Pairs that missed their newest slot.
    missed_before: HashSet<PairOfMesh>,
    sequence: u64,
    running: HashMap<u64, Running>,
    keys: HashMap<OrderId, u64>,
    missed: Vec<Missed>,
}

#[derive(Debug)]
struct Running {
    order: Arc<Order>,
    pair: Option<PairOfMesh>,
    resources: Vec<u32>,
    links: Vec<u32>,
    day: u64,
    begun: Option<u64>,
    concurrent: bool,
}

impl Planner {
    /// Creates a planner without hosts. Equal seeds give equal plans.
    pub fn new(file: FleetFile, seed: u64) -> Self {
        let mut meshes = Vec::new();
        for mesh in &file.meshes {
            let estimate = mesh.estimate(&file.links);
            meshes.push(MeshState {
                clock: clock(&mesh.hours, mesh.every, estimate),
                rounds: Rounds::Listed(Vec::new()),
                rounds_a_period: 0,
                estimate,
                seed: hash(seed, mesh.name.as_bytes()),
                computed_ms: None,
                shift: 0,
                lacks_budget: false,
                newest_run: None,
            });
        }
        let mut resources = Resources::default();
        let mut link_resources = Vec::new();
        for link in &file.links {
            let ways = [Way::Out, Way::In];
            link_resources
                .push(ways.map(|direction| resources.number(&Resource::Link { name: link.name.clone(), direction })));
        }
        Self {
            file,
            hosts: Hosts::default(),
            meshes,
            resources,
            host_resources: Vec::new(),
            link_resources,
            spending: Spending::default(),
            last_runs: HashMap::new(),
            last_runs_limit: 1024,
            restored_bytes: Vec::new(),
            future: BTreeMap::new(),
            waiting: Waiting::default(),
            queued: HashSet::new(),
            missed_before: HashSet::new(),
            sequence: 0,
            running: HashMap::new(),
            keys: HashMap::new(),
            missed: Vec::new(),
        }
    }

    /// Replaces the hosts of the fleet. Pairs that are due already stay due.
    pub fn set_hosts(&mut self, hosts: Vec<FleetHost>) {
        let change = self.hosts.set(hosts, &self.file);
        if change == HostChange::Nothing {
            return;
        }
        // A slot waits for one obstacle at a time, and a host that it does not wait for may have gone.
        self.waiting.open_all();
        if change == HostChange::Presence {
            return;
        }
        self.resources.release_all();
        self.host_resources.clear();
        self.number_host_resources();
        for (state, mesh) in self.meshes.iter_mut().zip(&self.file.meshes) {
            state.rounds = self.hosts.rounds(&self.file, mesh, state.seed);
            state.rounds_a_period = rounds_a_period(&state.rounds, &mesh.pattern, mesh.sample);
        }
    }

    /// Replaces the estimate of a mesh's trials, such as by what earlier trials took. Ignores an unknown mesh.
    pub fn set_estimate(&mut self, mesh: &str, estimate: Estimate) {
        if let Some(index) = self.mesh_index(mesh) {
            let mesh = &self.file.meshes[index];
            self.meshes[index].estimate = estimate;
            self.meshes[index].clock = clock(&mesh.hours, mesh.every, estimate);
            self.waiting.open_budgets(index as u32..=index as u32);
        }
    }

    /// Adds the newest runs of pairs, so that no slot is measured twice and budgets count what was spent today.
    ///
    /// Call it before the first [`Planner::due`], with the runs of the last period and of today. Ignores meshes that the file does not have.
    pub fn restore(&mut self, history: impl IntoIterator<Item = LastRun>) {
        for run in history {
            let Some(mesh) = self.mesh_index(&run.mesh) else { continue };
            let (from, to) = (self.hosts.number(&run.from), self.hosts.number(&run.to));
            let newest = self.last_runs.entry(PairOfMesh { mesh: mesh as u32, from, to }).or_default();
            *newest = run.at.max(*newest);
            let state = &mut self.meshes[mesh];
            state.newest_run = state.newest_run.max(Some(run.at));
            if self.file.meshes[mesh].budget.is_some() {
                self.restored_bytes.push((mesh, from, to, run.at, run.bytes.get()));
            }
        }
    }

    /// Takes the resources of an order that another scheduler left outstanding, until it ends.
    pub fn hold(&mut self, order: Order, now: Moment) {
        if self.keys.contains_key(&order.id) {
            return;
        }
        self.advance(now);
        let mut pair = None;
        let mut links = Vec::new();
        if let Some(mesh) = self.mesh_index(&order.mesh) {
            let (from, to) = (self.hosts.number(&order.from), self.hosts.number(&order.to));
            let number = PairOfMesh { mesh: mesh as u32, from, to };
            pair = Some(number);
            links = self.links_of(number);
            self.queued.insert(number);
            let newest = self.last_runs.entry(number).or_default();
            *newest = order.due_unix_s.max(*newest);
            let state = &mut self.meshes[mesh];
            state.newest_run = state.newest_run.max(Some(order.due_unix_s));
            if let Some(budget) = self.file.meshes[mesh].budget {
                self.spending.add(mesh, budget, &links, order.bytes.get());
            }
        }
        let resources: Vec<u32> = order.resources.iter().map(|resource| self.resources.number(resource)).collect();
        self.run(Arc::new(order), pair, resources, links, now);
    }

    /// Returns the orders that begin now. Each is outstanding until [`Planner::ended`].
    pub fn due(&mut self, now: Moment) -> Vec<Arc<Order>> {
        self.advance(now);
        self.spend_restored(now);
        for mesh in 0..self.meshes.len() {
            self.compute_rounds(mesh, now);
        }
        while let Some(first) = self.future.first_entry() {
            if first.key().0 > now.unix_s {
                break;
            }
            let (_, slot) = first.remove_entry();
            self.wait(slot);
        }
        for (mesh, state) in (0u32..).zip(&self.meshes) {
            if state.clock.is_open(now) {
                self.waiting.open(Obstacle::Hours(mesh));
            }
        }
        self.waiting.fire_timers(now.unix_s);
        self.begin_waiting(now)
    }

    /// Forgets the spending of the days before.
    fn advance(&mut self, now: Moment) {
        if self.spending.advance(now.day()) {
            self.waiting.open_budgets(0..=u32::MAX);
        }
    }

    /// Records that an agent began an order.
    pub fn begun(&mut self, id: &OrderId, now: Moment) {
        if let Some(running) = self.keys.get(id).and_then(|key| self.running.get_mut(key)) {
            running.begun = Some(now.unix_s);
        }
    }

    /// Gives back the resources of an order, and counts the bytes that it moved.
    ///
    /// Returns `None` if the order is not outstanding, as when the same message comes twice.
    pub fn ended(&mut self, id: &OrderId, outcome: Outcome, bytes: ByteCount, now: Moment) -> Option<EndedOrder> {
        let key = self.keys.remove(id)?;
        let running = self.running.remove(&key)?;
        self.advance(now);
        match running.order.class {
            Class::Exclusive => {
                self.resources.give_back(&running.resources);
                self.open_resources(&running.resources);
            }
            Class::Light => self.resources.leave(&running.resources, key),
        }
        if let Some(pair) = running.pair {
            self.queued.remove(&pair);
            let mesh = pair.mesh as usize;
            if let (Some(budget), true) = (self.file.meshes[mesh].budget, running.day == self.spending.day()) {
                // Nothing is known of the bytes of a lost trial.
                let actual = if outcome == Outcome::Lost { running.order.bytes.max(bytes) } else { bytes };
                self.spending.correct(mesh, budget, &running.links, running.order.bytes.get(), actual.get());
                self.waiting.open(Obstacle::Budget(pair.mesh, None));
                for link in &running.links {
                    self.waiting.open(Obstacle::Budget(pair.mesh, Some(*link)));
                }
            }
            if outcome != Outcome::Done {
                self.miss(pair, running.order.due_unix_s, MissReason::Failed);
            }
        }
        Some(EndedOrder { order: running.order, concurrent: running.concurrent })
    }

    /// Queues the trials by which a suspicion about a pair is checked: those of the mesh that `suspect` of `mesh` names.
    ///
    /// Returns whether a trial was queued. It is not if `mesh` names no such mesh, or if the pair's trial is due already.
    pub fn suspect(&mut self, mesh: &str, from: &HostName, to: &HostName, now: Moment) -> bool {
        let Some(target) = self.mesh_index(mesh).and_then(|index| self.file.meshes[index].suspect) else {
            return false;
        };
        let (Some(from), Some(to)) = (self.hosts.find(from), self.hosts.find(to)) else { return false };
        self.queue(PairOfMesh { mesh: target as u32, from, to }, now)
    }

    /// Queues all pairs of a mesh now, in addition to its schedule. Its budget and hours hold.
    pub fn run_now(&mut self, mesh: &str, now: Moment) {
        let Some(index) = self.mesh_index(mesh) else { return };
        for round in 0..self.meshes[index].rounds.count() {
            for (from, to) in self.meshes[index].rounds.pairs(round) {
                self.queue(PairOfMesh { mesh: index as u32, from, to }, now);
                if self.file.meshes[index].both_ways {
                    self.queue(PairOfMesh { mesh: index as u32, from: to, to: from }, now);
                }
            }
        }
    }

    /// Queues a trial outside the schedule, or brings a later slot of the pair forward. Returns `false` if one is queued
    /// already.
    fn queue(&mut self, pair: PairOfMesh, now: Moment) -> bool {
        let mesh = pair.mesh as usize;
        let due = self.meshes[mesh].clock.opens(now);
        if pair.from == pair.to || (!self.queued.insert(pair) && !self.withdraw(pair, due)) {
            return false;
        }
        let not_after = self.not_after(mesh, due, now.utc_offset_s);
        self.sequence += 1;
        let slot = Slot { pair, due, not_after, suspicion: true };
        self.future.insert((due, self.sequence), slot);
        true
    }

    /// Removes the slot of a pair that is due later than `due`. Returns whether there was one.
    fn withdraw(&mut self, pair: PairOfMesh, due: u64) -> bool {
        let mut later = self.future.range((due + 1, 0)..).filter(|(_, slot)| slot.pair == pair);
        let Some(key) = later.next().map(|(key, _)| *key) else { return false };
        self.future.remove(&key).is_some()
    }

    /// Returns the Unix time at which [`Planner::due`] may return orders or find missed slots without another event.
    pub fn next_wake(&self, now: Moment) -> Option<u64> {
        let mut wake = if self.waiting.has_next() { Some(now.unix_s) } else { self.waiting.next_timer() };
        if self.waiting.awaits_budget() {
            let midnight = (now.day() + 1) * crate::file::DAY_S;
            wake = earlier(wake, now.unix_s + (midnight - now.local_s()));
        }
        if let Some(((due, _), _)) = self.future.first_key_value() {
            wake = earlier(wake, *due);
        }
        for state in &self.meshes {
            if state.rounds_a_period == 0 {
                continue;
            }
            let at = match state.computed_ms {
                Some(computed) => state.clock.unix_s(state.due_ms(state.next_round(computed)), now.utc_offset_s),
                None => now.unix_s,
            };
            wake = earlier(wake, at);
        }
        wake.map(|at| at.max(now.unix_s))
    }

    /// Returns the missed slots since the last call.
    pub fn missed(&mut self) -> Vec<Missed> {
        std::mem::take(&mut self.missed)
    }

    /// Returns the orders that are outstanding, in no order.
    pub fn outstanding(&self) -> impl ExactSizeIterator<Item = &Order> {
        self.running.values().map(|running| &*running.order)
    }

    /// Returns the outstanding orders that no agent has begun in time, or that should have ended long ago.
    pub fn overdue(&self, now: Moment) -> Vec<&Order> {
        let mut overdue = Vec::new();
        for running in self.running.values() {
            let seconds = seconds(running.order.time) * OVERDUE.0 + OVERDUE.1;
            let begun = running.begun.unwrap_or(running.order.not_after_unix_s);
            if now.unix_s > begun.saturating_add(seconds) {
                overdue.push(&*running.order);
            }
        }
        overdue.sort_by(|one, other| one.id.cmp(&other.id));
        overdue
    }

    /// Returns the number of slots that are due and wait for hosts, links, budgets or hours.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns what of the fleet file does not fit the hosts.
    pub fn warnings(&self) -> Vec<PlanWarning> {
        let mut warnings = self.hosts.warnings(&self.file);
        for (state, mesh) in self.meshes.iter().zip(&self.file.meshes) {
            if state.rounds.pairs_in_all() == 0 {
                warnings.push(PlanWarning::NoPairs { mesh: mesh.name.clone() });
            }
            let trials = state.rounds_a_period * if mesh.both_ways { 2 } else { 1 };
            let needed = Nanos::new(state.estimate.time.get().saturating_mul(trials));
            let period = Nanos::from_millis(state.clock.period_ms());
            if mesh.class == Class::Exclusive && needed > period {
                warnings.push(PlanWarning::NoTime { mesh: mesh.name.clone(), needed, period });
            }
            if let Some(budget) = mesh.budget.filter(|budget| state.estimate.bytes > budget.bytes) {
                let (trial, budget) = (state.estimate.bytes, budget.bytes);
                warnings.push(PlanWarning::NoBudget { mesh: mesh.name.clone(), trial, budget });
            }
        }
        warnings
    }

    pub(super) fn file(&self) -> &FleetFile {
        &self.file
    }

    /// Returns the pairs of a mesh, and the periods in which all have had their turn.
    pub(super) fn size(&self, mesh: usize) -> (u64, u64) {
        let state = &self.meshes[mesh];
        let rounds = state.rounds.count();
        let periods = if rounds == 0 { 0 } else { rounds.div_ceil(state.rounds_a_period) };
        (state.rounds.pairs_in_all(), periods)
    }

    fn mesh_index(&self, name: &str) -> Option<usize> {
        self.file.meshes.iter().position(|mesh| mesh.name == name)
    }

    /// Counts the bytes of the runs of today that [`Planner::restore`] brought.
    fn spend_restored(&mut self, now: Moment) {
        for (mesh, from, to, at, bytes) in std::mem::take(&mut self.restored_bytes) {
            let is_today = Moment { unix_s: at, ..now }.day() == now.day();
            if let (Some(budget), true) = (self.file.meshes[mesh].budget, is_today) {
                let links = self.links_of(PairOfMesh { mesh: mesh as u32, from, to });
                self.spending.add(mesh, budget, &links, bytes);
            }
        }
    }

    /// Computes the rounds of a mesh that have become due.
    fn compute_rounds(&mut self, mesh: usize, now: Moment) {
        let state = &self.meshes[mesh];
        if state.rounds_a_period == 0 {
            return;
        }
        let at = state.clock.at(now) + 999;
        let slip = seconds(self.file.meshes[mesh].slip);
        // A mesh without a run begins with the round of this moment.
        let is_first = state.computed_ms.is_none() && state.newest_run.is_none();
        let computed = match (state.computed_ms, state.newest_run) {
            (Some(computed), _) => computed,
            (None, Some(newest)) => {
                let before = Moment { unix_s: newest.saturating_sub(slip).min(now.unix_s), ..now };
                state.clock.at(before)
            }
            (None, None) => state.due_ms(state.next_round(at).saturating_sub(1)).saturating_sub(1),
        };
        // After a long absence, only the last period is recorded as missed.
        let computed = computed.max(at.saturating_sub(state.clock.period_ms()));
        let reported = if state.computed_ms.is_none() { state.newest_run.unwrap_or(0) } else { 0 };
        let mut round = state.next_round(computed);
        let count = state.rounds.count();
        while self.meshes[mesh].due_ms(round) <= at {
            let state = &mut self.meshes[mesh];
            if round.is_multiple_of(count) && std::mem::take(&mut state.lacks_budget) {
                state.shift = (state.shift + (count * SHIFT_PER_MILLE / 1000).max(1)) % count;
            }
            let mut due = state.clock.unix_s(state.due_ms(round), now.utc_offset_s);
            if is_first {
                due = due.max(state.clock.opens(now));
            }
            for (from, to) in state.rounds.pairs((round + state.shift) % count) {
                self.add_slot(PairOfMesh { mesh: mesh as u32, from, to }, due, now, reported);
                if self.file.meshes[mesh].both_ways {
                    self.add_slot(PairOfMesh { mesh: mesh as u32, from: to, to: from }, due, now, reported);
                }
            }
            round += 1;
        }
        let state = &mut self.meshes[mesh];
        state.computed_ms = Some(at.max(state.computed_ms.unwrap_or(0)));
        if self.last_runs.len() > self.last_runs_limit {
            self.forget_old_runs(now);
        }
    }

    /// Removes runs that are too old to decide on a slot.
    fn forget_old_runs(&mut self, now: Moment) {
        let kept: Vec<u64> = self.file.meshes.iter().map(|mesh| seconds(mesh.every) + seconds(mesh.slip)).collect();
        self.last_runs.retain(|pair, at| *at + kept[pair.mesh as usize] >= now.unix_s);
        self.last_runs_limit = (self.last_runs.len() * 2).max(1024);
    }

    /// Adds the slot of a pair, after a random slip. Slots that had passed before `reported` were reported by an earlier planner.
    fn add_slot(&mut self, pair: PairOfMesh, round_due: u64, now: Moment, reported: u64) {
        let mesh = pair.mesh as usize;
        let state = &self.meshes[mesh];
        let (every, slip) = (seconds(self.file.meshes[mesh].every), seconds(self.file.meshes[mesh].slip));
        let interval = state.clock.period_ms() / state.rounds_a_period / 1000;
        // Both directions of a pair have the same slip: they follow each other anyway.
        let names = u64::from(pair.from.min(pair.to)) << 32 | u64::from(pair.from.max(pair.to));
        let random = mix(state.seed ^ mix(names ^ mix(round_due)));
        let mut due = round_due + random % (slip.min(interval) / 2 + 1);
        let moment = Moment { unix_s: due, ..now };
        if !state.clock.is_open(moment) {
            due = round_due;
        }
        let recent = due.saturating_sub(every.saturating_sub(slip) / 2);
        if self.last_runs.get(&pair).is_some_and(|at| *at >= recent) {
            return;
        }
        let not_after = self.not_after(mesh, due, now.utc_offset_s);
        if not_after < now.unix_s {
            if not_after >= reported {
                self.miss(pair, due, MissReason::SchedulerAway);
            }
            return;
        }
        if !self.queued.insert(pair) {
            self.miss(pair, due, MissReason::Busy);
            return;
        }
        let slot = Slot { pair, due, not_after, suspicion: false };
        if due > now.unix_s {
            self.sequence += 1;
            self.future.insert((due, self.sequence), slot);
        } else {
            self.wait(slot);
        }
    }

    /// Returns the Unix time after which a slot does not begin: its slip has passed, or the hours end.
    fn not_after(&self, mesh: usize, due: u64, utc_offset_s: i32) -> u64 {
        let left = self.meshes[mesh].clock.left_s(Moment { unix_s: due, utc_offset_s });
        let slip = seconds(self.file.meshes[mesh].slip);
        due + left.map_or(slip, |left| slip.min(left.saturating_sub(1)))
    }

    fn wait(&mut self, slot: Slot) {
        let precedence = u8::from(!self.missed_before.contains(&slot.pair) && !slot.suspicion);
        self.sequence += 1;
        self.waiting.add((precedence, slot.due, self.sequence), slot);
    }

    /// Begins the waiting slots that have no obstacle any more.
    fn begin_waiting(&mut self, now: Moment) -> Vec<Arc<Order>> {
        let mut orders = Vec::new();
        let mut resources = Vec::new();
        // Hosts that are not enrolled have numbers too.
        self.number_host_resources();
        while let Some(candidate) = self.waiting.next() {
            let slot = candidate.slot;
            self.resources_of(slot.pair, &mut resources);
            if now.unix_s > slot.not_after {
                let obstacle = self.remove(&candidate, &resources);
                self.queued.remove(&slot.pair);
                self.miss(slot.pair, slot.due, self.miss_reason(obstacle));
                continue;
            }
            let Some(obstacle) = self.obstacle(&candidate, &resources, now) else {
                self.remove(&candidate, &resources);
                orders.push(self.begin(&slot, &resources, now));
                continue;
            };
            self.waiting.block(&candidate, obstacle);
            let is_taken = matches!(obstacle, Obstacle::Resource(_));
            if is_taken && now.unix_s >= slot.reserves_at() {
                self.resources.reserve(&resources, candidate.precedence);
            } else if self.resources.release(&resources, candidate.precedence) {
                self.open_resources(&resources);
            }
        }
        orders
    }

    /// Removes a slot from the waiting ones, with what it reserves. Returns its obstacle.
    fn remove(&mut self, candidate: &Candidate, resources: &[u32]) -> Option<Obstacle> {
        if self.resources.release(resources, candidate.precedence) {
            self.open_resources(resources);
        }
        self.waiting.remove(candidate)
    }

    /// Opens the queues of the slots that wait for one of the resources.
    fn open_resources(&mut self, resources: &[u32]) {
        for number in resources {
            self.waiting.open(Obstacle::Resource(*number));
        }
    }

    /// Returns why a slot was missed that had waited for `obstacle`.
    fn miss_reason(&self, obstacle: Option<Obstacle>) -> MissReason {
        match obstacle {
            Some(Obstacle::Host(number)) => MissReason::HostAbsent(self.hosts.entry(number).name.clone()),
            Some(Obstacle::Hours(_)) => MissReason::Hours,
            Some(Obstacle::Budget(..)) => MissReason::Budget,
            Some(Obstacle::Resource(_)) | None => MissReason::Busy,
        }
    }

    /// Returns why a slot cannot begin now.
    fn obstacle(&self, candidate: &Candidate, resources: &[u32], now: Moment) -> Option<Obstacle> {
        let pair = candidate.slot.pair;
        if let Some(absent) = [pair.from, pair.to].into_iter().find(|number| !self.hosts.entry(*number).present) {
            return Some(Obstacle::Host(absent));
        }
        let mesh = pair.mesh as usize;
        let (state, entry) = (&self.meshes[mesh], &self.file.meshes[mesh]);
        if !state.clock.is_open(now) {
            return Some(Obstacle::Hours(pair.mesh));
        }
        // A slot that waits for its budget reserves nothing.
        let bytes = state.estimate.bytes.get();
        if let Some(budget) = entry.budget
            && let Some(link) = self.spending.spent(mesh, budget, &self.links_of(pair), bytes)
        {
            return Some(Obstacle::Budget(pair.mesh, link));
        }
        if entry.class == Class::Light {
            return None;
        }
        self.resources.unavailable(resources, candidate.precedence).map(Obstacle::Resource)
    }

    fn begin(&mut self, slot: &Slot, resources: &[u32], now: Moment) -> Arc<Order> {
        let pair = slot.pair;
        let mesh = pair.mesh as usize;
        let links = self.links_of(pair);
        let estimate = self.meshes[mesh].estimate;
        if let Some(budget) = self.file.meshes[mesh].budget {
            self.spending.add(mesh, budget, &links, estimate.bytes.get());
        }
        self.last_runs.insert(pair, now.unix_s);
        self.missed_before.remove(&pair);
        let entry = &self.file.meshes[mesh];
        let (from, to) = (&self.hosts.entry(pair.from).name, &self.hosts.entry(pair.to).name);
        let order = Arc::new(Order {
            id: OrderId::new(&entry.name, from, to, slot.due),
            mesh: entry.name.clone(),
            from: from.clone(),
            to: to.clone(),
            test: entry.test.words().to_vec(),
            class: entry.class,
            due_unix_s: slot.due,
            not_after_unix_s: slot.not_after,
            resources: resources.iter().map(|number| self.resources.resource(*number).clone()).collect(),
            bytes: estimate.bytes,
            time: estimate.time,
            concurrent: entry.class == Class::Light && self.resources.are_taken(resources),
            suspicion: slot.suspicion,
        });
        self.run(Arc::clone(&order), Some(pair), resources.to_vec(), links, now);
        order
    }

    fn run(&mut self, order: Arc<Order>, pair: Option<PairOfMesh>, resources: Vec<u32>, links: Vec<u32>, now: Moment) {
        self.sequence += 1;
        let key = self.sequence;
        match order.class {
            Class::Exclusive => {
                for light in self.resources.take(&resources) {
                    if let Some(running) = self.running.get_mut(&light) {
                        running.concurrent = true;
                    }
                }
            }
            Class::Light => self.resources.enter(&resources, key),
        }
        self.keys.insert(order.id.clone(), key);
        let concurrent = order.concurrent;
        let day = now.day();
        self.running.insert(key, Running { order, pair, resources, links, day, begun: None, concurrent });
    }

    fn miss(&mut self, pair: PairOfMesh, due: u64, reason: MissReason) {
        let mesh = pair.mesh as usize;
        if reason == MissReason::Budget {
            self.meshes[mesh].lacks_budget = true;
        }
        if matches!(reason, MissReason::Busy | MissReason::Budget) && self.missed_before.len() < MAX_MISSED_BEFORE {
            self.missed_before.insert(pair);
        }
        self.missed.push(Missed {
            mesh: self.file.meshes[mesh].name.clone(),
            from: self.hosts.entry(pair.from).name.clone(),
            to: self.hosts.entry(pair.to).name.clone(),
            due,
            reason,
        });
    }

    /// Returns the declared links that a pair crosses, by index.
    fn links_of(&self, pair: PairOfMesh) -> Vec<u32> {
        let (from, to) = (self.hosts.entry(pair.from), self.hosts.entry(pair.to));
        let leaving = from.links.iter().filter(|link| !to.links.contains(link));
        let arriving = to.links.iter().filter(|link| !from.links.contains(link));
        leaving.chain(arriving).map(|link| *link as u32).collect()
    }

    /// Gives each host the number of its resource. Agents with the same label `node` are interfaces of one host.
    fn number_host_resources(&mut self) {
        for number in self.host_resources.len()..self.hosts.count() {
            let host = self.hosts.entry(number as u32);
            let machine = host.labels.get("node").map_or_else(|| host.name.clone(), |node| HostName(node.clone()));
            self.host_resources.push(self.resources.number(&Resource::Host(machine)));
        }
    }

    /// Fills in the hosts and directions of links that a trial of a pair uses.
    fn resources_of(&self, pair: PairOfMesh, numbers: &mut Vec<u32>) {
        numbers.clear();
        let (from, to) = (self.host_resources[pair.from as usize], self.host_resources[pair.to as usize]);
        numbers.push(from);
        if to != from {
            numbers.push(to);
        }
        let (from, to) = (self.hosts.entry(pair.from), self.hosts.entry(pair.to));
        let flow = self.file.meshes[pair.mesh as usize].flow();
        for (host, other, forward) in [(from, to, Way::Out), (to, from, Way::In)] {
            for link in host.links.iter().filter(|link| !other.links.contains(link)) {
                for way in ways(forward, flow) {
                    numbers.push(self.link_resources[*link][usize::from(*way == Way::In)]);
                }
            }
        }
    }
}

fn clock(hours: &Hours, every: Nanos, estimate: Estimate) -> MeshClock {
    // Hours that are too short for a trial of the new estimate are kept as they are: a trial may then end after them.
    let hours = hours.shortened(seconds(estimate.time)).unwrap_or_else(|| hours.clone());
    MeshClock::new(hours, every.get() / 1_000_000)
}

/// Returns the directions of a link that data uses, if `forward` is that from the first host to the second.
fn ways(forward: Way, flow: Flow) -> &'static [Way] {
    match (flow, forward) {
        (Flow::Both, _) => &[Way::Out, Way::In],
        (Flow::Forward, Way::Out) | (Flow::Backward, Way::In) => &[Way::Out],
        (Flow::Forward, Way::In) | (Flow::Backward, Way::Out) => &[Way::In],
    }
}

fn seconds(time: Nanos) -> u64 {
    time.get().div_ceil(1_000_000_000)
}

fn earlier(one: Option<u64>, other: u64) -> Option<u64> {
    Some(one.map_or(other, |one| one.min(other)))
}
