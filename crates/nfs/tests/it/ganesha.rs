//! The NFS load against a server of other hands: nfs-ganesha, with rpcbind, in namespaces of their own.

use linerate_model::{
    Assignment, EndCounts, FileSet, Net, NfsMix, NfsServer, NfsTask, Path as NetPath, Role, RoleCounts, RoleKind,
    Server, SessionId, SessionKey, Task, Timing, Transport,
};
use linerate_nfs::Nfs;
use linerate_nfsd::NfsService;
use linerate_testsuite::servers::Ganesha;
use linerate_testsuite::{server_test, wait_until};
use linerate_units::{Nanos, OpRate};
use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

const LAST: &[u8] = b"the last packet of this capture";

/// What crosses the server's loopback interface, kept in a file.
struct Capture {
    process: Child,
    file: PathBuf,
}

impl Capture {
    fn start(directory: &Path, transport: Transport) -> Self {
        let file = directory.join(format!("{transport}.pcapng"));
        let process = Command::new("dumpcap")
            .args(["-q", "-i", "lo", "-B", "64", "-w"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("dumpcap starts");
        // It writes the head of the file when it has begun.
        wait_until("dumpcap begins", || fs::metadata(&file).is_ok_and(|found| found.len() > 0).then_some(()));
        Self { process, file }
    }

    /// Ends it once it has all that was sent before: a datagram that comes last is waited for.
    fn end(mut self) -> PathBuf {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        socket.send_to(LAST, (Ipv4Addr::LOCALHOST, 9)).expect("sent");
        wait_until("dumpcap has written all packets", || {
            let mut file = fs::File::open(&self.file).ok()?;
            let length = file.metadata().ok()?.len();
            let mut tail = Vec::new();
            file.seek(SeekFrom::Start(length.saturating_sub(4_096))).ok()?;
            file.read_to_end(&mut tail).ok()?;
            tail.windows(LAST.len()).any(|bytes| bytes == LAST).then_some(())
        });
        let ended = Command::new("kill").args(["-INT", &self.process.id().to_string()]).status().expect("kill");
        assert!(ended.success());
        self.process.wait().expect("dumpcap ends");
        self.file
    }
}

/// The packets of a capture that a filter of Wireshark's lets through, in words.
fn filtered(capture: &Path, filter: &str) -> Vec<String> {
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(capture).args(["-Y", filter]);
    // It goes by the lower port. The client's is any privileged one, and some of these belong to other protocols.
    for port in [111, 2_049, 20_048] {
        tshark.args(["-d", &format!("tcp.port=={port},rpc"), "-d", &format!("udp.port=={port},rpc")]);
    }
    let output = tshark.output().expect("tshark runs");
    assert!(output.status.success(), "{filter}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

fn run(spec: &NfsTask) -> EndCounts {
    let path = NetPath { client: "client".into(), server: Server::Foreign("ganesha".into()) };
    let assignment = Assignment {
        id: SessionId("ganesha".into()),
        key: SessionKey([5; 16]),
        task: Task::Nfs(NfsTask { paths: vec![path], ..spec.clone() }),
        timing: Timing::of(Nanos::from_millis(200), Nanos::from_millis(1_000)),
        roles: vec![Role { kind: RoleKind::Client { path: 0 }, listens: Vec::new(), connects: Vec::new() }],
        password: None,
        sampling: linerate_model::Sampling::default(),
    };
    let nfs = Nfs { server: Arc::new(NfsService::default()) };
    let counted = linerate_engine::testing::run(&nfs, [assignment]).remove(0).expect("a result");
    assert_eq!(counted.remains, Vec::<String>::new());
    match counted.roles.into_iter().next() {
        Some(RoleCounts::Flows(counts)) => *counts,
        other => panic!("{other:?}"),
    }
}

#[server_test(Root, Program("rpcbind"), Program("ganesha.nfsd"), Program("tshark"), Program("dumpcap"))]
fn a_server_of_other_hands_does_the_mix_and_is_left_as_it_was() {
    let ganesha = Ganesha::start();
    let directory = tempfile::tempdir().expect("a directory");
    for (transport, nfs_port, mount_port) in [(Transport::Tcp, None, None), (Transport::Udp, Some(2049), Some(20_048))]
    {
        let plain = NfsTask::plain(transport, NfsMix::named("sfs97-like").expect("built in"));
        let export = "/run/export".to_owned();
        let server = NfsServer { address: Ipv4Addr::LOCALHOST.into(), export, nfs_port, mount_port, uid: 0, gid: 0 };
        let spec = NfsTask {
            server: Some(server),
            files: FileSet { files: 24, directories: 4, symlinks: 4, ..plain.files },
            net: Net { flows: 2, ..Net::plain(transport) },
            outstanding: 8,
            rate: Some(OpRate::per_second(400)),
            ..plain
        };
        let before = ganesha.export();
        assert_eq!(before.len(), 2, "{before:?}");
        let work = || {
            let capture = Capture::start(directory.path(), transport);
            (run(&spec), capture.end())
        };
        let (result, capture) = ganesha.network.enter(work).expect("a thread in its network");

        let done = result.transactions.expect("it asks");
        // Five standard deviations of a Poisson count. What a busy host sent too late is counted as such.
        let due = done.latency.count() + done.not_sent;
        assert!(due.abs_diff(400) < 100 && done.completed > 0, "{transport}: {} of {due}", done.completed);
        assert_eq!((done.failed, result.broken), (0, None), "{transport}");
        for (operation, counts) in &result.operations {
            assert_eq!((counts.errors.len(), counts.corrupt_bytes), (0, 0), "{transport} {operation}: {counts:?}");
        }
        let kinds = (result.operations.len(), spec.mix.percent.len());
        // What was not sent may have been all of a rare kind.
        assert!(
            kinds.0 == kinds.1 || done.not_sent > 0,
            "{transport}: {} of {} operations were there",
            kinds.0,
            kinds.1
        );
        assert_eq!(ganesha.export(), before, "{transport}");

        let all = filtered(&capture, "nfs").len();
        // Calls and replies, some of which TCP puts into the same packet.
        assert!(all as u64 > done.completed, "{transport}: tshark sees {all} packets of NFS");
        assert_eq!(filtered(&capture, "_ws.malformed"), Vec::<String>::new(), "{transport}");
        let errors = filtered(&capture, "nfs.status3 != 0 || rpc.state_accept != 0");
        assert_eq!(errors, Vec::<String>::new(), "{transport}: every call was understood and done");
    }
}
