// The thread operations of `make bench-threads` by goroutines. Each line of standard input names an operation; the answer is its ns.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

const many = 200_000

var operations = map[string]func(int){
	"mutex": func(count int) {
		var mutex sync.Mutex
		for range count {
			mutex.Lock()
			mutex.Unlock()
		}
	},
	"yield": func(count int) {
		done := make(chan bool)
		go func() {
			for range count / 2 {
				runtime.Gosched()
			}
			close(done)
		}()
		for range count / 2 {
			runtime.Gosched()
		}
		<-done
	},
	"condvar": func(count int) {
		var mutex sync.Mutex
		turned := sync.NewCond(&mutex)
		turn := true
		play := func(mine bool) {
			mutex.Lock()
			for range count / 2 {
				for turn != mine {
					turned.Wait()
				}
				turn = !mine
				turned.Signal()
			}
			mutex.Unlock()
		}
		done := make(chan bool)
		go func() {
			play(false)
			close(done)
		}()
		play(true)
		<-done
	},
	"spawn": func(count int) {
		for number := range count {
			done := make(chan int, 1)
			go func() { done <- number + 1 }()
			<-done
		}
	},
}

func main() {
	runtime.GOMAXPROCS(1)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		start := time.Now()
		operations[lines.Text()](many)
		fmt.Println(float64(time.Since(start).Nanoseconds()) / many)
	}
}
