//! What users of iperf3 type: its flags that linerate writes otherwise, and a host without a command.

use crate::iperf3_server::SCHEME;
use crate::saved_hosts::SavedHosts;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use linerate_model::{HostName, from_command_name};
use std::ffi::{OsStr, OsString};

/// Flags of iperf3 up to 3.21 that are no flags of `linerate stream`, and what takes their place. Those that mean the same have the same
/// letter.
const FLAGS: &[(&[&str], &str)] = &[
    (&["-c", "--client"], "name the host without an option: linerate stream HOST"),
    (&["-s", "--server"], "linerate serve"),
    (&["-D", "--daemon"], "linerate serve under systemd (linerate-agent.service), or with & in a shell"),
    (&["-1", "--one-off", "--idle-timeout"], "linerate serve, which serves all clients until it is stopped"),
    (&["--server-bitrate-limit"], "linerate serve --max-rate"),
    (&["--server-max-duration"], "linerate serve --max-time"),
    (&["-F", "--file"], "linerate copy, which reads and writes files"),
    (&["-V"], "-v, --verbose"),
    (&["-d", "--debug"], "-v, --verbose; --json has every count"),
    (&["-f", "--format"], "units follow the size of a figure; --json has plain numbers"),
    (&["-T", "--title", "--extra-data"], "nothing: a record has its id and the command that made it"),
    (&["-I", "--pidfile"], "the shell has the process id: $!"),
    (&["--timestamps", "--forceflush"], "--json-stream: each event has its time and is written at once"),
    (&["--json-stream-full-output"], "--json-stream, which ends with the whole record"),
    (&["--bitrate", "--bandwidth", "--fq-rate"], "-b, --rate"),
    (&["--pacing-timer"], "-b, --rate: each message has its own time"),
    (&["--length"], "-l, --size"),
    (&["--parallel"], "-P, --flows"),
    (&["--omit"], "-O, --warmup"),
    (&["--set-mss"], "-M, --mss"),
    (&["-N", "--no-delay"], "nothing: TCP_NODELAY is always set"),
    (&["--version4", "--version6"], "-4 and -6"),
    (&["-L", "--flowlabel"], "left to the kernel, a label for each flow"),
    (
        &["--dont-fragment"],
        "left to the kernel; UDP datagrams may be sent in fragments: -l, --size, up to 1472 bytes avoids them",
    ),
    (&["--bind-dev"], "--bind-device"),
    (&["--cport"], "left to the kernel, a free port for each flow"),
    (&["--sctp", "-X", "--xbind", "--nstreams", "-m", "--mptcp"], "TCP, or UDP with -u"),
    (&["--repeating-payload"], "nothing: payload is random, so that no device compresses it"),
    (&["--udp-counters-64bit"], "nothing: datagrams are always numbered with 64 bits"),
    (&["--gsro"], "nothing: GSO and GRO are used; --no-offload does without"),
    (&["--skip-rx-copy"], "--receive-by discard"),
    (&["--get-server-output"], "--server-output"),
    (&["--logfile"], "-o, --out"),
    (
        &["--rsa-private-key-path", "--authorized-users-path", "--time-skew-threshold"],
        "an agent's URL, which holds its key",
    ),
    (&["--use-pkcs1-padding"], "nothing: a login is tried with either padding, OAEP first"),
    (
        &["--connect-timeout", "--rcv-timeout", "--snd-timeout", "--cntl-ka"],
        "linerate gives up by itself, and says why",
    ),
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

/// Options of `stream` that a host without a command stands for: streams both ways for about 15 s, the latency that they add, and the
/// routers of the path.
///
/// Each is left out if the command line has it, an option that excludes it, or one of the options named last.
const QUICK: [(&str, &str, &[&str]); 6] = [
    ("direction", "=send,receive", &[]),
    ("time", "=3s", &[]),
    ("warmup", "=1s", &["bytes", "messages"]),
    ("repeats", "=1", &[]),
    (LATENCY, "", &[]),
    ("hops", "", &[]),
];
const LATENCY: &str = "loaded_latency";

/// Completes a command line: a host in place of a command becomes `stream` with the options of [`QUICK`]. Options of `stream` may
/// follow the host.
pub(crate) fn completed(words: Vec<OsString>, command: &Command) -> Vec<OsString> {
    let from_host = from_command_name(words.get(1..).unwrap_or_default());
    let (before, [host, rest @ ..]) = words.split_at(words.len() - from_host.len()) else { return words };
    let is_command = command.find_subcommand(host).is_some();
    let Some(name) = host.to_str().filter(|name| !is_command && is_host(name)) else { return words };
    let stream = command.find_subcommand("stream").expect("`stream` is a command");
    let mut completed = before.to_vec();
    completed.extend(["stream".into(), host.clone()]);
    for (id, value, others) in QUICK {
        // An iperf3 server does not answer the requests that measure the latency.
        if id == LATENCY && name.starts_with(SCHEME) {
            continue;
        }
        let mut replacing = stream.get_arguments().filter(|arg| replaces(stream, arg, id, others));
        if !replacing.any(|arg| rest.iter().any(|word| is_option(word, arg, stream))) {
            completed.push(format!("--{}{value}", id.replace('_', "-")).into());
        }
    }
    completed.extend_from_slice(rest);
    completed
}

/// Returns whether an option takes the place of the option `id`: it is the same, excludes it, or is one of `others`.
fn replaces(stream: &Command, arg: &Arg, id: &str, others: &[&str]) -> bool {
    arg.get_id() == id
        || others.iter().any(|other| arg.get_id() == other)
        || stream.get_arg_conflicts_with(arg).iter().any(|excluded| excluded.get_id() == id)
}

/// Returns whether a word is this option: with or without a value, alone or after switches, as in `-uR`.
fn is_option(word: &OsStr, arg: &Arg, stream: &Command) -> bool {
    let Some(word) = word.to_str() else { return false };
    if let Some(long) = word.strip_prefix("--") {
        return arg.get_long() == Some(long.split_once('=').map_or(long, |(name, _)| name));
    }
    let (Some(letters), Some(letter)) = (word.strip_prefix('-'), arg.get_short()) else { return false };
    letters.split_once(letter).is_some_and(|(before, _)| before.chars().all(|before| is_switch(before, stream)))
}

/// Returns whether a letter is an option without a value.
fn is_switch(letter: char, stream: &Command) -> bool {
    stream.get_arguments().any(|arg| arg.get_short() == Some(letter) && !arg.get_action().takes_values())
}

/// Whether a word can only be a host: an agent URL, where one stands, a server of iperf3, or a saved name.
fn is_host(word: &str) -> bool {
    word.starts_with("linerate://")
        || word.starts_with(SCHEME)
        || word.starts_with('@')
        || word.starts_with("env:")
        || SavedHosts::read().is_ok_and(|saved| saved.find(&HostName::from(word)).is_some())
}

#[cfg(test)]
mod tests {
    use crate::commands::help::parse_from;

    #[test]
    fn a_flag_of_iperf3_that_is_none_here_says_what_is() {
        for (flag, advice) in [("--bitrate", "-b, --rate"), ("-c", "linerate stream HOST"), ("-1", "linerate serve")] {
            let error = parse_from(["linerate", "stream", flag, "b"]).expect_err(flag).to_string();
            assert!(error.contains("of iperf3 is") && error.contains(advice), "{flag}: {error}");
        }
        let other = parse_from(["linerate", "stream", "--speed", "b"]).expect_err("no option").to_string();
        assert!(!other.contains("iperf3"), "{other}");
    }

    #[test]
    fn every_flag_of_iperf3_is_read_or_answered() {
        // Those of 3.12 and 3.21, apart from -h and -v.
        let short = "pfiIFABVJdsD1cXubtnklPRwCMN46SLZOTm";
        let long = "port format interval pidfile file affinity bind bind-dev verbose json json-stream json-stream-full-output logfile \
            forceflush timestamps rcv-timeout snd-timeout cntl-ka debug server daemon one-off server-bitrate-limit \
            server-max-duration idle-timeout rsa-private-key-path authorized-users-path time-skew-threshold use-pkcs1-padding \
            client sctp xbind nstreams udp connect-timeout bitrate pacing-timer fq-rate time bytes blockcount length cport \
            parallel reverse bidir window congestion set-mss no-delay version4 version6 tos dscp flowlabel zerocopy omit title \
            extra-data get-server-output udp-counters-64bit gsro skip-rx-copy repeating-payload dont-fragment username \
            rsa-public-key-path mptcp";
        let short = short.chars().map(|letter| format!("-{letter}"));
        let long = long.split_whitespace().map(|flag| format!("--{flag}"));
        for flag in short.chain(long) {
            let Err(error) = parse_from(["linerate", "stream", "b", &flag]) else { continue };
            let unknown = error.kind() == clap::error::ErrorKind::UnknownArgument;
            assert!(!unknown || error.to_string().contains("of iperf3 is"), "{flag}: {error}");
        }
    }

    #[test]
    fn flags_of_iperf3_that_mean_the_same_are_read() {
        let words = "-u -R -P 4 -t 10 -O 2 -b 5M -l 1200 -i 1 -w 100K -C reno -S 0x20 -4 -A 0,1 -J";
        let words = ["linerate", "stream"].into_iter().chain(words.split(' ')).chain(["b"]);
        parse_from(words).expect("all mean the same");
        let tcp = ["linerate", "stream", "--bidir", "-M", "1200", "-B", "192.0.2.1", "-Z", "-p", "5202", "b"];
        parse_from(tcp).expect("all mean the same");
        for ends in [["-n", "100M"], ["--bytes", "1000"], ["-k", "1000"], ["--blockcount", "10k"]] {
            parse_from([&["linerate", "stream"], &ends[..], &["b"]].concat()).expect("all mean the same");
        }
        for clash in [&["-R", "--bidir"][..], &["-R", "--direction", "send"], &["-w", "1M", "--send-buffer", "1M"]] {
            parse_from([&["linerate", "stream"], clash, &["b"]].concat()).expect_err("one excludes the other");
        }
        let ecn = parse_from(["linerate", "stream", "-S", "0x21", "b"]).expect_err("ECN bits").to_string();
        assert!(ecn.contains("multiple of 4"), "{ecn}");
    }

    #[test]
    fn a_host_alone_is_looked_at_both_ways() {
        let url = format!("linerate://192.0.2.7:4747#{}.{}", "0".repeat(64), "A".repeat(22));
        for host in [url.as_str(), "@agent.url", "env:AGENT", "iperf3://192.0.2.7"] {
            let line = parse_from(["linerate", host]).unwrap_or_else(|error| panic!("{host}: {error}"));
            assert!(matches!(line.command, crate::commands::command_line::Command::Stream(_)), "{host}");
            let words = super::completed(vec!["linerate".into(), host.into()], &crate::commands::help::command());
            assert_eq!(words.contains(&"--loaded-latency".into()), host != "iperf3://192.0.2.7", "{words:?}");
        }
        for options in
            ["--json", "-t 10 -R", "-uR", "-t10 --within 5%", "--bytes 1G", "--loaded-latency=udp --udp -b 5M", "b -4"]
        {
            let words = ["linerate", "--lang", "en", &url].into_iter().chain(options.split(' '));
            let line = parse_from(words).unwrap_or_else(|error| panic!("{options}: {error}"));
            assert!(matches!(line.command, crate::commands::command_line::Command::Stream(_)), "{options}");
        }
        let error = parse_from(["linerate", "steam"]).expect_err("no command").to_string();
        assert!(error.contains("stream"), "what was meant is said: {error}");
    }
}
