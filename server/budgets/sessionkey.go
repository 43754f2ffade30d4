package budgets

import (
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

func (h *Handlers) sessionKeyRoutes(r *web.Routes) {
	for _, prefix := range []string{"", "/v1"} {
		r.Post(prefix+"/sessions/{id}/keys", redisstore.Operator, access.ByKeyAt(h.createSessionKey))
		r.Get(prefix+"/sessions/{id}/keys", redisstore.Viewer, access.ByKeyAt(h.listSessionKeys))
		r.Delete(prefix+"/sessions/{id}/keys/{key_id}", redisstore.Operator, access.ByKeyAt(h.deleteSessionKey))
	}
}

// mostSessionKeyBytes is about how much the list of a session's keys may have.
const mostSessionKeyBytes = 8 * 1500

type createSessionKeyRequest struct {
	Name web.Optional[string] `json:"name"`
}

func (r *createSessionKeyRequest) newKey() (redisstore.NewSessionKey, error) {
	var v web.Validation
	if r.Name.Given {
		v.Name(r.Name)
	}
	return redisstore.NewSessionKey{Name: r.Name.Value}, v.Err()
}

// sessionKeyAnswer is one of a session's keys.
type sessionKeyAnswer struct {
	ID      uuid.UUID     `json:"id"`
	Session uuid.UUID     `json:"session_id"`
	Name    string        `json:"name,omitzero"`
	Key     string        `json:"key,omitzero"` // in the response to its creation only
	Created web.Timestamp `json:"created_at"`
}

func sessionKeyOf(k redisstore.SessionKey) sessionKeyAnswer {
	return sessionKeyAnswer{ID: k.ID, Session: k.Session, Name: k.Name, Created: web.Timestamp(k.Created)}
}

// createSessionKey creates a credential for one session.
func (h *Handlers) createSessionKey(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID) error {
	wanted, err := web.Decoded(ctx, (*createSessionKeyRequest).newKey)
	if err != nil {
		return err
	}
	if wanted.Idempotency, err = web.IdempotencyOf(ctx, "create session key", id); err != nil {
		return err
	}
	if _, err := h.Guard.Keys(); err != nil { // before a key is made that no response could carry
		return err
	}
	made, err := h.Store.CreateSessionKey(web.RequestContext(ctx), key, id, wanted)
	if err != nil {
		return AsConflict(err)
	}
	created := sessionKeyOf(made)
	if created.Key, err = h.Guard.NewSessionKey(key.Organization, made); err != nil {
		return err
	}
	web.KeepFromCaches(ctx)
	return web.AnswerCreated(ctx, "/v1/sessions/"+id.String()+"/keys/"+made.ID.String(), created)
}

// listSessionKeys lists the keys of a session that live.
func (h *Handlers) listSessionKeys(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID) error {
	if err := h.Front.ReserveAnswer(ctx, mostSessionKeyBytes); err != nil {
		return err
	}
	keys, err := h.Store.SessionKeys(web.RequestContext(ctx), key, id)
	return web.AnswerEach(ctx, sessionKeyOf, keys, err)
}

// deleteSessionKey ends one of a session's keys at once.
func (h *Handlers) deleteSessionKey(ctx *fasthttp.RequestCtx, key redisstore.APIKey, session uuid.UUID) error {
	id, err := web.PathIDNamed(ctx, "key_id")
	if err != nil {
		return err
	}
	if err := web.Decode(ctx, &web.Nothing{}); err != nil {
		return err
	}
	return web.AnswerNothing(ctx, h.Store.DeleteSessionKey(web.RequestContext(ctx), key, session, id))
}
