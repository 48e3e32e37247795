//! A server whose workers several dispatchers divide among them: each group is told what the server's owner tells the whole.

use std::sync::Arc;

use crate::threads::control::ServerControl;

/// The control of a server whose groups have so many workers, and that of each group. What changes at the server's reaches the groups by its
/// [`wake`](ServerControl::wake).
pub(crate) fn controls_of(
    sizes: &[usize],
    stalls: usize,
) -> (Arc<ServerControl>, Vec<Arc<ServerControl>>) {
    let workers = sizes.iter().sum();
    let server = Arc::new(ServerControl::of_dispatchers(sizes.len(), workers, stalls));
    let groups: Vec<Arc<ServerControl>> = sizes
        .iter()
        .map(|&size| Arc::new(ServerControl::of_group(&server, size)))
        .collect();
    let (members, sizes) = (groups.clone(), sizes.to_vec());
    // The server has this: a strong reference back would keep both for ever.
    let owner = Arc::downgrade(&server);
    server.set_wake_all(Box::new(move || {
        let Some(server) = owner.upgrade() else {
            return;
        };
        let shares = shares_of(server.workers(), &sizes);
        for (group, share) in members.iter().zip(shares) {
            group.set_workers(share);
            group.follow_rules(&server);
            group.advance(server.phase());
        }
    }));
    (server, groups)
}

/// How many of `workers` each group uses, of groups with at least one worker each: as even as their sizes allow, and one at least.
fn shares_of(workers: usize, sizes: &[usize]) -> Vec<usize> {
    let mut shares = vec![0; sizes.len()];
    let mut left = workers.min(sizes.iter().sum());
    while left > 0 {
        for (share, &size) in shares.iter_mut().zip(sizes) {
            let takes = usize::from(left > 0 && *share < size);
            *share += takes;
            left -= takes;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::control::ServerPhase;

    #[test]
    fn shares_are_even_and_within_the_groups() {
        assert_eq!(shares_of(5, &[1, 2, 2]), [1, 2, 2]);
        assert_eq!(shares_of(4, &[1, 2, 2]), [1, 2, 1]);
        assert_eq!(shares_of(3, &[1, 2, 2]), [1, 1, 1]);
        assert_eq!(shares_of(9, &[1, 2, 2]), [1, 2, 2]);
    }

    #[test]
    fn what_the_owner_says_reaches_every_group() {
        let (server, groups) = controls_of(&[1, 2], 0);
        server.set_workers(2);
        server.advance(ServerPhase::Draining);
        for group in &groups {
            assert_eq!((group.workers(), group.phase()), (1, ServerPhase::Draining));
        }
    }

    #[test]
    fn the_last_dispatcher_to_drain_stops_the_server() {
        let (server, groups) = controls_of(&[1, 1], 0);
        server.advance(ServerPhase::Draining);
        groups[0].drained();
        assert_eq!(groups[0].phase(), ServerPhase::Draining);
        groups[1].drained();
        for control in [&server, &groups[0], &groups[1]] {
            assert_eq!(control.phase(), ServerPhase::Stopped);
        }
    }

    #[test]
    fn a_group_that_gives_up_waits_for_no_other() {
        let (server, groups) = controls_of(&[1, 1], 0);
        server.advance(ServerPhase::Abandoning);
        groups[0].advance(ServerPhase::Stopped);
        assert_eq!(groups[1].phase(), ServerPhase::Abandoning);
        server.advance(ServerPhase::Stopped);
        assert_eq!(groups[1].phase(), ServerPhase::Stopped);
    }
}
