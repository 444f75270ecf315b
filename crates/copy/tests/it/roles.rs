//! Several hosts, several roles on one host, and what a session says of itself before it copies.

use crate::pair::{OPTIONS, alone, assert_same, assignment, ends, engine, folder, made, one, role, task};
use linerate_copy::{AllowedFolders, Copy};
use linerate_engine::testing::{self, Reached, run, sessions};
use linerate_engine::{Conductor as _, Engine as _, FailedBy};
use linerate_model::{
    Assignment, CopyFrom, CopyInto, CopyOptions, CopyTask, CopyTree, CopyVerify, Endpoints, LinkId, Ready, Role,
    RoleCounts, RoleKind,
};
use linerate_units::{BitRate, Nanos};
use std::fs;
use std::path::Path;
use std::time::Duration;
use tempfile::tempdir;

const TREE: &str = "files=60,folders=5,bytes=2M";

/// The tree, written by a copy within this host.
fn written(to: &Path) -> CopyTree {
    alone(OPTIONS, made(TREE), CopyFrom::Memory, CopyInto::Folder(folder(to))).expect("copied");
    CopyTree::Folder(folder(to))
}

fn host(task: &CopyTask, role: Role) -> Assignment {
    assignment(task, vec![role])
}

#[test]
fn each_of_several_sources_has_a_folder_of_its_own() {
    let from = tempdir().expect("a folder");
    let to = tempdir().expect("a folder");
    let task = task(OPTIONS, written(from.path()), CopyFrom::Files, CopyInto::Folder(folder(to.path())));
    let destination = role(RoleKind::Destination, &[(0, Some("left")), (1, Some("right"))], &[]);
    let counted = run(
        &engine(),
        [
            host(&task, role(RoleKind::Source, &[], &[0])),
            host(&task, role(RoleKind::Source, &[], &[1])),
            host(&task, destination),
        ],
    );
    let counts: Vec<_> = counted.into_iter().map(|counted| one(counted.expect("copied"))).collect();
    assert_eq!(counts.iter().map(|counts| counts.sides.len()).collect::<Vec<_>>(), [1, 1, 2]);
    assert!(counts.iter().all(|counts| counts.sides.iter().all(|side| side.complete && side.files == 60)));
    for name in ["left", "right"] {
        assert_same(from.path(), &to.path().join(name));
    }
}

/// Where the source cannot reach it.
#[test]
fn a_destination_may_open_the_connections() {
    let from = tempdir().expect("a folder");
    let to = tempdir().expect("a folder");
    let task = task(OPTIONS, written(from.path()), CopyFrom::Files, CopyInto::Folder(folder(to.path())));
    let source = role(RoleKind::Source, &[(0, None)], &[]);
    let destination = role(RoleKind::Destination, &[], &[0]);
    let counted = run(&engine(), [host(&task, source), host(&task, destination)]);
    for counts in counted.into_iter().map(|counted| one(counted.expect("copied"))) {
        assert!(counts.sides.len() == 1 && counts.sides[0].complete && counts.sides[0].files == 60);
    }
    assert_same(from.path(), to.path());
}

#[test]
fn one_source_sends_to_several_destinations_and_counts_each() {
    let task = task(OPTIONS, made(TREE), CopyFrom::Memory, CopyInto::Scratch);
    let ends = sessions([
        host(&task, role(RoleKind::Source, &[], &[7, 3])),
        host(&task, role(RoleKind::Destination, &[(3, None)], &[])),
        host(&task, role(RoleKind::Destination, &[(7, None)], &[])),
    ]);
    let counts = testing::scope(|scope| {
        let running: Vec<_> = ends.iter().map(|end| scope.spawn(|| end.run(&engine()))).collect();
        running.into_iter().map(|end| one(end.join().expect("no panic").expect("copied"))).collect::<Vec<_>>()
    });
    assert_eq!(counts.iter().map(|counts| counts.sides.len()).collect::<Vec<_>>(), [2, 1, 1]);
    assert!(counts.iter().all(|counts| counts.sides.iter().all(|side| side.complete && side.files == 60)));

    let lead = Nanos::from_millis(50);
    assert_eq!(ends[0].ready_said(), Ready { lead, files: 120, bytes: 4_000_000 }, "to both together");
    assert_eq!(ends[1].ready_said(), Ready { lead, files: 0, bytes: 0 });
    let done = ends.iter().map(|end| end.meter().expect("it copied").operations).collect::<Vec<_>>();
    assert_eq!(done, [0, 60, 60], "files are in place at destinations");
}

