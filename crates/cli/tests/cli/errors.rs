//! Errors of the user name their place and the nearest valid word; exit status 2.

use super::headway;

#[track_caller]
pub(super) fn refused(args: &[&str], parts: &[&str]) {
    let output = headway(args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{args:?} printed something");
    for part in parts {
        assert!(
            stderr.contains(part),
            "{args:?}: {part:?} is not in: {stderr}"
        );
    }
}

#[test]
fn wrong_words_get_the_nearest_valid_one() {
    refused(&["simm"], &["simm", "'sim'"]);
    refused(&["sim", "--polcy", "darc"], &["--polcy", "--policy"]);
    refused(
        &["sim", "--policy", "drac"],
        &["--policy", "drac", "did you mean 'darc'"],
    );
    refused(
        &["sim", "--policy", "darc,wimdow=3"],
        &["wimdow", "did you mean 'window'"],
    );
    refused(
        &["sim", "--policy", "darc,delta=0"],
        &["delta=0", "at least 1"],
    );
    refused(&["sim", "--policy", "darc,delta"], &["delta", "key=value"]);
    for command in ["sim", "sweep", "capacity"] {
        refused(
            &[command, "--policy", "rackshed", "--servers", "2"],
            &["--policy", "rackshed", "did you mean 'racksched'"],
        );
    }
    refused(
        &["sim", "--policy", "pallas,inner=drac", "--servers", "2"],
        &["--policy", "drac", "did you mean 'darc'"],
    );
    // The message has the same range for values that are always invalid and for values too large for this server.
    for dispatchers in ["0", "15", "257", "2.5", "1us", "-1"] {
        let policy = format!("concord,dispatchers={dispatchers}");
        refused(
            &["sim", "--policy", &policy, "--workers", "14"],
            &[
                &format!("dispatchers={dispatchers}"),
                "1 to the number of workers",
            ],
        );
    }
    refused(
        &[
            "serve",
            "--policy",
            "concord,dispatchers=3",
            "--workers",
            "2",
        ],
        &["--policy", "concord", "1 to the number of workers"],
    );
    for command in ["sim", "sweep", "capacity", "bench", "serve"] {
        refused(
            &[command, "--workload", "tpc"],
            &["--workload: ", "tpc", "tpcc"],
        );
    }
    refused(&["serve", "--app", "kvv"], &["kvv", "kv"]);
}

#[test]
fn wrong_values_name_their_flag() {
    refused(&["sim", "--duration", "5"], &["--duration", "5"]);
    refused(
        &["sim", "--duration", "5 parsecs"],
        &["--duration", "parsecs"],
    );
    refused(&["sim", "--rate", "fast"], &["--rate", "fast"]);
    for command in ["sim", "sweep", "plan"] {
        let said = ["--load", "'-1'", "above 0 and at most 100"];
        refused(&[command, "--load", "-1"], &said);
    }
    refused(&["sim", "--load", "101"], &["--load", "at most 100"]);
    refused(&["sim", "--unknown", "1.5"], &["--unknown", "from 0 to 1"]);
    for change in ["20ms", "20ms:3", "20:-3", "20ms:-x"] {
        refused(
            &["sim", "--core-change", change],
            &["--core-change", change],
        );
    }
    refused(
        &["sim", "--core-change", "1ms:-14"],
        &["worker", "0 to 13", "14"],
    );
    refused(
        &["sim", "--core-change", "1ms:+3"],
        &["core change", "worker 3"],
    );
    for flag in [
        "--rate",
        "--workers",
        "--servers",
        "--requests",
        "--queue-limit",
    ] {
        refused(&["sim", flag, "-1"], &[flag, "-1"]);
    }
    for command in ["sim", "sweep", "capacity", "bench", "serve"] {
        refused(&[command, "--workers", "0"], &["--workers", "'0'", "256"]);
        refused(&[command, "--workers", "9999"], &["--workers", "256"]);
    }
    refused(
        &["bench", "--cores", "256"],
        &["--cores", "this machine has"],
    );
    for flag in ["--requests", "--queue-limit"] {
        for value in ["0", "1.5", "many"] {
            refused(
                &["sim", flag, value],
                &[flag, value, "whole number above 0"],
            );
        }
    }
    refused(
        &["sim", "--requests", "1k", "-o", "/nonexistent/x"],
        &["--output: ", "/nonexistent/x"],
    );
    refused(
        &["sim", "--load", "0.5", "--rate", "1k"],
        &["--load", "--rate"],
    );
    refused(
        &["capacity", "--slo", "class.short.slowdwn.p999<=10"],
        &["--slo", "slowdown"],
    );
    refused(
        &["capacity", "--slo", "class.shrt.slowdown.p999<=10"],
        &["--slo", "short"],
    );
    refused(&["sweep", "--loads", "0.1..0.9"], &["--loads", "step"]);
    refused(
        &["serve", "--listen", "tcp://127.0.0.1:1"],
        &["--listen: ", "tcp://127.0.0.1:1", "udp://"],
    );
    refused(
        &["serve", "--listen", "udp://127.0.0.1:99999"],
        &["--listen: ", "99999"],
    );
    refused(&["load", "tcp://127.0.0.1:1"], &["TARGET: ", "udp://"]);
    refused(
        &["serve", "--classifier", "respp:GET=0"],
        &["--classifier", "resp"],
    );
}

#[test]
fn a_full_disk_is_named_and_is_no_usage_error() {
    for (flag, args) in [
        ("--output", &["sim", "--requests", "1k", "-o"][..]),
        ("--hlog", &["sim", "--requests", "1k", "--hlog"]),
        ("--trace-out", &["sim", "--requests", "1k", "--trace-out"]),
        ("--html", &["sim", "--requests", "1k", "--html"]),
    ] {
        let output = headway(&[args, &["/dev/full"]].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {stderr}");
        assert!(
            stderr.contains(&format!("cannot write {flag}: /dev/full")),
            "{stderr}"
        );
    }
}

#[test]
fn a_result_that_cannot_be_written_leaves_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("result");
    std::fs::write(&path, "old").unwrap();
    // A limit on the size of files stands for a full disk.
    let output = std::process::Command::new("sh")
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 1; exec \"$0\" sim --requests 20k --html \"$1\"",
        ])
        .args([env!("CARGO_BIN_EXE_headway"), path.to_str().unwrap()])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("unchanged"), "{stderr}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn standard_output_by_name_and_a_pipe_are_written_as_they_come() {
    let by_name = headway(&["sim", "--requests", "1k", "-o", "/dev/stdout"]);
    let plain = headway(&["sim", "--requests", "1k"]);
    assert_eq!(by_name.status.code(), Some(0));
    assert_eq!(by_name.stdout, plain.stdout);
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    let path = fifo.to_str().unwrap();
    assert!(
        std::process::Command::new("mkfifo")
            .arg(path)
            .status()
            .unwrap()
            .success()
    );
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || std::fs::read(fifo).unwrap()
    });
    let written = headway(&["sim", "--requests", "1k", "-o", path]);
    assert_eq!(written.status.code(), Some(0));
    assert_eq!(reader.join().unwrap(), plain.stdout);
}

