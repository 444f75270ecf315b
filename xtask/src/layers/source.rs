//! Finds the paths that a source file uses, by its tokens. Comments and strings do not count.

use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Result of scanning one file.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Whether it has `#![forbid(unsafe_code)]`.
    pub(super) forbids_unsafe: bool,
    /// Lines with the word `unsafe`, tests included.
    pub(super) unsafe_lines: Vec<usize>,
    /// Uses of [`WORLD`] outside of tests.
    pub(super) worldly: Vec<Use>,
    /// Uses of what one operating system has, tests included: [`ONE_SYSTEM`] and conditions of compilation.
    pub(super) of_one_system: Vec<Use>,
    /// Paths in the same crate outside of tests, without `crate`.
    pub(super) own: Vec<Vec<String>>,
    /// Paths in `use` declarations outside of tests.
    pub(super) uses: Vec<Vec<String>>,
}

/// A path of the standard library or a condition in use.
#[derive(Debug)]
pub(super) struct Use {
    pub(super) path: String,
    pub(super) line: usize,
}

/// Paths of the standard library that reach a socket, file, clock, thread, process or environment.
/// IP and socket addresses are data, and so are durations.
const WORLD: &[&[&str]] = &[
    &["std", "env"],
    &["std", "fs"],
    &["std", "net", "TcpListener"],
    &["std", "net", "TcpStream"],
    &["std", "net", "ToSocketAddrs"],
    &["std", "net", "UdpSocket"],
    &["std", "os"],
    &["std", "process"],
    &["std", "thread"],
    &["std", "time", "Instant"],
    &["std", "time", "SystemTime"],
];

/// Modules of `std::os` that not every operating system has.
const ONE_SYSTEM: &[&str] = &["fd", "linux", "unix", "windows"];

/// Names in `cfg(...)` that distinguish operating systems.
const CONDITIONS: &[&str] = &["target_family", "target_os", "unix", "windows"];

/// Reads one file.
pub(super) fn scan(text: &str) -> Result<Scan> {
    let tokens: TokenStream = text.parse().map_err(|error| anyhow!("{error}"))?;
    let mut scan = Scan::default();
    walk(tokens, false, &mut scan);
    Ok(scan)
}

fn walk(stream: TokenStream, mut in_test: bool, scan: &mut Scan) {
    let outer = in_test;
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Group(group) => {
                let text = squeeze(group.stream());
                if group.delimiter() == Delimiter::Bracket && text == "cfg(test)" {
                    in_test = true;
                } else if group.delimiter() == Delimiter::Bracket && text == "forbid(unsafe_code)" {
                    scan.forbids_unsafe = true;
                } else {
                    walk(group.stream(), in_test, scan);
                    // The item with `cfg(test)` ends with its body.
                    if group.delimiter() == Delimiter::Brace {
                        in_test = outer;
                    }
                }
                at += 1;
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => {
                in_test = outer;
                at += 1;
            }
            TokenTree::Ident(ident) => {
                let line = ident.span().start().line;
                if ident == "unsafe" {
                    scan.unsafe_lines.push(line);
                }
                if ident == "std" && !in_test {
                    for path in paths(&tokens[at..]) {
                        if reaches_the_world(&path.0) {
                            scan.worldly.push(Use { path: path.0.join("::"), line: path.1 });
                        }
                    }
                }
                if ident == "std" {
                    let paths = paths(&tokens[at..]).into_iter().filter(|(path, _)| is_of_one_system(path));
                    scan.of_one_system.extend(paths.map(|(path, line)| Use { path: path.join("::"), line }));
                }
                if (ident == "cfg" || ident == "cfg_attr")
                    && let Some(condition) = condition(&tokens[at + 1..])
                {
                    scan.of_one_system.push(Use { path: format!("cfg({condition})"), line });
                }
                if ident == "crate" && !in_test {
                    // `pub(crate)` names no path.
                    scan.own.extend(paths(&tokens[at..]).into_iter().map(|(path, _)| path[1..].to_vec()));
                }
                if ident == "use" && !in_test {
                    scan.uses.extend(paths(&tokens[at + 1..]).into_iter().map(|(path, _)| path));
                }
                at += 1;
            }
            _ => at += 1,
        }
    }
}

/// Returns the tokens' text without white space.
fn squeeze(stream: TokenStream) -> String {
    stream.to_string().split_whitespace().collect()
}

/// Returns the path that starts at the first token, with the line of its last part. A path that ends in braces gives
/// several.
fn paths(tokens: &[TokenTree]) -> Vec<(Vec<String>, usize)> {
    let mut path = Vec::new();
    let mut line = 0;
    let mut at = 0;
    loop {
        match tokens.get(at) {
            Some(TokenTree::Ident(ident)) => {
                line = ident.span().start().line;
                if ident != "self" {
                    path.push(ident.to_string());
                }
            }
            Some(TokenTree::Punct(star)) if star.as_char() == '*' => path.push("*".to_owned()),
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                return inner
                    .split(|token| matches!(token, TokenTree::Punct(comma) if comma.as_char() == ','))
                    .filter(|part| !part.is_empty())
                    .flat_map(paths)
                    .map(|(tail, line)| (path.iter().cloned().chain(tail).collect(), line))
                    .collect();
            }
            _ => break,
        }
        let colons = tokens.get(at + 1..at + 3).is_some_and(|next| next.iter().all(is_colon));
        if !colons {
            break;
        }
        at += 3;
    }
    vec![(path, line)]
}

/// Returns whether the path names a module of [`ONE_SYSTEM`], or all of `std::os`.
fn is_of_one_system(path: &[String]) -> bool {
    let [first, second, rest @ ..] = path else { return false };
    let system = first == "std" && second == "os";
    system && rest.first().is_none_or(|module| module == "*" || ONE_SYSTEM.contains(&module.as_str()))
}

