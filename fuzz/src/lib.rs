//! Every parser of bytes that come from elsewhere, as a function of those bytes.
//!
//! A target feeds its input to one parser and to what works on the result at once. A panic, a hang or a broken assertion is a
//! fault of the parser. libFuzzer looks for such inputs (`cargo xtask fuzz`). The tests run every target over its corpus
//! (`fuzz/corpus`) and over mutations of it, on any machine and without libFuzzer.

mod files;
mod nfs_server;
mod records;
mod smb_login;
mod texts;

/// One parser, or a few that read the same bytes.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, which is also that of its folder in `fuzz/corpus`.
    pub name: &'static str,
    /// What it reads, and from whom.
    pub reads: &'static str,
    /// Reads one input.
    pub run: fn(&[u8]),
    /// How many mutations of its corpus the tests try: fewer where one input takes long.
    pub mutations: u32,
}

const fn target(name: &'static str, reads: &'static str, run: fn(&[u8]), mutations: u32) -> Target {
    Target { name, reads, run, mutations }
}

/// All targets.
pub const TARGETS: [Target; 19] = [
    target(
        "agent-requests",
        "JSON bodies of API requests, from holders of a URL",
        linerate_agent::fuzzing::request,
        2_000,
    ),
    target(
        "agent-answers",
        "JSON and events of an agent, which may be hostile",
        linerate_control::fuzzing::answer,
        2_000,
    ),
    target("agent-counts", "what the hosts of a trial counted, from agents that may be hostile", records::counts, 500),
    target("agent-urls", "agent URLs and SNMP device URLs, from users", texts::urls, 5_000),
    target("captures", "pcap and pcapng files", files::capture, 5_000),
    target("datagrams", "datagrams of a UDP stream, from strangers", linerate_streams::fuzzing::datagrams, 5_000),
    target("frames", "ARP, neighbour discovery and echo requests on a link", linerate_frames::fuzzing::frame, 5_000),
    target(
        "greetings",
        "the first bytes of data connections, from strangers",
        linerate_streams::fuzzing::greeting,
        2_000,
    ),
    target("nfs-answers", "results of NFS calls, from servers of others", linerate_nfs::fuzzing::answer, 5_000),
    target("nfs-calls", "calls to the embedded NFS and MOUNT server", nfs_server::calls, 1_000),
    target("records", "exported records, from anybody", records::record, 40),
    target("rpc-messages", "RPC calls and replies", linerate_oncrpc::fuzzing::message, 5_000),
    target("rpc-records", "RPC record marking over TCP", linerate_oncrpc::fuzzing::records, 1_000),
    target("smb-answers", "single messages of an SMB server", linerate_smb::fuzzing::answer, 5_000),
    target("smb-logins", "whole conversations of an SMB server, from the first byte", smb_login::conversation, 500),
    target(
        "snmp-answers",
        "answers of a device to SNMP versions 2c and 3",
        linerate_observe::fuzzing::snmp_answer,
        2_000,
    ),
    target("store-files", "SQLite files that are opened as a store", files::store, 20),
    target("store-upgrades", "JSON in stores of older formats", files::older_store, 20),
    target("studies", "study files: TOML, and the CSV that they name", texts::study, 1_000),
];

/// The target called `name`.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
