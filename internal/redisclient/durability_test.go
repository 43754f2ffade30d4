package redisclient

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/internal/redisproc"
	"remit/test/redistest"
)

func TestAWriteWaitsForItsReplicaNoLongerThanItsCallerDoes(t *testing.T) {
	t.Parallel()
	byItselfAndClustered(t, func(t *testing.T, cluster bool) {
		aloneAndShared(t, func(t *testing.T, crowd func(*testing.T, *Client)) {
			p := redistest.StartPair(t, cluster)
			c := openClient(t, Config{Durability: Replicated}, p.URL)
			seen := &pipelinesSeen{}
			watched(c, func(string) redis.Hook { return seen })
			n := newCounter(c)
			loadScripts(t, c)
			crowd(t, c)
			p.SuspendReplica(t)
			const patience = confirmTime / 2
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, err := n.add(ctx, Flow{})
			wantError(t, "a write", err, ErrOutcomeUnknown)
			if most := seen.wait.Load(); most <= 0 || most > (patience-confirmSpare).Milliseconds() {
				t.Errorf("Redis was asked to answer within %d ms of the caller's %s", most, patience)
			}
			if ctx.Err() == nil && !errors.Is(err, errUnconfirmed) { // its answer came in time
				t.Error(err)
			}
		})
	})
}

func TestAnUnconfirmedRefusalIsARefusalUnlessItHasWritten(t *testing.T) {
	t.Parallel()
	plain := errors.New("refused")
	c := openClient(t, Config{Durability: Replicated}, "redis://127.0.0.1:1")
	c.config.Refusals = Refusals{"refused": func(*Reply) error { return plain }, "over_limit": func(*Reply) error { return errOverLimit }}
	for code, want := range map[string]error{"ok": ErrOutcomeUnknown, "refused": plain, "over_limit": ErrOutcomeUnknown} {
		_, err := c.read(addScript, NewCommand(Flow{}, 0), []any{code}, errUnconfirmed)
		wantError(t, code, err, want)
	}
}

func TestACrowdIsConfirmedTogetherAndInDoubtTogether(t *testing.T) {
	t.Parallel()
	byItselfAndClustered(t, func(t *testing.T, cluster bool) {
		p := redistest.StartPair(t, cluster)
		c := openClient(t, Config{Durability: Replicated}, p.URL)
		n := newCounter(c)
		const callers = 100
		all := func() []error {
			errs := make([]error, callers)
			var group sync.WaitGroup
			for i := range errs {
				group.Go(func() { _, errs[i] = n.add(context.Background(), Flow{}) })
			}
			redistest.WaitAtMost(t, 30*time.Second, &group)
			return errs
		}
		for _, err := range all() {
			wantError(t, "with a replica", err, nil)
		}
		p.SuspendReplica(t)
		unknown := 0
		for _, err := range all() {
			if errors.Is(err, ErrOutcomeUnknown) {
				unknown++
			} else if !errors.Is(err, ErrUnavailable) { // its turn may not have come in time
				t.Errorf("%v", err)
			}
		}
		there := must(redistest.PlainClient(t, "redis://"+p.Primary).Get(t.Context(), n.key).Int64())(t)
		if unknown == 0 || there != int64(callers+unknown) {
			t.Errorf("the primary has %d, want %d and the %d in doubt", there, callers, unknown)
		}
	})
}

// A mark whose slot has gone to another server confirms nothing; the next write takes another.
func TestAMarkInAnotherSlotIsReplaced(t *testing.T) {
	t.Parallel()
	redistest.SkipIfShort(t)
	cluster := must(redisproc.StartClusterWithReplicas(t.Context(), 2, t.TempDir()))(t)
	t.Cleanup(func() { _ = cluster.Stop() })
	c := openClient(t, Config{Durability: Replicated}, cluster.URL())
	n := newCounter(c)
	must(n.add(t.Context(), Flow{}))(t)
	server := must(c.serverOf(t.Context(), n.key))(t)
	var elsewhere string
	for cell := uint16(0); elsewhere == ""; cell++ {
		key := c.keys.mark(c.keys.probe(cell))
		if must(c.serverOf(t.Context(), key))(t) != server {
			elsewhere = key
		}
	}
	c.confirmerOf(server).mark.Store(&elsewhere)
	wantError(t, "with a mark elsewhere", second(n.add(t.Context(), Flow{})), errUnconfirmed)
	wantError(t, "with another", second(n.add(t.Context(), Flow{})), nil)
}

func TestAMarkHasTheHashTagOfItsKey(t *testing.T) {
	t.Parallel()
	k := keyspace{"remit:"}
	for got, want := range map[string]string{
		k.mark("remit:s:{c3f1}:0198"): "remit:w:{c3f1}", k.mark("remit:k:issuer"): "remit:w:{remit:k:issuer}",
		k.neverWritten(): "remit:n:none", k.probe(0x0a0b): "remit:r:{0a0b}",
	} {
		wantEqual(t, "a key", got, want)
	}
}

// On a cluster whose slot moves, the reply of the node that gets the command after ASK is lost.
func TestAConfirmedWriteThatIsRedirectedByASKRunsOnceWhenItsReplyIsLost(t *testing.T) {
	t.Parallel()
	var ran atomic.Int64
	address := redistest.Serve(t, func(conn net.Conn) { beAskedAndSilent(conn, &ran) })
	c := openClient(t, Config{Durability: Replicated}, "redis+cluster://"+address)
	wantError(t, "the write", second(newCounter(c).add(t.Context(), Flow{})), ErrOutcomeUnknown)
	wantEqual(t, "times it ran", ran.Load(), 1)
}

// beAskedAndSilent is a cluster's only node, which sends every script to itself by ASK, runs it when it is asked, and then ends the
// connection without an answer.
func beAskedAndSilent(conn net.Conn, ran *atomic.Int64) {
	defer conn.Close()
	_, port, _ := net.SplitHostPort(conn.LocalAddr().String())
	answers := map[string]string{
		"hello": "-ERR unknown command\r\n", "cluster": "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:" + port + "\r\n",
		"evalsha": "-ASK 0 127.0.0.1:" + port + "\r\n", "eval": "+OK\r\n", "wait": ":1\r\n",
	}
	asked := false
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		word := strings.ToLower(lines.Text())
		switch {
		case word == "asking":
			asked = true
		case asked && word == "evalsha":
			ran.Add(1)
		case asked && word == "wait":
			return
		case !asked:
			_, _ = io.WriteString(conn, answers[word])
		}
	}
}

func TestAnUnconfirmedWriteIsInDoubtWhateverTheCause(t *testing.T) {
	t.Parallel()
	c := &confirmer{suspect: func(error) {}}
	for _, cause := range []error{errTooLate, serverError("READONLY You can't write"), &net.OpError{Op: "dial", Err: errors.New("refused")}} {
		err := classify(c.failed(cause), Writes)
		if !errors.Is(err, ErrOutcomeUnknown) || !strings.Contains(fmt.Sprint(err), cause.Error()) {
			t.Errorf("%v: %v", cause, err)
		}
	}
}
