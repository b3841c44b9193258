//! How a server is told to stop.

use std::future::Future;

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
};

use crate::{failure::Failure, printer::note};

/// A future that ends at the first SIGTERM or SIGINT; the second one ends the process at once.
/// Needs a runtime.
///
/// # Errors
/// If the handlers cannot be set.
pub(crate) fn stop() -> Result<impl Future<Output = ()> + Send + 'static, Failure> {
    let failed = |error| Failure::io("signals cannot be handled", &error);
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let (stop, stopped) = oneshot::channel();
    tokio::spawn(async move {
        next(&mut terminate, &mut interrupt).await;
        note("stopping: requests that run may finish; the same signal again ends at once");
        // Nobody listens if the server has ended by itself meanwhile.
        let _ = stop.send(());
        let number = next(&mut terminate, &mut interrupt).await;
        note("ended at once; the next start recovers");
        std::process::exit(128 + number);
    });
    Ok(async move {
        if stopped.await.is_err() {
            // The task above lives as long as the runtime, so this is the runtime's end.
            std::future::pending::<()>().await;
        }
    })
}

/// Waits for either signal; returns its number.
async fn next(terminate: &mut Signal, interrupt: &mut Signal) -> i32 {
    tokio::select! {
        _ = terminate.recv() => SignalKind::terminate().as_raw_value(),
        _ = interrupt.recv() => SignalKind::interrupt().as_raw_value(),
    }
}
