//! Tuning: tries ways to send and to place threads before a run, and chooses the fastest.
//!
//! A tuning is a sweep of its own, with several candidates of each trial of the run. Candidates differ in the cores of
//! the threads, in the calls of a TCP sender and in the wake-ups of its receiver. They send the same packets, and the receiver does the same with the
//! data, so the tuned run measures what was asked.

use crate::calibration::host_change;
use crate::statistics::summary;
use linerate_model::{
    Direction, Goal, Host, Net, Plan, ReceiveWake, Record, Repeats, SendBy, StreamTask, Summary, Task, Timing,
    TransactStyle, Transport, Trial, Tuning, Warmup, Window,
};
use linerate_units::{ByteCount, Nanos};

/// Window of a candidate's runs.
const WINDOW: Window = Window {
    warmup: Warmup::Steady { at_most: Nanos::from_millis(300), then: Nanos::new(0) },
    measure: Nanos::from_millis(300),
};
/// Runs of each candidate.
const ROUNDS: u32 = 3;
/// Share by which a candidate must be faster than the trial as asked.
const LEAST_GAIN: f64 = 0.03;
/// Name of the candidate that changes nothing.
const AS_ASKED: &str = "as asked";
/// Bytes of a larger call of `write`, which costs fewer calls than the default.
const LARGE_WRITE: u64 = 500_000;

/// Reason why a run cannot be tuned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotTune {
    /// The run has a trial other than a stream or a transaction.
    #[error("--tune is for streams and transactions between agents")]
    OtherTask,
    /// Everything that tuning changes is set.
    #[error(
        "--tune has nothing to choose: cores and calls are set, or the hosts have one core; leave out --cpus-sender, \
         --cpus-receiver, --send-by, --size or --receive-wake"
    )]
    NothingToChoose,
}

/// Choice for one trial of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Name of the trial.
    pub trial: String,
    /// Name of the candidate, as in `write of 500000 bytes, sender on core 0, receiver on core 1`. `None` if the trial as
    /// asked is as fast.
    pub candidate: Option<String>,
    /// Median rate of the candidate divided by that of the trial as asked.
    pub gain: f64,
}

/// Cores of the sender's and of the receiver's threads. Empty lists leave the choice to the scheduler.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Placement {
    sender: Vec<u32>,
    receiver: Vec<u32>,
}

/// Returns the tuning for `run` between `hosts`. `any_size` allows other sizes of a TCP sender's calls.
///
/// # Errors
///
/// Nothing can be chosen.
pub fn plan(run: &Plan, hosts: &[Host], any_size: bool) -> Result<Plan, CannotTune> {
    let mut cells = Vec::new();
    for cell in run.cells() {
        let candidates = candidates(cell, hosts, any_size)?;
        for (name, task) in candidates {
            cells.push(Trial::new(format!("{}, {name}", cell.name), task, Timing::Window(WINDOW)));
        }
    }
    match cells.len() {
        0 => Err(CannotTune::OtherTask),
        count if count == run.cells().len() => Err(CannotTune::NothingToChoose),
        _ => Ok(Plan { tuning: Some(Tuning::Candidates), ..Plan::sweep(cells, Repeats::Times(ROUNDS)) }),
    }
}

/// Returns whether `tuning` tried the same candidates as `plan`, the tuning that would be made now, on unchanged hosts.
pub fn fits(tuning: &Record, plan: &Plan, hosts: &[Host]) -> bool {
    let is_unchanged =
        |now: &Host| tuning.hosts.iter().any(|then| then.name == now.name && host_change(then, now, true).is_none());
    tuning.plan.tuning == Some(Tuning::Candidates)
        && tuning.plan.cells() == plan.cells()
        && hosts.iter().all(is_unchanged)
}