#[test]
fn files_are_named_with_the_line_and_the_key() {
    let dir = tempfile::tempdir().unwrap();
    let workload = dir.path().join("w.toml");
    std::fs::write(
        &workload,
        "name = \"w\"\n[[class]]\nname = \"a\"\nshar = 1.0\n",
    )
    .unwrap();
    let path = workload.to_str().unwrap();
    refused(&["sim", "--workload", path], &["w.toml:4", "shar", "share"]);
    let config = dir.path().join("serve.toml");
    std::fs::write(
        &config,
        "listen = \"udp://127.0.0.1:0\"\npolcy = \"darc\"\n",
    )
    .unwrap();
    refused(
        &["serve", "-c", config.to_str().unwrap()],
        &["serve.toml:2", "polcy", "policy"],
    );
    let costs = dir.path().join("costs.json");
    std::fs::write(&costs, "{\"dispatch\": 3}").unwrap();
    refused(
        &["sim", "--costs", costs.to_str().unwrap()],
        &["costs.json", "dispatch"],
    );
}

#[test]
fn a_setting_in_a_file_is_named_with_its_line_and_a_flag_with_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("serve.toml");
    for (key, value, said) in [
        ("policy", "\"drac\"", "did you mean 'darc'"),
        ("listen", "\"tcp://127.0.0.1:1\"", "udp://"),
        ("classifier", "\"respp:GET=0\"", "resp"),
        ("workload", "\"tpc\"", "tpcc"),
        ("drain", "\"5\"", "5"),
        ("pin", "\"all\"", "0,1,2"),
        ("workers", "9999", "256"),
        ("look-every", "\"10ns\"", "1us"),
    ] {
        let text = format!("# A comment\nseed = 7\n{key} = {value}\n");
        std::fs::write(&path, text).unwrap();
        let file = path.to_str().unwrap();
        let serve = ["serve", "--listen", "udp://127.0.0.1:0", "-c", file];
        let args = &serve[if key == "listen" { 3 } else { 1 }..];
        refused(
            &[&["serve"], args].concat(),
            &[&format!("serve.toml:3: {key}: "), said],
        );
        let value = value.trim_matches('"');
        refused(
            &["serve", "-c", file, &format!("--{key}"), value],
            &[&format!("--{key}"), said],
        );
    }
}

