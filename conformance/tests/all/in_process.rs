//! Each file of the corpus on crate `sqlite`, a test for each, so that they run side by side.

use conformance::backend::InProcess;

use crate::files::{check, for_each_file};

macro_rules! tests {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name), &mut InProcess::new());
            }
        )*
    };
}

for_each_file!(tests);