/// Applies the fastest candidates of `tuning` to the trials of `run`. Returns what was chosen for each.
pub fn apply(run: &mut Plan, tuning: &Record) -> Vec<Choice> {
    let mut choices = Vec::new();
    let Goal::Sweep(sweep) = &mut run.goal else { return choices };
    for cell in &mut sweep.cells {
        let Some((candidate, gain)) = fastest(&cell.name, tuning) else { continue };
        let name = format!("{}, {candidate}", cell.name);
        let Some(trial) = tuning.plan.cells().iter().find(|trial| trial.name == name) else { continue };
        choose(cell.task_mut(), trial.task());
        let candidate = (candidate != AS_ASKED).then(|| candidate.to_owned());
        choices.push(Choice { trial: cell.name.clone(), candidate, gain });
    }
    run.tuning = Some(Tuning::ChosenBy(tuning.id.clone()));
    choices
}

/// Returns the fastest candidate of the trial called `name`, and its gain.
///
/// The gain is the median of its rates, each divided by that of the trial as asked in the same round, because other load of the
/// machine lasts for longer than a round. Returns the trial as asked if the gain is below [`LEAST_GAIN`].
fn fastest<'a>(name: &str, tuning: &'a Record) -> Option<(&'a str, f64)> {
    let mut rates: Vec<(&str, &Summary)> = Vec::new();
    for result in &tuning.results {
        if let Some(candidate) = result.name.strip_prefix(name).and_then(|rest| rest.strip_prefix(", ")) {
            rates.push((candidate, &result.main));
        }
    }
    let (_, before) = rates.iter().find(|(candidate, _)| *candidate == AS_ASKED)?;
    let mut best = (AS_ASKED, 1.0);
    for (candidate, rate) in &rates {
        let gains = rate.values.iter().zip(&before.values).map(|(rate, before)| rate / before);
        if let Some(gain) = summary(gains.collect()).map(|gains| gains.median)
            && gain >= 1.0 + LEAST_GAIN
            && gain > best.1
        {
            best = (*candidate, gain);
        }
    }
    Some(best)
}

/// Copies what tuning chooses from `chosen` to `task`.
fn choose(task: &mut Task, chosen: &Task) {
    if let (Task::Stream(stream), Task::Stream(chosen)) = (&mut *task, chosen) {
        stream.send_by = chosen.send_by;
        stream.receive_wake = chosen.receive_wake;
        stream.message_bytes = chosen.message_bytes;
    }
    if let (Some(net), Some(chosen)) = (task.net_mut(), chosen.net()) {
        net.socket.sender_cpus.clone_from(&chosen.socket.sender_cpus);
        net.socket.receiver_cpus.clone_from(&chosen.socket.receiver_cpus);
    }
}

/// Returns the candidates of a trial by name, the first as asked.
fn candidates(cell: &Trial, hosts: &[Host], any_size: bool) -> Result<Vec<(String, Task)>, CannotTune> {
    let mut task = cell.task().clone();
    match &mut task {
        Task::Stream(stream) if stream.is_between_agents() => {
            stream.offered = None;
            stream.volume = None;
        }
        Task::Transact(transact) if transact.style == TransactStyle::Persistent => transact.rate = None,
        _ => return Err(CannotTune::OtherTask),
    }
    let mut all = Vec::new();
    for placement in placements(&task, hosts) {
        for (name, mut candidate) in calls(&task, any_size) {
            let place = placement.name();
            if let Some(net) = candidate.net_mut().filter(|_| !place.is_empty()) {
                net.socket.sender_cpus.clone_from(&placement.sender);
                net.socket.receiver_cpus.clone_from(&placement.receiver);
            }
            let parts: Vec<&str> = [&*name, &*place].into_iter().filter(|part| !part.is_empty()).collect();
            all.push((if parts.is_empty() { AS_ASKED.to_owned() } else { parts.join(", ") }, candidate));
        }
    }
    Ok(all)
}

