//! Whether one more session may begin: the same rules for every task.

use crate::Limits;
use crate::grant::{CredentialId, Grant};
use linerate_control::{ApiError, ErrorKind};
use linerate_engine::{Demand, Needs};
use linerate_model::{Power, TaskKind};
use linerate_units::BitRate;

/// Weighs the `demand` of a session that does `task` against `limits` and against what its credential grants, beside the
/// demands of the sessions `under_way` and their credentials, and what else is `reserved` of the budget.
///
/// # Errors
/// It goes beyond a limit, which is named with the remedy, or it needs what another session has for itself.
pub(crate) fn admit<'a>(
    limits: &Limits,
    grant: &Grant,
    task: TaskKind,
    demand: &Demand,
    under_way: impl Iterator<Item = (&'a CredentialId, &'a Demand)>,
    reserved: &'a [Needs],
) -> Result<(), ApiError> {
    let needs = &demand.needs;
    if needs.powers.has(Power::Frames) {
        check_interfaces(limits, needs.interfaces.iter())?;
    }
    if needs.cold_cache && !limits.cold_cache {
        return refuse(
            "this agent does not empty its host's caches; leave `--cache cold` out, or start it with `linerate serve \
             --allow-cold-cache`",
        );
    }
    for server in &needs.servers {
        limits.servers.check(server).or_else(refuse)?;
        grant.check_target(server.address)?;
    }
    grant.check_powers(&needs.powers)?;
    if let Some(time) = demand.time.filter(|time| *time > limits.max_time) {
        return refuse(format!(
            "the trial takes {time}, this agent allows {}; ask for less, or start it with `linerate serve --max-time`",
            limits.max_time
        ));
    }
    if demand.flows > limits.max_flows {
        return refuse(format!(
            "the trial has {} flows on this host, this agent allows {}; ask for fewer, or start it with `linerate serve \
             --max-flows`",
            demand.flows, limits.max_flows
        ));
    }
    let under_way: Vec<(&CredentialId, &Demand)> = under_way.collect();
    if under_way.len() >= limits.max_trials {
        return refuse(format!(
            "{} trials are under way, this agent allows {}; wait for them, or start it with `linerate serve --max-trials`",
            under_way.len(),
            limits.max_trials
        ));
    }
    if let Some(exclusive) = demand.exclusive
        && under_way.iter().any(|(_, other)| other.exclusive == demand.exclusive)
    {
        let message = format!("a trial with {exclusive} is under way, and only one can be; wait for it to end");
        return Err(ApiError::new(ErrorKind::Conflict, message));
    }
    limits.budget.check(needs, under_way.iter().map(|(_, other)| &other.needs).chain(reserved)).or_else(refuse)?;
    check_shares(limits, grant, demand, &under_way)?;
    if let Some(limit) = limits.max_rate {
        let others = under_way.iter().map(|(_, other)| *other);
        let limit = RateLimit {
            limit,
            whose: "this agent",
            raise: "start it with a higher `linerate serve --max-rate`",
            lift: "start it without `linerate serve --max-rate`",
        };
        check_rates(task, demand, others, &limit)?;
    }
    if let Some(limit) = grant.max_rate {
        let others = under_way.iter().filter(|(credential, _)| **credential == grant.credential);
        let limit = RateLimit {
            limit,
            whose: "this agent URL",
            raise: "ask the agent's owner for one with a higher `--max-rate`",
            lift: "ask the agent's owner for one without `--max-rate`",
        };
        check_rates(task, demand, others.map(|(_, other)| *other), &limit)?;
    }
    Ok(())
}

