//! Starts a server, sends bytes, reads replies.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use base::{Clock, SystemClock, SystemRng};
use serde_json::Value;
use server::{App, ServerConfig};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};

/// The owner's key of every server in these tests.
pub(crate) const OWNER: &str = "owner-key-of-the-tests";
/// Where the account's routes begin.
pub(crate) const ACCOUNT: &str = "/client/v4/accounts/00000000000000000000000000000001";
/// No reply takes longer, unless something hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server over a fresh data folder.
pub(crate) struct Hearth {
    pub(crate) addr: SocketAddr,
    pub(crate) d1: Arc<d1::D1>,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<std::io::Result<()>>,
    _dir: TempDir,
}

impl Hearth {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(set: impl FnOnce(&mut ServerConfig)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let d1_config = d1::Config {
            root: dir.path().to_owned(),
            disk: Arc::new(log::LocalDisk),
            limits: base::Limits::d1_paid(),
            clock: Arc::clone(&clock),
            rng: Arc::new(SystemRng),
            region: "WEUR".to_owned(),
            open_databases_max: 16,
            on_poison: Arc::new(|why| panic!("the log is poisoned: {why}")),
        };
        let d1 = tokio::task::spawn_blocking(move || d1::D1::open(d1_config)).await.unwrap().unwrap();
        let mut config = ServerConfig { owner_key: OWNER.to_owned(), ..ServerConfig::default() };
        set(&mut config);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let app = App::new(Arc::clone(&d1), config, clock, Arc::new(SystemRng));
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(server::serve(app, listener, async move { drop(stopped.await) }));
        Self { addr, d1, stop: Some(stop), served, _dir: dir }
    }

    /// Begins to stop the server.
    pub(crate) fn begin_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Waits until the server has stopped.
    pub(crate) async fn stopped(self) {
        timeout(PATIENCE, self.served).await.expect("the server stops").unwrap().unwrap();
        self.d1.shutdown().await;
    }

    pub(crate) async fn connect(&self) -> Wire {
        Wire { stream: TcpStream::connect(self.addr).await.unwrap(), buffer: Vec::new() }
    }

    /// One request on a connection of its own, as the owner.
    pub(crate) async fn call(&self, method: &str, path: &str, body: impl AsRef<[u8]>) -> Reply {
        self.call_as(Some(OWNER), method, path, body).await
    }

    /// One request on a connection of its own, with this bearer token.
    pub(crate) async fn call_as(&self, bearer: Option<&str>, method: &str, path: &str, body: impl AsRef<[u8]>) -> Reply {
        let auth = bearer.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
        self.call_with(&auth, method, path, body).await
    }

    /// One request on a connection of its own, with these header lines.
    pub(crate) async fn call_with(&self, headers: &str, method: &str, path: &str, body: impl AsRef<[u8]>) -> Reply {
        let mut wire = self.connect().await;
        wire.send(request(method, path, headers, body.as_ref())).await;
        wire.reply_to(method).await.expect("a reply")
    }

    /// Creates a database; returns its id.
    pub(crate) async fn database(&self, name: &str) -> String {
        let reply = self.call("POST", &format!("{ACCOUNT}/d1/database"), format!(r#"{{"name":"{name}"}}"#)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()["result"]["uuid"].as_str().unwrap().to_owned()
    }

    /// Runs SQL; returns the reply.
    pub(crate) async fn sql(&self, database: &str, sql: &str) -> Reply {
        self.call("POST", &format!("{ACCOUNT}/d1/database/{database}/query"), serde_json::json!({ "sql": sql }).to_string()).await
    }

    /// Makes a token; returns its secret.
    pub(crate) async fn token(&self, scopes: &[&str]) -> String {
        let body = serde_json::json!({"name": "test", "scopes": scopes}).to_string();
        let reply = self.call("POST", &format!("{ACCOUNT}/tokens"), body).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()["result"]["value"].as_str().unwrap().to_owned()
    }
}

/// The bytes of a request, with a content length.
pub(crate) fn request(method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{method} {path} HTTP/1.1\r\nhost: test\r\n{headers}content-length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// The owner's credential as a header line.
pub(crate) fn owner() -> String {
    format!("authorization: Bearer {OWNER}\r\n")
}

/// One connection.
pub(crate) struct Wire {
    pub(crate) stream: TcpStream,
    buffer: Vec<u8>,
}

impl Wire {
    /// Sends bytes. That the server has closed is seen when its reply is read.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref()).await;
    }

    /// The next reply; `None` if the connection ends before one begins.
    pub(crate) async fn reply(&mut self) -> Option<Reply> {
        self.reply_to("GET").await
    }

    pub(crate) async fn reply_to(&mut self, method: &str) -> Option<Reply> {
        timeout(PATIENCE, self.read_reply(method)).await.expect("a reply or an end of the connection")
    }

    /// Whether the server ends the connection without another byte.
    pub(crate) async fn is_closed(&mut self) -> bool {
        timeout(PATIENCE, async { self.buffer.is_empty() && !self.fill().await }).await.expect("the server closes")
    }

    async fn read_reply(&mut self, method: &str) -> Option<Reply> {
        let end = loop {
            if let Some(at) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            if !self.fill().await {
                assert!(self.buffer.is_empty(), "half a head: {:?}", String::from_utf8_lossy(&self.buffer));
                return None;
            }
        };
        let head = String::from_utf8(self.buffer.drain(..end).collect()).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> =
            lines.filter_map(|line| line.split_once(": ")).map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
        let mut reply = Reply { status, headers, body: Vec::new() };
        if method != "HEAD" && status >= 200 {
            reply.body = self.body(&reply).await;
        }
        Some(reply)
    }

    async fn body(&mut self, reply: &Reply) -> Vec<u8> {
        if reply.header("transfer-encoding") == Some("chunked") {
            return self.chunks().await;
        }
        match reply.header("content-length") {
            Some(n) => self.take(n.parse().unwrap()).await,
            None => {
                while self.fill().await {}
                std::mem::take(&mut self.buffer)
            }
        }
    }

    async fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let end = loop {
                if let Some(at) = self.buffer.windows(2).position(|window| window == b"\r\n") {
                    break at + 2;
                }
                assert!(self.fill().await, "the reply ends in a chunk's length");
            };
            let line = String::from_utf8(self.take(end).await).unwrap();
            let n = usize::from_str_radix(line.trim(), 16).unwrap();
            body.extend(self.take(n).await);
            self.take(2).await;
            if n == 0 {
                return body;
            }
        }
    }

    async fn take(&mut self, n: usize) -> Vec<u8> {
        while self.buffer.len() < n {
            assert!(self.fill().await, "the reply ends early, at {} of {n} bytes", self.buffer.len());
        }
        self.buffer.drain(..n).collect()
    }

    /// Reads more; false at the end. A reset is an end too.
    async fn fill(&mut self) -> bool {
        matches!(self.stream.read_buf(&mut self.buffer).await, Ok(n) if n > 0)
    }
}

/// A reply.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The first error's code and message.
    pub(crate) fn error(&self) -> (u64, String) {
        let error = &self.json()["errors"][0];
        (error["code"].as_u64().unwrap(), error["message"].as_str().unwrap().to_owned())
    }
}
