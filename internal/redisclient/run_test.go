package redisclient

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/internal/redisproc"
	"remit/test/redistest"
	"remit/test/suite"
)

func TestAWriteWhoseReplyIsLostIsOfUnknownOutcomeAndNotSentAgain(t *testing.T) {
	t.Parallel()
	aloneAndShared(t, func(t *testing.T, crowd func(*testing.T, *Client)) {
		byItselfAndClustered(t, func(t *testing.T, cluster bool) {
			url, p := redistest.ProxiedURL(t, cluster)
			c := openClient(t, Config{}, url)
			crowd(t, c)
			n := newCounter(c)
			loadScripts(t, c)
			for times := int64(1); times <= 5; times++ {
				p.LoseReplies(addScript.SHA(), 100)
				_, err := n.add(t.Context(), Flow{})
				if !errors.Is(err, ErrOutcomeUnknown) || errors.Is(err, ErrUnavailable) {
					t.Errorf("%v, want %v", err, ErrOutcomeUnknown)
				}
				wantEqual(t, "times it was sent", p.Requests(), 1)
				wantSums(t, []counter{n}, times)
			}
			p.LoseReplies(readScript.SHA(), 100)
			if _, err := n.read(t.Context()); !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("a read: %v, want %v", err, ErrUnavailable)
			}
		})
	})
}

func TestAScriptThatRedisForgotRunsOnce(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, c *Client) {
		for _, test := range []struct {
			counters int
			add      func(*testing.T, []counter)
		}{
			{1, func(t *testing.T, one []counter) { must(one[0].add(t.Context(), Flow{}))(t) }},
			{1, func(t *testing.T, one []counter) { must(one[0].addInBatch(t.Context()))(t) }},
			{1, addAll}, // in a shared pipeline
			{maxMerged + 2, addAll},
		} {
			counters := countersTogether(c, test.counters)
			for times := int64(1); times <= 3; times++ {
				forget := func(ctx context.Context, server *redis.Client) error { return server.ScriptFlush(ctx).Err() }
				suite.NoError(t, c.ForEachPrimary(t.Context(), forget))
				test.add(t, counters)
				wantSums(t, counters, times)
			}
		}
	})
}

func TestAPauseEndsWithItsCallersTime(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	if !pause(ctx, time.Microsecond) {
		t.Error("it gave up before")
	}
	cancel()
	if pause(ctx, time.Hour) {
		t.Error("it went on after")
	}
}

func TestGoRedisLeftToItselfSendsAScriptAgainWhoseReplyWasLost(t *testing.T) {
	t.Parallel()
	p := redistest.NewProxy(t, redistest.SocketOf(redistest.StartRedis(t, redisproc.Config{})))
	client := redis.NewClient(&redis.Options{Addr: p.Address})
	defer client.Close()
	p.LoseReplies("INCR", 2)
	count, err := client.Eval(t.Context(), "return redis.call('INCR', KEYS[1])", []string{"test:count"}).Int()
	if err != nil || count != 3 || p.Requests() != 3 {
		t.Errorf("%d requests, count %d, %v: the tests of lost replies prove nothing any more", p.Requests(), count, err)
	}
}
