//! Each file of the corpus on a whole server: HTTP, service, commit log and engine.

use std::{net::SocketAddr, sync::Arc, thread::JoinHandle, time::Duration};

use base::{AccountId, Clock, SystemClock, SystemRng};
use conformance::backend::Rest;
use server::{App, ServerConfig};
use tokio::{net::TcpListener, sync::oneshot};

use crate::files::{check, for_each_file};

const OWNER: &str = "owner-key-of-the-corpus";

/// A server on a fresh data folder, in a thread of its own.
struct Running {
    addr: SocketAddr,
    /// Asks the server to stop when dropped.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn start() -> Self {
        let (ready, address) = std::sync::mpsc::sync_channel(1);
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(serve(ready, stopped));
            runtime.shutdown_timeout(Duration::from_secs(10));
        });
        Self { addr: address.recv().expect("the server says where it listens"), stop: Some(stop), thread: Some(thread) }
    }
}

async fn serve(ready: std::sync::mpsc::SyncSender<SocketAddr>, stopped: oneshot::Receiver<()>) {
    let folder = tempfile::tempdir().unwrap();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let config = d1::Config {
        root: folder.path().to_owned(),
        disk: Arc::new(log::LocalDisk),
        limits: base::Limits::d1_paid(),
        clock: Arc::clone(&clock),
        rng: Arc::new(SystemRng),
        region: "WEUR".to_owned(),
        open_databases_max: 16,
        on_poison: Arc::new(|why| panic!("the log is poisoned: {why}")),
    };
    let d1 = tokio::task::spawn_blocking(move || d1::D1::open(config)).await.unwrap().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    ready.send(listener.local_addr().unwrap()).unwrap();
    let config = ServerConfig { owner_key: OWNER.to_owned(), ..ServerConfig::default() };
    let app = App::new(Arc::clone(&d1), config, clock, Arc::new(SystemRng));
    server::serve(app, listener, async move { drop(stopped.await) }).await.unwrap();
    d1.shutdown().await;
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().expect("the thread is joined once").join();
        assert!(ended.is_ok() || std::thread::panicking(), "the server's thread panicked");
    }
}

fn check_over_http(name: &str) {
    let server = Running::start();
    check(name, &mut Rest::new(&format!("http://{}", server.addr), OWNER, &AccountId::default(), 0));
}

macro_rules! tests {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                check_over_http(stringify!($name));
            }
        )*
    };
}

for_each_file!(tests);
