//! Measures the pages of a fleet: fills a store with the newest results of all pairs of hosts, and prints how long each page
//! takes and how large it is.
//!
//!     cargo run --release -p linerate-view --example fleet_pages -- [HOSTS [SITES [postgres]]]
//!     cargo run --release -p linerate-view --example fleet_pages -- STORE     # serve a store until Enter is pressed

use linerate_report::Language;
use linerate_store::{FleetHost, Store, StoreLocation};
use linerate_testsuite::servers::Postgres;
use linerate_view::{Key, View};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Requests of each page.
const REPEATS: usize = 9;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next().unwrap_or_else(|| "1000".to_owned());
    let Ok(hosts) = first.parse::<u32>() else {
        let runtime = tokio::runtime::Runtime::new()?;
        let (view, _) = runtime.block_on(serve(Store::open(&first.parse()?)?))?;
        println!("{}", view.address());
        std::io::stdin().read_line(&mut String::new())?;
        return Ok(());
    };
    let sites = arguments.next().map_or(Ok(20), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("results.db");
    // The server ends when it is dropped.
    let server = (arguments.next().as_deref() == Some("postgres")).then(Postgres::start);
    let location: StoreLocation = match &server {
        Some(server) => server.create_database("fleet").parse()?,
        None => StoreLocation::file(&path),
    };
    let now = put_hosts(&Store::open(&location)?, hosts, sites)?;
    let statements = STATEMENTS.replace("NOW", &now.to_string());
    match &server {
        Some(server) => drop(server.sql("fleet", &format!("{statements} ANALYZE;"))),
        None => rusqlite::Connection::open(&path)?.execute_batch(&format!("BEGIN; {statements} COMMIT;"))?,
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let (view, address) = runtime.block_on(serve(Store::open(&location)?))?;
    println!("{hosts} hosts at {sites} sites, {} pairs", u64::from(hosts) * u64::from(hosts));
    println!("{:<48} {:>10} {:>10} {:>12}", "page", "median", "worst", "bytes");
    for page in [
        "",
        "fleet",
        "fleet?by=host",
        "fleet?by=host&row=9&column=9",
        "fleet?by=host&from=site-03&to=site-07",
        "fleet?by=host&text=host-0012",
        "fleet/pair?from=host-0001&to=host-0002",
        "fleet/changes",
        "fleet/sites",
        "fleet/matrix.json?by=site",
    ] {
        let url = view.address().rsplit_once(&address.to_string()).map_or("", |(_, path)| path);
        let mut times = Vec::new();
        let mut bytes = 0;
        for _ in 0..REPEATS {
            let start = Instant::now();
            bytes = get(address, &format!("{url}{page}"))?;
            times.push(start.elapsed());
        }
        times.sort();
        println!(
            "{page:<48} {:>7} ms {:>7} ms {bytes:>12}",
            times[REPEATS / 2].as_millis(),
            times[REPEATS - 1].as_millis()
        );
    }
    Ok(())
}

async fn serve(store: Store) -> Result<(View, SocketAddr), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    Ok((View::start(listener, store, Key::generate(), Language::English, None).await?, address))
}

/// Gets a page. Returns its size.
fn get(address: SocketAddr, path: &str) -> Result<usize, Box<dyn Error>> {
    let mut connection = TcpStream::connect(address)?;
    write!(connection, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer)?;
    if !answer.starts_with(b"HTTP/1.1 200") {
        return Err(format!("{path}: {}", String::from_utf8_lossy(&answer)).into());
    }
    Ok(answer.len())
}

/// Stores the hosts. Returns the time at which they were seen.
fn put_hosts(store: &Store, hosts: u32, sites: u32) -> Result<u64, Box<dyn Error>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64;
    let host = |number: u32| FleetHost {
        name: format!("host-{number:04}"),
        labels: BTreeMap::from([("site".to_owned(), format!("site-{:02}", number % sites))]),
        seen_unix_ns: now,
    };
    store.put_hosts(&(0..hosts).map(host).collect::<Vec<_>>())?;
    Ok(now)
}

/// Writes a newest result of each pair: one in 50 is slow, one in 200 has changed in the last 10 hours. Of each changed pair the result
/// as well, which the page of changes reads.
const STATEMENTS: &str = "
    INSERT INTO pair_latest (test, from_host, to_host, from_site, to_site, started_unix_ns, value, badness, unit, quantity,
        link_share, limit_name, confidence, record, changed, results)
    SELECT 'stream --time 5s', f.name, t.name, f.site, t.site, NOW - (f.place * 7919 + t.place * 104729) % 36000 * 1000000000,
        rate, -rate, 'bit/s', 'payload_bps', rate / 1e9, CASE WHEN rate < 5e8 THEN 'shaper' ELSE 'wire' END, 'high',
        NULL, CASE WHEN (f.place * 31 + t.place * 17) % 200 = 0 THEN 1 ELSE 0 END, 1
    FROM (SELECT name, site, row_number() OVER (ORDER BY name) AS place FROM fleet_host) AS f
    CROSS JOIN (SELECT name, site, row_number() OVER (ORDER BY name) AS place FROM fleet_host) AS t
    JOIN (SELECT 0 AS slow, 9.41e8 AS rate UNION ALL SELECT 1, 9.4e7) AS speed
        ON speed.slow = CASE WHEN (f.place * 13 + t.place * 7) % 50 = 0 THEN 1 ELSE 0 END;
    INSERT INTO pair_axis SELECT DISTINCT test, 'from', from_host FROM pair_latest;
    INSERT INTO pair_axis SELECT DISTINCT test, 'to', to_host FROM pair_latest;
    INSERT INTO site_latest SELECT test, from_site, to_site, count(*), sum(results), max(started_unix_ns),
        max(CASE WHEN changed = 1 THEN started_unix_ns ELSE 0 END), '', '' FROM pair_latest GROUP BY test, from_site, to_site;
    UPDATE site_latest SET (worst_from, worst_to) = (SELECT from_host, to_host FROM pair_latest AS pair
        WHERE pair.test = site_latest.test AND pair.from_site = site_latest.from_site AND pair.to_site = site_latest.to_site
        ORDER BY badness DESC LIMIT 1);
    INSERT INTO pair_result (record, test, from_host, to_host, started_unix_ns, value, unit, quantity, link_share, limit_name,
        confidence, changed, value_before)
    SELECT from_host || '-' || to_host, test, from_host, to_host, started_unix_ns, value, unit, quantity, link_share, limit_name,
        confidence, 1, 9.0e8 FROM pair_latest WHERE changed = 1;";
