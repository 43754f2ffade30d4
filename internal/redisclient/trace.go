package redisclient

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Each round trip to Redis within a request that is traced has a span of its own: one for NOSCRIPT and one for the repeat
// with the source, one for each node of a cluster that was called. It begins when the command is sent: the gap
// before it is the time in the queue. No span holds keys, arguments or answers: credentials' hashes are among them.

// tracedCall is the context of a call to Redis within a request that is traced.
type tracedCall struct {
	context.Context // which has the request's span
	tracer          trace.Tracer
	operation       string
}

type tracedCallKey struct{}

// Value implements context.Context.
func (c *tracedCall) Value(key any) any {
	if key == (tracedCallKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// traced returns the context to go on with: a *tracedCall when the request is traced.
func (c *Client) traced(ctx context.Context, operation string) context.Context {
	if c.config.Tracer == nil || !trace.SpanFromContext(ctx).IsRecording() {
		return ctx
	}
	return &tracedCall{ctx, c.config.Tracer, operation}
}

// start begins the span of a round trip of one command, or of a pipeline of several.
func (c *tracedCall) start(server server, verb string, commands int) trace.Span {
	attributes := make([]attribute.KeyValue, 0, 6)
	attributes = append(attributes, semconv.DBSystemNameRedis, attribute.String("remit.operation", c.operation))
	attributes = append(attributes, server...)
	verb = strings.ToUpper(verb)
	if commands > 1 {
		attributes = append(attributes, semconv.DBOperationBatchSize(commands))
	}
	attributes = append(attributes, semconv.DBOperationName(verb))
	_, span := c.tracer.Start(c.Context, verb+" "+c.operation, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
	return span
}

// endTrip ends the span of a round trip. Of an error that Redis answered it holds only the
// first word, which is a code (NOSCRIPT, MOVED, OOM): what follows may name keys.
func endTrip(span trace.Span, err error) {
	switch {
	case err == nil, errors.Is(err, redis.Nil):
	case isReply(err):
		code, _, _ := strings.Cut(err.Error(), " ")
		span.SetAttributes(semconv.DBResponseStatusCode(code), semconv.ErrorTypeKey.String(code))
		span.SetStatus(codes.Error, "")
	default:
		span.SetAttributes(semconv.ErrorTypeKey.String(tripError(err)))
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// tripError names why a command has no answer, in few words that do not grow in number.
func tripError(err error) string {
	var timed net.Error
	switch {
	case isUnconfirmed(err):
		return "unconfirmed"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timed) && timed.Timeout():
		return "timeout"
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return "no_connection"
	}
	return "connection"
}

// server is the attributes that name a server.
type server []attribute.KeyValue

// sentinelLed is what go-redis has in place of the address of a primary that Sentinels name.
const sentinelLed = "FailoverClient"

func serverAddress(address string) server {
	host, port, err := net.SplitHostPort(address)
	switch {
	case address == sentinelLed:
		return nil
	case err != nil: // a socket of this machine
		return server{semconv.ServerAddress(address)}
	}
	number, _ := strconv.Atoi(port)
	return server{semconv.ServerAddress(host), semconv.ServerPort(number)}
}

// traceTrips adds spans to the client's round trips if tracing is on.
func traceTrips(client redis.UniversalClient, tracer trace.Tracer) {
	if tracer == nil {
		return
	}
	switch client := client.(type) {
	case *redis.ClusterClient:
		client.OnNewNode(func(node *redis.Client) { node.AddHook(&tripHook{serverAddress(node.Options().Addr)}) })
	case *redis.Client:
		client.AddHook(&tripHook{serverAddress(client.Options().Addr)})
	}
}

// tripHook makes the spans of all that is sent with the context of a tracedCall. Pipelines that calls share have none; see
// beginTrips.
type tripHook struct{ server server }

// DialHook implements redis.Hook.
func (h *tripHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (h *tripHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		call, isTraced := ctx.Value(tracedCallKey{}).(*tracedCall)
		if !isTraced {
			return next(ctx, cmd)
		}
		span := call.start(h.server, cmd.Name(), 1)
		err := next(ctx, cmd)
		endTrip(span, err)
		return err
	}
}

// ProcessPipelineHook implements redis.Hook.
func (h *tripHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		call, isTraced := ctx.Value(tracedCallKey{}).(*tracedCall)
		if !isTraced {
			return next(ctx, cmds)
		}
		verb, commands := pipelined(cmds)
		span := call.start(h.server, verb, commands)
		err := next(ctx, cmds)
		endTrip(span, err)
		return err
	}
}

// pipelined names a pipeline by its first command and counts them, without the ASKING that go-redis sends before a command
// whose slot moves to another node.
func pipelined(cmds []redis.Cmder) (verb string, commands int) {
	for _, cmd := range cmds {
		if cmd.Name() == "asking" {
			continue
		}
		if commands++; commands == 1 {
			verb = cmd.Name()
		}
	}
	return verb, commands
}

// trip is the span of one command that shares a pipeline.
type trip struct {
	span trace.Span
	cmd  unretriedCmd
}

// beginTrips begins the spans of the calls of a batch whose requests are traced, each in its own request's trace; nil for none.
func beginTrips(server *redis.Client, batch []*pendingCall, sent int) []trip {
	var trips []trip
	for _, p := range batch {
		if p.traced != nil && p.cmd.Err() == nil { // sent, not late
			verb := p.cmd.Name()
			if p.call != nil && p.call.unknown { // it goes again, merged, with the source
				verb = "eval"
			}
			trips = append(trips, trip{p.traced.start(serverAddress(server.Options().Addr), verb, sent), p.cmd})
		}
	}
	return trips
}

// endTrips ends them, each with what its command was answered.
func endTrips(trips []trip) {
	for _, t := range trips {
		endTrip(t.span, t.cmd.Err())
	}
}
