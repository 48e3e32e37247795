//! What each rack policy says of itself.

use crate::spec::{Description, Param, ParamKind};

const SECOND_NS: u64 = 1_000_000_000;

const RTT: Param = Param::time("rtt", 10_000, 0, SECOND_NS)
    .means("age of what the switch knows: half of it each way");
/// Every key after it belongs to the servers' policy.
pub(super) const INNER: Param = Param::text("inner", "c-fcfs", "a server's policy")
    .means("the servers' policy; the keys after it are its parameters");
pub(super) const CHOICES: Param =
    Param::text("choices", "all", "all, or a number of servers, 1 to 4096")
        .means("servers drawn, of which the shortest is taken");
pub(super) const MOST_CHOICES: u64 = 4096;

pub(super) const RANDOM: Description = Description {
    name: "random",
    aliases: &[],
    summary: "any server",
    paper: "",
    params: &[RTT, INNER],
};

pub(super) const ROUND_ROBIN: Description = Description {
    name: "round-robin",
    aliases: &[],
    summary: "one server after the other",
    paper: "",
    params: &[RTT, INNER],
};

pub(super) const RACKSCHED: Description = Description {
    name: "racksched",
    aliases: &[],
    summary: "the shortest queue, as replies and later sends tell (RackSched)",
    paper: "RackSched, OSDI '20",
    params: &[CHOICES, RTT, INNER],
};

pub(super) const RACKSCHED_PLAIN: Description = Description {
    name: "racksched-plain",
    aliases: &[],
    summary: "the shortest queue, as replies tell alone",
    paper: "RackSched, OSDI '20",
    params: &[CHOICES, RTT, INNER],
};

pub(super) const R2P2: Description = Description {
    name: "r2p2",
    aliases: &[],
    summary: "at most n requests at a server, the rest waits in the switch (R2P2)",
    paper: "R2P2, ATC '19",
    params: &[
        Param::whole("n", 2, 1, 1 << 16)
            .in_units("requests")
            .following("two per core of the largest server")
            .means("most requests at a server"),
        RTT,
        INNER,
    ],
};

pub(super) const DRACONIS: Description = Description {
    name: "draconis",
    aliases: &[],
    summary: "one queue in the switch for all cores (Draconis)",
    paper: "Draconis",
    params: &[RTT, INNER],
};

pub(super) const NETCLONE: Description = Description {
    name: "netclone",
    aliases: &[],
    summary: "two copies while two servers seem idle (NetClone)",
    paper: "NetClone",
    params: &[RTT, INNER],
};

pub(super) const HORUS: Description = Description {
    name: "horus",
    aliases: &[],
    summary: "a server with an idle core, else the shorter of two (Horus)",
    paper: "Horus, NSDI '24",
    params: &[RTT, INNER],
};

/// How far the demand may move before a new layout is made; the default.
const fn delta(default: &'static str) -> Param {
    Param::text("delta", default, DELTA_FORM)
        .means("how far the demand must move before groups are formed again")
}
pub(super) const DELTA_FORM: &str =
    "a part of the rack's cores, 0% to 100%, or a number of cores, 0 to 1000000";
const INTERVAL: Param = Param::time("interval", 10_000_000, 1_000, SECOND_NS)
    .means("between two looks of the control plane");
const WINDOW: Param =
    Param::time("window", 20_000, 1_000, SECOND_NS).means("over which a burst is noticed");
const PLAN_TIME: Param = Param::time("plan_time", PLAN_NS, 0, SECOND_NS).means(
    "for scoring the candidates, while the old layout stays; 0: no time, and trials of full length",
);
/// From what on a group's requests go to any server; the first word, or the number, is the default.
const fn overflow(default: &'static str) -> Param {
    Param::text("overflow", default, OVERFLOW_FORM)
        .in_units("requests per core")
        .means("at which a server is full for a group, so that any server may get them; before, only one with an idle core")
}
pub(super) const OVERFLOW_FORM: &str = "off, or requests per core, 1 to 1000";

