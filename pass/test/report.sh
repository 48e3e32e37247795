#!/bin/bash
# The report names every probe with its reason and place, and the loops that need none.
. "$(dirname "$0")/lib.sh"
cat >"$work/subject.c" <<'C'
long elsewhere(long); int puts(const char *);
static int leaf(int x) { return x * 3 + 1; }                                          // 2
long counted(long n, long x) { for (long i = 0; i < n; i++) x = x * x + i; return x; } // 3
long small(const long *a) {                                                           // 4
  long s = 1;
  for (int i = 0; i < 5; i++) s = s * a[i] + leaf((int)s);                            // 6
  return s;
}
long uncounted(const char *s) { long n = 0; while (*s++ != ':') n++; return n; }       // 9
long calls(long n) { long x = 0; while (x < n) x += elsewhere(x); return x; }          // 10
long again(long n) { return n < 2 ? n : again(n - 1) * again(n - 2); }                 // 11
__attribute__((annotate("headway_no_probes"))) long left_alone(long n) { while (n-- > 3) n ^= elsewhere(n); return n; }
long rarely(const unsigned *a, long n) {                                              // 13
  long x = 1;
  for (long i = 0; i < n; i++)
    if (a[i] & 64)
      x = x / a[i] + x / (a[i] ^ 3) + x / (a[i] ^ 5) + x / (a[i] ^ 7) + x / (a[i] ^ 9) + x / (a[i] ^ 11) + 7; // 17
  return x;
}
long last(long n) { return n < 2 ? n : elsewhere(n + 1); }                            // 20
long not_last(long n) { return elsewhere(n + 1) * 3; }                                // 21
long indirectly(long (*f)(long), long n) { return f(n); }                             // 22
int put(const char *s) { return puts(s); }                                            // 23
C
cat >"$work/unrolled.c" <<'C'
double gather(const double *a, const unsigned *at, unsigned begin, unsigned end) {
  double sum = 0;
  for (unsigned i = begin; i < end; i++) sum += a[at[i]];                              // 3
  return sum;
}
double column(const double *a, unsigned long length, unsigned long stride) {
  double sum = 0;
  for (unsigned long i = 0; i < length / stride; i++) sum += a[i * stride];            // 8
  return sum;
}
C
mkdir "$work/reports"
"$bin/headway-cc" -O3 -g -c "$work/unrolled.c" -o "$work/unrolled.o" -mllvm "-headway-report=$work/unrolled.json"
"$bin/headway-cc" -O2 -g -fno-unroll-loops -fno-vectorize -c "$work/subject.c" -o "$work/subject.o" \
  -mllvm "-headway-report=$work/reports" -mllvm -headway-probe-distance=4000
"$bin/headway-cc" -O0 -c "$work/subject.c" -o "$work/subject.o" -mllvm "-headway-report=$work/single.json" -mllvm -headway-probe=tsc
python3 - "$work" <<'P'
import glob, json, sys
work = sys.argv[1]
files = glob.glob(f"{work}/reports/subject.c-*.json")
assert len(files) == 1, files
report = json.load(open(files[0]))
assert report["version"] == 1 and report["probe"] == "flag" and report["distance"] == 4000, report
functions = {f["name"]: f for f in report["functions"]}
def probes(name):
    return [(p["reason"], p["line"]) for p in functions[name]["probes"]]
assert probes("counted") == [("strip-mined-loop", 3)], probes("counted")
assert functions["counted"]["probes"][0]["iterations"] > 16
assert probes("small") == [], probes("small")
assert functions["small"]["quiet_loops"][0]["trips"] == 5, functions["small"]
assert probes("uncounted") == [("unrolled-loop", 9)], probes("uncounted")
assert ("after-external-call", 10) in probes("calls"), probes("calls")
assert [r for r, _ in probes("again")] == ["recursion"], probes("again")
# Heavy iterations have a probe, and all are counted.
assert sorted(probes("rarely")) == [("heavy-way", 17), ("strip-mined-loop", 16)], probes("rarely")
# A call that becomes a jump may lead back here, but not out of the C library; behind other calls there is a probe.
assert probes("last") == [("tail-call", 20)], probes("last")
assert probes("not_last") == [("after-external-call", 21)], probes("not_last")
assert probes("indirectly") == [("tail-call", 22)], probes("indirectly")
assert probes("put") == [], probes("put")
assert {"name": "left_alone", "reason": "annotated"} in report["skipped"], report["skipped"]
assert report["probes"] == sum(len(f["probes"]) for f in functions.values())
half = report["distance"] / 2
for f in functions.values():
    for p in f["probes"]:
        assert 0 <= p["covers"] <= report["distance"], p
    assert f["unprobed"].get("through", 0) <= half, f
# What the optimiser has unrolled is counted all the same.
for f in json.load(open(f"{work}/unrolled.json"))["functions"]:
    reasons = {p["reason"] for p in f["probes"]}
    assert reasons == {"strip-mined-loop"}, f
single = json.load(open(f"{work}/single.json"))
assert single["probe"] == "tsc" and single["distance"] == 8000
print("the report holds what it should:", report["probes"], "probes")
P