#[test]
fn a_host_copies_to_itself_in_two_roles() {
    let from = tempdir().expect("a folder");
    let to = tempdir().expect("a folder");
    let task = task(OPTIONS, written(from.path()), CopyFrom::Files, CopyInto::Folder(folder(to.path())));
    let roles = vec![role(RoleKind::Source, &[], &[0]), role(RoleKind::Destination, &[(0, None)], &[])];
    let counted = run(&engine(), [assignment(&task, roles)]).remove(0).expect("copied");
    let [RoleCounts::Copy(source), RoleCounts::Copy(destination)] = &counted.roles[..] else { panic!("{counted:?}") };
    assert!(source.sides[0].tcp.len() == 2 && destination.sides[0].tcp.is_empty(), "the roles keep their order");
    assert!(source.sides[0].complete && destination.sides[0].complete);
    assert_same(from.path(), to.path());
}

#[test]
fn several_copiers_write_to_folders_that_another_host_serves() {
    let from = tempdir().expect("a folder");
    let to = tempdir().expect("a folder");
    // No links: their times are the server's own.
    for file in 0..60 {
        fs::write(from.path().join(format!("{file}")), vec![file; 1_000 * usize::from(file)]).expect("written");
    }
    let options = CopyOptions { verify: CopyVerify::ReadBack, ..OPTIONS };
    let tree = CopyTree::Folder(folder(from.path()));
    let task = task(options, tree, CopyFrom::Files, CopyInto::Folder(folder(to.path())));
    let copier = |link: u16| host(&task, role(RoleKind::Copier { folder: None, destination: 0 }, &[], &[link]));
    let server = host(&task, role(RoleKind::FileServer, &[(0, Some("a")), (1, Some("b"))], &[]));
    for counted in run(&engine(), [copier(0), copier(1), server]) {
        let counts = one(counted.expect("copied"));
        assert!(counts.sides.iter().all(|side| side.complete && side.files == 60), "{counts:?}");
    }
    for name in ["a", "b"] {
        assert_same(from.path(), &to.path().join(name));
    }
}

/// The attack: a greeting that was seen on its way to one host of a copy is sent to another one.
#[test]
fn a_greeting_to_another_destination_of_the_copy_is_refused() {
    let to = tempdir().expect("a folder");
    for (kind, listens, needle) in [
        (RoleKind::Source, RoleKind::Destination, "connecting to"),
        (RoleKind::Copier { folder: None, destination: 0 }, RoleKind::FileServer, "credential"),
    ] {
        let options = CopyOptions { verify: CopyVerify::ReadBack, ..OPTIONS };
        let task = task(options, made(TREE), CopyFrom::Memory, CopyInto::Folder(folder(to.path())));
        let served =
            sessions([role(listens, &[(0, None)], &[]), role(kind.clone(), &[], &[0])].map(|own| host(&task, own)));
        let elsewhere = sessions([(); 2].map(|()| host(&task, role(kind.clone(), &[], &[1]))));
        testing::scope(|scope| {
            let serving = scope.spawn(|| served[0].run(&engine()));
            let address = served[1].listening(Endpoints::new()).expect("goes on")[&LinkId(0)];
            let copying = scope.spawn(|| elsewhere[0].run(&engine()));
            elsewhere[1].listening([(LinkId(1), address)].into()).expect("goes on");
            let failure = copying.join().expect("no panic").expect_err("refused");
            served[0].stop("enough");
            serving.join().expect("no panic").expect_err("it was stopped");
            assert!(failure.to_string().contains(needle), "{failure}");
        });
    }
}

