//! A confined agent measures as others do, and reaches nothing else. The threads that it is confined in are the test's own.

use super::streams::{sent_and_received, stream};
use super::*;
use crate::{AllowedFolders, AllowedInterfaces, Confinement, Invitations};
use linerate_sys::capability::{CapabilitySet, KernelCapability};
use linerate_sys::{landlock, seccomp};
use linerate_testsuite::files::set_mode;
use linerate_testsuite::skip;
use std::future::Future;
use std::io::ErrorKind::PermissionDenied;
use std::path::Path;
use std::process::Command;

/// Runs `test` in a thread of its own, whose confinement ends with it.
fn in_its_own_thread<F: Future<Output = ()>>(test: impl FnOnce() -> F + Send) {
    std::thread::scope(|scope| {
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(test());
        };
        if let Err(panic) = scope.spawn(run).join() {
            std::panic::resume_unwind(panic);
        }
    });
}

async fn confined(folder: Option<&Path>) -> Agent {
    let allowed = folder.map(Path::to_owned).into_iter().collect();
    agent(|options| {
        options.confinement = Some(Confinement::default());
        options.engines.folders = AllowedFolders { allowed, scratch: None };
    })
    .await
}

#[test]
fn a_confined_agent_opens_no_file_outside_its_folders() {
    let (inside, outside) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    std::fs::write(outside.path().join("secret"), "x").expect("written");
    in_its_own_thread(|| async {
        let agent = confined(Some(inside.path())).await;
        let told = agent.confined().expect("it was to").clone();
        std::fs::write(inside.path().join("file"), "x").expect("its own folder can be written");
        assert!(std::fs::read("/proc/stat").is_ok(), "the host can be observed");
        if landlock::version().is_none() {
            assert!(told.to_string().contains("no Landlock"), "{told}");
            return skip("a_confined_agent_opens_no_file_outside_its_folders", "this kernel has no Landlock");
        }
        assert_eq!((told.landlock, told.folders), (landlock::version(), vec![inside.path().to_owned()]));
        for path in [outside.path().join("secret"), "/etc/passwd".into(), "/root".into()] {
            let opened = std::fs::File::open(&path).expect_err("it is outside");
            assert_eq!(opened.kind(), PermissionDenied, "{}", path.display());
        }
        let written = std::fs::write(outside.path().join("new"), "x").expect_err("it is outside");
        assert_eq!(written.kind(), PermissionDenied);
        let written = std::fs::write("/proc/sys/kernel/core_pattern", "|/x").expect_err("it is only read");
        assert_eq!(written.kind(), PermissionDenied);
    });
}

#[test]
fn a_confined_agent_still_reads_its_invitations() {
    let folder = tempfile::tempdir().expect("a folder");
    in_its_own_thread(|| async {
        let agent = agent(|options| {
            options.invitations = Some(Invitations::of(folder.path()));
            options.confinement = Some(Confinement { reads: vec![folder.path().to_owned()], ..Confinement::default() });
        })
        .await;
        let noted = Invitations::of(folder.path()).address().expect("it can be read");
        assert_eq!(noted, Some(agent.url().address()));
    });
}

/// Root reads all files before it is confined, and only its own afterwards. The agent would refuse every new invitation.
#[test]
fn an_agent_that_will_not_read_its_invitations_is_not_started() {
    let folder = tempfile::tempdir().expect("a folder");
    set_mode(folder.path(), 0o000);
    in_its_own_thread(|| async {
        let options = options(|options| {
            options.invitations = Some(Invitations::of(folder.path()));
            options.confinement = Some(Confinement { reads: vec![folder.path().to_owned()], ..Confinement::default() });
        });
        let error = Agent::start(options).await.expect_err("it cannot read them").to_string();
        assert!(error.contains("invitations.json") && error.contains("chown"), "{error}");
    });
    set_mode(folder.path(), 0o700);
}

#[test]
fn a_confined_agent_executes_nothing_and_has_no_capabilities() {
    in_its_own_thread(|| async {
        let agent = confined(None).await;
        let refused = Command::new("/bin/true").status().expect_err("nothing is executed");
        assert_eq!(refused.kind(), PermissionDenied);
        let held = CapabilitySet::held().expect("held");
        assert!(held.is_empty() && !held.has(KernelCapability::SysAdmin), "{held}");
        assert_eq!(agent.confined().map(|told| (told.capabilities, told.unfiltered.clone())), Some((held, None)));
        assert!(seccomp::filters().is_some_and(|filters| filters >= 2));
        assert_eq!(seccomp::ways_out(), <[&str; 0]>::default());
        let status = std::fs::read_to_string("/proc/thread-self/status").expect("status");
        assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    });
}

#[test]
fn a_confined_agent_keeps_what_raw_frames_need() {
    in_its_own_thread(|| async {
        let before = CapabilitySet::held().expect("held");
        let agent = agent(|options| {
            options.confinement = Some(Confinement::default());
            options.limits.frames = AllowedInterfaces::All;
        })
        .await;
        let held = agent.confined().expect("it was to").capabilities;
        use KernelCapability::{Bpf, DacOverride, NetAdmin, NetRaw, SysAdmin};
        for capability in [NetRaw, NetAdmin, Bpf, SysAdmin] {
            assert_eq!(held.has(capability), before.has(capability), "{capability:?} of {held}");
        }
        assert!(!held.has(DacOverride), "{held}");
        if !before.has(SysAdmin) {
            return skip(
                "a_confined_agent_keeps_what_raw_frames_need",
                "it makes a network namespace, which needs root",
            );
        }
        linerate_sys::namespace::NetNamespace::new().expect("what a sending program is at home in");
    });
}

#[test]
fn streams_between_confined_agents_work() {
    in_its_own_thread(|| async {
        let (one, two) = (confined(None).await, confined(None).await);
        let (a, b) = (connect(&one).await, connect(&two).await);
        for transport in [Transport::Tcp, Transport::Udp] {
            let (sent, received) = sent_and_received(&a, &b, Task::Stream(stream(transport))).await;
            assert!(sent > 0 && received > 0, "sent {sent}, received {received}");
        }
        let host = a.host().await.expect("a host");
        for name in ["landlock", "system-call-filter"] {
            let found = host.capabilities.iter().find(|capability| capability.name == name).expect("it is told");
            assert_eq!(found.text.contains("in force") && !found.text.contains("not in"), found.available, "{found:?}");
        }
        let counters = host.capabilities.iter().find(|capability| capability.name == "host-counters");
        assert!(counters.is_some_and(|counters| counters.available), "{counters:?}");
    });
}
