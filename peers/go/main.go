// A goroutine a request: what `peers/src/go_program.rs` builds and runs.
//
// It reads a schedule from standard input, little-endian words of 64 bits: the number of workers, the number of requests, and for each
// request its arrival and its service time, ns. It writes each request's latency, the time lost in gaps, and the part of it after
// service times were over, ns.
package main

import (
	"bufio"
	"encoding/binary"
	"io"
	"log"
	"os"
	"runtime"
	"sync/atomic"
	"time"
)

const (
	leadNs  = 5_000_000
	gapNs   = 5_000
	drain   = 30 * time.Second
	pending = int64(-1)
)

type request struct{ AtNs, ServiceNs int64 }

var (
	epoch     = time.Now()
	requests  []request
	latencies []int64
	lostNs    atomic.Int64
	overrunNs atomic.Int64
)

// The kernel's clock: Go has no cheaper one.
func nowNs() int64 { return int64(time.Since(epoch)) }

func main() {
	workers, err := read(bufio.NewReaderSize(os.Stdin, 1<<20))
	if err != nil {
		log.Fatalf("cannot read the schedule: %v", err)
	}
	runtime.GOMAXPROCS(workers)
	startNs := nowNs() + leadNs
	feed(startNs)
	if !answered() {
		log.Fatalf("requests have no answer %v after the last arrived; lower --load", drain)
	}
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	figures := append(latencies, lostNs.Load(), overrunNs.Load())
	if err := binary.Write(out, binary.LittleEndian, figures); err != nil {
		log.Fatalf("cannot write the latencies: %v", err)
	}
	if err := out.Flush(); err != nil {
		log.Fatalf("cannot write the latencies: %v", err)
	}
}

func read(in io.Reader) (int, error) {
	var head [2]int64
	if err := binary.Read(in, binary.LittleEndian, &head); err != nil {
		return 0, err
	}
	requests = make([]request, head[1])
	latencies = make([]int64, head[1], head[1]+2)
	for index := range latencies {
		latencies[index] = pending
	}
	return int(head[0]), binary.Read(in, binary.LittleEndian, requests)
}

// Starts what is due and yields, so that the feeder takes no core from the requests.
func feed(startNs int64) {
	for next := 0; next < len(requests); runtime.Gosched() {
		elapsedNs := nowNs() - startNs
		for ; next < len(requests) && requests[next].AtNs <= elapsedNs; next++ {
			go serve(next, startNs)
		}
	}
}

func serve(index int, startNs int64) {
	begunNs := nowNs()
	lastNs := begunNs
	for lastNs-begunNs < requests[index].ServiceNs {
		now := nowNs()
		if gap := now - lastNs; gap > gapNs {
			lostNs.Add(gap)
		}
		lastNs = now
	}
	if overrun := lastNs - begunNs - requests[index].ServiceNs; overrun > gapNs {
		overrunNs.Add(overrun)
	}
	atomic.StoreInt64(&latencies[index], lastNs-startNs-requests[index].AtNs)
}

func answered() bool {
	next := 0
	for deadline := time.Now().Add(drain); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		for next < len(latencies) && atomic.LoadInt64(&latencies[next]) != pending {
			next++
		}
		if next == len(latencies) {
			return true
		}
	}
	return false
}
