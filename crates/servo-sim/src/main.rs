//! Runs seeds.

use servo_sim::scenario::Scenario;
use servo_sim::seed::{How, run};

fn main() {
    let args: Vec<u64> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let start = std::time::Instant::now();
    let mut steps = 0;
    if args.len() == 1 {
        let outcome = run(&Scenario::of(args[0]), How { traced: true, planted: None });
        for line in &outcome.trace {
            println!("{line}");
        }
        println!("{:#?}", Scenario::of(args[0]));
        println!("{:#?} {} steps {} batches", outcome.wrong, outcome.steps, outcome.batches);
        return;
    }
    for seed in args[0]..args[1] {
        let outcome = run(&Scenario::of(seed), How::default());
        steps += outcome.steps;
        if !outcome.wrong.is_empty() {
            println!(
                "seed {seed}: {} steps, {:?}",
                outcome.steps,
                outcome.wrong.first().map(|w| w.chars().take(300).collect::<String>())
            );
        }
    }
    let took = start.elapsed().as_secs_f64();
    println!(
        "{} seeds, {steps} steps in {took:.1} s: {:.0} steps/s, {:.1} ms/seed",
        args[1] - args[0],
        steps as f64 / took,
        took * 1000.0 / (args[1] - args[0]) as f64
    );
}
