//! Squares on their way through a channel, from a thousand threads in user space to one: `cargo run --release -p headway-threads --example squares`.

use headway_threads::{Runtime, channel, spawn};

fn main() -> std::io::Result<()> {
    let runtime = Runtime::builder().start()?;
    let sum: u64 = runtime.run(|| {
        let (sender, receiver) = channel(16);
        let threads: Vec<_> = (1..=1000_u64)
            .map(|number| {
                let sender = sender.clone();
                spawn(move || sender.send(number * number).expect("somebody receives"))
            })
            .collect();
        drop(sender);
        let mut sum = 0;
        while let Ok(square) = receiver.recv() {
            sum += square;
        }
        for thread in threads {
            thread.join().expect("no thread panics");
        }
        sum
    });
    println!("{sum}");
    Ok(())
}
