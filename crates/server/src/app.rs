//! The composition root: what the faces share, and how a server is set up.

use std::{fmt, sync::Arc, time::Duration};

use base::{AccountId, Clock, Rng};
use tokio::sync::Semaphore;

/// Everything that a request may reach. Fields are public: there is one, and it is built in one place.
pub struct App {
    /// The D1 service.
    pub d1: Arc<d1::D1>,
    /// How this server is set up.
    pub config: ServerConfig,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub rng: Arc<dyn Rng>,
    /// KiB of request bodies that may still be taken into memory, over all requests together.
    pub(crate) body_kib: Arc<Semaphore>,
}

impl App {
    /// Puts a server together. Nothing listens until [`crate::serve`].
    pub fn new(d1: Arc<d1::D1>, config: ServerConfig, clock: Arc<dyn Clock>, rng: Arc<dyn Rng>) -> Arc<Self> {
        let body_kib = Arc::new(Semaphore::new(config.bodies_total_bytes_max / 1024));
        Arc::new(Self { d1, config, clock, rng, body_kib })
    }
}

/// How a server is set up. Start from `Default` and set what differs; an empty `owner_key` opens nothing.
#[derive(Clone)]
pub struct ServerConfig {
    /// The one account that paths may name.
    pub account: AccountId,
    /// Shown by `/accounts` and `wrangler whoami`.
    pub account_name: String,
    /// Shown by `/user` and `wrangler whoami`.
    pub owner_email: String,
    /// The owner's secret, which opens everything. While it is empty, only API tokens are let in.
    pub owner_key: String,
    /// What clients reach this server by, without a trailing slash, for example `https://data.example.org`.
    /// Upload and download links start with it. `None`: the request's own `Host`.
    pub public_url: Option<String>,
    /// Named in `meta.served_by_region`, for example `WEUR`.
    pub region: String,
    /// Bytes of a body that carries SQL.
    pub query_body_bytes_max: usize,
    /// Bytes of any other JSON body.
    pub json_body_bytes_max: usize,
    /// Bytes of all JSON bodies that are held at once; a request that would pass it is told to come again.
    pub bodies_total_bytes_max: usize,
    /// Connections served at once; the next one gets a plain 503.
    pub connections_max: usize,
    /// How long a client may take to send a request's head, and a connection may idle between requests.
    pub header_timeout: Duration,
    /// How long a body may stand still before it is dropped, and an answer before its reader is given up.
    pub idle_timeout: Duration,
    /// How long a JSON body may take in all.
    pub body_timeout: Duration,
    /// How long requests in flight may take to end when the server stops.
    pub drain_timeout: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            account: AccountId::default(),
            account_name: "Hearth".to_owned(),
            owner_email: "owner@hearth.invalid".to_owned(),
            owner_key: String::new(),
            public_url: None,
            region: "WEUR".to_owned(),
            query_body_bytes_max: 64 * 1024 * 1024,
            json_body_bytes_max: 1024 * 1024,
            bodies_total_bytes_max: 1024 * 1024 * 1024,
            connections_max: 4096,
            header_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(300),
            drain_timeout: Duration::from_secs(30),
        }
    }
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConfig")
            .field("account", &self.account)
            .field("owner_key", &"<redacted>")
            .field("public_url", &self.public_url)
            .field("region", &self.region)
            .field("connections_max", &self.connections_max)
            .finish_non_exhaustive()
    }
}
