package faults

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// stopPatience is how long stopping workers keep retrying calls that have no known outcome yet.
const stopPatience = 20 * time.Second

// Fleet is a set of workers that call the service until they are stopped. Each makes every kind of call.
type Fleet struct {
	assignment
	stop, giveUp context.CancelFunc
	workers      sync.WaitGroup
}

// StartFleet starts workers that call the instances at these base URLs. The seed decides what each worker does, not when.
func StartFleet(w *Fixture, c *Caller, instances []string, workers int, seed uint64) *Fleet {
	f := &Fleet{assignment: assignment{seed: seed, fixture: w, caller: c, instances: instances}}
	f.working, f.stop = context.WithCancel(context.Background())
	f.patience, f.giveUp = context.WithCancel(context.Background())
	for n := range workers {
		f.workers.Go(f.newWorker(n).work)
	}
	return f
}

func (f *Fleet) newWorker(number int) *worker {
	return &worker{assignment: &f.assignment, number: number, agent: f.fixture.Agents[number%len(f.fixture.Agents)], next: number,
		random: rand.New(rand.NewPCG(f.seed, uint64(number)))}
}

// Stop returns when every worker has finished its current step. It may be called again.
func (f *Fleet) Stop() {
	f.stop()
	timer := time.AfterFunc(stopPatience, f.giveUp)
	defer timer.Stop()
	f.workers.Wait()
	f.giveUp()
}