#[test]
fn shares_that_do_not_sum_to_one_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("w.toml");
    let class = |name: &str| {
        format!(
            "[[class]]\nname = \"{name}\"\nshare = 0.6\nservice = {{ dist = \"constant\", mean = \"1us\" }}\n"
        )
    };
    std::fs::write(&path, format!("name = \"w\"\n{}{}", class("a"), class("b"))).unwrap();
    refused(
        &["sim", "--workload", path.to_str().unwrap()],
        &["1.2", "share"],
    );
}

#[test]
fn a_port_in_use_is_a_sentence() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("udp://{}", taken.local_addr().unwrap());
    refused(
        &["serve", "--listen", &url, "--app", "echo"],
        &["--listen", "another process has the port"],
    );
}

#[test]
fn cores_that_cannot_be_had_are_a_sentence() {
    let serve = |pin: &str, parts: &[&str]| {
        let args = [
            "serve",
            "--listen",
            "udp://127.0.0.1:0",
            "--app",
            "echo",
            "--workers",
            "2",
            "--pin",
            pin,
        ];
        refused(&args, parts);
    };
    serve("all", &["--pin", "'all'", "0,1,2"]);
    serve("0", &["--pin", "fewer workers"]);
    serve("0,4095,4096", &["--pin", "4095"]);
}

#[test]
fn a_sweep_names_what_replaces_pieces_and_what_is_wrong_with_its_precision() {
    let lines = [
        "import headway",
        "headway.sweep([\"c-fcfs\", \"darc\"], \"tpcc\", loads=\"0.5\", workers=\"6\", requests=\"50000\", core_changes=[\"1ms:-3\"], on=\"ray\", replications=3, store=\"points\").frame()",
    ];
    for pieces in [&["--shard", "1/2"][..], &["--merge", "1.json", "2.json"]] {
        let sweep = [
            "sweep",
            "--workload",
            "tpcc",
            "--loads",
            "0.5",
            "--workers",
            "6",
            "--requests",
            "50k",
            "--core-change",
            "1ms:-3",
            "--replications",
            "3",
        ];
        refused(
            &[&sweep[..], pieces].concat(),
            &[pieces[0], lines[0], lines[1]],
        );
    }
    refused(&["sweep", "--until-ci", "0%"], &["--until-ci", "2%"]);
    refused(
        &[
            "sweep",
            "--until-ci",
            "2%",
            "--ci-of",
            "class.shrt.latency.p99",
        ],
        &["--ci-of", "shrt", "short"],
    );
    refused(
        &["sweep", "--until-ci", "2%", "--ci-of", "overall.latncy.p99"],
        &["--ci-of", "latncy", "latency"],
    );
}

