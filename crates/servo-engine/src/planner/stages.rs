//! Which tasks can run at the same time: the stage of a task is one more than the latest stage it waits for.

use crate::plan::TaskSpec;

/// How many stages there are, and the stage of each task. The plan has no cycles.
pub(super) fn stages(tasks: &[TaskSpec]) -> (u32, Vec<u32>) {
    let mut waiting: Vec<u32> = tasks.iter().map(|task| task.upstream.len() as u32).collect();
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
            for &waiter in &downstream[task as usize] {
                waiting[waiter as usize] -= 1;
                if waiting[waiter as usize] == 0 {
                    next.push(waiter);
                }
            }
        }
        ready = next;
        stage += 1;
    }
    (stage, stages)
}
