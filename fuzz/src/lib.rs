//! Every parser of untrusted bytes, as a function of those bytes.
//!
//! A target feeds its input to one parser and to the code that uses the result. A panic, a hang or a failed assertion
//! is a fault of the parser. libFuzzer looks for such inputs (`cargo xtask fuzz`). The tests run every target over its
//! corpus (`fuzz/corpus`) and over mutations of it, on any machine and without libFuzzer.

mod files;
mod nfs_server;
mod records;
mod smb_login;
mod texts;

/// One parser, or a few that read the same bytes.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Name of the target and of its folder in `fuzz/corpus`.
    pub name: &'static str,
    /// Reads one input.
    pub run: fn(&[u8]),
    /// Number of mutations of its corpus that the tests try: fewer if an input takes long.
    pub mutations: u32,
}

const fn target(name: &'static str, run: fn(&[u8]), mutations: u32) -> Target {
    Target { name, run, mutations }
}

/// All targets.
pub const TARGETS: &[Target] = &[
    // JSON bodies of API requests, from holders of a URL and from strangers that pair.
    target("agent-requests", linerate_agent::fuzzing::request, 2_000),
    // JSON and events of an agent, which may be hostile.
    target("agent-answers", linerate_control::fuzzing::answer, 2_000),
    // Counts of the hosts of a trial, from agents that may be hostile.
    target("agent-counts", records::counts, 500),
    // Agent URLs and SNMP device URLs, from users.
    target("agent-urls", texts::urls, 5_000),
    // pcap and pcapng files.
    target("captures", files::capture, 5_000),
    // Blocks of a copy, among them records of holes and folders, from holders of a session's key.
    target("copy-blocks", files::copied, 300),
    // Datagrams of a UDP stream, from strangers.
    target("datagrams", linerate_streams::fuzzing::datagrams, 5_000),
    // ARP, neighbour discovery and echo requests on a link.
    target("frames", linerate_frames::fuzzing::frame, 5_000),
    // The first bytes of data connections, from strangers.
    target("greetings", linerate_streams::fuzzing::greeting, 2_000),
    // Datagrams of a stream of iperf3, from strangers.
    target("iperf3-datagrams", linerate_streams::fuzzing::timestamped_datagrams, 5_000),
    // Public keys of servers of iperf3: from users, and from holders of a URL.
    target("iperf3-keys", linerate_iperf3::fuzzing::key, 1_000),
    // Parameters of a test of iperf3, from clients that are strangers.
    target("iperf3-parameters", linerate_iperf3::fuzzing::parameters, 2_000),
    // Results of a test of iperf3, from servers, and from clients that are strangers.
    target("iperf3-texts", linerate_iperf3::fuzzing::text, 2_000),
    // Messages of multicast DNS, from anyone on the local network.
    target("mdns-messages", linerate_discovery::fuzzing::message, 5_000),
    // Results of NFS calls, from servers of others.
    target("nfs-answers", linerate_nfs::fuzzing::answer, 5_000),
    // Calls to the embedded NFS and MOUNT server.
    target("nfs-calls", nfs_server::calls, 1_000),
    // ICMP messages at a raw socket, from anyone.
    target("raw-icmp", linerate_probes::fuzzing::raw_icmp, 5_000),
    // Exported records, from anybody.
    target("records", records::record, 40),
    // RPC calls and replies.
    target("rpc-messages", linerate_oncrpc::fuzzing::message, 5_000),
    // RPC record marking over TCP.
    target("rpc-records", linerate_oncrpc::fuzzing::records, 1_000),
    // Single messages of an SMB server.
    target("smb-answers", linerate_smb::fuzzing::answer, 5_000),
    // Whole conversations of an SMB server, from the first byte.
    target("smb-logins", smb_login::conversation, 500),
    // Answers of a device to SNMP versions 2c and 3.
    target("snmp-answers", linerate_observe::fuzzing::snmp_answer, 2_000),
    // SQLite files that are opened as a store.
    target("store-files", files::store, 20),
    // STAMP test packets and their TLVs, from strangers.
    target("stamp-packets", linerate_probes::stamp::fuzzing::packet, 5_000),
    target("icmp-extensions", linerate_probes::fuzzing::icmp_extensions, 5_000),
    // Study files: TOML, and the CSV that they name.
    target("studies", texts::study, 1_000),
];

/// Returns the target called `name`.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