/// Returns the calls that a TCP sender and its receiver may use, by name. The first is as asked and has no name.
fn calls(task: &Task, any_size: bool) -> Vec<(String, Task)> {
    let mut all = vec![(String::new(), task.clone())];
    let Task::Stream(stream) = task else { return all };
    if stream.net.transport != Transport::Tcp {
        return all;
    }
    if stream.send_by == SendBy::Auto {
        if any_size {
            let message_bytes = ByteCount::new(LARGE_WRITE);
            let write = StreamTask { message_bytes, ..stream.clone() };
            all.push((format!("write of {LARGE_WRITE} bytes"), Task::Stream(write)));
        }
        let sendfile = StreamTask { send_by: SendBy::Sendfile, ..stream.clone() };
        all.push(("sendfile".to_owned(), Task::Stream(sendfile)));
    }
    if stream.receive_wake == ReceiveWake::default() {
        for (name, task) in all.clone() {
            let Task::Stream(mut each) = task else { continue };
            each.receive_wake = ReceiveWake::Each;
            let separator = if name.is_empty() { "" } else { ", " };
            all.push((format!("{name}{separator}receiver woken each time"), Task::Stream(each)));
        }
    }
    all
}

/// Returns the placements to try. The first leaves the choice to the scheduler.
fn placements(task: &Task, hosts: &[Host]) -> Vec<Placement> {
    let mut all = vec![Placement::default()];
    let Some((net, [sender, receiver])) = ends(task, hosts) else { return all };
    let sender_groups = groups(sender);
    let receiver_groups = groups(receiver);
    let mut pairs = Vec::new();
    if sender.boot_id == receiver.boot_id && !sender.boot_id.is_empty() {
        // The two ends share a cache, in either order, or they share none.
        for group in &sender_groups[..1] {
            let (first, second) = group.split_at(group.len() / 2);
            pairs.extend([(first, second), (second, first)]);
        }
        if let [first, .., last] = &*sender_groups {
            pairs.push((first, last));
        }
    } else {
        // Interrupts of an interface often go to the first cores.
        let [first, last] = [sender_groups.first(), sender_groups.last()];
        let [near, far] = [receiver_groups.first(), receiver_groups.last()];
        for (sender, receiver) in first.zip(near).into_iter().chain(last.zip(far)) {
            pairs.push((&sender[..], &receiver[..]));
            pairs.push((&sender[sender.len() / 2..], &receiver[receiver.len() / 2..]));
        }
    }
    for (sender, receiver) in pairs {
        let flows = usize::from(net.flows);
        let placement = Placement {
            sender: sender[..flows.min(sender.len())].to_vec(),
            receiver: receiver[..flows.min(receiver.len())].to_vec(),
        };
        let is_whole = !placement.sender.is_empty() && !placement.receiver.is_empty();
        if is_whole && !all.contains(&placement) {
            all.push(placement);
        }
    }
    all
}

/// Returns the network options, the sending and the receiving host. `None` if threads are placed already, if each host
/// sends and receives, or if there are several paths.
fn ends<'a>(task: &'a Task, hosts: &'a [Host]) -> Option<(&'a Net, [&'a Host; 2])> {
    let net = task.net()?;
    let [path] = task.paths() else { return None };
    let client = hosts.iter().find(|host| host.name == path.client)?;
    let server_name = path.server.agent()?;
    let server = hosts.iter().find(|host| host.name == *server_name)?;
    let direction = match task {
        Task::Stream(stream) => stream.direction,
        _ => Direction::Send,
    };
    let ends = match direction {
        Direction::Send => [client, server],
        Direction::Receive => [server, client],
        Direction::Both => return None,
    };
    (net.socket.sender_cpus.is_empty() && net.socket.receiver_cpus.is_empty()).then_some((net, ends))
}

/// Returns the cores of a host by shared cache, at least one group.
fn groups(host: &Host) -> Vec<Vec<u32>> {
    if host.core_groups.is_empty() { vec![(0..host.cores).collect()] } else { host.core_groups.clone() }
}

