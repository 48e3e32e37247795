//! A walk up a fiber's stack that is suspended in the middle.

#![expect(unsafe_code, reason = "walks up the stack")]

use headway_fiber::{SendFiber, Stacks, Turn, yield_now};

/// Above a fiber's frames lie those of its own thread, whoever runs it: a walk that is interrupted finds them where they were.
#[test]
fn a_walk_up_the_stack_may_be_suspended() {
    unsafe extern "C" {
        fn _Unwind_Backtrace(
            step: unsafe extern "C" fn(*mut libc::c_void, *mut libc::c_void) -> libc::c_int,
            data: *mut libc::c_void,
        ) -> libc::c_int;
        fn _Unwind_GetIP(frame: *mut libc::c_void) -> usize;
    }
    const GO_ON: libc::c_int = 0;
    const STOP: libc::c_int = 4;
    unsafe extern "C" fn step(frame: *mut libc::c_void, frames: *mut libc::c_void) -> libc::c_int {
        yield_now();
        // SAFETY: what the caller of the walk handed over, and the unwinder's frame.
        let frames = unsafe { &mut *frames.cast::<Vec<usize>>() };
        // SAFETY: likewise.
        frames.push(unsafe { _Unwind_GetIP(frame) });
        if frames.len() < 100 { GO_ON } else { STOP }
    }
    #[inline(never)]
    fn by_one<T>(turn: impl FnOnce() -> T) -> T {
        std::hint::black_box(turn())
    }
    #[inline(never)]
    fn by_another<T>(turn: impl FnOnce() -> T) -> T {
        std::hint::black_box(by_one(|| std::hint::black_box(turn())))
    }
    let stacks = Stacks::of_donors(256 << 10, 1).expect("a thread can be made");
    let walks = |(): &mut ()| {
        let walk = || {
            let mut frames = Vec::<usize>::new();
            // SAFETY: the walk ends before `frames`.
            unsafe { _Unwind_Backtrace(step, (&raw mut frames).cast()) };
            frames
        };
        let first = walk();
        assert!((4..100).contains(&first.len()), "it ends");
        for _ in 0..100 {
            // The same frames but for this one, whoever resumes in the middle.
            assert_eq!(walk()[2..], first[2..]);
        }
    };
    let Ok(mut fiber) = SendFiber::owning_thread_state(stacks.take().unwrap(), walks) else {
        unreachable!("the stack is a donor's")
    };
    let mut turn = by_one(|| fiber.run((), 0));
    let mut turns = 0;
    while let Turn::Yielded = turn {
        turns += 1;
        turn = if turns % 97 < 48 {
            by_another(|| fiber.resume())
        } else {
            by_one(|| fiber.resume())
        };
    }
    assert!(turns > 400);
}
