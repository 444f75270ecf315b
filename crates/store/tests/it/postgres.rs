//! The suite of both backends on PostgreSQL.

use crate::place::{Case, Place};
use crate::sample::{record, summary, trial};
use linerate_store::{Ending, RetentionPolicy, State, Store, StoreError};
use linerate_testsuite::servers::{ADMINISTRATOR, GUARDED_ROLE, Postgres};
use linerate_testsuite::{server_test, wait_until};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Runs tests, each in a database of its own. Panics at the end if one has failed.
fn run(server: &Postgres, cases: &[Case]) {
    let mut failed = Vec::new();
    for (number, (name, case)) in cases.iter().enumerate() {
        println!("{name}");
        let database = format!("case_{number}");
        server.create_database(&database);
        let place = Place::Database { server, name: database };
        // The others say more of what is wrong.
        if catch_unwind(AssertUnwindSafe(|| case(&place))).is_err() {
            failed.push(*name);
        }
    }
    assert!(failed.is_empty(), "failed on PostgreSQL: {failed:?}");
}

#[server_test(Program("pg_ctlcluster|postgres"))]
fn the_suite_of_both_backends_passes() {
    let server = Postgres::start();
    let cases = [
        crate::store::CASES,
        crate::listing::CASES,
        crate::changed::CASES,
        crate::live_run::CASES,
        crate::pairs::CASES,
    ];
    run(&server, &cases.concat());
}

fn open(url: &str) -> Result<Store, StoreError> {
    Store::open(&url.parse().expect("a URL"))
}

fn refused(url: &str) -> String {
    open(url).err().expect("it is refused").to_string()
}

/// Each trial is stored once, whatever the server was doing as it ended, and the run stays this program's.
#[server_test(Program("pg_ctlcluster|postgres"))]
fn trials_outlive_crashes_of_the_server() {
    const TRIALS: u64 = 300;
    let mut server = Postgres::start();
    let url = server.create_database("crashes");
    let store = open(&url).expect("opens");
    let mut live = store.begin(&record("one", 1)).expect("begin");
    let stored = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 0..TRIALS {
                live.trial(&trial(number), &summary(number as f64)).expect("trial");
                stored.store(number, Ordering::Relaxed);
            }
            live
        });
        for crash in 1..=3 {
            wait_until("some trials are stored", || (stored.load(Ordering::Relaxed) >= crash * 50).then_some(()));
            server.crash();
            server.resume();
        }
        let live = writer.join().expect("every trial is stored");
        let other = open(&url).expect("opens");
        let error = other.resume("one").map(drop).expect_err("it is measured");
        assert!(matches!(error, StoreError::Running { .. }), "{error:?}");
        live.end(&record("one", 1), Ending::Finished).expect("end");
    });
    let loaded = store.load("one").expect("load");
    let numbers: Vec<u64> = loaded.trials.iter().map(|trial| trial.started_unix_ns).collect();
    assert_eq!(numbers, (0..TRIALS).collect::<Vec<_>>());
    let row = store.row("one").expect("row");
    assert_eq!((row.state, u64::from(row.attempts)), (State::Finished, TRIALS));
}

/// Nothing is written during a trial, and the run must not count as killed.
#[server_test(Program("pg_ctlcluster|postgres"))]
fn lock_is_taken_again_without_a_statement() {
    let mut server = Postgres::start();
    let url = server.create_database("idle");
    let store = open(&url).expect("opens");
    let live = store.begin(&record("one", 1)).expect("begin");
    server.crash();
    server.resume();
    wait_until("the lock is held again", || {
        let locks = server.sql("idle", "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2");
        (locks == "1").then_some(())
    });
    assert_eq!(open(&url).expect("opens").row("one").expect("row").state, State::Running);
    live.end(&record("one", 1), Ending::Finished).expect("end");
}

/// A program whose connection was cut does not go on with a run that another took over.
#[server_test(Program("pg_ctlcluster|postgres"))]
fn run_that_another_program_took_over_takes_no_more_trials() {
    let server = Postgres::start();
    let url = server.create_database("taken");
    let store = open(&url).expect("opens");
    let mut live = store.begin(&record("one", 1)).expect("begin");
    live.trial(&trial(0), &summary(1.0)).expect("trial");
    let other = open(&url).expect("opens");
    let (_, theirs) = wait_until("the lock is free", || {
        // Again if the program was faster to take its lock again.
        server.sql("taken", "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'");
        other.resume("one").ok()
    });
    let error = live.trial(&trial(1), &summary(1.0)).expect_err("it was taken over");
    assert!(matches!(error, StoreError::TakenOver { .. }), "{error:?}");
    theirs.end(&record("one", 1), Ending::Finished).expect("end");
    assert_eq!(store.load("one").expect("load").trials.len(), 1);
}