#[test]
fn a_copy_that_is_stopped_before_it_begins_leaves_nothing() {
    let home = tempdir().expect("a folder");
    let folders = AllowedFolders { allowed: vec![home.path().to_owned()], scratch: None };
    let engine = Copy::new(folders);
    let ends = sessions(ends(&task(OPTIONS, made(TREE), CopyFrom::Files, CopyInto::Scratch)));
    let ended = testing::scope(|scope| {
        let source = scope.spawn(|| ends[0].run(&engine));
        // The destination never listens.
        assert!(ends[0].wait_for(Reached::Listening, Duration::from_secs(60)));
        assert_eq!(fs::read_dir(home.path()).expect("listed").count(), 1, "the made tree");
        ends[0].stop("its runner is gone");
        source.join().expect("no panic").expect_err("it was stopped")
    });
    assert!(matches!(ended.error, FailedBy::Stop(_)) && ended.remains.is_empty(), "{ended:?}");
    assert_eq!(fs::read_dir(home.path()).expect("listed").count(), 0);
}

#[test]
fn a_demand_has_no_bound_where_bytes_leave_or_arrive() {
    let task = task(OPTIONS, made(TREE), CopyFrom::Memory, CopyInto::Discard);
    let demand = |roles: Vec<Role>| {
        let demand = engine().demand(&assignment(&task, roles)).expect("it can be meant");
        (demand.sends, demand.receives, demand.flows)
    };
    let (source, destination) =
        (role(RoleKind::Source, &[], &[0, 1, 2]), role(RoleKind::Destination, &[(0, None)], &[]));
    let nothing = Some(BitRate::default());
    assert_eq!(demand(vec![source.clone()]), (None, nothing, 6));
    assert_eq!(demand(vec![destination.clone()]), (nothing, None, 2));
    assert_eq!(demand(vec![source, destination]), (None, None, 8));
}

#[test]
fn what_does_not_go_together_is_refused_before_anything_is_opened() {
    let refused = |change: &dyn Fn(&mut CopyTask), role: Role, words: &str| {
        let mut task = task(OPTIONS, made(TREE), CopyFrom::Memory, CopyInto::Discard);
        change(&mut task);
        let assignment = assignment(&task, vec![role]);
        let error = engine().demand(&assignment).expect_err(words).message;
        assert!(error.contains(words), "`{words}` is not in: {error}");
        let failure = run(&engine(), [assignment]).remove(0).expect_err(words);
        assert_eq!(failure.to_string(), error);
    };
    let source = || role(RoleKind::Source, &[], &[0]);
    let destination = || role(RoleKind::Destination, &[(0, None)], &[]);
    let copier = || role(RoleKind::Copier { folder: None, destination: 0 }, &[], &[]);
    let server = || role(RoleKind::FileServer, &[(0, None)], &[]);
    refused(&|task| task.options.lanes = 0, source(), "choose 1 to 64");
    refused(&|task| task.options.lanes = 65, destination(), "choose 1 to 64");
    refused(&|task| task.tree = CopyTree::Folder(String::from("/srv")), source(), "only a made tree");
    refused(&|_| (), copier(), "verify by reading back");
    refused(&|_| (), server(), "a folder is served");
    refused(&|task| task.options.verify = CopyVerify::ReadBack, destination(), "neither be read back");
    refused(&|_| (), role(RoleKind::Source, &[], &[]), "needs a link");
    refused(&|_| (), role(RoleKind::Destination, &[], &[]), "needs a link");
    refused(&|_| (), role(RoleKind::Client { path: 0 }, &[], &[0]), "no other roles");
}
