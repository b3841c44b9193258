//! axum: one file per face; the composition root.

mod app;
mod serve;

pub use app::{App, ServerConfig};
pub use serve::serve;
