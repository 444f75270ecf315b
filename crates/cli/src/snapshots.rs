//! What the program says before it measures anything, kept as files: help texts, refused commands, the list of records.
//!
//! `cargo xtask snapshots` writes the files anew, so that a change of wording shows as a difference of a file.

use crate::commands::{help, results, run_command};
use crate::exit::Failure;
use crate::hosts::HostBook;
use clap::Command;
use clap::builder::StyledStr;
use linerate_model::{Confidence, Headline, HeadlineVerdict, Limit, Quantity, RecordId};
use linerate_report::Language;
use linerate_store::{RunRow, State};
use tokio::sync::watch;

/// Compares with the file `tests/snapshots/FOLDER/NAME.snap`.
pub(crate) fn check(folder: &str, name: &str, shown: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(format!("../tests/snapshots/{folder}"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, shown));
}

/// Commands whose help is compared: between them they have all groups of options.
const WITH_HELP: &[&str] = &[
    "linerate",
    "linerate-copy",
    "linerate-device-throughput",
    "linerate-lab",
    "linerate-nfs",
    "linerate-serve",
    "linerate-stream",
];

/// Compares the help of a command and of those below it.
fn check_help(command: &mut Command, name: &str, folder: &str, render: fn(&mut Command) -> StyledStr) {
    let shown = render(command).to_string();
    assert!(shown.contains("Usage: linerate"), "{name}: {shown}");
    if WITH_HELP.contains(&name) {
        check(folder, name, &shown);
    }
    for below in command.get_subcommands_mut().filter(|below| below.get_name() != "help") {
        let name = format!("{name}-{}", below.get_name());
        check_help(below, &name, folder, render);
    }
}

#[test]
fn commands_have_the_help_of_their_snapshots() {
    let on_terminal = |command: Command| {
        let mut command = command.term_width(80);
        command.build();
        command
    };
    check_help(&mut on_terminal(help::short(help::command())), "linerate", "help", Command::render_help);
    check_help(&mut on_terminal(help::command()), "linerate", "help-all", Command::render_long_help);
}

/// Commands that are refused before a host is reached or a file is opened: by the command line, or by the command's plan.
const REFUSED: &[&str] = &[
    "strem a b",
    "stream",
    "stream a b c",
    "stream a,a b",
    "stream a,b b",
    "stream a,,c b",
    "stream linerate://host b",
    "stream http://host:4747 b",
    "stream a b --tcp --udp",
    "stream a b --sizes 64,x",
    "stream a b --udp --size 10",
    "stream a b --udp --size 70K",
    "stream a b --rate fast",
    "stream a b --rate 0",
    "stream a b --direction up",
    "stream a b --flows 0",
    "stream a b --time 1ms",
    "stream a b --time soon",
    "stream a b --repeats 0",
    "stream a b --repeats 3 --confidence 95",
    "stream a b --confidence 20",
    "stream a b --within 0",
    "stream a b --loaded-latency --time 500ms",
    "stream a b --expect speed>=9",
    "stream a b --expect loss<=lots",
    "stream a b --expect p99<200us",
    "stream a b --json --json-stream",
    "stream a b --interval 100ms",
    "stream a b -i 61",
    "stream a b --out report.pdf",
    "stream a b --out nowhere/at/all/report.html",
    "stream a b --lang fr",
    "stream a b --tui --json",
    "stream a b --tui --json-stream",
    "transact a b --request 0",
    "transact a b --rate 0",
    "transact a b --poisson",
    "transact a b --connect --udp",
    "rpc a b --udp --sizes 1M",
    "nfs a b --mix nothing-like-it",
    "nfs a b --rate 100 --curve",
    "nfs a b --response-cap 0 --curve",
    "nfs a :/srv",
    "copy --tree like:nothing a b",
    "copy --tree files=x a b",
    "copy --to discard --into /srv/new a",
    "copy --over path a b",
    "copy --over smb a b",
    "copy a 192.0.2.5:/srv",
    "ladder a,c b",
    "device throughput --ports eth1",
    "device throughput --ports eth1,eth2 --goals fastest",
    "device throughput --ports eth1,eth2 --goals ndr",
    "device echo --ports eth1,eth2 --target 198.18.0.254",
    "frames --ports eth1",
    "frames --ports eth1,eth2 --rate 0",
    "frames --ports eth1,eth2 --time 0s",
    "frames --ports eth1,eth2 --size 20",
    "frames --ports eth1,eth2 --template magic",
    "frames --ports eth1,eth2 --vary ttl:9",
    "limits --medium token-ring",
    "limits --medium fddi --over vlan",
    "limits --over carrier-pigeon",
    "limits --ip 5",
    "limits --out limits.pdf",
    "lab --link fast",
    "lab --hosts 1",
    "lab --device toaster",
    "lab --slow-disk b",
    "lab --json-stream -- stream a b",
    "lab --store FILE -- stream a b",
    "report --rows os",
    "report --rows os --format csv",
    "report --out report.pdf",
    "report nothing.json",
    "compare a b --confidence 20",
    "run nothing.toml",
    "completions tcsh",
];