#[test]
fn a_sweep_on_ray_says_where_the_python_package_is_to_come_from() {
    let sweep = ["sweep", "--loads", "0.5", "--on", "ray", "--python"];
    let remedy = ["--on: ", "make python", "--python", "HEADWAY_PYTHON"];
    let nowhere = [&sweep[..], &["/nonesuch/python"]].concat();
    refused(&nowhere, &[&remedy[..], &["/nonesuch/python"]].concat());
    // A program that is no Python, or lacks the package.
    let without = [&sweep[..], &["false"]].concat();
    refused(
        &without,
        &[&remedy[..], &["lacks the Python package"]].concat(),
    );
    refused(&["sweep", "--store", "points"], &["--on"]);
}

#[test]
fn flags_that_nothing_heeds_are_refused() {
    for policy in ["d-fcfs", "work-stealing"] {
        for layout in ["inline", "dedicated"] {
            let flags = ["--policy", policy, "--layout", layout];
            for command in [&["serve", "--check"][..], &["bench"]] {
                refused(&[command, &flags].concat(), &["--layout: ", "dispatcher"]);
            }
        }
        let limited = ["serve", "--check", "--policy", policy, "--queue-limit", "9"];
        refused(&limited, &["--queue-limit: ", policy, "c-fcfs"]);
    }
    for (flags, flag) in [
        (&["--app", "echo", "--workload", "tpcc"][..], "--workload"),
        (&["--app", "kv", "--max-spin", "1s"], "--max-spin"),
        (&["--app", "spin", "--keys", "9"], "--keys"),
        (&["--data", "/tmp"], "--data"),
        (&["--scan-entries", "9"], "--scan-entries"),
    ] {
        refused(&[&["serve", "--check"], flags].concat(), &[flag]);
    }
    let target = "udp://127.0.0.1:9";
    for (flags, flag) in [
        (&["--scan-entries", "9"][..], "--scan-entries"),
        (&["--keys", "9"], "--keys"),
        (&["--key-choice", "uniform"], "--key-choice"),
        (&["--app", "kv", "--data", "/tmp"], "--data"),
        (&["--app", "kv", "--body-file", "x"], "--body-file"),
        (&["--key-choice", "zipf:1"], "--key-choice"),
        (&["--map", "short=0"], "long=N"),
    ] {
        refused(&[&["load", target], flags].concat(), &[flag]);
    }
    for mechanism in ["flag", "tsc", "signal"] {
        let args = ["bench", "--policy", "darc", "--preempt", mechanism];
        refused(&args, &["--preempt: ", "concord"]);
    }
    for policy in ["darc", "d-fcfs"] {
        let args = ["bench", "--policy", policy, "--look-every", "5us"];
        refused(&args, &["--look-every: ", "--layout inline", "concord"]);
    }
    refused(&["bench", "--look-every", "10ns"], &["at least 1us"]);
    let flows = |policy, flows| ["bench", "--policy", policy, "--flows", flows];
    refused(&flows("darc", "8"), &["--flows: ", "such as synergy"]);
    refused(&flows("d-fcfs", "8,0.9"), &["such as 8,zipf:0.99"]);
    refused(&flows("synergy,flows=8", "8"), &["draws flows of its own"]);
    let inline = [
        "bench",
        "--policy",
        "concord",
        "--preempt",
        "signal",
        "--layout",
        "inline",
    ];
    refused(&inline, &["--layout: ", "dedicated"]);
    let beside = ["--layout", "dedicated", "--workers", "1"];
    let args = ["bench", "--policy", "srpt", "--preempt", "flag,tsc"];
    refused(
        &[&args[..], &beside].concat(),
        &["--preempt: ", "by tsc", "tiny-quanta"],
    );
}

