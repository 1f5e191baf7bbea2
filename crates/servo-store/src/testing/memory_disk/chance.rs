//! Chooses which writes that were not durable survive a power loss.

/// Asks what survives. The first answer is always the worst, the last one the best.
pub(super) struct Chance<'a> {
    choose: &'a mut dyn FnMut(usize) -> usize,
}

impl<'a> Chance<'a> {
    pub(super) fn new(choose: &'a mut dyn FnMut(usize) -> usize) -> Self {
        Self { choose }
    }

    /// A number from 0 to `most`.
    pub(super) fn up_to(&mut self, most: usize) -> usize {
        if most == 0 { 0 } else { (self.choose)(most + 1).min(most) }
    }

    pub(super) fn good(&mut self) -> bool {
        self.up_to(1) == 1
    }
}

/// Calls `attempt` with every sequence of answers.
#[cfg(test)]
pub(super) fn every(mut attempt: impl FnMut(&mut Chance<'_>)) {
    let mut answers: Vec<(usize, usize)> = Vec::new();
    loop {
        let mut asked = 0;
        let mut choose = |choices: usize| {
            if asked == answers.len() {
                answers.push((0, choices));
            }
            asked += 1;
            answers[asked - 1].0
        };
        attempt(&mut Chance::new(&mut choose));
        while answers.last().is_some_and(|(answer, choices)| answer + 1 == *choices) {
            answers.pop();
        }
        match answers.last_mut() {
            Some((answer, _)) => *answer += 1,
            None => return,
        }
    }
}
