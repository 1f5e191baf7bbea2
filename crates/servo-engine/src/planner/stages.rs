//! Which tasks can run at the same time: the stage of a task is one more than the latest stage it waits for.

use crate::dep_sets::DepSet;
use crate::plan::{TaskSpec, sets_of};

/// How many stages there are, and the stage of each task. The plan has no cycles.
pub(super) fn stages(tasks: &[TaskSpec], sets: &[DepSet]) -> (u32, Vec<u32>) {
    let waits_for = sets_of(tasks.len(), sets);
    let mut waiting: Vec<u32> =
        tasks.iter().zip(&waits_for).map(|(task, sets)| (task.upstream.len() + sets.len()) as u32).collect();
    let mut unfinished: Vec<usize> = sets.iter().map(|set| set.upstream.len()).collect();
    let mut feeds: Vec<Vec<u32>> = vec![Vec::new(); tasks.len()];
    for (number, set) in (0u32..).zip(sets) {
        set.upstream.iter().for_each(|task| feeds[task as usize].push(number));
    }
    let mut downstream: Vec<Vec<u32>> = vec![Vec::new(); tasks.len()];
    for (position, task) in (0u32..).zip(tasks) {
        task.upstream.iter().for_each(|upstream| downstream[*upstream as usize].push(position));
    }
    let mut stages = vec![0; tasks.len()];
    let mut ready: Vec<u32> =
        (0u32..).zip(&waiting).filter(|(_, count)| **count == 0).map(|(task, _)| task).collect();
    let mut stage = 0;
    while !ready.is_empty() {
        let mut next = Vec::new();
        for task in ready {
            stages[task as usize] = stage;
            let mut ended = |waiter: u32| {
                waiting[waiter as usize] -= 1;
                if waiting[waiter as usize] == 0 {
                    next.push(waiter);
                }
            };
            downstream[task as usize].iter().for_each(|waiter| ended(*waiter));
            for &set in &feeds[task as usize] {
                unfinished[set as usize] -= 1;
                if unfinished[set as usize] == 0 {
                    sets[set as usize].downstream.iter().for_each(&mut ended);
                }
            }
        }
        ready = next;
        stage += 1;
    }
    (stage, stages)
}