impl Placement {
    fn name(&self) -> String {
        if self.sender.is_empty() {
            return String::new();
        }
        format!("sender on {}, receiver on {}", cores(&self.sender), cores(&self.receiver))
    }
}

/// Formats a list of cores, as in `cores 0 1`.
fn cores(cores: &[u32]) -> String {
    let numbers: Vec<String> = cores.iter().map(u32::to_string).collect();
    format!("core{} {}", if cores.len() == 1 { "" } else { "s" }, numbers.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::one;
    use crate::results::measurements;
    use crate::simulation::Network;
    use crate::transfer::tests::trial;
    use linerate_model::{Path, RecordId, SocketOptions, TransactTask, TrialResult};

    /// Returns hosts `a` and `b` with these groups of cores, on one machine or on two.
    fn hosts(groups: &[&[u32]], is_one_machine: bool) -> Vec<Host> {
        let mut hosts: Vec<Host> = ["a", "b"].map(|name| Network::default().host(name)).into();
        for host in &mut hosts {
            host.core_groups = groups.iter().map(|group| group.to_vec()).collect();
            if is_one_machine {
                host.boot_id = "one".to_owned();
            }
        }
        hosts
    }

    fn stream(transport: Transport, direction: Direction) -> StreamTask {
        let paths = vec![Path::between("a", "b")];
        StreamTask { paths, direction, ..StreamTask::plain(transport, ByteCount::new(1 << 20)) }
    }

    fn run(task: Task) -> Plan {
        let timing = Timing::of(Nanos::from_secs(1), Nanos::from_secs(10));
        Plan::sweep(vec![Trial::new("load", task, timing)], Repeats::Times(1))
    }

    fn names(task: Task, hosts: &[Host]) -> Vec<String> {
        let plan = plan(&run(task), hosts, true).expect("it can be tuned");
        assert_eq!(plan.cells()[0].name, "load, as asked");
        plan.cells().iter().map(|cell| cell.name.replace("load, ", "")).collect()
    }

    #[test]
    fn threads_share_a_cache_or_not() {
        let udp = |direction| Task::Stream(stream(Transport::Udp, direction));
        let two_cores = hosts(&[&[0, 1]], true);
        let placed = names(udp(Direction::Send), &two_cores);
        assert_eq!(
            placed,
            ["as asked", "sender on core 0, receiver on core 1", "sender on core 1, receiver on core 0"]
        );
        let two_caches = hosts(&[&[0, 1, 2, 3], &[4, 5, 6, 7]], true);
        let placed = names(udp(Direction::Send), &two_caches);
        assert_eq!(
            placed[1..],
            [
                "sender on core 0, receiver on core 2",
                "sender on core 2, receiver on core 0",
                "sender on core 0, receiver on core 4",
            ]
        );
        let two_machines = names(udp(Direction::Send), &hosts(&[&[0, 1], &[2, 3]], false));
        assert_eq!(
            two_machines[1..],
            [
                "sender on core 0, receiver on core 0",
                "sender on core 1, receiver on core 1",
                "sender on core 2, receiver on core 2",
                "sender on core 3, receiver on core 3",
            ]
        );
        assert_eq!(
            names(
                Task::Transact(TransactTask {
                    paths: vec![Path::between("a", "b")],
                    ..TransactTask::plain(Transport::Tcp)
                }),
                &two_cores
            )
            .len(),
            3
        );
    }

    #[test]
    fn several_flows_have_several_cores() {
        let mut task = stream(Transport::Udp, Direction::Send);
        task.net.flows = 2;
        let placed = names(Task::Stream(task), &hosts(&[&[0, 1, 2, 3]], true));
        assert_eq!(placed[1], "sender on cores 0 1, receiver on cores 2 3");
    }

    #[test]
    fn options_that_are_given_are_kept() {
        let hosts = hosts(&[&[0, 1]], true);
        let tcp = names(Task::Stream(stream(Transport::Tcp, Direction::Both)), &hosts);
        assert_eq!(tcp[..3], ["as asked", "write of 500000 bytes", "sendfile"]);
        assert_eq!(tcp[3], "receiver woken each time");
        assert_eq!(tcp[5..], ["sendfile, receiver woken each time"]);
        let mut task = stream(Transport::Tcp, Direction::Send);
        task.net.socket = SocketOptions { sender_cpus: vec![1], ..SocketOptions::default() };
        task.send_by = SendBy::Write;
        task.receive_wake = ReceiveWake::Each;
        assert_eq!(plan(&run(Task::Stream(task.clone())), &hosts, true), Err(CannotTune::NothingToChoose));
        task.send_by = SendBy::Auto;
        let same_size = plan(&run(Task::Stream(task)), &hosts, false).expect("it can be tuned");
        assert_eq!(same_size.cells()[1].name, "load, sendfile");
    }

    /// Returns the record of a tuning in which the candidates reached these rates.
    fn tuning(run: &Plan, hosts: &[Host], rates: &[f64]) -> Record {
        let plan = plan(run, hosts, true).expect("it can be tuned");
        let trials = plan.cells().iter().map(|cell| TrialResult { trial: cell.clone(), ..trial(1_000, 0) }).collect();
        let record = Record::new(RecordId("tuning".into()), plan);
        let mut record = Record { hosts: hosts.to_vec(), trials, ..record };
        record.results = measurements(&record);
        for (result, rate) in record.results.iter_mut().zip(rates) {
            result.main = one(*rate);
        }
        record
    }

    #[test]
    fn fastest_candidate_is_chosen_and_kept_for_unchanged_hosts() {
        let mut hosts = hosts(&[&[0, 1]], true);
        let asked = run(Task::Stream(stream(Transport::Udp, Direction::Send)));
        let mut tuned = asked.clone();
        let record = tuning(&asked, &hosts, &[100.0, 120.0, 90.0]);
        let choices = apply(&mut tuned, &record);
        assert_eq!(choices[0].candidate.as_deref(), Some("sender on core 0, receiver on core 1"));
        let socket = &tuned.cells()[0].net().expect("a stream").socket;
        assert_eq!((&*socket.sender_cpus, &*socket.receiver_cpus), (&[0][..], &[1][..]));
        assert_eq!(tuned.tuning, Some(Tuning::ChosenBy(RecordId("tuning".into()))));

        let candidates = plan(&asked, &hosts, true).expect("it can be tuned");
        assert!(fits(&record, &candidates, &hosts));
        hosts[0].system = "a new kernel".to_owned();
        assert!(!fits(&record, &candidates, &hosts));
    }

    /// The machine slows down by half in the second round.
    #[test]
    fn candidates_are_compared_within_a_round() {
        let hosts = hosts(&[&[0, 1]], true);
        let asked = run(Task::Stream(stream(Transport::Udp, Direction::Send)));
        let mut record = tuning(&asked, &hosts, &[100.0, 120.0, 90.0]);
        record.results[0].main.values = vec![100.0, 50.0, 100.0];
        record.results[1].main.values = vec![120.0, 60.0, 90.0];
        let choices = apply(&mut asked.clone(), &record);
        assert_eq!(choices[0].candidate.as_deref(), Some("sender on core 0, receiver on core 1"));
        assert!((choices[0].gain - 1.2).abs() < 1e-9, "{choices:?}");
    }

    #[test]
    fn small_gain_changes_nothing() {
        let hosts = hosts(&[&[0, 1]], true);
        let asked = run(Task::Stream(stream(Transport::Udp, Direction::Send)));
        let mut tuned = asked.clone();
        let choices = apply(&mut tuned, &tuning(&asked, &hosts, &[100.0, 102.0, 90.0]));
        assert_eq!(choices, [Choice { trial: "load".to_owned(), candidate: None, gain: 1.0 }]);
        assert_eq!(tuned.cells(), asked.cells());
    }
}
