//! What users of iperf3 type: its flags that linerate writes otherwise, and a host without a command.

use crate::saved_hosts::SavedHosts;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use linerate_model::HostName;
use std::ffi::{OsStr, OsString};

/// Flags of iperf3 3.12 that are no flags here, and what takes their place. Those that mean the same have the same letter.
const FLAGS: &[(&[&str], &str)] = &[
    (&["-c", "--client"], "name the host without an option: linerate stream HOST"),
    (&["-s", "--server"], "linerate serve"),
    (&["-p", "--port"], "the port stands behind the host, as in iperf3://HOST:PORT"),
    (&["-n", "--bytes", "-k", "--blockcount"], "a run ends by time: -t, --time"),
    (&["-A", "--affinity"], "--cpus-sender and --cpus-receiver"),
    (&["-Z", "--zerocopy"], "--send-by sendfile; large TCP messages are sent without a copy anyway"),
    (&["-J"], "--json; --json-stream for events while the run goes on"),
    (&["-V"], "--verbose"),
    (&["--bitrate", "--bandwidth", "--fq-rate"], "-b, --rate"),
    (&["--length"], "-l, --size"),
    (&["--parallel"], "-P, --flows"),
    (&["--omit"], "-O, --warmup"),
    (&["--set-mss"], "-M, --mss"),
    (&["--version4", "--version6"], "-4 and -6"),
    (&["--get-server-output"], "--server-output"),
    (&["--logfile"], "-o, --out"),
    (&["--connect-timeout", "--rcv-timeout", "--snd-timeout"], "linerate gives up by itself, and says why"),
];

/// Adds what takes the place of an iperf3 flag to the error about it.
pub(crate) fn advised(mut error: clap::Error) -> clap::Error {
    let unknown = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(flag))) => flag.clone(),
        _ => return error,
    };
    if let Some((_, advice)) = FLAGS.iter().find(|(flags, _)| flags.contains(&unknown.as_str())) {
        let advice = StyledStr::from(format!("here `{unknown}` of iperf3 is: {advice}"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![advice]));
    }
    error
}

/// What a host alone asks for: streams both ways, and the latency that they add, in some 12 s.
const QUICK: [&str; 5] = ["--direction=send,receive", "--loaded-latency", "--time=3s", "--warmup=1s", "--repeats=1"];

/// The words of a command line; a host in place of a command stands for a quick look at the path to it.
pub(crate) fn completed(words: Vec<OsString>, is_command: impl Fn(&OsStr) -> bool) -> Vec<OsString> {
    match &words[..] {
        [program, host] if !is_command(host) && host.to_str().is_some_and(is_host) => {
            let quick = QUICK.map(OsString::from);
            [program.clone(), "stream".into(), host.clone()].into_iter().chain(quick).collect()
        }
        _ => words,
    }
}

/// Whether a word can only be a host: an agent URL, where one stands, or a saved name.
fn is_host(word: &str) -> bool {
    word.starts_with("linerate://")
        || word.starts_with('@')
        || word.starts_with("env:")
        || SavedHosts::read().is_ok_and(|saved| saved.find(&HostName::from(word)).is_some())
}

#[cfg(test)]
mod tests {
    use crate::help::parse_from;

    #[test]
    fn a_flag_of_iperf3_that_is_none_here_says_what_is() {
        for (flag, advice) in [
            ("-n", "-t, --time"),
            ("-p", "iperf3://HOST:PORT"),
            ("--bitrate", "-b, --rate"),
            ("-Z", "--send-by sendfile"),
            ("-c", "linerate stream HOST"),
        ] {
            let error = parse_from(["linerate", "stream", flag, "b"]).expect_err(flag).to_string();
            assert!(error.contains("of iperf3 is") && error.contains(advice), "{flag}: {error}");
        }
        let other = parse_from(["linerate", "stream", "--speed", "b"]).expect_err("no option").to_string();
        assert!(!other.contains("iperf3"), "{other}");
    }

    #[test]
    fn flags_of_iperf3_that_mean_the_same_are_read() {
        let words = "-u -R -P 4 -t 10 -O 2 -b 5M -l 1200 -i 1 -w 100K -C reno -S 0x20 -4";
        let words = ["linerate", "stream"].into_iter().chain(words.split(' ')).chain(["b"]);
        parse_from(words).expect("all mean the same");
        let tcp = ["linerate", "stream", "--bidir", "-M", "1200", "-B", "192.0.2.1", "b"];
        parse_from(tcp).expect("all mean the same");
        for clash in [&["-R", "--bidir"][..], &["-R", "--direction", "send"], &["-w", "1M", "--send-buffer", "1M"]] {
            parse_from([&["linerate", "stream"], clash, &["b"]].concat()).expect_err("one excludes the other");
        }
        let ecn = parse_from(["linerate", "stream", "-S", "0x21", "b"]).expect_err("ECN bits").to_string();
        assert!(ecn.contains("multiple of 4"), "{ecn}");
    }

    #[test]
    fn a_host_alone_is_looked_at_both_ways() {
        let url = format!("linerate://192.0.2.7:4747#{}.{}", "0".repeat(64), "A".repeat(22));
        for host in [url.as_str(), "@agent.url", "env:AGENT"] {
            let line = parse_from(["linerate", host]).unwrap_or_else(|error| panic!("{host}: {error}"));
            assert!(matches!(line.command, crate::arguments::Command::Stream(_)), "{host}");
        }
        let error = parse_from(["linerate", "steam"]).expect_err("no command").to_string();
        assert!(error.contains("stream"), "what was meant is said: {error}");
    }
}