/// Checks that an invitation leaves room for the others and for the agent's owner: each has half of the trials and of the budget at most, and
/// all together leave the owner one trial and a quarter of the budget.
fn check_shares(
    limits: &Limits,
    grant: &Grant,
    demand: &Demand,
    under_way: &[(&CredentialId, &Demand)],
) -> Result<(), ApiError> {
    if grant.credential.is_none() {
        return Ok(());
    }
    let own = under_way.iter().filter(|(credential, _)| **credential == grant.credential);
    let invited = under_way.iter().filter(|(credential, _)| credential.is_some());
    let each = (limits.max_trials / 2).max(1);
    let all = limits.max_trials.saturating_sub(1).max(1);
    for (whose, trials, most) in
        [("of this agent URL", own.clone().count(), each), ("of invitations", invited.clone().count(), all)]
    {
        if trials >= most {
            return refuse(format!(
                "{trials} trials {whose} are under way, this agent allows {most}; wait for them, or start it with a higher `linerate \
                 serve --max-trials`"
            ));
        }
    }
    let with_share = |error| refuse(format!("{error}; one invitation has half of the agent's, and all three quarters"));
    limits.budget.part(1, 2).check(&demand.needs, own.map(|(_, other)| &other.needs)).or_else(with_share)?;
    limits.budget.part(3, 4).check(&demand.needs, invited.map(|(_, other)| &other.needs)).or_else(with_share)
}

/// A limit of rates: whose it is, what raises it, and what lifts it.
struct RateLimit {
    limit: BitRate,
    whose: &'static str,
    raise: &'static str,
    lift: &'static str,
}

/// Weighs what a session sends and receives, together with the `others` that the limit binds.
fn check_rates<'a>(
    task: TaskKind,
    demand: &Demand,
    others: impl Iterator<Item = &'a Demand> + Clone,
    RateLimit { limit, whose, raise, lift }: &RateLimit,
) -> Result<(), ApiError> {
    for (verb, rate) in
        [("send", (|demand| demand.sends) as fn(&Demand) -> Option<BitRate>), ("receive", |demand| demand.receives)]
    {
        let Some(own) = rate(demand) else {
            let remedy = match task {
                TaskKind::Copy => format!("a copy has no rate: {lift}"),
                _ => format!("set a rate with `--rate`, or {lift}"),
            };
            return refuse(format!(
                "the trial asks this host to {verb} without a limit, and {whose} allows {limit}; {remedy}"
            ));
        };
        // Those under way have a rate, or they would have been refused.
        let sum = others.clone().filter_map(rate).map(BitRate::get).fold(own.get(), u64::saturating_add);
        if sum > limit.get() {
            return refuse(format!(
                "with this trial the host is to {verb} {}, {whose} allows {limit}; ask for a lower `--rate`, or {raise}",
                BitRate::per_second(sum)
            ));
        }
    }
    Ok(())
}

/// Checks that whoever has `grant` may learn of `interfaces` and their neighbours: only who may send raw frames from them.
///
/// # Errors
/// The credential or the agent does not allow it.
pub(crate) fn admit_ports<'a>(
    limits: &Limits,
    grant: &Grant,
    interfaces: impl Iterator<Item = &'a String>,
) -> Result<(), ApiError> {
    check_interfaces(limits, interfaces)?;
    grant.check_powers(&Power::Frames.into())
}

fn check_interfaces<'a>(limits: &Limits, mut interfaces: impl Iterator<Item = &'a String>) -> Result<(), ApiError> {
    if limits.frames.is_none() {
        return refuse(
            "this agent sends no raw frames; start it with `linerate serve --allow-frames INTERFACE`, on a network that may be \
             flooded",
        );
    }
    match interfaces.find(|interface| !limits.frames.allow(interface)) {
        Some(interface) => refuse(format!(
            "this agent sends no raw frames from `{interface}`; name it in `linerate serve --allow-frames` if its network may \
             be flooded"
        )),
        None => Ok(()),
    }
}

