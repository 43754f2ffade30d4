package pages

import (
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/server/internal/web"
)

// DueLag returns how late what time brings to an organization is recorded.
func (h *Host) DueLag(page *fasthttp.RequestCtx, organization uuid.UUID) (time.Duration, error) {
	return h.store.DueLag(web.RequestContext(page), organization)
}
