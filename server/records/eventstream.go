package records

import (
	"bufio"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/conn"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

// streamEvents streams the agent's audit trail as it grows.
func (h *Handlers) streamEvents(ctx *fasthttp.RequestCtx, caller access.Caller, agent uuid.UUID, q EventQuery) error {
	after := q.After
	events := &tail[redisstore.Event]{
		organization: caller.OrganizationID(),
		read: func(ctx context.Context) ([]redisstore.Event, bool, error) {
			return h.Store.Events(ctx, caller.Caller, agent, after, conn.StreamPage)
		},
		await: func(ctx context.Context, most time.Duration) error {
			return h.awaitEventFor(ctx, agent, after, caller.Patience(most))
		},
		write: func(w *bufio.Writer, e redisstore.Event) (bool, error) {
			data, err := web.Encode(e)
			if err != nil {
				return false, err
			}
			after = e.ID
			_, err = fmt.Fprintf(w, "id: %s\nevent: %s\ndata: %s\n\n", e.ID, e.Type, data)
			return true, err
		},
		size: func(page []redisstore.Event) int { return len(page) * conn.EventBytes },
		over: caller.HasExpired,
	}
	return events.stream(ctx, h)
}
