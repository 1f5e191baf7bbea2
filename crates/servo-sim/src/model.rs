//! What should have come of a log, worked out a second time and plainly: it shares nothing with the fold.
