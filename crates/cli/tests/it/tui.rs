//! The display on a terminal, and the terminal after it.

use crate::program::{TestFolder, children, wait_until_gone, words};
use linerate_testsuite::servers::Tmux;
use linerate_testsuite::{server_test, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsStr;

#[test]
fn without_a_terminal_the_display_is_refused() {
    let ran = TestFolder::new().run(&words("stream local --tui --time 100ms"));
    ran.says(2, &["--tui draws on a terminal", "leave --tui out"]);
    assert_eq!(ran.out, "");
}

/// A terminal of 80 columns and 24 rows, on whose screen something stands already.
fn terminal(place: &TestFolder) -> Tmux {
    let (folder, store) = (place.directory.path(), place.path("results.db"));
    let environment: [(&str, &OsStr); 4] = [
        ("LINERATE", OsStr::new(env!("CARGO_BIN_EXE_linerate"))),
        ("LINERATE_STORE", store.as_os_str()),
        ("XDG_RUNTIME_DIR", folder.as_os_str()),
        ("XDG_DATA_HOME", folder.as_os_str()),
    ];
    let terminal = Tmux::start(folder, 80, 24, &environment);
    terminal.line("stty -g > before; echo the screen\" before\"");
    wait_for(&terminal, "the shell", |screen| screen.contains("the screen before"));
    terminal
}

/// Runs a command with a display in a lab. Returns the program and the agents of its hosts.
fn start(terminal: &Tmux, command: &str) -> Vec<i32> {
    terminal.line(&format!("$LINERATE lab --hosts 2 --link 10Mbit/s -- {command} --tui; echo exit\" code\" $?"));
    wait_for(terminal, "a rate after the warm-up", |screen| screen.contains("window so far"));
    let shell = terminal.property("#{pane_pid}").parse().expect("a process");
    let programs = children(shell);
    let agents: Vec<i32> = programs.iter().flat_map(|program| children(*program)).collect();
    assert!(agents.len() >= 2, "{agents:?}");
    programs.into_iter().chain(agents).collect()
}

/// Waits until the screen is as `wanted`, and returns it.
fn wait_for(terminal: &Tmux, what: &str, wanted: impl Fn(&str) -> bool) -> String {
    wait_until(what, || Some(terminal.screen()).filter(|screen| wanted(screen)))
}

/// Whether a verdict stands below the results.
fn tells_the_limit(history: &str) -> bool {
    ["Limited by", "What limited it cannot be told"].iter().any(|verdict| history.contains(verdict))
}

/// Demands that the program ended with `code`, and that the terminal is as it was before it.
fn is_given_back(place: &TestFolder, terminal: &Tmux, code: u8) -> String {
    wait_for(terminal, "the shell has the terminal", |screen| screen.contains(&format!("exit code {code}")));
    assert_eq!(terminal.property("#{alternate_on} #{cursor_flag}"), "0 1", "alternate screen and cursor");
    terminal.line("stty -g > after; echo the line\" discipline\"");
    wait_for(terminal, "the shell", |screen| screen.contains("the line discipline"));
    let line_discipline = |name| std::fs::read_to_string(place.path(name)).expect("stty(1) wrote it");
    assert_eq!(line_discipline("after"), line_discipline("before"));
    let history = terminal.history();
    assert!(history.contains("the screen before") && !history.contains("CPU, busiest thread"), "{history}");
    history
}

#[server_test(Root, Program("tmux"))]
fn a_run_is_shown_at_any_size_until_q_stops_it_and_prints_what_was_measured() {
    let place = TestFolder::new();
    let terminal = terminal(&place);
    let programs = start(&terminal, "stream a b --time 1s --warmup 500ms --repeats 1000");
    // The row of the first run, whatever limits it: how confident the verdict is depends on the machine.
    let has_result = |line: &str| line.starts_with("│  tcp ") && line.contains("bit/s");
    let screen = wait_for(&terminal, "a result", |screen| screen.lines().any(has_result));
    for shown in ["tcp  run ", "Received ", " Mbit/s", "│a ", "│b ", "retransmits in this run", "q, Esc or Ctrl-C"]
    {
        assert!(screen.contains(shown), "`{shown}` is missing in\n{screen}");
    }
    let corners = |columns: usize| {
        move |screen: &str| screen.lines().any(|line| line.ends_with('┐') && line.chars().count() == columns)
    };
    assert!(corners(80)(&screen), "{screen}");
    terminal.resize(132, 50);
    wait_for(&terminal, "132 columns", corners(132));
    terminal.resize(20, 5);
    wait_for(&terminal, "20 columns", |screen| !screen.contains('┐') && screen.contains("bit/s"));
    terminal.resize(80, 24);
    wait_for(&terminal, "80 columns again", corners(80));
    terminal.key("q");
    let history = is_given_back(&place, &terminal, 3);
    assert!(history.contains("interrupted") && tells_the_limit(&history), "{history}");
    wait_until_gone(&programs);
    assert!(place.trials() >= 1);
}

#[server_test(Root, Program("tmux"))]
fn the_terminal_is_given_back_by_ctrl_c_by_a_signal_and_by_an_error() {
    let place = TestFolder::new();
    let terminal = terminal(&place);
    for end in ["Escape", "C-c", "signal", "error"] {
        terminal.line("clear; echo the screen\" before\"");
        let programs = start(&terminal, "transact a b --time 300s --warmup 500ms --repeats 1");
        let send = |to: i32, signal| kill(Pid::from_raw(to), signal).expect("it runs");
        match end {
            "signal" => send(programs[0], Signal::SIGTERM),
            "error" => send(programs[1], Signal::SIGKILL),
            key => terminal.key(key),
        }
        let history = is_given_back(&place, &terminal, 3);
        assert_eq!(history.contains("interrupted"), end != "error", "{end}: {history}");
        wait_until_gone(&programs);
        terminal.line("clear");
    }
}

#[server_test(Root, Program("tmux"))]
fn a_run_that_ends_by_itself_leaves_its_results_on_the_screen() {
    let place = TestFolder::new();
    let terminal = terminal(&place);
    start(&terminal, "stream a b --udp --time 1s --warmup 500ms --repeats 2");
    let history = is_given_back(&place, &terminal, 0);
    assert!(history.contains("udp 1472") && tells_the_limit(&history), "{history}");
}

#[server_test(Root, Program("tmux"))]
fn a_terminal_that_is_closed_ends_the_run() {
    let place = TestFolder::new();
    let terminal = terminal(&place);
    let programs = start(&terminal, "stream a b --time 300s --warmup 500ms --repeats 1");
    drop(terminal);
    wait_until_gone(&programs);
}
