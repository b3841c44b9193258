//! A server put together from its settings: folder, lock, key, databases, listener.

use std::{
    fs::{self, DirBuilder},
    future::Future,
    io,
    net::SocketAddr,
    os::unix::fs::DirBuilderExt,
    path::Path,
    sync::Arc,
};

use base::{Clock, Rng, SystemClock, SystemRng};
use d1::D1;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use server::{App, ServerConfig};
use tokio::{net::TcpListener, runtime::Runtime};
use tracing_subscriber::EnvFilter;

use crate::{
    config::{LogFormat, Settings},
    failure::Failure,
    lock::DataLock,
    owner_key::{self, Key},
    printer::note,
    variables,
};

/// Exit code when the log can no longer promise durability: `EX_SOFTWARE` of sysexits.h.
const EXIT_POISONED: i32 = 70;

/// What to do if the listen address is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfTaken {
    /// Fail.
    Fail,
    /// Take a free port on loopback and say so.
    TakeFreePort,
}

/// A server that listens and is about to answer.
pub(crate) struct Node {
    app: Arc<App>,
    listener: TcpListener,
    /// Where it listens, with the real port.
    pub address: SocketAddr,
    /// How a client on this machine reaches it.
    pub url: String,
    /// The owner's key.
    pub key: Key,
    _lock: DataLock,
}

/// The runtime that a server runs in.
///
/// # Errors
/// If threads cannot be started.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::io("the server's threads could not be started", &error))
}

/// Sends log lines to standard error. Called once.
pub(crate) fn start_log(settings: &Settings) {
    // The filter was parsed when the settings were loaded, so nothing is lost by the lossy form.
    let filter = EnvFilter::builder().parse_lossy(&settings.log_level.value);
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(false);
    match settings.log_format.value {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
}

impl Node {
    /// Opens everything, in an order in which each step protects the next: the folder, its lock,
    /// the key, the databases (with recovery), and last the listener, so that whoever can connect
    /// is answered. Needs a runtime.
    ///
    /// # Errors
    /// Says which step failed and what to do; what was opened is closed again.
    pub(crate) async fn open(settings: &Settings, if_taken: IfTaken) -> Result<Self, Failure> {
        raise_file_limit();
        let data = &settings.data.value;
        make_folder(data)?;
        let lock = DataLock::acquire(data)?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let rng: Arc<dyn Rng> = Arc::new(SystemRng);
        let key = match variables::read(variables::HEARTH_KEY) {
            Some(value) => owner_key::from_variable(&value)?,
            None => owner_key::read_or_make(data, &*rng)?,
        };
        let d1 = open_d1(settings, clock.clone(), rng.clone()).await?;
        let bound = async {
            let listener = bind(&settings.listen.value, if_taken).await?;
            let address = listener.local_addr().map_err(|error| Failure::io("the listen address is not known", &error))?;
            let url = local_url(address);
            lock.set_url(&url)?;
            Ok::<_, Failure>((listener, address, url))
        };
        let (listener, address, url) = match bound.await {
            Ok(bound) => bound,
            Err(failure) => {
                d1.shutdown().await;
                return Err(failure);
            }
        };
        let config = ServerConfig {
            account: settings.account_id.value.clone(),
            account_name: settings.account_name.value.clone(),
            owner_key: key.reveal().to_owned(),
            public_url: settings.public_url.as_ref().map(|url| url.value.clone()),
            region: settings.region.value.clone(),
            ..ServerConfig::default()
        };
        Ok(Self { app: App::new(d1, config, clock, rng), listener, address, url, key, _lock: lock })
    }

    /// Answers until `shutdown` ends, lets what runs finish, and closes the databases.
    ///
    /// # Errors
    /// The listener's own failure.
    pub(crate) async fn run(self, shutdown: impl Future<Output = ()> + Send + 'static) -> Result<(), Failure> {
        let served = server::serve(self.app.clone(), self.listener, shutdown).await;
        self.app.d1.shutdown().await;
        served.map_err(|error| Failure::io("the server stopped", &error))
    }
}

/// Lets the process open as many files as it may. A database takes several and a client one; the
/// usual soft limit of 1,024 is there for programs that cannot count further (`select`). If it cannot
/// be raised, the server works with fewer, and says so when it runs out.
fn raise_file_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some() && current != maximum && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_err() {
        tracing::warn!(current, maximum, "the limit on open files could not be raised");
    }
}

/// Makes the data folder if it is not there, for the owner only.
fn make_folder(data: &Path) -> Result<(), Failure> {
    let failed = |error: &io::Error| {
        Failure::io(format!("the data folder {} could not be made", data.display()), error)
            .hint("give a folder that this user may write with --data or HEARTH_DATA")
    };
    if let Some(parent) = data.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent).map_err(|error| failed(&error))?;
    }
    match DirBuilder::new().mode(0o700).create(data) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && data.is_dir() => Ok(()),
        other => other.map_err(|error| failed(&error)),
    }
}

async fn open_d1(settings: &Settings, clock: Arc<dyn Clock>, rng: Arc<dyn Rng>) -> Result<Arc<D1>, Failure> {
    let config = d1::Config {
        root: settings.data.value.clone(),
        disk: Arc::new(log::LocalDisk),
        limits: settings.limits.value.clone(),
        clock,
        rng,
        region: settings.region.value.clone(),
        open_databases_max: settings.open_databases_max.value,
        on_poison: Arc::new(|message| {
            note(&format!("error: {message}"));
            note("hint: nothing that was acknowledged is lost; see to the disk, then start Hearth again: it recovers by itself");
            std::process::exit(EXIT_POISONED);
        }),
    };
    // Recovery reads the whole log, so it must not hold up the runtime.
    let opened = tokio::task::spawn_blocking(move || D1::open(config)).await;
    opened
        .map_err(|error| Failure::new(format!("opening the data folder was cut short: {error}")))?
        .map_err(|error| Failure::from(error).hint(format!("`hearth doctor --data {}` says what is wrong", settings.data.value.display())))
}

async fn bind(listen: &str, if_taken: IfTaken) -> Result<TcpListener, Failure> {
    match TcpListener::bind(listen).await {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && if_taken == IfTaken::TakeFreePort => {
            note(&format!("{listen} is taken by another program; a free port is used"));
            TcpListener::bind("127.0.0.1:0").await.map_err(|error| Failure::io("no free port on 127.0.0.1", &error))
        }
        Err(error) => {
            let failure = Failure::io(format!("cannot listen on {listen}"), &error);
            Err(match error.kind() {
                io::ErrorKind::AddrInUse => {
                    failure.hint("stop what listens there, or choose another port with --listen (port 0 takes a free one)")
                }
                io::ErrorKind::PermissionDenied => failure.hint("ports below 1024 need a privilege: choose a higher one with --listen"),
                _ => failure.hint("expected `host:port` with an address of this machine"),
            })
        }
    }
}

/// The address for a client on this machine; `0.0.0.0` and `::` stand for loopback.
fn local_url(address: SocketAddr) -> String {
    let port = address.port();
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => format!("http://127.0.0.1:{port}"),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => format!("http://[::1]:{port}"),
        _ => format!("http://{address}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unspecified_address_is_reached_through_loopback() {
        for (address, url) in [
            ("0.0.0.0:1", "http://127.0.0.1:1"),
            ("[::]:2", "http://[::1]:2"),
            ("127.0.0.1:3", "http://127.0.0.1:3"),
            ("[::1]:4", "http://[::1]:4"),
        ] {
            assert_eq!(local_url(address.parse().unwrap()), url);
        }
    }
}
