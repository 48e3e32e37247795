//! A GET of a key that was written not long ago allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use headway_kv::{Kv, Request, key_of};

thread_local! {
    /// Only this thread's: the store's own threads may do as they please.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

#[expect(unsafe_code, reason = "an allocator is unsafe to write")]
// SAFETY: everything is the system allocator's doing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are the system allocator's conditions.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_get_allocates_nothing() {
    let kv = Kv::filled(1_000, 100, 1).unwrap();
    let (mut body, mut room) = ([0; 64], [0; 256]);
    let mut get = |i| {
        let len = Request::Get { key: &key_of(i) }.encode(&mut body).unwrap();
        kv.answer(&body[..len], &mut room).unwrap()
    };
    get(0); // what is made once per thread
    let before = ALLOCATIONS.get();
    for i in 0..1_000 {
        assert_eq!(get(i), 101);
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
}