/// The command refuses flags that the chosen level cannot honour, instead of ignoring them.
#[test]
fn flags_without_an_effect_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let costs = dir.path().join("costs.json").display().to_string();
    std::fs::write(&costs, "{\"dispatch_ns\": 3}").unwrap();
    let of_costs = [
        ["--queue-limit", "3"],
        ["--dispatch-cost", "1us"],
        ["--resume", "own-worker"],
        ["--costs", &costs],
    ];
    for [flag, value] in of_costs {
        for command in ["sim", "sweep", "capacity"] {
            refused(
                &[command, "--policy", "ps", flag, value],
                &[&format!("{flag}: "), "'ps'"],
            );
        }
        let host = ["sim", "--policy", "shenango", flag, value];
        refused(&host, &[&format!("{flag}: "), "--host-costs"]);
    }
    let of_circumstances = [
        ["--classifier", "random"],
        ["--unknown", "0.1"],
        ["--core-change", "1ms:-1"],
    ];
    for [flag, value] in of_circumstances {
        refused(
            &["sim", "--policy", "shenango", flag, value],
            &[&format!("{flag}: "), "host"],
        );
    }
    for [flag, value] in &of_circumstances[..2] {
        for command in ["sim", "sweep", "capacity"] {
            refused(
                &[command, "--policy", "ps", flag, value],
                &[&format!("{flag}: "), "'ps'"],
            );
        }
    }
    let out = dir.path().join("out").display().to_string();
    let looks = [
        ["--trace-out", &out],
        ["--html", &out],
        ["--trace-window", "1ms..2ms"],
    ];
    for [flag, value] in looks {
        for policy in [&["shenango"][..], &["ps"], &["racksched", "--servers", "2"]] {
            let args = [&["sim", "--policy"][..], policy, &[flag, value]].concat();
            refused(&args, &[&format!("{flag}: ")]);
        }
    }
    refused(
        &["sim", "--policy", "shenango", "--servers", "2"],
        &["--servers: ", "host"],
    );
    let app = ["sim", "--policy", "shenango", "--app", "b:batch"];
    for given in [["--workload", "tpcc"], ["--load", "0.5"], ["--rate", "1k"]] {
        refused(&[&app[..], &given].concat(), &["--app", given[0]]);
    }
    for given in [["--host-costs", "spin=1us"], ["--threads-per-core", "1"]] {
        refused(
            &[&["sim"][..], &given].concat(),
            &[&format!("{}: ", given[0]), "shenango"],
        );
    }
    for command in ["sweep", "capacity"] {
        refused(
            &[command, "--policy", "shenango"],
            &["--policy", "headway sim"],
        );
    }
    refused(
        &["sweep", "--ci-of", "overall.latency.p99"],
        &["--until-ci"],
    );
    refused(&["plan", "--fit-out", &out], &["--trace <FILE>"]);
    for flag in ["--trace-format=csv", "--service=*=1us", "--skip-zero"] {
        let name = flag.split('=').next().unwrap_or(flag);
        for command in ["plan", "sim", "sweep", "bench"] {
            refused(&[command, flag], &[name, "no trace"]);
        }
        let app = ["sim", "--policy", "shenango", "--app", "b:batch", flag];
        refused(&app, &[name, "--app"]);
    }
    let trace = dir.path().join("t.csv").display().to_string();
    std::fs::write(&trace, "time,class,service\n0,a,1\n5,a,1\n").unwrap();
    for command in ["sweep", "capacity"] {
        refused(&[command, "--workload", &trace], &["--workload: ", "fit"]);
    }
}

#[test]
fn a_device_without_end_is_no_settings_file() {
    let longer = "longer than 64 MiB";
    refused(&["sim", "--costs", "/dev/zero"], &["--costs: ", longer]);
    refused(&["serve", "-c", "/dev/zero"], &["--config: ", longer]);
    refused(
        &["sim", "--workload", "/dev/zero"],
        &["--workload: ", "not a regular file"],
    );
    refused(&["plan", "--costs", "/dev/zero"], &["--costs: ", longer]);
}

#[test]
fn an_unknown_policy_is_told_those_of_every_level() {
    for command in ["sim", "sweep", "capacity"] {
        refused(
            &[command, "--policy", "xyz"],
            &[
                "darc",
                "tardis",
                " ps;",
                "of a rack: ",
                "netclone",
                "of a host: ",
                "shenango",
            ],
        );
    }
}
