#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| servo_fuzz::notification_rule(bytes));