fn refuse<T>(message: impl Into<String>) -> Result<T, ApiError> {
    Err(ApiError::new(ErrorKind::Limit, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AllowedInterfaces, Budget};
    use linerate_engine::Needs;
    use linerate_units::{ByteCount, Nanos};

    fn demand() -> Demand {
        let rate = Some(BitRate::per_second(8_000_000));
        Demand {
            sends: rate,
            receives: rate,
            time: Some(Nanos::from_secs(1)),
            flows: 1,
            needs: Needs::default(),
            exclusive: None,
            set_up: Nanos::default(),
        }
    }

    /// The agent's own token asks, and opened what is under way.
    fn admit<'a>(
        limits: &Limits,
        task: TaskKind,
        demand: &Demand,
        under_way: impl Iterator<Item = &'a Demand>,
    ) -> Result<(), ApiError> {
        let under_way = under_way.map(|demand| (&None, demand));
        super::admit(limits, &Grant::of_owner(limits), task, demand, under_way, &[])
    }

    fn limits() -> Limits {
        Limits {
            max_rate: Some(BitRate::per_second(10_000_000)),
            max_time: Nanos::from_secs(2),
            max_trials: 2,
            max_flows: 4,
            ..Limits::default()
        }
    }

    /// Whatever the task, each limit binds it and is named.
    #[test]
    fn each_limit_binds_every_task_by_name() {
        let rate = |bits| Some(BitRate::per_second(bits));
        let beyond = [
            (Demand { sends: None, ..demand() }, "--max-rate"),
            (Demand { receives: None, ..demand() }, "--max-rate"),
            (Demand { sends: rate(11_000_000), ..demand() }, "send 11 Mbit/s"),
            (Demand { receives: rate(11_000_000), ..demand() }, "receive 11 Mbit/s"),
            (Demand { time: Some(Nanos::from_millis(2_001)), ..demand() }, "--max-time"),
            (Demand { flows: 5, ..demand() }, "--max-flows"),
            (Demand { needs: Needs::of(Power::Frames), ..demand() }, "--allow-frames"),
            (Demand { needs: Needs { memory: 1 << 62, ..Needs::default() }, ..demand() }, "--max-memory"),
            (Demand { needs: Needs { threads: 1 << 62, ..Needs::default() }, ..demand() }, "threads"),
            (Demand { needs: Needs { descriptors: 1 << 62, ..Needs::default() }, ..demand() }, "ulimit -n"),
            (Demand { needs: Needs { cold_cache: true, ..Needs::default() }, ..demand() }, "--allow-cold-cache"),
        ];
        for task in TaskKind::ALL {
            for (demand, part) in &beyond {
                let error = admit(&limits(), task, demand, [].iter()).expect_err(part);
                assert_eq!(error.error, ErrorKind::Limit, "{task}: {}", error.message);
                assert!(error.message.contains(part), "{task}: {}", error.message);
            }
            let others = [demand(), demand()].map(|other| Demand { sends: rate(0), receives: rate(0), ..other });
            let error = admit(&limits(), task, &demand(), others.iter()).expect_err("a third");
            assert!(error.message.contains("--max-trials"), "{task}: {}", error.message);
            assert_eq!(admit(&limits(), task, &demand(), others[..1].iter()), Ok(()), "{task}");
        }
    }

    /// The owner finds room, whatever the holders of invitations do.
    #[test]
    fn an_invitation_leaves_room_for_others_and_for_the_owner() {
        let budget = Budget { memory: ByteCount::new(1_000), threads: 100, descriptors: 100 };
        let limits = Limits { max_trials: 4, budget, ..Limits::default() };
        let owner = Grant::of_owner(&limits);
        let of = |id: &str| Grant { credential: Some(id.to_owned()), ..owner.clone() };
        let needs = |memory| Demand { needs: Needs { memory, ..Needs::default() }, ..demand() };
        let check = |grant: &Grant, demand: &Demand, under_way: &[(&Grant, u64)]| {
            let others: Vec<_> =
                under_way.iter().map(|(grant, memory)| (grant.credential.clone(), needs(*memory))).collect();
            let others = others.iter().map(|(credential, demand)| (credential, demand));
            super::admit(&limits, grant, TaskKind::Stream, demand, others, &[]).map_err(|error| error.message)
        };
        let (ann, bob) = (of("ann"), of("bob"));
        assert_eq!(check(&ann, &needs(0), &[(&ann, 0)]), Ok(()));
        let error = check(&ann, &needs(0), &[(&ann, 0), (&ann, 0)]).expect_err("a third of one invitation");
        assert!(error.contains("2 trials of this agent URL") && error.contains("--max-trials"), "{error}");
        assert_eq!(check(&bob, &needs(0), &[(&ann, 0), (&ann, 0)]), Ok(()));
        let error = check(&bob, &needs(0), &[(&ann, 0), (&ann, 0), (&bob, 0)]).expect_err("the owner's");
        assert!(error.contains("3 trials of invitations"), "{error}");
        assert_eq!(check(&owner, &needs(250), &[(&ann, 250), (&ann, 250), (&bob, 250)]), Ok(()));
        let error = check(&ann, &needs(300), &[(&ann, 300)]).expect_err("more than half");
        assert!(error.contains("--max-memory") && error.contains("half"), "{error}");
        assert!(check(&bob, &needs(300), &[(&ann, 500)]).is_err(), "more than three quarters");
        // Where there is one trial at a time, an invitation may have it.
        let limits = Limits { max_trials: 1, ..Limits::default() };
        let admitted = super::admit(&limits, &ann, TaskKind::Stream, &demand(), [].into_iter(), &[]);
        assert_eq!(admitted, Ok(()));
    }

    #[test]
    fn rates_are_summed_over_all_sessions_and_do_not_wrap() {
        let with = |sends| Demand { sends: Some(BitRate::per_second(sends)), ..demand() };
        let receives_nothing = |sends| Demand { receives: Some(BitRate::per_second(0)), ..with(sends) };
        let admit = |own: &Demand, other: &Demand| {
            admit(&limits(), TaskKind::Stream, own, [other.clone()].iter()).map_err(|error| error.message)
        };
        assert_eq!(admit(&receives_nothing(2_000_000), &with(8_000_000)), Ok(()));
        let error = admit(&receives_nothing(3_000_000), &with(8_000_000)).expect_err("beyond");
        assert!(error.contains("11 Mbit/s"), "{error}");
        assert!(admit(&receives_nothing(u64::MAX), &with(8_000_000)).is_err());
        assert!(admit(&receives_nothing(8_000_000), &receives_nothing(8_000_000)).is_err());
    }

    #[test]
    fn what_is_exclusive_is_had_once() {
        let limits = Limits { frames: AllowedInterfaces::All, ..Limits::default() };
        let frames = Demand { needs: Needs::of(Power::Frames), exclusive: Some("raw frames"), ..demand() };
        let error = admit(&limits, TaskKind::Frames, &frames, [frames.clone()].iter()).expect_err("taken");
        assert_eq!(error.error, ErrorKind::Conflict);
        assert!(error.message.contains("raw frames"), "{}", error.message);
        assert_eq!(admit(&limits, TaskKind::Frames, &frames, [demand()].iter()), Ok(()));
        assert_eq!(admit(&limits, TaskKind::Stream, &demand(), [frames].iter()), Ok(()));
    }

    /// One who may flood the network of one interface could have flooded every network of the host.
    #[test]
    fn raw_frames_leave_by_the_named_interfaces_only() {
        let limits = Limits { frames: "eth1,eth2".parse().expect("names"), ..Limits::default() };
        let from = |interfaces: &[&str]| {
            let interfaces = interfaces.iter().copied().map(str::to_owned).collect();
            let needs = Needs { interfaces, ..Needs::of(Power::Frames) };
            admit(&limits, TaskKind::Frames, &Demand { needs, ..demand() }, [].iter()).map_err(|error| error.message)
        };
        assert_eq!(from(&["eth1"]), Ok(()));
        assert_eq!(from(&["eth1", "eth2"]), Ok(()));
        let error = from(&["eth1", "eth0"]).expect_err("not named");
        assert!(error.contains("`eth0`") && error.contains("--allow-frames"), "{error}");
    }

    #[test]
    fn without_a_rate_the_remedy_fits_the_task() {
        let unbound = Demand { sends: None, receives: None, time: None, ..demand() };
        assert_eq!(admit(&Limits::default(), TaskKind::Copy, &unbound, [].iter()), Ok(()), "no limit needs no rate");
        for (task, part) in [(TaskKind::Copy, "a copy has no rate"), (TaskKind::Frames, "with `--rate`")] {
            let error = admit(&limits(), task, &unbound, [].iter()).expect_err("no rate").message;
            assert!(error.contains(part) && error.contains("10 Mbit/s"), "{error}");
            // A higher one would refuse it again.
            assert!(error.ends_with("start it without `linerate serve --max-rate`"), "{error}");
        }
        let beyond = Demand { sends: Some(BitRate::per_second(11_000_000)), ..demand() };
        let error = admit(&limits(), TaskKind::Stream, &beyond, [].iter()).expect_err("too fast").message;
        assert!(error.ends_with("or start it with a higher `linerate serve --max-rate`"), "{error}");
    }
}
