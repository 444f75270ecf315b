//! The suite of both backends on PostgreSQL.

use crate::place::{Case, Place};
use linerate_testsuite::server_test;
use linerate_testsuite::servers::Postgres;
use std::panic::{AssertUnwindSafe, catch_unwind};

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
    let cases = [crate::store::CASES, crate::listing::CASES, crate::changed::CASES, crate::live_run::CASES];
    run(&server, &cases.concat());
}