/// Returns the name of [`CONDITIONS`] in the parentheses of a `cfg`, `cfg!` or `cfg_attr` whose tokens follow its name.
fn condition(tokens: &[TokenTree]) -> Option<String> {
    let group = tokens.iter().take(2).find_map(|token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => Some(group.stream()),
        _ => None,
    });
    find_condition(group?)
}

fn find_condition(stream: TokenStream) -> Option<String> {
    stream.into_iter().find_map(|token| match token {
        TokenTree::Ident(ident) => Some(ident.to_string()).filter(|name| CONDITIONS.contains(&name.as_str())),
        TokenTree::Group(group) => find_condition(group.stream()),
        _ => None,
    })
}

fn is_colon(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == ':')
}

/// Returns whether the path names an item of [`WORLD`], or a module or glob that includes one.
fn reaches_the_world(path: &[String]) -> bool {
    let (globbed, named) = match path.split_last() {
        Some((last, rest)) if last == "*" => (true, rest),
        _ => (false, path),
    };
    let whole_module = globbed || named.len() > 1;
    WORLD.iter().any(|banned| {
        let shared = banned.iter().zip(named).take_while(|(banned, part)| *banned == part).count();
        shared == banned.len() || (whole_module && shared == named.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worldly(text: &str) -> Vec<String> {
        scan(text).unwrap().worldly.into_iter().map(|each| each.path).collect()
    }

    #[test]
    fn finds_every_way_to_reach_the_world() {
        for (text, path) in [
            ("use std::fs;", "std::fs"),
            ("use std::fs::File;", "std::fs::File"),
            ("use std::{fmt, net::{IpAddr, TcpStream}};", "std::net::TcpStream"),
            ("use std::net::{self, IpAddr};", "std::net"),
            ("use std::net::*;", "std::net::*"),
            ("use std::*;", "std::*"),
            ("use std::time::{Duration, Instant as Clock};", "std::time::Instant"),
            ("fn f() { let t = std::time::SystemTime::now(); }", "std::time::SystemTime::now"),
            ("fn f() { println!(\"{:?}\", std::env::args()); }", "std::env::args"),
            ("#[cfg(test)] mod t { } use std::thread;", "std::thread"),
            ("#[cfg(test)] use a::b; use std::process;", "std::process"),
            ("const X: usize = ::std::process::id() as usize;", "std::process::id"),
        ] {
            assert_eq!(worldly(text), [path], "{text}");
        }
    }

    #[test]
    fn passes_data_comments_strings_and_tests() {
        for text in [
            "use std::net::{IpAddr, SocketAddr};",
            "use std::time::Duration;",
            "use std::{collections::BTreeMap, fmt};",
            "// use std::fs;\n/* std::thread */ const X: &str = \"std::fs::read\";",
            "//! std::fs is not for us\n/// std::env neither\nstruct A;",
            "#[cfg(test)]\nmod tests { use std::fs; fn f() { std::thread::yield_now() } }",
            "#[cfg(test)] use std::fs;",
            "use crate::std_like::fs;",
            "const V: &str = env!(\"CARGO_PKG_VERSION\");",
        ] {
            assert_eq!(worldly(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn finds_unsafe_and_its_ban() {
        let text =
            "#![forbid(unsafe_code)]\n// unsafe\nfn f() {\n unsafe { g() }\n}\n#[cfg(test)] mod t { unsafe fn h() {} }";
        let scan = scan(text).unwrap();
        assert!(scan.forbids_unsafe);
        assert_eq!(scan.unsafe_lines, [4, 6]);
        assert!(!super::scan("// #![forbid(unsafe_code)]").unwrap().forbids_unsafe);
    }

    #[test]
    fn finds_what_one_operating_system_has() {
        for (text, path) in [
            ("#[cfg(target_os = \"linux\")] fn f() {}", "cfg(target_os)"),
            ("#[cfg(unix)] mod a;", "cfg(unix)"),
            ("#[cfg(all(test, not(windows)))] mod a {}", "cfg(windows)"),
            ("#[cfg_attr(windows, ignore)] fn f() {}", "cfg(windows)"),
            ("fn f() { if cfg!(unix) {} }", "cfg(unix)"),
            ("use std::os::fd::AsFd as _;", "std::os::fd::AsFd"),
            ("use std::{fs, os::unix::fs::symlink};", "std::os::unix::fs::symlink"),
            (
                "#[cfg(test)] mod tests { use std::os::linux::net::SocketAddrExt; }",
                "std::os::linux::net::SocketAddrExt",
            ),
            ("use std::os;", "std::os"),
        ] {
            let found: Vec<String> = scan(text).unwrap().of_one_system.into_iter().map(|each| each.path).collect();
            assert_eq!(found, [path], "{text}");
        }
        for text in [
            "// #[cfg(unix)]",
            "#[cfg(test)] mod tests {}",
            "#[cfg(feature = \"unix\")] fn f() {}",
            "#[cfg(target_arch = \"x86_64\")] fn f() {}",
            "use std::os::raw::c_int;",
            "const NAME: &str = \"std::os::unix\";",
        ] {
            assert!(scan(text).unwrap().of_one_system.is_empty(), "{text}");
        }
    }

    #[test]
    fn use_has_the_line_of_its_last_part() {
        assert_eq!(scan("fn f() {}\n\nuse std::{\n  fmt,\n  fs,\n};").unwrap().worldly[0].line, 5);
    }

    #[test]
    fn text_that_is_not_rust_is_refused() {
        assert!(scan("fn f( {").is_err());
    }
}