/// What a user is told of a refused command, with the exit code.
fn told(words: &str) -> (u8, String) {
    let arguments = match help::parse_from(std::iter::once("linerate").chain(words.split_whitespace())) {
        Ok(arguments) => arguments,
        Err(error) => return (2, error.to_string()),
    };
    let (_stop, cancel) = watch::channel(false);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    match runtime.block_on(run_command(arguments.command, HostBook::default(), cancel)) {
        Err(Failure::Usage(message)) => (2, format!("linerate: {message}")),
        Err(Failure::Measure(message)) => (3, format!("linerate: {message}")),
        other => panic!("`linerate {words}` was not refused: {other:?}"),
    }
}

#[test]
fn refused_commands_say_why_and_what_to_do() {
    let messages = REFUSED.iter().map(|words| {
        let (code, message) = told(words);
        format!("$ linerate {words}\n{}\n(exit code {code})\n", message.trim_end())
    });
    check("messages", "refused", &messages.collect::<Vec<_>>().join("\n"));
}

/// A run of `linerate stream` in that state.
fn run(state: State, results: u32, headline: Option<(Quantity, f64)>, verdict: Option<HeadlineVerdict>) -> RunRow {
    RunRow {
        id: RecordId("20261121T093000-4f2a".to_owned()),
        started_unix_ns: 1_795_253_400_000_000_000,
        changed_unix_ns: 1_795_253_460_000_000_000,
        command: ["linerate", "stream", "a", "b", "--udp"].map(str::to_owned).to_vec(),
        kind: "stream".to_owned(),
        study: None,
        group: None,
        state,
        results,
        trials: 3 * results,
        attempts: 3 * results + 1,
        headline: headline.map(|(quantity, value)| Headline {
            result: "udp 1472".to_owned(),
            quantity,
            value,
            unit: quantity.unit(),
            firmness: linerate_model::Firmness::Firm,
            range: None,
            link_share: (quantity == Quantity::PayloadBps).then_some(0.941),
        }),
        verdict,
    }
}

#[test]
fn the_list_of_records_has_a_line_for_each() {
    let verdict = |limit, confidence| Some(HeadlineVerdict { limit, confidence });
    let rate = |value| Some((Quantity::PayloadBps, value));
    let rows = [
        run(State::Running, 0, None, None),
        run(State::Finished, 1, rate(941e6), verdict(Limit::Wire, Confidence::High)),
        run(State::Finished, 12, rate(9.41e9), verdict(Limit::Tester, Confidence::Medium)),
        run(State::Interrupted, 1, Some((Quantity::PerSecond, 24_310.0)), verdict(Limit::Latency, Confidence::High)),
        run(State::Failed, 1, Some((Quantity::FramesPerS, 1_488_095.0)), verdict(Limit::CannotTell, Confidence::Low)),
        run(State::Killed, 1, Some((Quantity::LossRatio, 0.0125)), verdict(Limit::PathLoss, Confidence::Low)),
    ];
    check("messages", "results", &rows.iter().map(results::as_line).collect::<Vec<_>>().join("\n"));
}

#[test]
fn live_lines_have_columns_for_each_kind_of_trial() {
    check("messages", "live", &crate::live_lines::tests::sample(Language::English));
    check("messages", "live-ja", &crate::live_lines::tests::sample(Language::Japanese));
}
