package redisclient

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// BatchCall is one call among those of RunAll.
type BatchCall struct {
	Script  *Script
	Command *Command

	// RunAll sets these as RunCommand returns them. A success that no replica has confirmed has both.
	Reply *Reply
	Err   error
	// Again says that the call is to be run by itself. RunAll sets it if the call did not run because the server does not know
	// the script, or does not have the keys.
	Again bool
}

// RunAll runs calls that write, those of one server in one pipeline, which is sent once. When a call of a pipeline has ended,
// read is called with its place; it may change how the call ended, for the metrics, or ask to run it again. A pipeline is
// counted as one call of its first script, which ended as the worst of its calls. Then again is called with the place of each
// call that is to be run by itself. read and again are called for several servers at once.
func (c *Client) RunAll(ctx context.Context, calls []*BatchCall, read func(int), again func(context.Context, int)) {
	c.underWay.Add(int64(len(calls))) // those of scripts that are not watched too: they are few
	defer c.underWay.Add(-int64(len(calls)))
	for _, call := range calls {
		if c.watches(call.Script) {
			c.config.Watch.Before(ctx, call.Command.flow, call.Command.keysOfScript())
		}
	}
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	var group sync.WaitGroup
	for server, places := range c.byServer(ctx, calls) {
		b := batch{c, server, calls, places}
		group.Go(func() {
			defer RecoverTo(b.fail)
			b.run(ctx, read)
			for _, i := range places {
				if calls[i].Again {
					again(ctx, i)
				}
			}
		})
	}
	group.Wait()
}

// byServer returns the places of the calls that each server runs. Calls that have no server fail, and are counted as one
// pipeline.
func (c *Client) byServer(ctx context.Context, calls []*BatchCall) map[*redis.Client][]int {
	found, began := map[*redis.Client][]int{}, time.Now()
	var nowhere *BatchCall
	for i, call := range calls {
		server, err := c.serverOf(ctx, call.Command.firstKey())
		if err != nil {
			call.Err = fmt.Errorf("%w: %w", ErrUnavailable, err)
			nowhere = call
			continue
		}
		found[server] = append(found[server], i)
	}
	if nowhere != nil {
		c.metrics.called(nowhere.Script.counted, began, nowhere.Err)
	}
	return found
}

// batch is the calls of one pipeline of RunAll.
type batch struct {
	client *Client
	server *redis.Client
	calls  []*BatchCall // all of them
	places []int        // of those of this server
}

func (b batch) fail(err error) {
	for _, i := range b.places {
		b.calls[i].Err, b.calls[i].Again = err, false
	}
}

// run sends the pipeline and counts it, unless all its calls are to be run by themselves.
func (b batch) run(ctx context.Context, read func(int)) {
	began, first := time.Now(), b.calls[b.places[0]]
	counted := first.Script.counted
	turns := &b.client.pipeliners.of(b.server).batches
	if err := turns.Acquire(ctx, first.Command.flow); err != nil {
		b.fail(err)
		b.client.metrics.called(counted, began, err)
		return
	}
	commands, unconfirmed := b.send(b.client.traced(ctx, first.Script.name), turns)
	var worst error
	ran := false
	for at, i := range b.places {
		commands[at].note(unconfirmed)
		b.end(b.calls[i], commands[at])
		read(i)
		if !b.calls[i].Again {
			ran, worst = true, worse(worst, b.calls[i].Err)
		}
	}
	if ran {
		b.client.metrics.called(counted, began, worst)
	}
}

// send sends the calls in one pipeline, and releases its place when they are answered.
func (b batch) send(ctx context.Context, turns *semaphore) (commands []unretriedCmd, unconfirmed error) {
	defer turns.Release()
	pipeline := b.server.Pipeline()
	commands = make([]unretriedCmd, len(b.places))
	for at, i := range b.places {
		commands[at] = b.calls[i].Command.of(ctx, b.calls[i].Script, false)
		_ = pipeline.Process(ctx, commands[at]) // queues it
	}
	deadline, _ := ctx.Deadline()
	failure := b.client.confirmerOf(b.server).end(pipeline, keyOf(commands[0]), deadline)
	b.client.metrics.batchSizes.Observe(float64(len(b.places)))
	_, failed := pipeline.Exec(ctx)
	unconfirmed = failure()
	for _, c := range commands {
		c.explain(failed)
	}
	return commands, unconfirmed
}

// end sets how a call has ended.
func (b batch) end(call *BatchCall, sent unretriedCmd) {
	values, err := sent.answer(nil)
	if redis.HasErrorPrefix(err, "NOSCRIPT") || moving(err) {
		call.Again = true
		return
	}
	if !isUnconfirmed(err) {
		b.client.Suspect(err)
	}
	call.Reply, call.Err = b.client.read(call.Script, call.Command, values, err)
	b.client.watched(call.Script, call.Command, call.Reply, call.Err)
}
