//! An ordered map as a treap of boxed nodes: inserts, looks up, erases, then walks in order.
mod suite;

use suite::{Digest, Kernel, Random};

type Tree = Option<Box<Node>>;

struct Node {
    key: u64,
    priority: u64,
    left: Tree,
    right: Tree,
}

/// What is below `key`, and the rest.
fn split(tree: Tree, key: u64) -> (Tree, Tree) {
    match tree {
        None => (None, None),
        Some(mut node) if node.key < key => {
            let (below, rest) = split(node.right.take(), key);
            node.right = below;
            (Some(node), rest)
        }
        Some(mut node) => {
            let (below, rest) = split(node.left.take(), key);
            node.left = rest;
            (below, Some(node))
        }
    }
}

fn join(left: Tree, right: Tree) -> Tree {
    match (left, right) {
        (None, tree) | (tree, None) => tree,
        (Some(mut left), Some(right)) if left.priority > right.priority => {
            left.right = join(left.right.take(), Some(right));
            Some(left)
        }
        (left, Some(mut right)) => {
            right.left = join(left, right.left.take());
            Some(right)
        }
    }
}

/// The place of the first node on the way to `key` that `ends` it.
fn descend(mut tree: &mut Tree, key: u64, ends: impl Fn(&Node) -> bool) -> &mut Tree {
    while tree.as_ref().is_some_and(|node| !ends(node)) {
        let node = tree.as_mut().expect("there is one");
        tree = if key < node.key {
            &mut node.left
        } else {
            &mut node.right
        };
    }
    tree
}

fn insert(tree: &mut Tree, mut node: Box<Node>) {
    let place = descend(tree, node.key, |at| {
        at.key == node.key || at.priority < node.priority
    });
    if place.as_ref().is_some_and(|at| at.key == node.key) {
        return;
    }
    (node.left, node.right) = split(place.take(), node.key);
    *place = Some(node);
}

fn contains(mut tree: &Tree, key: u64) -> bool {
    while let Some(node) = tree {
        if node.key == key {
            return true;
        }
        tree = if key < node.key {
            &node.left
        } else {
            &node.right
        };
    }
    false
}

fn erase(tree: &mut Tree, key: u64) {
    let place = descend(tree, key, |at| at.key == key);
    if let Some(node) = place.take() {
        *place = join(node.left, node.right);
    }
}

fn walk(tree: &Tree, visit: &mut impl FnMut(u64)) {
    if let Some(node) = tree {
        walk(&node.left, visit);
        visit(node.key);
        walk(&node.right, visit);
    }
}

struct Treap {
    keys: Vec<u64>,
    root: Tree,
    in_order: Vec<u64>,
    hits: u64,
}

impl Kernel for Treap {
    const PASSES: u32 = 9;
    const EXPECTED: [u64; 2] = [0x7e7e6aa17bc7f9c4, 0xba141c495ffb0f36];

    fn setup(full: bool) -> Self {
        let mut random = Random(28);
        let count = if full { 3000 } else { 500 };
        Self {
            keys: (0..count).map(|_| random.word() >> 8).collect(),
            root: None,
            in_order: Vec::with_capacity(count),
            hits: 0,
        }
    }

    fn run(&mut self) {
        let mut random = Random(280);
        self.root = None;
        for &key in &self.keys {
            let (left, right) = (None, None);
            let priority = random.word();
            insert(
                &mut self.root,
                Box::new(Node {
                    key,
                    priority,
                    left,
                    right,
                }),
            );
        }
        let asked = self.keys.iter().zip(0..).map(|(key, i)| key + (i & 1));
        self.hits = asked.filter(|&key| contains(&self.root, key)).count() as u64;
        for &key in self.keys.iter().step_by(2) {
            erase(&mut self.root, key);
        }
        self.in_order.clear();
        walk(&self.root, &mut |key| self.in_order.push(key));
    }

    fn digest(&self) -> u64 {
        let mut digest = Digest::new();
        digest.word(self.hits);
        for &key in &self.in_order {
            digest.word(key);
        }
        digest.0
    }

    /// Half of the keys are left, in ascending order, and they are those of odd index.
    fn valid(&self) -> bool {
        let mut expected: Vec<u64> = self.keys.iter().skip(1).step_by(2).copied().collect();
        expected.sort_unstable();
        self.in_order == expected && self.hits == self.keys.len().div_ceil(2) as u64
    }
}

suite::export!(Treap);
