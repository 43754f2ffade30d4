package redisclient

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"remit/test/redistest"
)

func TestCallsThatShareAPipelineHaveEachTheirSpansInTheirTrace(t *testing.T) {
	t.Parallel()
	r := redistest.NewSpanRecorder()
	c := openClient(t, Config{Tracer: r.Tracer}, "redis://"+miniredis.RunT(t).Addr())
	n := newCounter(c)
	add := func(ctx context.Context) { wantError(t, "an add", second(n.add(ctx, Flow{})), nil) }
	const traced = 5
	for _, want := range [][]string{{"EVALSHA add", "EVAL add"}, {"EVALSHA add"}} { // Redis knows the script the second time
		found, began := make([][]sdktrace.ReadOnlySpan, traced), make([]time.Time, traced)
		calls := []func(context.Context){add}
		for i := range traced {
			calls = append(calls, func(context.Context) {
				began[i] = time.Now()
				found[i] = r.Request(add)
			})
		}
		atOnce(t, c, n.key, calls...)
		waited := slices.MaxFunc(began, time.Time.Compare) // all of them, until the last had begun
		for _, spans := range found {
			if !slices.Equal(redistest.NamesOf(spans), want) {
				t.Fatalf("a call has the spans %q, want %q", redistest.NamesOf(spans), want)
			}
			for i, span := range spans {
				unknown := redistest.AttributeOf(span, "error.type") == "NOSCRIPT"
				if redistest.AttributeOf(span, "db.operation.batch.size") != fmt.Sprint(traced+1) || unknown != (i+1 < len(want)) ||
					redistest.AttributeOf(span, "server.address") != "127.0.0.1" || redistest.AttributeOf(span, "server.port") == "" {
					t.Errorf("span %d of %q tells %v", i, want, span.Attributes())
				}
				if (span.Status().Code == codes.Error) != unknown || span.StartTime().Before(waited) {
					t.Errorf("span %d of %q: %v; does the waiting count as a round trip?", i, want, span.Status())
				}
			}
		}
	}
	if all := slices.DeleteFunc(r.Ended(), func(s sdktrace.ReadOnlySpan) bool { return !strings.HasSuffix(s.Name(), " add") }); len(all) != 3*traced {
		t.Errorf("%d spans of %d traced round trips", len(all), 3*traced)
	}
}

// A command whose slot moves to another node is sent behind ASKING.
func TestASpanOfAnASKRedirectIsThatOfItsCommand(t *testing.T) {
	t.Parallel()
	recorder := redistest.NewSpanRecorder()
	hook := (&tripHook{}).ProcessPipelineHook(func(context.Context, []redis.Cmder) error { return nil })
	asking, script := redis.NewCmd(t.Context(), "asking"), redis.NewCmd(t.Context(), "evalsha")
	for _, sent := range [][]redis.Cmder{{asking, script}, {asking, script, asking, script}} {
		must(0, hook(&tracedCall{t.Context(), recorder.Tracer, "add"}, sent))(t)
	}
	spans := recorder.Ended()
	for i, size := range []string{"", "2"} {
		if got := redistest.AttributeOf(spans[i], "db.operation.batch.size"); spans[i].Name() != "EVALSHA add" || got != size {
			t.Errorf("a span %s of %q commands, want %q", spans[i].Name(), got, size)
		}
	}
}

func TestTheSpanOfARoundTripThatFailsSaysHow(t *testing.T) {
	t.Parallel()
	r := redistest.NewSpanRecorder()
	mini := miniredis.RunT(t)
	c := openClient(t, Config{Tracer: r.Tracer}, "redis://"+mini.Addr())
	read := func(ctx context.Context) { _, _ = c.Call(ctx, Flow{}, Reads, "get", "key") }
	for _, test := range []struct {
		name, want string
		spoil      func()
	}{
		{"Redis refuses", "OOM", func() { mini.SetError("OOM command not allowed") }},
		{"Redis is away", "connection", func() { mini.Close() }},
	} {
		test.spoil()
		spans := r.Request(read)
		if len(spans) == 0 || redistest.AttributeOf(spans[len(spans)-1], "error.type") != test.want || spans[len(spans)-1].Status().Code != codes.Error {
			t.Errorf("%s: the spans are %q", test.name, redistest.NamesOf(spans))
		}
	}
}
