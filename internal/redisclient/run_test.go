package redisclient

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/internal/redisproc"
	"remit/test/redistest"
)

func TestAWriteWhoseReplyIsLostIsOfUnknownOutcomeAndNotSentAgain(t *testing.T) {
	t.Parallel()
	aloneAndShared(t, func(t *testing.T, crowd func(*testing.T, *Client)) {
		onEachProxy(t, func(t *testing.T, c *Client, p *redistest.Proxy) {
			crowd(t, c)
			n := newCounter(c)
			loadScripts(t, c)
			for times := int64(1); times <= 5; times++ {
				p.LoseReplies(addScript.SHA(), 100)
				_, err := n.add(t.Context(), Flow{})
				if !errors.Is(err, ErrOutcomeUnknown) || errors.Is(err, ErrUnavailable) {
					t.Errorf("%v, want %v", err, ErrOutcomeUnknown)
				}
				if sent := p.Requests(); sent != 1 {
					t.Errorf("it was sent %d times", sent)
				}
				if sum := must(n.read(t.Context()))(t); sum != times {
					t.Errorf("the sum is %d, want %d", sum, times)
				}
			}
		})
	})
}

func TestAReadWhoseReplyIsLostIsUnavailable(t *testing.T) {
	t.Parallel()
	onEachProxy(t, func(t *testing.T, c *Client, p *redistest.Proxy) {
		loadScripts(t, c)
		p.LoseReplies(readScript.SHA(), 100)
		_, err := newCounter(c).read(t.Context())
		if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("%v, want %v", err, ErrUnavailable)
		}
	})
}

func TestAScriptThatRedisForgotRunsOnce(t *testing.T) {
	t.Parallel()
	onEachOwn(t, func(t *testing.T, c *Client, node *redis.Client, crowd func(*testing.T, *Client)) {
		crowd(t, c)
		n := newCounter(c)
		for times := int64(1); times <= 3; times++ {
			must(node.ScriptFlush(t.Context()).Result())(t)
			if sum := must(n.add(t.Context(), Flow{}))(t); sum != times {
				t.Errorf("the sum is %d, want %d", sum, times)
			}
		}
		must(node.ScriptFlush(t.Context()).Result())(t)
		if sum := must(n.addInBatch(t.Context()))(t); sum != 4 {
			t.Errorf("after a batch the sum is %d, want 4", sum)
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
