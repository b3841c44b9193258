//! The accept loop: connections up to a bound, each with its limits, and a drain at the end.

use std::{convert::Infallible, future::Future, io::Write, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use base::Error;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{App, binding, route, stream::Impatient};

/// Bytes of a request's line and headers. hyper looks after it has read, so a few more may pass.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Connections that are told at once that the server is full.
const REFUSALS_MAX: usize = 64;
/// What they are told.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\ncontent-length: 47\r\nretry-after: 1\r\nconnection: close\r\n\r\nthe server has as many connections as it takes\n";

/// What the requests of one listener share.
pub(crate) struct Server {
    pub(crate) app: Arc<App>,
    pub(crate) local_addr: SocketAddr,
    /// Held by every handler that runs; when all are dropped, none does.
    pub(crate) alive: mpsc::Sender<Infallible>,
}

/// The routers: one for paths, one for each kind of binding.
struct Routers {
    server: Arc<Server>,
    rest: Router,
    bindings: Vec<(&'static str, Router)>,
}

/// Serves `app` on `listener` until `shutdown` ends, then refuses new connections, lets requests in
/// flight finish, and returns; after `drain_timeout` it cuts off those that have not.
///
/// A handler whose client has gone runs on, so the caller closes the services after this and not before.
///
/// # Errors
/// The listener has no address. A connection that cannot be accepted is logged and does not end the loop.
pub async fn serve(app: Arc<App>, listener: TcpListener, shutdown: impl Future<Output = ()> + Send + 'static) -> std::io::Result<()> {
    let local_addr = listener.local_addr()?;
    let (alive, mut handlers) = mpsc::channel(1);
    let drain_timeout = app.config.drain_timeout;
    let slots = Arc::new(Semaphore::new(app.config.connections_max));
    let refusals = Arc::new(Semaphore::new(REFUSALS_MAX));
    let routers = Arc::new(Routers::new(Arc::new(Server { app, local_addr, alive })));
    let (stop, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        match accepted {
            Ok((stream, _)) => match Arc::clone(&slots).try_acquire_owned() {
                Ok(slot) => drop(connections.spawn(connection(Arc::clone(&routers), stream, stopped.clone(), slot))),
                Err(_) => refuse(stream, &refusals),
            },
            Err(error) => after_failed_accept(&error).await,
        }
    }
    drop((listener, routers));
    // All receivers may be gone already; then there is nobody to tell.
    let _ = stop.send(true);
    let drained = timeout(drain_timeout, async {
        while connections.join_next().await.is_some() {}
        handlers.recv().await
    });
    if drained.await.is_err() {
        tracing::warn!(connections = connections.len(), "stopped before all requests had ended");
        connections.shutdown().await;
    }
    Ok(())
}

/// A connection that was reset before it was accepted is no reason to wait; a lack of file
/// descriptors or memory is, as the next try would fail at once too.
async fn after_failed_accept(error: &std::io::Error) {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    if !matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted) {
        tracing::error!(%error, "a connection could not be accepted");
        sleep(Duration::from_millis(100)).await;
    }
}

/// Serves one connection until it ends, or until `stopped` and its request is answered.
async fn connection(routers: Arc<Routers>, stream: TcpStream, mut stopped: watch::Receiver<bool>, _slot: OwnedSemaphorePermit) {
    // Answers are written whole; waiting for more to send would only delay them. Failing to say so costs no correctness.
    let _ = stream.set_nodelay(true);
    let config = &routers.server.app.config;
    let io = TokioIo::new(Impatient::new(stream, config.idle_timeout));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(config.header_timeout).max_buf_size(HEAD_BYTES_MAX);
    let serving = Arc::clone(&routers);
    let service = service_fn(move |request| handle(Arc::clone(&serving), request));
    let connection = http.serve_connection(io, service);
    tokio::pin!(connection);
    let stopping = async {
        // An error means that the sender is gone, which is the end too.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopping => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    match ended {
        // hyper's texts name the rule that was broken and quote nothing.
        Err(error) if error.is_parse() => tracing::info!(%error, "a request was refused, as it is no HTTP"),
        Err(error) => tracing::debug!(%error, "a connection broke"),
        Ok(()) => {}
    }
}

/// Sends a request to the router of its kind.
async fn handle(routers: Arc<Routers>, request: hyper::Request<Incoming>) -> Result<hyper::Response<axum::body::Body>, Infallible> {
    let (router, request) = match binding::addressed(request) {
        Ok(binding::Addressed::Path(request)) => (&routers.rest, request),
        Ok(binding::Addressed::Kind(kind, request)) => match routers.bindings.iter().find(|(name, _)| *name == kind) {
            Some((_, router)) => (router, request),
            None => return Ok(routers.refuse_binding(&request, binding::unknown_kind(&kind))),
        },
        Err((error, request)) => return Ok(routers.refuse_binding(&request, error)),
    };
    hyper::service::Service::call(&TowerToHyperService::new(router.clone()), request).await
}

impl Routers {
    fn new(server: Arc<Server>) -> Self {
        let rest = route::router(&server, route::ROUTES, crate::answer::Face::Rest(api::envelope::Empty::Null));
        let bindings = binding::KINDS.iter().map(|kind| (kind.name, route::router(&server, kind.routes, crate::answer::Face::Binding)));
        Self { rest, bindings: bindings.collect(), server }
    }

    fn refuse_binding(&self, request: &hyper::Request<Incoming>, error: Error) -> hyper::Response<axum::body::Body> {
        let log = route::Log::start(&self.server, request.method().clone(), "binding", request);
        log.end(binding::refusal(error, request), crate::answer::Face::Binding)
    }
}

/// Tells a connection that the server is full, without letting it hold anything for long.
fn refuse(stream: TcpStream, refusals: &Arc<Semaphore>) {
    let Ok(permit) = Arc::clone(refusals).try_acquire_owned() else { return };
    tokio::spawn(async move {
        let Ok(mut stream) = stream.into_std() else { return };
        let (Ok(_), Ok(mut stream)) = (stream.write(FULL), TcpStream::from_std(stream)) else { return };
        // Closing with the request unread would reset the connection, and the client might not see the answer.
        let _ = timeout(Duration::from_secs(1), stream.read(&mut [0; 4096])).await;
        drop(permit);
    });
}
