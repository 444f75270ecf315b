//! Names of tests.

use linerate_model::typed;

/// Longest name, in bytes. Names are keys of indexes.
const LONGEST: usize = 400;

/// Returns the name of the test that `command` ran between two hosts: the kind of the run and the words of the command, without
/// the program, its hosts, and a lab around it.
///
/// Runs of the same test are comparable between pairs, as in `stream --time 5s`.
pub(super) fn test_name(kind: &str, command: &[String], hosts: [&str; 2]) -> String {
    let words: Vec<&str> = typed(command).skip(1).collect();
    let start = words.iter().position(|word| *word == kind).map_or(0, |at| at + 1);
    let mut name = kind.to_owned();
    for word in &words[start..] {
        if !hosts.iter().any(|host| names_host(word, host)) {
            name.push(' ');
            name.push_str(word);
        }
    }
    shortened(name)
}

/// Returns whether a word of a command names `host`: its name, or a URL of it.
fn names_host(word: &str, host: &str) -> bool {
    let without_secret = word.split('#').next().unwrap_or(word);
    let address = without_secret.split_once("://").map_or(without_secret, |(_, address)| address);
    word == host || address == host || without_secret.strip_prefix("fleet:") == Some(host)
}

/// Cuts a long name and adds a hash, so that two long names differ.
fn shortened(name: String) -> String {
    if name.len() <= LONGEST {
        return name;
    }
    let hash = blake3::hash(name.as_bytes()).to_hex();
    let mut end = LONGEST - 20;
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!("{} ... {}", &name[..end], &hash[..12])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(kind: &str, line: &str, hosts: [&str; 2]) -> String {
        let command: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        test_name(kind, &command, hosts)
    }

    #[test]
    fn hosts_and_program_are_left_out() {
        for (kind, line, hosts, expected) in [
            ("stream", "/opt/linerate stream fleet:a fleet:b --time 5s", ["a", "b"], "stream --time 5s"),
            ("stream", "linerate stream a b --udp --time 5s", ["a", "b"], "stream --udp --time 5s"),
            ("transact", "linerate lab -- transact a b", ["a", "b"], "transact"),
            ("stream", "linerate stream linerate://h:1#T.F local", ["h:1", "local"], "stream"),
            ("iperf3", "iperf3 -c 192.0.2.1 -R", ["client", "192.0.2.1"], "iperf3 -c -R"),
            ("other", "", ["a", "b"], "other"),
        ] {
            assert_eq!(name(kind, line, hosts), expected, "{line}");
        }
    }

    #[test]
    fn long_names_are_cut_and_stay_different() {
        let long = |end: &str| name("stream", &format!("linerate stream a b {}{end}", "ä".repeat(500)), ["a", "b"]);
        assert!(long("x").len() <= LONGEST && long("x") != long("y"), "{}", long("x"));
    }
}
