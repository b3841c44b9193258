//! (c) The same over loopback HTTP: the real server in this process, clients on threads with
//! connections that stay open. CPU time of the server is the process's without the clients' threads'.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    sync::Arc,
    thread,
    time::Duration,
};

use base::{Clock, Ctx, Limits, Rng, SystemClock, SystemRng};
use d1::{D1, NewDatabase};
use server::{App, ServerConfig};
use tokio::{net::TcpListener, runtime::Runtime, sync::oneshot};

use crate::{
    commits::INSERT,
    engine::{FILL, READ, ROWS, SCAN, SCAN_ROWS},
    measure::{Noise, Sample, process_cpu},
    table::Line,
};

const OWNER_KEY: &str = "the-owner-key-of-the-benchmark";

/// What a line measures.
enum Work {
    Read,
    Scan,
    Insert,
}

/// What bare rusqlite did of the same.
pub struct Baselines {
    /// Primary-key reads.
    pub read: Sample,
    /// Scans of 100 rows.
    pub scan: Sample,
    /// Durable inserts, one by one.
    pub insert: Sample,
}

/// Measures every case for `time`.
pub fn run(folder: &Path, time: Duration, runtime: &Runtime, baselines: &Baselines) -> Vec<Line> {
    let server = Server::start(&folder.join("served"), runtime);
    let mut lines = Vec::new();
    let mut n_inserts = 0;
    for (name, work, callers) in [
        ("primary-key read", Work::Read, 1),
        ("primary-key read", Work::Read, 8),
        ("scan of 100 rows", Work::Scan, 1),
        ("scan of 100 rows", Work::Scan, 8),
        ("durable insert", Work::Insert, 1),
        ("durable insert", Work::Insert, 8),
        ("durable insert", Work::Insert, 64),
    ] {
        let (before, cpu) = (server.d1.log_stats(), process_cpu());
        let sample = server.measure(&work, callers, time);
        let (after, cpu) = (server.d1.log_stats(), process_cpu() - cpu);
        let baseline = match work {
            Work::Read => &baselines.read,
            Work::Scan => &baselines.scan,
            Work::Insert => &baselines.insert,
        };
        let server_cpu = cpu.saturating_sub(sample.caller_cpu);
        let ops = sample.ops;
        let line = Line::new(format!("{name}: HTTP, {callers} connections"), sample, baseline).with_cpu(server_cpu);
        lines.push(match work {
            Work::Insert => {
                n_inserts += ops;
                let commits = (after.commits - before.commits) as f64 / (after.syncs - before.syncs).max(1) as f64;
                line.with_note(format!("{commits:.1} commits a sync"))
            }
            Work::Read | Work::Scan => line,
        });
    }
    let mut client = Client::connect(server.address, &server.path);
    let count = client.query("SELECT count(*) AS n FROM t WHERE id >= ?1", 0);
    assert!(count.contains(&format!("\"n\":{}", ROWS + n_inserts)), "every acknowledged insert is there: {count}");
    server.stop(runtime);
    lines
}

struct Server {
    d1: Arc<D1>,
    address: SocketAddr,
    /// Of the database's queries.
    path: String,
    stop: oneshot::Sender<()>,
    served: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Server {
    fn start(root: &Path, runtime: &Runtime) -> Self {
        std::fs::create_dir(root).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let rng: Arc<dyn Rng> = Arc::new(SystemRng);
        let config = d1::Config {
            root: root.to_owned(),
            disk: Arc::new(log::LocalDisk),
            limits: Limits::d1_paid(),
            clock: Arc::clone(&clock),
            rng: Arc::clone(&rng),
            region: "WEUR".to_owned(),
            open_databases_max: 16,
            on_poison: Arc::new(|why| panic!("the log is poisoned: {why}")),
        };
        let guard = runtime.enter();
        let d1 = D1::open(config).unwrap();
        drop(guard);
        let ctx = Ctx::owner(Arc::clone(&clock), Arc::clone(&rng));
        let id = runtime.block_on(async {
            let id = d1.create(&ctx, NewDatabase { name: "bench".to_owned(), ..NewDatabase::default() }).await.unwrap().id;
            d1.query(&ctx, "bench", d1::Batch::sql(FILL)).await.unwrap();
            id
        });
        let config = ServerConfig { owner_key: OWNER_KEY.to_owned(), ..ServerConfig::default() };
        let path = format!("/client/v4/accounts/{}/d1/database/{id}/query", config.account);
        let app = App::new(Arc::clone(&d1), config, clock, rng);
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let served = runtime.spawn(server::serve(app, listener, async move { drop(stopped.await) }));
        Self { d1, address, path, stop, served }
    }

    fn measure(&self, work: &Work, callers: u64, time: Duration) -> Sample {
        let mut all = Sample::default();
        thread::scope(|scope| {
            let threads: Vec<_> = (0..callers)
                .map(|n| {
                    scope.spawn(move || {
                        let mut client = Client::connect(self.address, &self.path);
                        let mut noise = Noise::new(n + 1);
                        Sample::take(time, || match work {
                            Work::Read => client.rows(READ, noise.below(ROWS), 1),
                            Work::Scan => client.rows(SCAN, noise.below(ROWS - SCAN_ROWS), SCAN_ROWS),
                            Work::Insert => client.rows(INSERT, 7, 0),
                        })
                    })
                })
                .collect();
            for thread in threads {
                all.join(thread.join().unwrap());
            }
        });
        all
    }

    fn stop(self, runtime: &Runtime) {
        drop(self.stop);
        runtime.block_on(self.served).unwrap().unwrap();
        runtime.block_on(self.d1.shutdown());
    }
}

/// As little of HTTP as it takes, so that the client's share of the machine stays small.
struct Client {
    stream: BufReader<TcpStream>,
    head: String,
    body: Vec<u8>,
}

impl Client {
    fn connect(address: SocketAddr, path: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {OWNER_KEY}\r\ncontent-type: application/json\r\ncontent-length: "
        );
        Self { stream: BufReader::with_capacity(64 * 1024, stream), head, body: Vec::new() }
    }

    /// Sends one statement; it must succeed with so many rows.
    fn rows(&mut self, sql: &str, parameter: u64, rows: u64) {
        let answer = self.query(sql, parameter);
        assert!(answer.contains("\"success\":true"), "{answer}");
        assert_eq!(answer.matches("\"name\":").count() as u64, rows, "{answer}");
    }

    fn query(&mut self, sql: &str, parameter: u64) -> &str {
        let body = format!("{{\"sql\":{},\"params\":[{parameter}]}}", serde_json::Value::from(sql));
        let request = format!("{}{}\r\n\r\n{body}", self.head, body.len());
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
        let mut line = String::new();
        let mut length = 0;
        loop {
            line.clear();
            assert_ne!(self.stream.read_line(&mut line).unwrap(), 0, "the server has hung up");
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim_end().parse().unwrap();
            }
        }
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body).unwrap();
        std::str::from_utf8(&self.body).unwrap()
    }
}
