//! Any bytes: `front_end::parse` must come back.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| einc_tests::front_end::parse(bytes));
