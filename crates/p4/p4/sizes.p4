// Sizes of tables and registers. crates/p4/src/entries.rs and crates/xdp/bpf/tables.h say the same; a test compares all three.
#define MAX_TYPES 256
#define MAX_GROUPS 64
#define MAX_TURNS 4096
#define MAX_SERVERS 256
#define DUPLICATE_SLOTS 65536
// A window of bursts: 2^14 ns.
#define WINDOW_SHIFT 14