const BOUNCE: Param = Param::word("bounce", &["longer", "all", "off"])
    .means("what servers send back when their role changed");
const ADAPT: Param = Param::word("adapt", &["on", "off"])
    .means("whether the control plane goes on after the first policy");
const ROLES: Param = Param {
    kind: ParamKind::Text {
        default: "as the control plane says",
        form: "a server's policy",
    },
    ..INNER
};

/// As long as the paper's control plane has at most: scoring included, it stays within the interval (Pallas § D.4).
const PLAN_NS: u64 = 10_000_000;

/// How many requests a look needs; the default.
const fn samples(default: u64) -> Param {
    Param::whole("samples", default, 0, 1_000_000_000)
        .in_units("requests")
        .means("that a look at the registers needs, and over which shares are averaged")
}

/// When the control plane looks; the first word is the default.
const fn look(words: &'static [&'static str]) -> Param {
    Param::word("look", words)
        .means("whether groups that overflow are looked at before the interval is over")
}

/// What makes types alike; the first word is the default.
const fn likeness(words: &'static [&'static str]) -> Param {
    Param::word("alike", words).means(
        "which types are: by the ratio of their times, or the difference of their parts of all CPU time",
    )
}

/// What a grouping is judged by; the first word is the default.
const fn score(words: &'static [&'static str]) -> Param {
    Param::word("score", words).means("what a grouping is judged by")
}

/// How the demand's movement is measured; the first word is the default.
const fn drift(words: &'static [&'static str]) -> Param {
    Param::word("drift", words)
        .means("what is compared with `delta`: what types need beside the last planning, or what groups have beside what they need")
}

/// How the servers of a group take turns; the first word is the default.
const fn turns(words: &'static [&'static str]) -> Param {
    Param::word("turns", words).means("how the servers of a group take turns")
}

/// Which groups take a burst's excess; the first word is the default.
const fn clone(words: &'static [&'static str]) -> Param {
    Param::word("clone", words).means("which groups take what exceeds a group's share for a while")
}

pub(super) const PALLAS: Description = Description {
    name: "pallas",
    aliases: &[],
    summary: "types shaped into groups with servers of their own (Pallas, repaired)",
    paper: "Pallas, ATC '25",
    params: &[
        RTT,
        delta("12.5%"),
        drift(&["types", "groups"]),
        INTERVAL,
        PLAN_TIME,
        samples(500),
        look(&["sooner", "interval"]),
        likeness(&["time", "demand"]),
        score(&["slowdown", "latency"]),
        WINDOW,
        turns(&["even", "ranges"]),
        clone(&["longer", "any", "off"]),
        overflow("2.5"),
        BOUNCE,
        ADAPT,
        ROLES,
    ],
};

/// As printed: types are clustered by demand and share (§ 4.3), candidates compete by latency, 10 cores make a new layout, a server has all its
/// turns in a row whatever it has, and any group takes a burst's excess (§ 4.5).
pub(super) const PALLAS_PAPER: Description = Description {
    name: "pallas-paper",
    aliases: &[],
    summary: "the same without our repairs, as printed",
    paper: "Pallas, ATC '25",
    params: &[
        RTT,
        delta("10"),
        drift(&["groups", "types"]),
        INTERVAL,
        PLAN_TIME,
        samples(0),
        look(&["interval", "sooner"]),
        likeness(&["demand", "time"]),
        score(&["latency", "slowdown"]),
        WINDOW,
        turns(&["ranges", "even"]),
        clone(&["any", "longer", "off"]),
        overflow("off"),
        BOUNCE,
        ADAPT,
        ROLES,
    ],
};

/// Whether a control plane shapes the traffic, and gives servers their roles.
pub(super) fn is_shaped(about: &Description) -> bool {
    about.name == PALLAS.name || about.name == PALLAS_PAPER.name
}
