//! The tests of the test kit: a model that is too kind would let every other test pass.

mod disk;