#[server_test(Program("pg_ctlcluster|postgres"))]
fn role_that_may_only_read_reads_and_is_refused_to_write() {
    let server = Postgres::start();
    let url = server.create_database("readable");
    let reader = server.url("reader", "readable");
    server.sql(
        "readable",
        "CREATE ROLE reader LOGIN; REVOKE ALL ON SCHEMA public FROM PUBLIC; GRANT USAGE ON SCHEMA public TO reader",
    );
    let error = refused(&reader);
    assert!(error.contains("has no tables of linerate") && error.contains("as a user who may"), "{error}");

    let store = open(&url).expect("opens");
    let mut live = store.begin(&record("one", 1)).expect("begin");
    live.trial(&trial(0), &summary(1.0)).expect("trial");
    server.sql("readable", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader");
    drop(live);
    let read = open(&reader).expect("it may read");
    assert_eq!(read.load("one").expect("load").trials.len(), 1);
    wait_until("it counts as killed, though that cannot be written", || {
        (read.row("one").expect("row").state == State::Killed).then_some(())
    });
    for error in [read.begin(&record("two", 1)).map(drop), read.delete("one").map(drop)] {
        let error = error.expect_err("it may not write");
        assert!(matches!(error, StoreError::NotWritable { .. }), "{error:?}");
        assert!(error.to_string().contains("grant this role"), "{error}");
    }
    server.sql("readable", "ALTER ROLE linerate SET default_transaction_read_only = on");
    let read = open(&url).expect("a server that is read-only is read");
    let error = read.begin(&record("two", 1)).map(drop).expect_err("it may not write").to_string();
    assert!(error.contains("read-only"), "{error}");
}

#[server_test(Program("pg_ctlcluster|postgres"))]
fn older_tables_are_migrated_and_newer_ones_are_refused() {
    let server = Postgres::start();
    let url = server.create_database("versions");
    let store = open(&url).expect("opens");
    store.begin(&record("one", 1)).expect("begin").end(&record("one", 1), Ending::Finished).expect("end");
    drop(store);
    // Format 4 had no results of pairs.
    let pair_tables = "pair_result, pair_latest, pair_hour, pair_axis, site_latest, site_hour, fleet_host";
    let make_old = format!("DROP TABLE {pair_tables}; UPDATE linerate_schema SET version = 4");
    server.sql("versions", &make_old);
    server.sql("versions", "CREATE ROLE reader LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader");
    let error = refused(&server.url("reader", "versions"));
    assert!(
        error.contains("older format 4") && error.contains("needs 5") && error.contains("nothing was changed"),
        "{error}"
    );
    assert_eq!(server.sql("versions", "SELECT version FROM linerate_schema"), "4");

    let store = open(&url).expect("it is migrated");
    assert_eq!(store.load("one").expect("load"), record("one", 1));
    assert!(store.tests().expect("tests").is_empty());
    drop(store);
    assert_eq!(server.sql("versions", "SELECT version FROM linerate_schema"), "5");

    server.sql("versions", "UPDATE linerate_schema SET version = 99");
    let error = refused(&url);
    assert!(error.contains("has format 99, and this linerate reads 5 alone"), "{error}");
    assert!(error.contains("nothing was changed"), "{error}");
}

#[server_test(Program("pg_ctlcluster|postgres"))]
fn logins_are_refused_with_a_remedy_and_without_the_password() {
    let mut server = Postgres::start();
    server.create_database("guarded");
    let url = server.url(GUARDED_ROLE, "guarded");
    let without = refused(&url);
    assert!(without.contains("PGPASSWORD") && without.contains("passfile"), "{without}");
    let with_password = |password: &str| url.replace("guarded@", &format!("guarded:{password}@"));
    let wrong = refused(&with_password("wr0ng"));
    assert!(wrong.contains("cannot log in to postgres://guarded@127.0.0.1") && !wrong.contains("wr0ng"), "{wrong}");
    let missing = refused(&server.url(ADMINISTRATOR, "missing"));
    assert!(missing.contains("createdb"), "{missing}");

    server.sql("guarded", "GRANT ALL ON SCHEMA public TO guarded");
    open(&with_password("a%20secret")).expect("the password of the URL");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("passwords");
    std::fs::write(&file, format!("127.0.0.1:{}:*:guarded:{}\n", server.port, Postgres::PASSWORD)).expect("written");
    let store = open(&format!("{url}?passfile={}", file.display())).expect("the password of the file");
    assert!(!store.name().contains("secret"), "{}", store.name());
    assert!(store.feeds().is_empty() && store.file().is_none());

    server.stop();
    let error = refused(&url);
    assert!(error.contains("cannot reach") && error.contains("start the server"), "{error}");
}

/// Bodies are in the partition of their run's month, and a month goes at once.
#[server_test(Program("pg_ctlcluster|postgres"))]
fn bodies_are_partitioned_by_month() {
    const MONTH_NS: u64 = 31 * 86_400_000_000_000;
    let server = Postgres::start();
    let store = open(&server.create_database("months")).expect("opens");
    let start = 1_795_253_400_123_456_789;
    for (id, start) in [("november", start), ("december", start + MONTH_NS), ("early", 1)] {
        let record = record(id, start);
        let mut live = store.begin(&record).expect("begin");
        live.trial(&trial(0), &summary(1.0)).expect("trial");
        live.end(&record, Ending::Finished).expect("end");
    }
    let partitions =
        "SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r' AND relname LIKE 'trial%' ORDER BY 1";
    assert_eq!(server.sql("months", partitions), "trial_2026_11\ntrial_2026_12\ntrial_other");
    for name in ["november", "december", "early"] {
        assert_eq!(store.load(name).expect("load").trials.len(), 1, "{name}");
    }
    let policy = RetentionPolicy { bodies: Some(Duration::from_secs(1)), rollups: None };
    let deleted = store.retain(&policy, start + MONTH_NS).expect("retained");
    assert_eq!(deleted.records, 2);
    assert_eq!(server.sql("months", partitions), "trial_2026_12\ntrial_other");
    assert_eq!(store.load("december").expect("load").trials.len(), 1);
}

/// The store is called from within runtimes, which must not be entered again.
#[server_test(Program("pg_ctlcluster|postgres"))]
fn store_is_used_within_a_runtime() {
    let server = Postgres::start();
    let url = server.create_database("within");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let store = open(&url).expect("opens");
        store.begin(&record("one", 1)).expect("begin").end(&record("one", 1), Ending::Finished).expect("end");
        assert_eq!(store.row("one").expect("row").state, State::Finished);
    });
}
