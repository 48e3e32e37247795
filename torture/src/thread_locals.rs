//! Thread-local variables, and who a thread is.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::thread;

use crate::ways;
use crate::ways::{expect, work};

ways![
    thread_local_cell,
    thread_local_borrowed,
    thread_local_in_its_initialiser,
    thread_local_freed,
    thread_local_reference_counts,
    thread_local_scoped_value,
    destructors_of_a_thread,
    identity,
    last_error,
    parked,
    random_state,
];

thread_local! {
    static NUMBER: Cell<u64> = const { Cell::new(0) };
    static BORROWED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    static SHARED: RefCell<Option<Rc<u64>>> = const { RefCell::new(None) };
    static TABLE: Vec<u64> = { work(1); vec![42; 1000] };
    static ONCE: OnceCell<u64> = const { OnceCell::new() };
}

fn thread_local_cell(seed: u64) {
    NUMBER.set(seed);
    work(seed);
    expect(NUMBER.get() == seed);
}

/// The borrow lasts over the interruptions.
fn thread_local_borrowed(seed: u64) {
    BORROWED.with_borrow_mut(|own| {
        own.clear();
        for _ in 0..8 {
            own.push(seed);
            work(seed);
        }
        expect(own.iter().all(|number| *number == seed));
    });
}

/// Two that are both in the initialiser would each put a value there, and free the one that the other reads.
fn thread_local_in_its_initialiser(seed: u64) {
    TABLE.with(|table| {
        let cell = &table[5];
        work(seed);
        let junk: Vec<Vec<u64>> = (0..4).map(|_| vec![7; 1000]).collect();
        expect(*cell == 42);
        drop(junk);
    });
    // Those of a new thread are initialised anew while the request waits for them.
    let joined = thread::spawn(move || {
        TABLE.with(|table| {
            work(seed);
            table[7]
        })
    })
    .join();
    expect(joined.is_ok_and(|number| number == 42));
}

fn thread_local_freed(seed: u64) {
    BORROWED.set(vec![seed; 100]);
    let taken = BORROWED.take();
    work(seed);
    expect(taken.iter().all(|number| *number == seed));
    drop(taken);
    work(seed);
    expect(BORROWED.with_borrow(Vec::is_empty));
}

/// Counts that are no atomics.
fn thread_local_reference_counts(seed: u64) {
    SHARED.set(Some(Rc::new(seed)));
    let mine = SHARED
        .with_borrow(|shared| shared.clone())
        .expect("it was set");
    work(seed);
    let copies: Vec<Rc<u64>> = (0..8)
        .map(|_| {
            work(seed);
            Rc::clone(&mine)
        })
        .collect();
    expect(Rc::strong_count(&mine) == 10 && *copies[7] == seed);
    drop(copies);
    work(seed);
    expect(Rc::strong_count(&mine) == 2);
}

/// A value that is set for the time of a call, as scoped thread-locals do, and that the call's end puts back.
fn thread_local_scoped_value(seed: u64) {
    struct Restores(u64);
    impl Drop for Restores {
        fn drop(&mut self) {
            work(1);
            NUMBER.set(self.0);
        }
    }
    NUMBER.set(seed);
    for depth in 1..4 {
        let restores = Restores(NUMBER.replace(seed + depth));
        work(seed);
        expect(NUMBER.get() == seed + depth);
        drop(restores);
        expect(NUMBER.get() == seed);
    }
    let once = ONCE.with(|once| *once.get_or_init(|| work(7)));
    expect(once == ONCE.with(|once| *once.get().expect("it was set")));
}

fn destructors_of_a_thread(seed: u64) {
    struct Sends(u64, std::sync::mpsc::Sender<u64>);
    impl Drop for Sends {
        fn drop(&mut self) {
            work(self.0);
            let _ = self.1.send(self.0);
        }
    }
    thread_local!(static AT_END: RefCell<Option<Sends>> = const { RefCell::new(None) });
    let (sender, receiver) = std::sync::mpsc::channel();
    let other = thread::spawn(move || AT_END.set(Some(Sends(seed, sender))));
    work(seed);
    expect(other.join().is_ok());
    expect(receiver.recv() == Ok(seed));
}

fn identity(seed: u64) {
    let me = thread::current().id();
    work(seed);
    expect(thread::current().id() == me);
}

fn last_error(seed: u64) {
    let missing = if seed.is_multiple_of(2) {
        "/no/such/file"
    } else {
        "/dev/null/no"
    };
    let error = std::fs::File::open(missing)
        .expect_err("it is not there")
        .raw_os_error();
    work(seed);
    expect(io::Error::last_os_error().raw_os_error() == error);
}

/// A token that is there lets a thread go on at once, and is its own.
fn parked(seed: u64) {
    let me = thread::current();
    let other = thread::spawn(move || {
        work(seed);
        me.unpark()
    });
    thread::park();
    work(seed);
    expect(other.join().is_ok());
    thread::current().unpark();
    work(seed);
    thread::park();
}

/// A thread hands out the keys of its maps, one after the other.
fn random_state(seed: u64) {
    let mut map = HashMap::new();
    for number in 0..16 {
        map.insert(seed + number, number);
        work(seed);
    }
    expect((0..16).all(|number| map[&(seed + number)] == number));
}
