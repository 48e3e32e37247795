// An ordered map as a treap: inserts, looks up, erases, then walks in order. Nodes come from an array.
#include <utility>
#include <vector>

#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0x7e7e6aa17bc7f9c4, 0xba141c495ffb0f36};
const unsigned kernel_passes = 9;

namespace {

struct Node {
    uint64_t key, priority;
    Node *left, *right;
};

std::vector<Node> nodes;
std::vector<uint64_t> keys;
std::vector<uint64_t> in_order;
Node *root;
uint64_t hits;

// Takes what is below `key` to the left, the rest to the right.
void split(Node *tree, uint64_t key, Node *&left, Node *&right) {
    if (tree == nullptr) {
        left = right = nullptr;
    } else if (tree->key < key) {
        split(tree->right, key, tree->right, right);
        left = tree;
    } else {
        split(tree->left, key, left, tree->left);
        right = tree;
    }
}

Node *join(Node *left, Node *right) {
    if (left == nullptr) return right;
    if (right == nullptr) return left;
    if (left->priority > right->priority) {
        left->right = join(left->right, right);
        return left;
    }
    right->left = join(left, right->left);
    return right;
}

void insert(Node *&tree, Node *node) {
    Node **at = &tree;
    while (*at != nullptr && (*at)->priority >= node->priority) {
        if ((*at)->key == node->key) return;
        at = node->key < (*at)->key ? &(*at)->left : &(*at)->right;
    }
    split(*at, node->key, node->left, node->right);
    *at = node;
}

bool contains(const Node *tree, uint64_t key) {
    while (tree != nullptr && tree->key != key) tree = key < tree->key ? tree->left : tree->right;
    return tree != nullptr;
}

void erase(Node *&tree, uint64_t key) {
    Node **at = &tree;
    while (*at != nullptr && (*at)->key != key) at = key < (*at)->key ? &(*at)->left : &(*at)->right;
    if (*at != nullptr) *at = join((*at)->left, (*at)->right);
}

void walk(const Node *tree) {
    if (tree == nullptr) return;
    walk(tree->left);
    in_order.push_back(tree->key);
    walk(tree->right);
}

} // namespace

void kernel_setup(bool full) {
    uint64_t seed = 28;
    keys.resize(full ? 3000 : 500);
    for (uint64_t &key : keys) key = suite_random(&seed) >> 8; // distinct, as the generator is a permutation
    nodes.resize(keys.size());
    in_order.reserve(keys.size());
}

void kernel_run(void) {
    uint64_t seed = 280;
    root = nullptr;
    hits = 0;
    in_order.clear();
    for (size_t i = 0; i < keys.size(); i++) {
        nodes[i] = {keys[i], suite_random(&seed), nullptr, nullptr};
        insert(root, &nodes[i]);
    }
    for (size_t i = 0; i < keys.size(); i++) hits += contains(root, keys[i] + (i & 1));
    for (size_t i = 0; i < keys.size(); i += 2) erase(root, keys[i]);
    walk(root);
}

uint64_t kernel_digest(void) {
    uint64_t digest = suite_mix(0, hits);
    for (uint64_t key : in_order) digest = suite_mix(digest, key);
    return digest;
}

// Half of the keys are left, in ascending order, and they are those of odd index.
bool kernel_valid(void) {
    uint64_t sum = 0;
    for (size_t i = 0; i < in_order.size(); i++) {
        if (i > 0 && in_order[i - 1] >= in_order[i]) return false;
        sum += in_order[i];
    }
    for (size_t i = 1; i < keys.size(); i += 2) sum -= keys[i];
    return sum == 0 && in_order.size() == keys.size() / 2 && hits == (keys.size() + 1) / 2;
}
