//! What is kept and printed, without its secrets.

use linerate_observe::snmp::Target;
use std::borrow::Cow;

/// What an agent URL begins with.
const AGENT: &str = "linerate://";

/// A word of a command line, as it is kept. Secret are what stands behind `#` in an agent URL, and the community and passwords of an
/// SNMP target.
pub(crate) fn without_secrets(argument: &str) -> String {
    if let Some(at) = ["snmp://", "snmp+v3://"].iter().filter_map(|scheme| argument.find(scheme)).min() {
        let (option, target) = argument.split_at(at);
        return match target.parse::<Target>() {
            Ok(target) => format!("{option}{target}"),
            Err(_) => format!("{option}snmp://***"),
        };
    }
    match argument.split_once('#') {
        Some((address, _)) if address.contains(AGENT) => format!("{address}#..."),
        _ => argument.to_owned(),
    }
}

/// A message that may repeat what was typed, without what stands behind `#` in agent URLs.
pub(crate) fn message_without_keys(message: &str) -> Cow<'_, str> {
    if !message.contains(AGENT) {
        return Cow::Borrowed(message);
    }
    let mut shown = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(at) = rest.find(AGENT) {
        let (before, url) = rest.split_at(at);
        let address = url.find(|c: char| c == '#' || c.is_whitespace()).unwrap_or(url.len());
        let (address, behind) = url.split_at(address);
        shown.push_str(before);
        shown.push_str(address);
        rest = behind;
        if let Some(secrets) = behind.strip_prefix('#') {
            // The token and the key are hexadecimal digits with a dot between them; what was mistyped may have others.
            let after = secrets.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
            shown.push_str("#...");
            rest = after;
        }
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_kept_without_its_secrets() {
        for (typed, kept) in [
            ("--sizes", "--sizes"),
            ("linerate://h:1#token.key", "linerate://h:1#..."),
            ("snmp://s3cret@192.0.2.1", "snmp://***@192.0.2.1"),
            ("--device-snmp=snmp://s3cret@192.0.2.1:1161", "--device-snmp=snmp://***@192.0.2.1:1161"),
            (
                "snmp+v3://ann@192.0.2.1?auth=sha256:s3cretword&priv=aes128:s3cretword",
                "snmp+v3://ann@192.0.2.1?auth=sha256:********&priv=aes128:********",
            ),
            ("snmp://s3cret@[broken", "snmp://***"),
        ] {
            assert_eq!(without_secrets(typed), kept);
        }
    }

    #[test]
    fn a_message_does_not_show_the_key_of_an_agent() {
        for (text, shown) in [
            ("no record is called `linerate://h:1#token.key`; see", "no record is called `linerate://h:1#...`; see"),
            (
                "error: unexpected argument 'linerate://[2001:2::1]:1#token.key' found\n\nUsage: linerate",
                "error: unexpected argument 'linerate://[2001:2::1]:1#...' found\n\nUsage: linerate",
            ),
            ("a linerate://h:1#t.k,linerate://g:2#t.k:eth1 b", "a linerate://h:1#...,linerate://g:2#...:eth1 b"),
            ("linerate://h:1 #1", "linerate://h:1 #1"),
        ] {
            assert_eq!(message_without_keys(text), shown);
        }
    }
}
