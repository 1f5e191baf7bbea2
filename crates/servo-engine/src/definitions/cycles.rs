//! No asset waits for itself, however many others are between. Outputs of one function count as one.

use std::collections::BTreeSet;

use super::names::Named;
use super::problem::{self, Report};

/// Reports one way round for every knot of assets that wait for each other. An asset that reads its own earlier
/// partitions is no cycle, nor is an output that reads another of its function.
pub(super) fn check(named: &[Named], upstream: &[Vec<u32>], makers: &[u32], report: &mut Report) {
    let mut edges: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); named.len()];
    for (position, upstream) in upstream.iter().enumerate() {
        let maker = makers[position];
        edges[maker as usize]
            .extend(upstream.iter().map(|of| makers[*of as usize]).filter(|of| *of != maker));
    }
    for knot in strongly_connected(&edges) {
        let way = shortest_cycle(knot[0], &knot, &edges);
        let asset = &named[way[0] as usize];
        let path: Vec<String> =
            way.iter().map(|position| named[*position as usize].key.to_string()).collect();
        report.add(
            Some(&asset.def.location),
            problem::asset(&asset.def.key),
            format!("waits for itself: {}", path.join(" → ")),
            "remove one of these dependencies",
        );
    }
}

/// The strongly connected components of more than one node, each sorted (Tarjan, without recursion: a chain may have
/// 10,000 links).
fn strongly_connected(edges: &[BTreeSet<u32>]) -> Vec<Vec<u32>> {
    const NEW: u32 = u32::MAX;
    let (mut index, mut low) = (vec![NEW; edges.len()], vec![0u32; edges.len()]);
    let mut on_stack = vec![false; edges.len()];
    let (mut stack, mut strongly_connected, mut next) = (Vec::new(), Vec::new(), 0u32);
    for root in 0..edges.len() as u32 {
        if index[root as usize] != NEW {
            continue;
        }
        let mut path = vec![(root, edges[root as usize].iter())];
        (index[root as usize], low[root as usize]) = (next, next);
        next += 1;
        stack.push(root);
        on_stack[root as usize] = true;
        while let Some((node, rest)) = path.last_mut() {
            let node = *node;
            if let Some(&to) = rest.next() {
                if index[to as usize] == NEW {
                    (index[to as usize], low[to as usize]) = (next, next);
                    next += 1;
                    stack.push(to);
                    on_stack[to as usize] = true;
                    path.push((to, edges[to as usize].iter()));
                } else if on_stack[to as usize] {
                    low[node as usize] = low[node as usize].min(index[to as usize]);
                }
                continue;
            }
            path.pop();
            if let Some((parent, _)) = path.last() {
                low[*parent as usize] = low[*parent as usize].min(low[node as usize]);
            }
            if low[node as usize] == index[node as usize] {
                let start = stack.iter().rposition(|on| *on == node).expect("a root is on the stack");
                let mut knot = stack.split_off(start);
                knot.iter().for_each(|member| on_stack[*member as usize] = false);
                if knot.len() > 1 {
                    knot.sort_unstable();
                    strongly_connected.push(knot);
                }
            }
        }
    }
    strongly_connected
}

/// The shortest path from a node of a knot back to it, both ends included, in the direction of the data.
fn shortest_cycle(start: u32, knot: &[u32], edges: &[BTreeSet<u32>]) -> Vec<u32> {
    let mut came_from: Vec<Option<u32>> = vec![None; edges.len()];
    let mut level = vec![start];
    while !level.is_empty() {
        let mut next = Vec::new();
        for node in level {
            for &to in edges[node as usize].iter().filter(|to| knot.binary_search(to).is_ok()) {
                if to == start {
                    let mut way = vec![start, node];
                    let mut at = node;
                    while at != start {
                        at = came_from[at as usize]
                            .expect("every node but the start was reached from another");
                        way.push(at);
                    }
                    return way;
                }
                if came_from[to as usize].is_none() {
                    came_from[to as usize] = Some(node);
                    next.push(to);
                }
            }
        }
        level = next;
    }
    vec![start]
}
