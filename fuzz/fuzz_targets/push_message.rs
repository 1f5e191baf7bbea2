#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| servo_fuzz::push_message(bytes));
