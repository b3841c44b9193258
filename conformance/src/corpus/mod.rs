//! The corpus: parsing, running, comparing, and filling in measured results for review.

mod compare;
mod literal;
mod model;
mod parse;
mod print;
mod run;
mod template;
mod update;

pub use model::{Bound, Case, Expect, Expected, Figure, File, Item, Request, Setup};
pub use parse::{ParseError, parse, parse_unfinished};
pub use run::{Failure, Report, run};
pub use template::expand;
pub use update::update;
