//! Tests of several layers together.

mod accelerator;
